"""Page to prompt text.

A page renders to one line a field, `field: value`, the value as JSON. JSON keeps a value on its line and inside its
quotes, and `<`, `>` and `&` are written as escapes, so that no value can close the section it stands in or pose as
another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def render_value(value: Any) -> str:
    """Render one JSON value on one line, with nothing in it that markup could be made of."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    # U+2028 and U+2029 end a line for some readers; JSON allows them raw.
    return text.translate(_ESCAPES).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def render_fields(fields: Mapping[str, Any]) -> str:
    """Render the fields that hold something, one a line; empty ones cost no tokens."""
    return "\n".join(f"{name}: {render_value(value)}" for name, value in fields.items() if not is_empty(value))


def parse_fields(text: str) -> dict[str, Any]:
    """Read back what `render_fields` wrote. Lines that are not `field: JSON` are passed over."""
    fields: dict[str, Any] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(": ")
        if not separator:
            continue
        try:
            fields[name] = json.loads(value)
        except json.JSONDecodeError:  # prose around the page
            continue
    return fields


def is_empty(value: Any) -> bool:
    """Whether a field says nothing: null, blank text, or an empty collection (0 and false say something)."""
    return not value.strip() if isinstance(value, str) else value is None or value in ({}, [])
