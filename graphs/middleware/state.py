"""The agent's state: the channels that the middleware adds to it, and its messages as turns.

The channels are private; pages are in the agent's output. With `shared` all channels are in its input and output, and
the state of a parent graph holds them (`MemoryState`). `SummarizationMiddleware` takes messages out in the middle of a
turn, so the words of each turn that is not in the store yet are kept beside the messages (channel `due`).
"""

import json
from collections.abc import Collection, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple, NotRequired, get_type_hints

from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.channels import UntrackedValue
from pydantic import AfterValidator
from typing_extensions import TypedDict

from questbook.graphs.errors import InputError
from questbook.graphs.turn.channels import Branches, Checked, Last
from questbook.graphs.turn.pages import AGREED, Spec, page_channels
from questbook.graphs.turn.state import NOTICES, RUNS, opener_of
from questbook.memory.buffer.policies import split_turns, turn_text
from questbook.memory.timeline.records import Count, shape
from questbook.memory.timeline.timeline import check_timeline, merge_timelines
from questbook.notebooks import DeclarationError
from questbook.types import JSON

_TIMELINE = Annotated[list[Any], AfterValidator(partial(check_timeline, beside=True))]
_DUE = shape(
    {"turn": Count, **dict.fromkeys(("opened_by", "player", "reply"), str), "newest": NotRequired[str]}
    | {"result": NotRequired[str]}
)
_STAGED = shape({"turn": Count, **dict.fromkeys(("id", "action", "text", "of"), str)})


class Merged(Branches):
    """The channel `timeline`; agents that ran side by side (`Send`) have each written a turn, and all are seen."""

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Take the value of a step."""
        if len(values) > 1 and all(isinstance(value, list) for value in values):
            values = [[list(segment) for segment in merge_timelines(values)]]
        return super().update(values)


class ThreadOwner(Checked):
    """The channel `thread_owner`, which is written once: an edit that says another name is refused."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(str, lambda _, name: name)

    def _reduced(self, write: Any) -> Any:
        owner = self.value if self.is_available() else None
        if not isinstance(write, str) or (owner and write != owner):
            raise InputError(f"{self.key}: got {write!r:.80}. The thread belongs to {owner!r}, and remains theirs.")
        return write


class MemoryState(TypedDict, total=False):
    """State of a parent graph whose agents share one memory: derive yours from it and from MessagesState.

    Channels that are not listed here are those of Questbook's own graphs (`TurnState`, `PageState`, `FactState`).

    Attributes:
        thread_owner: The user whose memory it is: who began the thread; written once.
        due: Turns that are not in the store yet, and the current one: {"turn", "opened_by", "player", "reply"}, and
            "newest", the id of the newest message when it began; "result", with what it ended in place of words.
        staged: What tools changed in memory in the middle of a turn; it reaches the store with the turn's place.
    """

    thread_owner: Annotated[str, ThreadOwner()]
    timeline: Annotated[list[tuple[str, int]], Merged(_TIMELINE, [])]
    turn: Annotated[int, Last]
    opened_by: Annotated[str, Last]
    opened_in: Annotated[list[str], RUNS]
    due: Annotated[list[JSON], Last(list[_DUE])]
    remembered_through: Annotated[int, Last]
    noted: Annotated[dict[str, int], Last(dict[str, Count])]
    agreed: Annotated[JSON, Last(AGREED, {})]
    staged: Annotated[list[JSON], Last(list[_STAGED], most=10_000)]
    notices: Annotated[list[JSON], NOTICES]
    facts_through: Annotated[int, Last]
    unreflected: Annotated[int, Last]
    reflection_told: Annotated[str, Last]
    summary: Annotated[str, Last]
    summarised_through: Annotated[int, Last]


CHANNELS = tuple(MemoryState.__annotations__)


class RecalledValue(UntrackedValue[list[JSON] | None]):
    """What was recalled, for this run only: no checkpoint holds it. Two of our middleware would both write it."""

    def update(self, values: Sequence[list[JSON] | None]) -> bool:
        """Take the value of a step, of one middleware."""
        if len(values) > 1:
            raise DeclarationError(
                "middleware: got two TimelineMemoryMiddleware in one agent; expected one, since both would write the "
                "same channels. Give one of them the options of both."
            )
        return super().update(values)


def state_schema(spec: Spec, *, shared: bool) -> type[Any]:
    """Make the schema of the middleware's channels, one for each notebook among them."""
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


_SYNTHETIC = "lc_source"  # what LangChain's middleware puts into the messages that it writes in a person's name


class OpenTurns(NamedTuple):
    """Turns of a conversation, up to the current one."""

    turn: int  # number of the current turn, from 1; 0: the person has said nothing yet
    opened_by: str  # id of the message that opened it
    due: list[JSON]  # turns not remembered yet, and the current one: {"turn", "opened_by", "player", "reply"}


def is_synthetic(message: BaseMessage) -> bool:
    """Return whether a message in a person's name was written by middleware, such as a summary."""
    return _SYNTHETIC in message.additional_kwargs and isinstance(message, HumanMessage)


def open_turns(
    messages: Sequence[AnyMessage], turn: int, opened_by: str, due: Sequence[JSON], tools: Collection[str] = ()
) -> OpenTurns:
    """Number the turns that have come since the last run.

    `turn` is the number of the last turn that was opened, by the message `opened_by`; 0: none was, so all turns in the
    messages are new (a thread that is older than its memory). `tools` have results that are remembered.
    """
    groups = _split(messages).turns
    openers = [opener_of(group) for group in groups]
    if opened_by and opened_by in openers:
        new = openers[openers.index(opened_by) + 1 :]
    else:  # that message has left; what was said since came in one run, so that it is one turn
        new = openers[-1:] if turn else openers
    numbered = [*enumerate(new, turn + 1)]
    if turn and not new and all(entry["turn"] != turn for entry in due):
        numbered = [(turn, opened_by)]  # the last turn is run again
    entries = [*due, *({"turn": n, "opened_by": opener, "player": "", "reply": ""} for n, opener in numbered)]
    return OpenTurns(turn + len(new), new[-1] if new else opened_by, with_words(messages, entries, tools))


def with_words(messages: Sequence[AnyMessage], due: Sequence[JSON], tools: Collection[str] = ()) -> list[JSON]:
    """Return the due turns with what has been said in them, as far as the messages still tell."""
    said = {opener_of(group): group for _, group in split_turns(read_turns(messages, due), 0)}
    return [one | (turn_text(said[by], tools)._asdict() if (by := one["opened_by"]) in said else {}) for one in due]


def result_of(messages: Sequence[AnyMessage], formats: Collection[str]) -> str:
    """Return with what a run ended: structured output, or what a tool returned directly; "" if with words.

    `formats` are the names of the tools that LangChain makes of `response_format`.
    """
    last = messages[-1] if messages else None
    if not isinstance(last, ToolMessage):
        return ""
    # The newest first: some models count their calls from 0 in each turn.
    calls = [call for message in reversed(messages) if isinstance(message, AIMessage) for call in message.tool_calls]
    args = next((call["args"] for call in calls if call["id"] == last.tool_call_id and call["name"] in formats), None)
    return last.text if args is None else json.dumps(args, ensure_ascii=False)


def read_turns(messages: Sequence[AnyMessage], due: Sequence[JSON]) -> list[AnyMessage]:
    """Return the conversation in whole turns: without what middleware wrote, with what is due and has left."""
    head, groups = _split(messages)
    openers = {opener_of(group) for group in groups}
    lost: list[AnyMessage] = []
    missing = [entry for entry in due if entry["opened_by"] not in openers and entry["player"]]
    for entry in missing:
        lost.append(HumanMessage(entry["player"], id=entry["opened_by"]))
        if entry is missing[-1] and head:
            lost += head
        else:  # an empty reply, too: two messages of a person in a row would be one turn
            lost.append(AIMessage(entry["reply"], id=f"{entry['opened_by']}-reply"))
    results = {entry["opened_by"]: [AIMessage(entry["result"])] for entry in due if entry.get("result")}
    ended = (each for group in groups for each in [*group, *results.get(opener_of(group), [])])
    return [*lost, *ended]


def later_turns(messages: Sequence[AnyMessage], opened_by: str) -> list[AnyMessage]:
    """Return the messages of the turns behind the one that a message opened; if it has left, an unanswered one's."""
    groups = _split(messages).turns
    place = next((n for n, group in enumerate(groups) if opener_of(group) == opened_by), None)
    if place is None:
        unanswered = bool(groups) and all(isinstance(message, HumanMessage) for message in groups[-1])
        place = len(groups) - 2 if unanswered else len(groups)
    return [message for group in groups[place + 1 :] for message in group]


class _Split(NamedTuple):
    """Messages in turns; `head` is the rest of a turn whose beginning has left."""

    head: list[AnyMessage]
    turns: list[list[AnyMessage]]


def _split(messages: Sequence[AnyMessage]) -> _Split:
    own = [message for message in messages if not is_synthetic(message)]
    first = next((n for n, message in enumerate(own) if isinstance(message, HumanMessage)), len(own))
    return _Split(own[:first], [turn.messages for turn in split_turns(own[first:], 0)])
