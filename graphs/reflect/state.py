"""ReflectState: one reflection. No checkpoint holds the text of a memory, so that forgetting need not look there."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from langgraph.channels import UntrackedValue
from pydantic import BaseModel, Field

from questbook.graphs.turn.channels import Last, Own
from questbook.graphs.turn.state import keep_notices
from questbook.memory.facts.reflection import Conclusions, Evidence
from questbook.types import JSON


class ReflectInput(BaseModel):
    """What a caller sends: where to look back from.

    Attributes:
        timeline: The timeline that reflects.
        turn: Its current turn, which has its place on the timeline; what is written carries its stamp.
        through: The last turn whose facts are all in the store; 0: the current one.
        note_from: First turn whose facts may not be noted yet: those up to the current one are noted; 0: none are.
        thread: The thread that the timeline is of; "": the run's own.
        of_user: Whether the user's other threads see what is noted.
        notes_only: Whether nothing is done but to note facts.
    """

    timeline: Annotated[list[tuple[str, int]], Last] = Field(default_factory=list)
    turn: Annotated[int, Last] = 0
    through: Annotated[int, Last] = 0
    note_from: Annotated[int, Last] = 0
    thread: Annotated[str, Last] = ""
    of_user: Annotated[bool, Last] = False
    notes_only: Annotated[bool, Last] = False


class ReflectState(ReflectInput):
    """State of a reflection. The channels from `viewer` to `concluded` are never checkpointed.

    Attributes:
        machine: Says that the thread is a reflection's.
        campaign: Always None: a thread that has a campaign is a game's or a talk's, and no reflection runs on it.
        viewer: Names of the player's character.
        facts: The facts that were noted since the last reflection and hold.
        questions: What the model asks about them.
        evidence: What the model is shown, by number.
        concluded: What it concluded.
        pending: Sum of importance that has not been reflected on.
        failed: Why this reflection was not finished; "" if it was, or none was due.
        reflected_through: Last turn that has been reflected on.
        written: Keys of the insights that are new.
        notices: The last 10 messages to a person: {"turn", "node", "text"}.
    """

    MACHINE: ClassVar[str] = "reflect"
    """Name of the machine, in the channel `machine`."""

    machine: Annotated[str, Own("reflect")] = ""
    campaign: Annotated[Any, Own("reflect")] = None
    viewer: Annotated[list[str] | None, UntrackedValue] = None
    facts: Annotated[list[Evidence] | None, UntrackedValue] = None
    questions: Annotated[list[str] | None, UntrackedValue] = None
    evidence: Annotated[list[Evidence] | None, UntrackedValue] = None
    concluded: Annotated[Conclusions | None, UntrackedValue] = None
    pending: Annotated[int, Last] = 0
    failed: Annotated[str, Last] = ""
    reflected_through: Annotated[int, Last] = 0
    written: Annotated[list[str], Last] = Field(default_factory=list)
    notices: Annotated[list[JSON], keep_notices()] = Field(default_factory=list)
