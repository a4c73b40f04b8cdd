"""ReflectState: one reflection. No checkpoint holds what a memory says, so that forgetting need not look there."""

from __future__ import annotations

from typing import Annotated, Any

from langgraph.channels import UntrackedValue
from pydantic import BaseModel, Field

from questbook.memory.facts.reflection import Conclusions, Evidence

JSON = dict[str, Any]

_NOTICES_KEPT = 10


def keep_notices(current: list[JSON], new: list[JSON]) -> list[JSON]:
    """Append notices; the last 10 stay."""
    return [*current, *new][-_NOTICES_KEPT:]


class ReflectInput(BaseModel):
    """What a caller sends: from where to look back.

    Attributes:
        timeline: The timeline that reflects.
        turn: Its current turn, which has its place on it; what is written carries its stamp.
        through: The last turn whose facts all stand in the store; 0: the current one.
    """

    timeline: list[tuple[str, int]] = Field(default_factory=list)
    turn: int = 0
    through: int = 0


class ReflectState(ReflectInput):
    """State of a reflection.

    Attributes:
        viewer: Names of the player's character; never checkpointed, as all that follow but the last five.
        facts: Facts that were noted since the last reflection and hold.
        questions: What the model asks about them.
        evidence: What the model is shown, by number.
        concluded: What it concluded.
        pending: Sum of importance that has not been reflected on.
        failed: Why this reflection was not finished; "" if it was, or nothing was due.
        reflected_through: Last turn that has been reflected on.
        written: Keys of the insights that are new.
        notices: The last 10 things that a person should know of: {"turn", "node", "text"}.
    """

    viewer: Annotated[list[str] | None, UntrackedValue] = None
    facts: Annotated[list[Evidence] | None, UntrackedValue] = None
    questions: Annotated[list[str] | None, UntrackedValue] = None
    evidence: Annotated[list[Evidence] | None, UntrackedValue] = None
    concluded: Annotated[Conclusions | None, UntrackedValue] = None
    pending: int = 0
    failed: str = ""
    reflected_through: int = 0
    written: list[str] = Field(default_factory=list)
    notices: Annotated[list[JSON], keep_notices] = Field(default_factory=list)
