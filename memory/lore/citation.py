"""Citations: where a piece of lore stands, as a person finds it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def citation(value: Mapping[str, Any]) -> str:
    """Cite a record of lore: its source, and the page, row or section of it; "" if the value is no lore.

    For example "bestiary.pdf, page 12", "people.csv, row 4", "gods.md, The Old Ones › Ash".
    """
    if not value.get("source"):
        return ""
    places = (f"page {value['page']}" if value.get("page") else "", f"row {value['row']}" if value.get("row") else "")
    return ", ".join(part for part in (str(value["source"]), *places, str(value.get("section") or "")) if part)


def lore_text(value: Mapping[str, Any]) -> str:
    """Return what a record of lore says, without the headings that `citation` tells."""
    text, section = str(value.get("text", "")), value.get("section")
    return text.removeprefix(f"{section}\n") if section else text
