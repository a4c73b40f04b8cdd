"""The channels that the middleware adds to the agent's state: what the checkpoint decides by.

They are private: a caller neither sends nor receives them. Pages are in the agent's output. An agent that is a node of
a parent graph keeps no state of its own from run to run, so there the parent's state has to hold all of it: with
`shared` the channels are in the agent's input and output, and the parent declares them too, with `MemoryState`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, get_type_hints

from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from langgraph.channels import UntrackedValue
from typing_extensions import TypedDict

from questbook.graphs.middleware.owner import ThreadOwner
from questbook.graphs.turn.channels import Checked, Last
from questbook.graphs.turn.pages import Spec, page_channels
from questbook.graphs.turn.state import keep_notices
from questbook.notebooks import DeclarationError
from questbook.types import JSON


def _append(current: list[JSON], new: list[JSON]) -> list[JSON]:
    return [*current, *new]


class MemoryState(TypedDict, total=False):
    """State of a parent graph whose agents share one memory: derive yours from it and from MessagesState.

    Channels that are not listed here are those of Questbook's own graphs (`TurnState`, `PageState`, `FactState`).

    Attributes:
        thread_owner: The user whose memory it is: who began the thread; written once.
        due: Turns that are not in the store yet, and the current one: {"turn", "opened_by", "player", "reply"}, and
            "newest", the id of the newest message when it began.
        staged: What tools changed in memory in the middle of a turn; it reaches the store with the turn's place.
    """

    thread_owner: Annotated[str, ThreadOwner()]
    timeline: Annotated[list[tuple[str, int]], Last]
    turn: Annotated[int, Last]
    opened_by: Annotated[str, Last]
    due: Annotated[list[JSON], Last]
    remembered_through: Annotated[int, Last]
    noted: Annotated[dict[str, int], Last]
    agreed: Annotated[JSON, Last]
    staged: Annotated[list[JSON], Checked(list[JSON], _append, list)]
    notices: Annotated[list[JSON], keep_notices()]
    facts_through: Annotated[int, Last]
    unreflected: Annotated[int, Last]
    reflection_told: Annotated[str, Last]
    summary: Annotated[str, Last]
    summarised_through: Annotated[int, Last]


CHANNELS = tuple(MemoryState.__annotations__)


class RecalledValue(UntrackedValue[list[JSON] | None]):
    """What was recalled, for this run only: no checkpoint holds it. Two of our middleware would both write it."""

    def update(self, values: Sequence[list[JSON] | None]) -> bool:
        """Take the value of a step.

        Raises:
            DeclarationError: Two middleware have recalled.
        """
        if len(values) > 1:
            raise DeclarationError(
                "middleware: got two TimelineMemoryMiddleware in one agent; expected one, since both would write the "
                "same channels. Give one of them the options of both."
            )
        return super().update(values)


def state_schema(spec: Spec, *, shared: bool) -> type[Any]:
    """Make the schema of the middleware's channels, one for each notebook among them.

    With `shared`, all are in the agent's input and output, for a parent graph that holds them.
    """
    hints: dict[str, Any] = get_type_hints(MemoryState, include_extras=True)
    hints |= page_channels(spec, JSON)
    if not shared:
        own = {name: Annotated[hint, PrivateStateAttr] for name, hint in hints.items() if name in CHANNELS}
        hints = {name: Annotated[hint, OmitFromInput] for name, hint in hints.items()} | own
    hints["refused"] = Annotated[str, UntrackedValue, PrivateStateAttr]
    hints["recalled"] = Annotated[list[JSON] | None, RecalledValue, PrivateStateAttr]
    make: Any = TypedDict  # mypy reads only a literal
    schema: type[Any] = make("TimelineMemoryState", hints, total=False)
    return schema
