"""CompanionState: everything the companion remembers between two checkpoints."""

from typing import Annotated, ClassVar, NotRequired

from pydantic import AfterValidator, Field

from questbook.graphs.turn.channels import Last, Own
from questbook.graphs.turn.state import FACT_CHANNELS, FactState, TurnState, patches
from questbook.memory.timeline.records import Count, read_time, shape
from questbook.notebooks import CoreNotebook, Notebook
from questbook.types import JSON


def _moment(text: str) -> str:
    if text and read_time(text) is None:
        raise ValueError("expected a time, ISO 8601")
    return text


Moment = Annotated[str, AfterValidator(_moment)]


class CompanionState(FactState):
    """State of one thread: the channels of every conversation with facts, and the companion's own."""

    MACHINE: ClassVar[str] = "companion"
    PAGES: ClassVar[dict[str, type[Notebook]]] = {"core": CoreNotebook}
    CARRIED: ClassVar[tuple[str, ...]] = (*TurnState.CARRIED, *FACT_CHANNELS, "archive_count", "opened_at")

    machine: Annotated[str, Own("companion")] = ""
    """Name of the machine that the thread belongs to; empty before its first turn."""
    core: Annotated[CoreNotebook, patches(CoreNotebook)] = Field(default_factory=CoreNotebook)
    """Core memory."""
    archived: Annotated[list[JSON], Last(list[shape({"turn": Count, "text": str, "tags": NotRequired[list[str]]})])] = (
        Field(default_factory=list)
    )
    """Entries of archival memory that wait until their turn has its place in the store: {"turn", …}."""
    archive_count: Annotated[int, Last] = 0
    """Entries of archival memory that this thread sees."""
    opened_at: Annotated[str, Last(Moment, "")] = ""
    """When the current turn began, ISO 8601 in UTC."""
    session: Annotated[str, Last(Moment, "")] = ""
    """When the session began, in the same form: a new thread or a long pause begins one."""
    away: Annotated[str, Last] = ""
    """How long before that the turn before began, in words; "" in the first."""
