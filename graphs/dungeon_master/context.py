"""Context: every setting of the dungeon master, in one place."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from questbook.graphs.settings import Settings


class Context(Settings):
    """The dungeon master's settings: those that graphs share, and its own."""

    max_roll_rounds: int = Field(default=4, ge=1, le=20, description="Times the model may ask for dice in one turn.")
    reflection: Literal["inline", "background", "off"] = Field(
        default="inline",
        description="When to reflect: at the end of a turn, in the background (LangGraph Server alone), or never.",
    )
    reflection_importance: int = Field(
        default=150, ge=1, description="Importance of new facts, each 1 to 10, at whose sum there is a reflection."
    )
