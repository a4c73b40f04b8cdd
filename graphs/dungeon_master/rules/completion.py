"""Completing a character before the player has told everything: "enough, begin"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from questbook.notebooks import CharacterNotebook, NotebookError
from questbook.types import JSON

TOOL = "BeginAdventure"
_DEFAULTS = {
    "name": "Wren Ashdown",
    "ancestry": "human",
    "class": "fighter",
    "background": "has worked on many roads and is known on none",
    "goal": "to earn a name and see what lies beyond the next hill",
}
"""What fits any character, for what the model leaves empty."""


def begin_tool() -> JSON:
    """Return the tool by which the model says that a character is done."""
    fields = {name: {"type": "string"} for name in CharacterNotebook.REQUIRED}
    text = (
        "The character is done: the player wants to begin although something is missing, or nothing more needs to be "
        "asked. Fill in all that is in <missing> with what suits what the player has said. The player is told what "
        "you filled in, and the adventure begins."
    )
    parameters = {"type": "object", "properties": fields, "additionalProperties": False}
    return {"type": "function", "function": {"name": TOOL, "description": text, "parameters": parameters}}


def complete(page: CharacterNotebook, invented: Mapping[str, Any]) -> tuple[CharacterNotebook, str]:
    """Fill in what is missing on a character's page; return it, and what to tell the player, "" if nothing was missing.

    What the page holds stays. What the model thought of (`invented`, by field) and is empty or does not fit is
    replaced.
    """
    missing = page.missing
    for field in missing:
        for value in (invented.get(field), _DEFAULTS[field]):
            try:
                page = page.apply({field: value}, by_model=True).page
            except NotebookError:  # a number, a text that is too long
                continue
            if field not in page.missing:
                break
    fields = page.as_json()
    filled = "; ".join(f"{field}: {fields[field]}" for field in missing)
    return page, f"What you left open was filled in for you: {filled}." if filled else ""
