"""Context: every setting of the dungeon master, in one place."""

from __future__ import annotations

from pydantic import Field

from questbook.graphs.reflect.context import MachineContext


class Context(MachineContext):
    """The dungeon master's settings: those that graphs share, and its own."""

    max_roll_rounds: int = Field(default=4, ge=1, le=20, description="Times the model may ask for dice in one turn.")
