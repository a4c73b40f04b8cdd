"""Context: every setting of the dungeon master, in one place."""

from typing import ClassVar

from langchain_core.tools import BaseTool
from pydantic import Field

from questbook.graphs.settings import MachineContext


class Context(MachineContext):
    """The dungeon master's settings: those that graphs share, and its own."""

    TOOLS: ClassVar[tuple[BaseTool, ...]] = ()
    """Tools of the application, which the dungeon master may call beside the dice."""

    max_roll_rounds: int = Field(default=4, ge=1, le=20, description="Times the model may ask for dice in one turn.")
