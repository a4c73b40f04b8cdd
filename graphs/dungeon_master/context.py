"""Context: every setting of the dungeon master, in one place."""

from __future__ import annotations

from pydantic import Field

from graphs.settings import Settings


class Context(Settings):
    """The dungeon master's settings: those that graphs share, and its own."""

    max_roll_rounds: int = Field(default=4, ge=1, le=20, description="Times the model may ask for dice in one turn.")
