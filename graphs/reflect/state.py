"""ReflectState: one reflection.

No checkpoint holds the text of a memory, so that forgetting need not look there.
"""

from typing import Annotated, Any, ClassVar

from langgraph.channels import UntrackedValue
from pydantic import Field

from questbook.graphs.turn.channels import Last, Own
from questbook.graphs.turn.state import NOTICES, CheckedTimeline, Schema
from questbook.memory.facts.reflection import Conclusions, Evidence
from questbook.types import JSON


class ReflectInput(Schema):
    """What a caller sends: where to look back from."""

    timeline: Annotated[list[tuple[str, int]], Last(CheckedTimeline, [])] = Field(default_factory=list)
    """The timeline that reflects, as the thread's state has it; empty, with turn 0: where the campaign of the settings
    was last played."""
    turn: Annotated[int, Last] = 0
    """The timeline's current turn; what is written carries its number."""
    through: Annotated[int, Last] = 0
    """The last turn whose facts are all in the store; 0: the current one."""
    note_from: Annotated[int, Last] = 0
    """First turn whose facts are noted before the reflection, if they are not yet; 0: none."""
    thread: Annotated[str, Last] = ""
    """Id of the timeline's thread; empty: the run's own."""
    of_user: Annotated[bool, Last] = False
    """Whether the user's other threads see what is noted."""
    viewer_page: Annotated[str, Last] = ""
    """Page of the campaign's head whose `name` is one of the person's names there; empty: none."""
    notes_only: Annotated[bool, Last] = False
    """Whether facts are noted, and no more."""


class ReflectState(ReflectInput):
    """State of a reflection. The channels from `viewer` to `concluded` are never checkpointed."""

    MACHINE: ClassVar[str] = "reflect"
    """Name of the machine, in the channel `machine`."""

    machine: Annotated[str, Own("reflect")] = ""
    """Says that the thread is a reflection's."""
    campaign: Annotated[Any, Own("reflect")] = None
    """Always None: a thread that has a campaign is a conversation's, and no reflection runs on it."""
    taken: Annotated[list[tuple[str, int]], Last(CheckedTimeline, [])] = Field(default_factory=list)
    """The timeline that was taken from the campaign's head; a caller that gives another one counts first."""
    viewer: Annotated[list[str] | None, UntrackedValue] = None
    """Names of the person whom the conversation is with, as facts have them in `known_by`."""
    facts: Annotated[list[Evidence] | None, UntrackedValue] = None
    """The facts that were noted since the last reflection and hold."""
    questions: Annotated[list[str] | None, UntrackedValue] = None
    """What the model asks about them."""
    evidence: Annotated[list[Evidence] | None, UntrackedValue] = None
    """What the model is shown, by number."""
    concluded: Annotated[Conclusions | None, UntrackedValue] = None
    """What it concluded."""
    pending: Annotated[int, Last] = 0
    """Sum of importance that has not been reflected on."""
    failed: Annotated[str, Last] = ""
    """Why this reflection was not finished; "" if it was, or none was due."""
    reflected_through: Annotated[int, Last] = 0
    """Last turn that has been reflected on."""
    written: Annotated[list[str], Last] = Field(default_factory=list)
    """Keys of the insights that are new."""
    notices: Annotated[list[JSON], NOTICES] = Field(default_factory=list)
    """The last 10 messages to a person: {"turn", "node", "text"}."""
