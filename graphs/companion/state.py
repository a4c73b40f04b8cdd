"""CompanionState: everything the companion remembers between two checkpoints."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from questbook.graphs.turn.channels import Last, Own
from questbook.graphs.turn.state import FACT_CHANNELS, FactState, TurnState, patches
from questbook.notebooks import CoreNotebook, Notebook
from questbook.types import JSON


class CompanionState(FactState):
    """State of one thread: the channels of every conversation with facts, and the companion's own."""

    MACHINE: ClassVar[str] = "companion"
    PAGES: ClassVar[dict[str, type[Notebook]]] = {"core": CoreNotebook}
    CARRIED: ClassVar[tuple[str, ...]] = (*TurnState.CARRIED, *FACT_CHANNELS, "archive_count", "opened_at")

    machine: Annotated[str, Own("companion")] = ""
    """Name of the machine that the thread belongs to; empty before its first turn."""
    core: Annotated[CoreNotebook, patches(CoreNotebook)] = Field(default_factory=CoreNotebook)
    """Core memory."""
    archived: Annotated[list[JSON], Last] = Field(default_factory=list)
    """Entries of archival memory that wait until their turn has its place in the store: {"turn", …}."""
    archive_count: Annotated[int, Last] = 0
    """Entries of archival memory that this thread sees."""
    opened_at: Annotated[str, Last] = ""
    """When the current turn began, ISO 8601 in UTC."""
    session: Annotated[str, Last] = ""
    """When the session began, in the same form: a new thread or a long pause begins one."""
    away: Annotated[str, Last] = ""
    """How long before that the turn before began, in words; "" in the first."""
