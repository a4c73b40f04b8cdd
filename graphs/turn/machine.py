"""Machine: a graph of ours, not compiled yet, whose runs have its name in traces."""

from __future__ import annotations

from typing import Any, TypeVar

from langgraph.graph import StateGraph
from pydantic import BaseModel

from questbook.graphs.settings import Settings

StateT = TypeVar("StateT", bound=BaseModel)
ContextT = TypeVar("ContextT", bound=Settings)


class Machine(StateGraph[StateT, ContextT, Any, StateT]):
    """A graph whose state says the machine's name: `MACHINE`, without the part before a colon."""

    def compile(self, *args: Any, name: str | None = None, **options: Any) -> Any:
        """Compile as any graph; unless another name is given, it has the machine's."""
        schema: Any = self.state_schema
        return super().compile(*args, name=name or schema.MACHINE.rpartition(":")[2], **options)
