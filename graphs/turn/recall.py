"""Recall for a turn: what comes back from memory into the prompt, one way for all machines, with a plan of each."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, SearchItem

from questbook.graphs.settings import Settings
from questbook.graphs.turn.buffer import conversation
from questbook.graphs.turn.canary import without_leaks
from questbook.graphs.turn.repetition import Told
from questbook.graphs.turn.scope import SettingsT, run_thread, visible_timeline
from questbook.graphs.turn.state import Memory, StateT, TurnState, failure_notice, notice, within
from questbook.memory.archive.archive import cut_page
from questbook.memory.buffer.policies import split_turns
from questbook.memory.errors import BadQueryError
from questbook.memory.facts.attributes import PERSON
from questbook.memory.facts.days import line_date
from questbook.memory.facts.fact import BY_HAND, INSIGHT
from questbook.memory.facts.lookup import add_insights, facts_asked_for, is_standing_fact, latest_facts
from questbook.memory.facts.reflection import importance_of
from questbook.memory.facts.supersession import replace_superseded
from questbook.memory.facts.validity import keep_valid, position_of
from questbook.memory.lore.documents import LorePiece
from questbook.memory.recall.choice import shorten
from questbook.memory.recall.intents import asks_about
from questbook.memory.recall.query import (
    DEFAULT_WEIGHTS,
    Present,
    Query,
    Reason,
    Recalled,
    Reranker,
    WeightedText,
    Weights,
    check_order,
    said_in,
)
from questbook.memory.recall.recall import recall as recall_records
from questbook.memory.recall.times import phrase_age
from questbook.memory.store.any_store import JointReads, get_values
from questbook.memory.store.rows import remarks
from questbook.memory.sync import run_sync
from questbook.memory.text.passages import cut_pages
from questbook.memory.timeline.namespaces import team_namespace
from questbook.memory.timeline.records import UNTIL, Stamp, is_hidden, may_know, session_number
from questbook.memory.timeline.timeline import Timeline, UserTimeline, as_of, exchange_key, is_visible, read_heads
from questbook.notebooks import render_value
from questbook.types import JSON, check_number, storable

Cost = Callable[[Recalled], int]  # returns the tokens of a record as far as it is shown
FACTS = "facts"  # last label of the namespaces that hold facts
_PROFILE = 64  # facts of the person that are read, the latest
_QUESTION = 8_000  # characters of a message that are searched with
_SHARE = 8  # they may take an eighth of the budget

ASSISTANT = {"player": "user", "reply": "assistant"}
"""What the voices of an exchange are called where an assistant answers a user; in the game they are as in state."""
OPENING = ASSISTANT | {"rest": "key"}  # the same where a tool opens the rest of a memory (`open_memory`)
FOUND = ASSISTANT | {"key": "key"}  # the same in the lines of a search: each memory has its key
_LONGEST_TURN = 9  # digits
_OWN_NAMES = frozenset({"insight", "rumour", "archive"})  # kinds that an assistant's prompt names; all else is a fact


class Reader(NamedTuple):
    """For whom memories are made."""

    now: datetime  # real time, in the zone whose midnight changes the day
    timeline: Timeline = ()  # what the turn may see
    session: int | None = None  # number of the session; None if sessions say nothing of how long ago something was
    character: str | None = None  # who plays: what they do not know is a secret. None: there is no story


def memory_of(record: Recalled, reader: Reader) -> Memory:
    """Make a memory of a record."""
    value, in_story = record.value, reader.character is not None
    kind = str(value.get("kind") or "exchange")
    if in_story and not may_know(value, [reader.character or ""]):
        kind = "secret"
    turn = 0 if is_elsewhere(record, reader.timeline) else value.get("turn")
    memory = Memory(key=record.key, kind=kind, turn=turn, score=record.score, why=str(record.reason))
    memory["reason"], memory["said_at"] = record.reason._asdict(), value.get("said_at")
    if record.is_cut and not (turn and kind == "exchange"):
        memory["rest"] = record.key
    if kind == "lore":
        memory["source"], memory["page"] = value.get("source"), value.get("page")
        memory["section"], memory["row"], memory["text"] = value.get("section"), value.get("row"), record.excerpt
        return memory
    session = value.get("session")
    ago = reader.session - session if isinstance(session, int) and reader.session else None
    if in_story or not value.get("slot"):  # what holds a slot holds now, whenever it was noted
        memory["age"] = phrase_age(value.get("said_at"), reader.now, ago if in_story else None, own_calendar=in_story)
    if in_story:
        day = value.get("day")
        memory["story_time"] = value.get("story_time") or (None if day is None else f"day {day}")
    if str(value.get("kind") or "exchange") == "exchange":
        memory["player"], memory["reply"] = record.words
        if UNTIL in value:
            memory["until"] = str(value[UNTIL]) or "a later turn"
    else:
        memory["when"] = "" if in_story else line_date(value)
        memory["text"], memory["claimed_by"] = record.excerpt or None, value.get("claimed_by") or None
    return memory


def memory_line(memory: Memory, voices: Mapping[str, str] | None = None) -> str:
    """Render a memory on one line: an exchange as it was, lore with its source, anything else under its kind.

    `voices` says what the voices of an exchange are called (`ASSISTANT`); None: as in state.
    """
    if memory.get("kind") == "lore" and (lore := LorePiece.from_json(memory)).citation:
        return render_value({"source": lore.citation, "text": lore.body})
    kind = str(memory.get("kind") or "exchange")
    label = kind if voices is None or kind in _OWN_NAMES else "fact"
    names = {name: name for name in ("turn", "age", "player", "reply")} | {"text": label}
    names |= {name: name for name in ("story_time", "when", "until", "claimed_by")} | dict(voices or {})
    return render_value({label: part for name, label in names.items() if (part := memory.get(name))})


def memory_lines(memories: Sequence[Memory] | None, voices: Mapping[str, str] | None = None) -> str:
    """Render memories, each on a line."""
    return "\n".join(memory_line(memory, voices) for memory in memories or ())


def memory_tokens(memory: Memory, voices: Mapping[str, str] | None = None) -> int:
    """Return about how many tokens the line of a memory takes, with its line break."""
    return math.ceil((len(memory_line(memory, voices)) + 1) / 4)


def is_elsewhere(record: Recalled, timeline: Timeline) -> bool:
    """Return whether another thread of the user wrote a record."""
    if not isinstance(timeline, UserTimeline):
        return False
    value = record.value
    return bool(timeline.other_thread(str(value.get("thread") or ""), str(value.get("branch")), int(value["turn"])))


async def open_memory(
    state: TurnState,
    runtime: Runtime[Any],
    spaces: Sequence[tuple[str, ...]],
    key: str,
    page: int,
    *,
    waiting: Mapping[str, JSON] | None = None,
) -> str:
    """Return a page, from 1, of what a record says; a BadQueryError says that there is none to be seen.

    `key` is the record's key in one of the namespaces `spaces`, or the number of a turn of the thread, whose exchange
    it is. `waiting` are records that are not in the store yet, by key.
    """
    view, written = visible_timeline(state, runtime), state.written
    name, known = storable(key.strip()), waiting or {}
    if name.isdecimal() and len(name) <= _LONGEST_TURN and 1 <= int(name) <= written:
        name = exchange_key(state.timeline, int(name))
    if name not in known and runtime.store is not None and name:
        found = await get_values(runtime.store, [(space, name) for space in spaces])
        await read_heads(runtime.store, view, found.values())
        for value in found.values():
            if is_visible(view, value, before=written + 1) and may_know(value) and not is_hidden(value):
                known = {name: dict(value)}
    if name not in known:
        raise BadQueryError(f"There is no memory with the id {key!r:.80}. Take a key or a turn from a line of memory.")
    pages = cut_page(cut_pages(*said_in(known[name])), page, 1)
    record = Recalled(name, known[name], None, 0.0, shown=tuple(pages.items))
    line = memory_line(memory_of(record, Reader(datetime.now(UTC).astimezone(), as_of(view, written))), ASSISTANT)
    return f"{name}, page {pages.number} of {pages.pages}: {line}"


@dataclass(frozen=True)
class Recall:
    """How much of what was said earlier comes back into the prompt.

    Attributes:
        tokens: Tokens of the prompt that memories may fill; 0: none is recalled.
        most: Lines, however short; each is an exchange, or what is shown of it, or a fact.
        max_cosine_distance: Leave out exchanges farther than this from the message, 0 to 2; None: none.
        weights: How candidates are scored.
        rerank: Puts the best candidates in an order of its own; None: `weights` alone order them.
        metadata: Only what was written with this metadata is recalled by what it says; None: everything.
    """

    tokens: int = 800
    most: int = 48
    max_cosine_distance: float | None = None
    weights: Weights = DEFAULT_WEIGHTS
    rerank: Reranker | None = None
    metadata: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_number("Recall.tokens", self.tokens)
        check_number("Recall.most", self.most, 1)
        check_order("Recall", self.max_cosine_distance, self.weights, self.rerank, self.metadata)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Read it from settings."""
        return cls(settings.recall_tokens, max_cosine_distance=settings.max_cosine_distance, weights=settings.weights)


class Seen(NamedTuple):
    """What a turn may see."""

    timeline: Timeline  # as of the last turn that is written: a later record may be another future's
    since: int  # first turn that is in the prompt word for word
    turn: int
    message: str  # what the person says in it


class Always(NamedTuple):
    """Records that come whatever the message says."""

    read: Callable[[BaseStore, Seen], Awaitable[list[Recalled]]]  # returns them, what matters most first
    tokens: Callable[[int], int]  # what they may take, given the budget of the whole
    shortens: bool = False  # whether those that are long are shown in part, each with an equal share


@dataclass(frozen=True)
class RecallPlan:
    """What a machine adds to the recall for a turn."""

    options: Recall  # how much, and in which order
    _: KW_ONLY
    shown: Sequence[AnyMessage]  # the conversation as the prompt has it
    now: datetime  # real time, in the zone whose midnight changes the day
    facts: tuple[str, ...] | None = None  # namespace of the facts of the timeline; None: none are kept
    shown_facts: bool = True  # whether facts of turns that are in the prompt word for word come, too
    lasting: Sequence[tuple[str, ...]] = ()  # namespaces whose records belong to no timeline
    hints: Sequence[WeightedText] = ()  # further texts that help to find what is meant
    always: Sequence[Always] = ()  # what comes whatever the message says, in the order in which it takes its share
    character: str | None = None  # who plays: what they do not know comes as a secret. None: there is no story
    day: int | None = None  # day of the story
    aliases: bool = False  # whether to search for those whom the message calls by another name, too
    voices: dict[str, str] | None = None  # what the voices of an exchange are called in the prompt; None: as in state
    told: Told | None = None  # what the prompt says beside memories, which are not to say it again; None: they may
    instead: Callable[[], Awaitable[list[Memory]]] | None = None  # recalls what comes in the place of all this


Planner = Callable[[StateT, Runtime[SettingsT]], Awaitable[RecallPlan]]
"""Makes a machine's plan for a turn that is open."""


async def recall_for_turn(state: TurnState, runtime: Runtime[SettingsT], plan: RecallPlan) -> list[Memory]:
    """Recall what fits the message best and is not in the prompt; in the order of the turns, those without one first.

    What the plan always wants takes its tokens first, then what fits, the best first. The state's turn is open.
    """
    if plan.instead:
        return await plan.instead()
    store, view, written = runtime.store, visible_timeline(state, runtime), state.written
    since = next((turn.number for turn in split_turns(plan.shown, state.turn)), state.turn)
    before = written + 1 if plan.facts and plan.shown_facts else min(since, written + 1)
    has_past = before > 1 or isinstance(view, UserTimeline)
    if store is None or not plan.options.tokens or not (has_past or plan.lasting):
        return []
    seen = Seen(as_of(view, written), since, state.turn, state.words)
    reads = JointReads.of(store)
    present, groups = await asyncio.gather(
        _present_of(state, runtime, plan, reads), asyncio.gather(*(group.read(reads, seen) for group in plan.always))
    )
    reader = Reader(present.now or plan.now, seen.timeline, present.session, plan.character)

    def cost(record: Recalled) -> int:
        return memory_tokens(memory_of(record, reader), plan.voices)

    tokens = state.fit_tokens(plan.options.tokens, runtime.context.model)
    if plan.told:
        groups = [plan.told.new(group) for group in groups]
    always, left = _take_always(plan.always, groups, tokens, cost, plan.options.most)
    query = Query(
        within(seen.message, _QUESTION),
        hints=plan.hints,
        lasting=plan.lasting,
        timeline=view,
        before=before,
        limit=plan.options.most - len(always),
        budget=left,
        replies=plan.character is not None,  # in a story the answers tell what happened
        cost=cost,
        weights=plan.options.weights,
        present=present,
        visibility="viewer" if plan.character is None else "all",  # the dungeon master's prompt; events show no secret
        aliases=plan.aliases,
        fitting=plan.options.max_cosine_distance is None,
        max_cosine_distance=plan.options.max_cosine_distance,
        refine=_holding(plan, seen, always, store, min(since, before)),
        rerank=plan.options.rerank,
        metadata=plan.options.metadata,
        accesses=runtime.context.campaign_namespace("accesses"),
    )
    own = [runtime.context.campaign_namespace("exchanges"), *([plan.facts] if plan.facts else [])]
    for record in await recall_records(store, own if has_past else [], query) if query.limit else ():
        # What answers may lie in the part of a turn that was left out.
        first = always.get(record.key)
        always[record.key] = first._replace(shown=(*first.shown, *record.shown)) if first else record
    final = without_leaks(always.values(), state, runtime.context, view)
    memories = sorted((memory_of(record, reader) for record in final), key=_in_story_order)
    return plan.told.rest_of(memories) if plan.told else memories


def _holding(
    plan: RecallPlan, seen: Seen, always: Mapping[str, Recalled], store: BaseStore, since: int
) -> Callable[[list[Recalled]], Awaitable[list[Recalled]]]:
    """Make what puts in the place of records what holds now, and leaves out what the prompt has already."""

    async def hold(records: list[Recalled]) -> list[Recalled]:
        records = [record for record in records if not _is_shown(record, seen)]
        if plan.facts is not None:
            # In a game nobody's words are dropped for a fact: what the player says is what they try to do.
            said = always if plan.character is None else None
            records = await replace_superseded(store, records, plan.facts, timeline=seen.timeline, shown=said)
        if not plan.shown_facts:  # what holds now may have been said in the conversation
            records = [record for record in records if not _is_shown(record, seen, facts=True)]
        if plan.told:  # what comes always is compared already: it may have parts that answer
            rest = [record for record in records if record.key not in always]
            new = {record.key for record in plan.told.new(rest)} | always.keys()
            records = [record for record in records if record.key in new]
        if plan.facts is not None:
            records = await add_insights(
                store, records, plan.facts, question=seen.message, timeline=seen.timeline, since=since
            )
        return [record for record in records if record.key not in always or always[record.key].is_cut]

    return hold


class _Memories(BaseRetriever):
    """Recall as LangChain's handlers and traces see it: a run of a retriever, with the memories as documents."""

    memories: Any

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:  # noqa: ARG002
        self.memories = await self.memories
        return [Document(memory_line(memory), metadata=memory) for memory in self.memories]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return run_sync(self._aget_relevant_documents(query, run_manager=run_manager))


async def memories_for(state: StateT, runtime: Runtime[SettingsT], plan_of: Planner[StateT, SettingsT]) -> list[Memory]:
    """Recall for the turn by a machine's plan."""
    return await recall_for_turn(state, runtime, await plan_of(state, runtime))


async def recall_or_notice(state: StateT, runtime: Runtime[SettingsT], plan_of: Planner[StateT, SettingsT]) -> JSON:
    """Return the channels of a turn's memories; if the store fails, none are recalled, and a notice says so."""
    retriever, told = _Memories(memories=memories_for(state, runtime, plan_of), name="recall"), list[str]()
    before = remarks.set(told)
    try:
        await retriever.ainvoke(state.words)
        kinds = {text[:20]: text for text in reversed(told)}.values()  # of each the first
        notices = [notice(state.turn, "recall", text) for text in kinds]
        return {"recalled": retriever.memories, "notices": notices}
    except Exception as error:  # noqa: BLE001 (any store may be behind this; the conversation goes on without)
        text = "Memory could not be searched, so nothing was recalled for this turn."
        return {"recalled": [], "notices": [failure_notice(state.turn, "recall", text, error)]}
    finally:
        remarks.reset(before)


async def with_recalled(state: StateT, runtime: Runtime[SettingsT], plan_of: Planner[StateT, SettingsT]) -> StateT:
    """Return the state with its memories. A run that was resumed recalls again: no checkpoint holds them."""
    if state.recalled is not None:
        return state
    return state.model_copy(update={"recalled": await memories_for(state, runtime, plan_of)})


def known_of_person(facts: tuple[str, ...]) -> Always:
    """Return how the person wants to be answered, then what they are and have; in an eighth of the budget."""

    async def read(store: BaseStore, seen: Seen) -> list[Recalled]:
        items = await latest_facts(store, facts, {"subject": PERSON}, timeline=seen.timeline, count=_PROFILE)
        items = await keep_valid(store, items, timeline=seen.timeline)
        standing = {item.key for item in items if is_standing_fact(item.value)}
        items = [item for item in items if item.key in standing or item.value.get("slot")]
        items.sort(key=lambda item: (importance_of(item.value), position_of(item.value)), reverse=True)
        items.sort(key=lambda item: item.key not in standing)
        return [_known(item) for item in items if item.value.get("kind") != "rumour"]

    return Always(read, lambda tokens: tokens // _SHARE)


def known_about(facts: tuple[str, ...]) -> Always:
    """Return, where the message asks all about a person ("What do you know about me?"), what holds of them."""

    async def read(store: BaseStore, seen: Seen) -> list[Recalled]:
        whom = asks_about(seen.message)
        if whom is None:
            return []
        return [_known(item) for item in reversed(await facts_asked_for(store, facts, whom, timeline=seen.timeline))]

    return Always(read, lambda tokens: tokens)


def _known(item: SearchItem) -> Recalled:
    return Recalled(item.key, item.value, None, 0.0, tuple(item.namespace), Reason(because="is known of you"))


def assistant_plan(
    state: TurnState,
    settings: Settings,
    options: Recall | None,
    *,
    facts: bool,
    voices: dict[str, str] | None = None,
    shown: Sequence[AnyMessage] | None = None,
) -> RecallPlan:
    """Return the plan of a machine that assists a person: with `facts`, what is known of them always comes.

    None means: `options` as the settings say, `voices` as in `ASSISTANT`, `shown` as the buffer policy says.
    """
    namespace = settings.campaign_namespace(FACTS) if facts else None
    return RecallPlan(
        options or Recall.of(settings),
        shown=conversation(state, settings) if shown is None else shown,
        now=datetime.now(UTC).astimezone(settings.zone),
        facts=namespace,
        lasting=[team_namespace(settings.team, FACTS)] if settings.team else [],
        always=[known_about(namespace), known_of_person(namespace)] if namespace else [],
        voices=voices or ASSISTANT,
    )


async def _present_of(state: TurnState, runtime: Runtime[SettingsT], plan: RecallPlan, store: BaseStore) -> Present:
    """Return from where words such as "yesterday" or "last session" count."""
    last, past = state.written, None
    if last >= 1:
        past = await store.aget(runtime.context.campaign_namespace("exchanges"), exchange_key(state.timeline, last))
    here = Stamp(thread=run_thread(runtime) or "", said_at=plan.now.isoformat())
    return Present(plan.now, plan.day, session_number(Stamp.from_json(past.value) if past else None, here))


def within_budget(records: Sequence[Recalled], budget: int, cost: Cost, *, shortens: bool = False) -> list[Recalled]:
    """Return the records that fit into a budget of tokens, in reverse; `shortens` as `Always` says."""
    kept: list[Recalled] = []
    for number, record in enumerate(records):
        room = budget // (len(records) - number) if shortens else budget
        fitting = shorten(record, room, cost) if shortens and cost(record) > room else record
        if fitting is not None and (tokens := cost(fitting)) <= budget:
            budget -= tokens
            kept.append(fitting)
    return kept[::-1]


def _take_always(
    always: Sequence[Always], groups: Sequence[Sequence[Recalled]], tokens: int, cost: Cost, most: int
) -> tuple[dict[str, Recalled], int]:
    """Return the records that always come, at most `most`, half of them of a group with a share; and tokens left."""
    taken, left = dict[str, Recalled](), tokens
    for group, records in zip(always, groups, strict=True):
        new = [record for record in records if record.key not in taken]
        new = new[: min(most - len(taken), most if group.tokens(tokens) == tokens else (most + 1) // 2)]
        fitting = within_budget(new, min(group.tokens(tokens), left), cost, shortens=group.shortens)
        left -= sum(map(cost, fitting))
        taken |= {record.key: record for record in fitting}
    return taken, left


def _is_shown(record: Recalled, seen: Seen, *, facts: bool = False) -> bool:
    """Whether the prompt has an exchange word for word; with `facts`, also the one in which a fact was said."""
    kind, is_late = record.value.get("kind", "exchange"), int(record.value.get("turn") or 0) >= seen.since
    is_said = facts and "branch" in record.value and kind not in ("secret", INSIGHT)
    is_said &= record.value.get("by") != BY_HAND
    return is_late and (kind == "exchange" or is_said) and not is_elsewhere(record, seen.timeline)


def _in_story_order(memory: Memory) -> tuple[int, str, bool]:
    turn = int(memory["turn"] or 0)
    return turn, "" if turn else str(memory["said_at"]), memory["kind"] != "exchange"
