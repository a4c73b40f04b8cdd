"""The state of a conversation in turns: the channels that every machine has, and their reducers."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NotRequired, Self, TypeVar, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SkipValidation,
    TypeAdapter,
    model_validator,
)
from typing_extensions import TypedDict

from questbook.graphs.errors import InputError
from questbook.graphs.models.answer import storable_message
from questbook.graphs.turn.api_server import RUN_ID
from questbook.graphs.turn.channels import Branches, Checked, Last, Owner, Refusal, refusals_in
from questbook.memory.buffer.policies import BufferPolicy, split_turns, turn_text
from questbook.memory.timeline.records import Count, shape
from questbook.memory.timeline.timeline import branch_name, check_timeline
from questbook.notebooks import Notebook, Scope
from questbook.types import JSON, clean_text


class Turn(TypedDict, total=False):
    """A turn of a conversation."""

    turn: int
    player: str  # what the person said
    rolls: list[JSON]  # in a game: the dice that were rolled, left out where there were none
    reply: str  # what they were answered
    facts: Sequence[str]  # sentences that were noted of it, for a summary without a model
    withheld: bool  # whether its words are not kept


class Memory(TypedDict, total=False):
    """A memory, as a prompt shows it (`memory_line`); of a long record only a part."""

    key: str  # its key in the store
    kind: str  # "exchange", "fact", "insight", "rumour", "secret", "lore" …
    turn: int | None  # the turn that wrote it; 0 if another thread did, which counts its own turns; None without one
    said_at: str | None  # when, ISO 8601
    age: str  # how long ago that was, in words; not of a fact that holds a slot, outside of games
    story_time: str | None  # when it was in the story: "day 3, dusk"
    when: str  # on which days what a fact tells is: "Mon 2026-12-14"
    until: str  # until when something that an exchange tells was so, ISO 8601
    score: float | None  # its cosine; None if it has none
    why: str  # why it was recalled, in ranks
    reason: JSON  # the same as data: the fields of `Reason`
    player: str  # the person's words, of an exchange; "…" stands where something is left out, here and below
    reply: str  # what they were answered
    text: str | None  # what it says, if it is no exchange
    claimed_by: str | None  # whose word it is alone
    tells: list[str]  # keys of facts that are left out because its reply tells them
    rest: str  # its key, by which the rest can be opened, if something is left out and its `turn` does not name it
    source: str | None  # of lore: the file
    page: int | None  # of lore: the page
    section: str | None  # of lore: the heading
    row: int | None  # of lore: the row of a table


class Notice(TypedDict):
    """What a person should know of a turn."""

    turn: int
    node: str  # the node that wrote it
    text: str  # in words of the person's: no names of tools, nodes or classes
    detail: NotRequired[str]  # what a developer reads in Studio beside it: errors as the model got them


def turn_of(number: int, record: Mapping[str, Any]) -> Turn:
    """Return the turn that a record tells of, without its dice."""
    return Turn(turn=number, player=str(record.get("player") or ""), reply=str(record.get("reply") or ""))


CheckedTimeline = Annotated[list[Any], AfterValidator(check_timeline)]  # what the channel `timeline` takes
MOST_REMEMBERED = 50_000  # characters of a message, and of the reply to it, that are remembered and noted


def within(text: str, most: int) -> str:
    """Return a text in so many characters, and "…": of a longer one the first three quarters, and its end."""
    return text if len(text) <= most else f"{text[: most - most // 4]} … {text[len(text) - most // 4 :]}"


_log = logging.getLogger(__name__)
NOTICES = Last(list[Notice], most=10)  # the channel `notices`
RUNS = Last(list[str], most=50)  # the channel `opened_in`
_THROUGH = frozenset({"remembered_through", "summarised_through", "noted_through", "facts_through"})

_MESSAGES: TypeAdapter[list[AnyMessage]] = TypeAdapter(list[AnyMessage])


def patches(page: type[Notebook], *, bounded: bool = True) -> Checked:
    """Make the channel of a page, which applies merge patches (RFC 7396) of any writer.

    A state declares it as `Annotated[Page, patches(Page)]`. If a patch does not fit, the page stays as it is: an edit
    by `update_state` raises a NotebookError that names the field, what LangGraph has saved already is left out. Where
    several nodes write in one step, the page's limit does not hold (`bounded`): each checks it itself.
    """

    def reduce(current: Any, patch: Any) -> JSON:
        return page.load(current).apply(patch, bounded=bounded).page.as_json()

    return Checked(page, reduce, page)


def reduce_messages(current: list[AnyMessage], update: Any) -> list[AnyMessage]:
    """Add messages by id, as `add_messages` does, cleaned, so that they can be stored; an InputError refuses others."""
    try:
        messages = list(map(clean, convert_to_messages(update if isinstance(update, list) else [update])))
        _MESSAGES.validate_python([message for message in messages if message.type != "remove"])
        return cast("list[AnyMessage]", add_messages(cast("Any", current), cast("Any", messages)))
    except (ValueError, TypeError, KeyError, AttributeError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        expected = 'expected messages such as {"role": "user", "content": "…"}'
        raise InputError(f"messages: got {update!r:.80}; {expected}. {reason}") from error


def clean(message: BaseMessage) -> BaseMessage:
    """Drop what no database takes from a message, and from a player's also control characters, which no model takes."""
    message = storable_message(message)
    if not isinstance(message, HumanMessage) or not isinstance(message.content, str):
        return message
    text = clean_text(message.content)
    return message if text == message.content else message.model_copy(update={"content": text})


def opener_of(messages: Iterable[AnyMessage]) -> str:
    """Return the id of the person's first message among these; "" if there is none."""
    return next((message.id or "" for message in messages if isinstance(message, HumanMessage)), "")


class TurnInput(BaseModel):
    """What a caller sends: the player's message."""

    messages: Annotated[list[AnyMessage], Checked(list, reduce_messages, list)] = Field(default_factory=list)


class Schema(BaseModel):
    """The schema of a state. The text below a field is its description; class constants are no channels."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Hide class constants from LangGraph, which makes a channel of all that a class annotates."""
        super().__pydantic_init_subclass__(**kwargs)
        fields = cls.__annotations__.items()
        cls.__annotations__ = {name: kind for name, kind in fields if name not in cls.__class_vars__}


class TurnState(Schema):
    """State of one thread of a conversation in turns. Channels hold JSON; nodes receive typed notebooks."""

    PAGES: ClassVar[dict[str, type[Notebook]]] = {}
    """Channels that hold pages."""
    SCOPE: ClassVar[Scope] = "campaign"
    """Whose the exchanges and facts are (`questbook.graphs.turn.scope`); a page says its own."""
    MACHINE: ClassVar[str] = ""
    """Name of the machine, in the channel `machine`, which its state declares with `Own`."""
    CARRIED: ClassVar[tuple[str, ...]] = ("line", "summary")
    """Other channels that a new thread takes over from the campaign's head, beside turn and timeline."""
    VIEWER: ClassVar[str] = ""
    """Page whose `name` is the person's in `known_by` of facts, such as their character's; "": none."""
    INTERVIEW: ClassVar[frozenset[str]] = frozenset()
    """Names of the tools of interviews: later prompts have the pages, and no calls of them."""
    REMEMBERED_TOOLS: ClassVar[frozenset[str]] = frozenset()
    """Tools of an application whose results are remembered with the reply."""
    BUFFER: ClassVar[BufferPolicy | None] = None
    """The buffer policy of an application that has one of its own; None: the one that the settings name."""

    # The channel has checked them, and each reading of the state would do it again.
    messages: Annotated[list[SkipValidation[AnyMessage]], Checked(list, reduce_messages, list)] = Field(
        default_factory=list
    )
    """The last turns, word for word."""
    summary: Annotated[str, Last] = ""
    """The turns that left `messages`, in short."""
    timeline: Annotated[list[tuple[str, int]], Branches(CheckedTimeline, [])] = Field(default_factory=list)
    """Branches that this checkpoint descends from: [branch, last visible turn], oldest first."""
    recalled: Annotated[list[Any] | None, UntrackedValue] = None
    """Memories for this turn (`Memory`), None before that; never checkpointed."""
    notices: Annotated[list[JSON], NOTICES] = Field(default_factory=list)
    """The last 10 things that a person should know of (`Notice`)."""
    summarised_through: Annotated[int, Last] = 0
    """Last turn that `summary` covers, as far as this thread knows."""
    remembered_through: Annotated[int, Last] = 0
    """Last turn that is in the store."""
    turn: Annotated[int, Last] = 0
    """Number of the current turn, from 1; 0 before the first."""
    opened_by: Annotated[str, Last] = ""
    """Id of the player's message that opened the current turn."""
    opened_in: Annotated[list[str], RUNS] = Field(default_factory=list)
    """Marks of the last runs of a server that opened turns (`run_mark`)."""
    campaign: Annotated[list[str], Owner] = Field(default_factory=list)
    """User and campaign that the thread belongs to, written once; empty before its first turn."""
    machine: str = ""
    """Name of the machine that the thread belongs to; empty before its first turn."""
    line: Annotated[str, Last(Annotated[str, Field(min_length=1, max_length=60)], "main")] = "main"
    """Name of the line of play, as a person names it with `/branch`; it goes with the checkpoint."""
    window: Annotated[JSON, Last(shape({"model": str, "tokens": Count}, total=False), {})] = Field(default_factory=dict)
    """What fits in a model, once a prompt was too long: {"model", "tokens"}, of conversation, and of memories."""

    _refusals = PrivateAttr(default_factory=list[Refusal])
    _misplaced = PrivateAttr(default_factory=list[Refusal])

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, values: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        state = read(values)
        state.check_turns(values)
        return state

    def check_turns(self, values: Any) -> None:
        """Put right what does not go together, and keep what was left out of the channels that have these `values`."""
        self._refusals, self._misplaced = refusals_in(values), [*self._clip_turns()]

    def _clip_turns(self) -> Iterator[Refusal]:
        """Put numbers of turns that lie ahead of the current one back to it; yield what does not go together."""
        reached = self.timeline[-1][1] if self.timeline else 0
        if reached != self.turn:
            text = f"turn: got {self.turn}, and a timeline that reaches turn {reached}. Change both, to the same turn."
            self.turn = reached or self.turn  # threads of version 0.1 have no timeline
            yield Refusal("turn", text)
        for name in _THROUGH & type(self).model_fields.keys():
            if (through := getattr(self, name)) > self.turn:
                setattr(self, name, self.turn)
                yield Refusal(name, f"{name}: got {through}; expected at most {self.turn}, the current turn.")

    def check_edit(self, *, upkeep: bool) -> None:
        """Refuse an edit by hand that leaves a state which does not go together, or no message outside of `upkeep`."""
        for _, reason in self._misplaced:
            raise InputError(reason)
        if not self.messages and not upkeep:
            way = 'Leave its messages, or edit a page alone with as_node="remember".'
            raise InputError(f"messages: got none, but a turn goes on with what was said in it. {way}")

    @property
    def refusals(self) -> list[Refusal]:
        """What was written to the thread and did not fit."""
        return [*self._refusals, *self._misplaced]

    @property
    def mended(self) -> JSON:
        """Channels that were read in another way than they say, because they did not fit the others."""
        return {name: getattr(self, name) for name, _ in self._misplaced}

    @property
    def current_turn(self) -> list[AnyMessage]:
        """The messages of the current turn: the person's, and what came after it."""
        return split_turns(self.messages, self.turn)[-1].messages if self.messages else []

    @property
    def words(self) -> str:
        """What the person says in the current turn."""
        return turn_text(self.current_turn).player

    @property
    def opener(self) -> str:
        """Id of the message that opens the current turn."""
        return opener_of(self.current_turn)

    @property
    def opened(self) -> int:
        """How many turns the newest messages open: more than one where whole exchanges came before the last message."""
        openers = [opener_of(messages) for _, messages in split_turns(self.messages, self.turn)]
        if self.opened_by in openers:
            return len(openers) - 1 - openers.index(self.opened_by)
        return 1 if self.turn else len(openers)

    @property
    def run_mark(self) -> str:
        """What tells the server's run with the words of the current turn from every other; "" without a server."""
        run = (var_child_runnable_config.get() or {}).get("configurable", {}).get(RUN_ID)
        return branch_name(f"{run}/{self.words}") if run else ""

    @property
    def is_repeated(self) -> bool:
        """Whether the newest message came with a run that a server's queue brings again, after a kill -9."""
        return self.opener != self.opened_by and self.run_mark in self.opened_in

    def new_campaign(self, thread: str | None) -> str:  # noqa: ARG002 (for subclasses)
        """Return the campaign that a new thread begins if the caller names none; "": the default one."""
        return ""

    @property
    def reopened(self) -> JSON:
        """Channels to write where a turn that is remembered goes on, as after an edit: it is not done any more."""
        if not 0 < self.turn <= self.remembered_through:
            return {}
        done = [name for name in _THROUGH & type(self).model_fields.keys() if getattr(self, name) >= self.turn]
        return dict.fromkeys(done, self.turn - 1)

    @property
    def written(self) -> int:
        """Last turn before the current one that has its place: the record of a later one may be another future's."""
        return min(self.turn - 1, self.remembered_through)

    @property
    def has_past(self) -> bool:
        """Whether there is a past that a new thread can take over."""
        return self.turn > 0

    @property
    def may_leave(self) -> int:
        """Last turn that nothing has to be done about, so that it may leave the buffer."""
        return self.remembered_through

    def fit_tokens(self, tokens: int, model: str) -> int:
        """Return so many tokens, or fewer where the model's window was too small."""
        most = self.window.get("tokens")
        return min(tokens, most) if self.window.get("model") == model and isinstance(most, int) else tokens

    def head_fields(self) -> JSON:
        """Return what a new thread takes over, as JSON: pages of scope campaign and the channels of `CARRIED`."""
        pages = {name: getattr(self, name).as_json() for name in self.pages_of("campaign")}
        return pages | {name: getattr(self, name) for name in self.CARRIED}

    @classmethod
    def pages_of(cls, scope: Scope) -> dict[str, type[Notebook]]:
        """Return the pages of a scope, by channel."""
        return {name: page for name, page in cls.PAGES.items() if scope == page.SCOPE}

    def transcript(self, first: int, last: int) -> list[Turn]:
        """Return those of turns `first` to `last` that are in the buffer; of very long texts without the middle."""
        turns = list[Turn]()
        for turn, messages in split_turns(self.messages, self.turn):
            if first <= turn <= last:
                player, reply = (within(text, MOST_REMEMBERED) for text in turn_text(messages, self.REMEMBERED_TOOLS))
                turns.append(Turn(turn=turn, player=player, reply=reply))
        return turns

    def record_fields(self, turn: int) -> JSON:  # noqa: ARG002 (for subclasses)
        """Return what an application keeps in a turn's record; the same each time. The default adds nothing."""
        return {}


class ReflectingState(TurnState):
    """State of a conversation whose facts are reflected on."""

    unreflected: Annotated[int, Last(Annotated[int, Field(strict=True)], 0)] = 0
    """Importance of the facts written since the last reflection, as this thread knows; less after failures."""
    reflection_told: Annotated[str, Last] = ""
    """Id of the last reflection in the background whose notices this thread has shown; "": none."""

    @property
    def learned_through(self) -> int:
        """Last turn whose facts are all in the store: what is not there yet is for the next reflection."""
        return self.turn


class FactState(ReflectingState):
    """State of a conversation whose facts are noted after replies."""

    facts_through: Annotated[int, Last] = 0
    """Last turn whose facts are in the store, or that taught none."""

    @property
    def learned_through(self) -> int:
        """Last turn whose facts are all in the store."""
        return self.facts_through


StateT = TypeVar("StateT", bound=TurnState)

FACT_CHANNELS = ("facts_through", "unreflected")
"""Channels that a new thread takes over: a state with facts adds them to its `CARRIED`."""


def notice(turn: int, node: str, text: str, detail: str = "") -> Notice:
    """Make an entry for the channel `notices`."""
    entry = Notice(turn=turn, node=node, text=text)
    return {**entry, "detail": detail} if detail else entry


def failure_notice(turn: int, node: str, text: str, error: Exception) -> Notice:
    """Log an error that does not end the turn, and make its notice: what it means for a person, and the error."""
    _log.warning("Turn %d, %s: %s", turn, node, text, exc_info=error)
    return notice(turn, node, f"{text} {error}")
