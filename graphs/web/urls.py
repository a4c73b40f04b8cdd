"""Where a campaign is on the page: a path that a browser neither shortens nor splits, whatever the campaign's name."""

from __future__ import annotations

import re
from urllib.parse import quote

from questbook.memory.timeline.namespaces import escape_label, unescape_label

_UNSAFE = re.compile(r"[\x00-\x1f\x7f~/\\\ud800-\udfff]")
_SHORTENED = ("", ".", "..")


def label_of(name: str) -> str:
    """Return a name as one part of a path, percent-encoded; `name_of` reads it."""
    label = escape_label(name) if name in _SHORTENED or _UNSAFE.search(name) else name
    return quote(label, safe="")


def name_of(label: str) -> str:
    """Read a part of a path, decoded already; what `label_of` did not write is a name as it is."""
    try:
        return unescape_label(label)
    except ValueError:
        return label
