"""Tables: the small change of storytelling, written down in tables.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


def table(occasion: str) -> list[str]:
    """Return the texts for an occasion, to choose one from."""
    return list(_written()[occasion])


def saying(occasion: str) -> str:
    """Return the one text that there is for an occasion."""
    return str(_written()[occasion])


def flavours() -> dict[str, list[str]]:
    """Return what comes of small gestures, by the word for each."""
    return dict(_written()["flavour"])


@cache
def _written() -> dict[str, Any]:
    return tomllib.loads(
        files("questbook.graphs.offline.storyteller").joinpath("tables.toml").read_text(encoding="utf-8")
    )
