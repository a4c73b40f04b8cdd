"""Exchanges: each turn leaves one record in the store, and later turns recall those that help with a message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self, TypeVar

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from questbook.graphs.errors import PastUnknownError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.clock import said_at
from questbook.graphs.turn.scope import run_thread, visible_timeline
from questbook.graphs.turn.sessions import head_ops
from questbook.graphs.turn.state import TurnState
from questbook.graphs.turn.turn import notice, stored_words
from questbook.memory.buffer.policies import count_verbatim_turns
from questbook.memory.buffer.turns import split_turns, turn_text
from questbook.memory.facts.conclusions import add_insights
from questbook.memory.facts.latest import latest_facts
from questbook.memory.facts.marks import position_of
from questbook.memory.facts.reading import PERSON
from questbook.memory.facts.reflection import importance_of
from questbook.memory.facts.validity import keep_valid, replace_superseded
from questbook.memory.recall.access import access_op, last_accesses
from questbook.memory.recall.age import phrase_age
from questbook.memory.recall.query import Present, Query, Reason, Recalled, Reranker
from questbook.memory.recall.recall import recall as recall_records
from questbook.memory.recall.weights import DEFAULT_WEIGHTS, Weights
from questbook.memory.text.words import count_tokens
from questbook.memory.timeline.privacy import WITHHELD
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.remember import remember as remember_records
from questbook.memory.timeline.remember import session_number
from questbook.memory.timeline.timeline import (
    Segment,
    UserTimeline,
    as_of,
    branch_of,
    record_key,
)
from questbook.notebooks import render_value
from questbook.types import JSON

SettingsT = TypeVar("SettingsT", bound=Settings)
StateT = TypeVar("StateT", bound=TurnState)

_MOST_EARLIER = 100  # turns of an earlier thread that notes catch up with
_PROFILE = 64  # facts of the person that are read, the latest
_SHARE = 4  # they may take a quarter of the budget
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recall:
    """How much of what was said earlier comes back into the prompt.

    Attributes:
        tokens: Tokens of the prompt that memories may fill; 0: none is recalled.
        most: Exchanges, however short.
        max_cosine_distance: Leave out exchanges farther than this from the message, 0 to 2; None: none.
        weights: How candidates are scored.
        rerank: Puts the best candidates in an order of its own; None: `weights` alone order them.
    """

    tokens: int = 800
    most: int = 12
    max_cosine_distance: float | None = None
    weights: Weights = DEFAULT_WEIGHTS
    rerank: Reranker | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Read it from settings."""
        return cls(settings.recall_tokens, max_cosine_distance=settings.max_cosine_distance, weights=settings.weights)


async def remember(
    state: TurnState,
    runtime: Runtime[SettingsT],
    writes: Callable[[list[JSON], list[Segment], JSON], list[PutOp]] | None = None,
) -> JSON:
    """Write the turns that are not stored yet, one record each; return the channels to write.

    To run the node twice is to run it once. A turn whose place on the timeline another future has taken goes on a
    branch of its own (`questbook.memory.timeline`). If the store fails, the turn stays in the buffer, a notice says so,
    and the next turn writes it too. Where recall scores by use (scoring "generative_agents"), what was recalled counts
    as used now.

    Args:
        state: The thread's state; `record_fields` adds to each record.
        runtime: The run's.
        writes: Makes further writes of an application, given the turns, the timeline with their places, and where the
            records come from (`origin_of`).
    """
    if runtime.store is None:
        first = []
        if not state.remembered_through:
            _log.warning("No store: nothing is remembered. Give the graph one where it is made: store=…")
            first = [notice(state.turn, "remember", "No store: nothing is remembered.")]
        return {"remembered_through": state.turn, "notices": first}
    turns, origin = state.transcript(state.remembered_through + 1, state.turn), origin_of(runtime)
    try:
        accesses = await _last_accesses(state, runtime.store, runtime.context)

        def more(timeline: list[Segment]) -> list[PutOp]:
            ops = writes(turns, timeline, origin) if writes else []
            ops += head_ops(state, timeline, runtime.context, origin["thread"])
            if accesses is not None:
                used = [memory["key"] for memory in state.recalled or []]
                namespace = runtime.context.campaign_namespace("accesses")
                ops.append(access_op(namespace, timeline, state.turn, accesses, used, origin["said_at"]))
            return ops

        timeline = await remember_records(
            runtime.store,
            runtime.context.campaign_namespace("exchanges"),
            [_record(turn, state) | state.record_fields(turn["turn"]) for turn in turns],
            turn=turns[0]["turn"] if turns else state.turn,
            timeline=visible_timeline(state, runtime),
            claims=runtime.context.campaign_namespace("claims"),
            provenance=origin,
            also=more,
        )
    except Exception as error:  # noqa: BLE001 (any store may be behind this; the reply must survive its failure)
        _log.warning("Turn %d was not remembered: %s", state.turn, error, exc_info=True)
        text = f"The turn was not written to memory; the next turn will write it. {error}"
        return {"notices": [notice(state.turn, "remember", text)]}
    return {"remembered_through": state.turn, "timeline": [list(segment) for segment in timeline]}


async def transcript_through(state: TurnState, runtime: Runtime[SettingsT], first: int) -> list[JSON]:
    """Return turns `first` to the current one as `state.transcript` has them, for notes that catch up.

    What the thread does not have in its buffer, because the campaign was played on another one before, is read from the
    records of those turns, at most a hundred; without rolls.

    Raises:
        PastUnknownError: The store cannot be read.
    """
    turns = state.transcript(first, state.turn)
    earlier = range(max(1, first, state.turn - _MOST_EARLIER), turns[0]["turn"] if turns else state.turn)
    if runtime.store is None or not earlier or not state.timeline:
        return turns
    namespace = runtime.context.campaign_namespace("exchanges")
    keys = (record_key(branch_of(state.timeline, turn), turn, "exchange") for turn in earlier)
    try:
        records = await asyncio.gather(*(runtime.store.aget(namespace, key, refresh_ttl=False) for key in keys))
    except Exception as error:  # any store may be behind this
        raise PastUnknownError(f"Earlier turns cannot be read from the store: {error}") from error
    past = [(turn, record.value) for turn, record in zip(earlier, records, strict=True) if record is not None]
    return [
        {"turn": turn, **{part: str(value.get(part, "")) for part in ("player", "reply")}} for turn, value in past
    ] + turns


def origin_of(runtime: Runtime[SettingsT]) -> JSON:
    """Return where and when a record is written, as its fields `thread`, `checkpoint`, `said_at`."""
    info = runtime.execution_info
    checkpoint = info.checkpoint_id if info else None
    return {"thread": info.thread_id if info else None, "checkpoint": checkpoint, "said_at": said_at(checkpoint)}


async def with_recalled(
    state: StateT, runtime: Runtime[SettingsT], memories: Callable[[StateT, Runtime[SettingsT]], Awaitable[list[JSON]]]
) -> StateT:
    """Return the state with its memories. A run that was resumed recalls again: no checkpoint holds them."""
    if state.recalled is not None:
        return state
    return state.model_copy(update={"recalled": await memories(state, runtime)})


async def recall_exchanges(
    state: TurnState,
    runtime: Runtime[SettingsT],
    shown: list[AnyMessage],
    now: datetime,
    options: Recall,
    facts: tuple[str, ...] | None = None,
) -> list[JSON]:
    """Recall the exchanges that fit the message best and are not in the prompt; in the order they were said.

    Each is {"key", "kind", "turn", "age", "score", "why", "player", "reply", "said_at"}; the best come until
    `options.tokens` are full.

    With facts, what they say comes too, as {…, "text", "claimed_by"}: what fits, also of turns that are in the prompt,
    with what holds now in the place of what has changed; and the person's slots (name, home …), whatever the message
    says, a quarter of the tokens at most.

    Args:
        state: The thread's state, its turn opened.
        runtime: The run's.
        shown: The conversation as the prompt has it.
        now: Real time, in the zone whose midnight changes the day.
        options: How much.
        facts: Namespace of the conversation's facts, if any are noted.
    """
    context, store, view = runtime.context, runtime.store, visible_timeline(state, runtime)
    written = min(state.turn - 1, state.remembered_through)
    since = state.turn - count_verbatim_turns(shown)
    before = written + 1 if facts else min(since, written + 1)
    if store is None or not options.tokens or (before <= 1 and not isinstance(view, UserTimeline)):
        return []
    message, _ = turn_text(split_turns(state.messages, state.turn)[-1][1])

    timeline = as_of(view, written)
    memories: dict[tuple[tuple[str, ...], str], JSON] = {}

    def to_memory(record: Recalled) -> JSON:
        place = (record.namespace, record.key)
        if place not in memories:
            memories[place] = memory_of(record, now, timeline)
        return memories[place]

    def cost(record: Recalled) -> int:
        return count_tokens(memory_line(to_memory(record)))

    tokens = state.fit_tokens(options.tokens, context.model)
    always = await _profile(store, facts, timeline, cost, tokens // _SHARE) if facts else []
    present = {record.key for record in always}

    async def hold(records: list[Recalled]) -> list[Recalled]:
        spoken = [record for record in records if not _is_shown(record, since, timeline)]
        if facts is None:
            return spoken
        held = await replace_superseded(store, spoken, facts, timeline=timeline)
        held = await add_insights(store, held, facts, question=message, timeline=timeline, since=since)
        return [record for record in held if record.key not in present]

    exchanges = context.campaign_namespace("exchanges")
    best = await recall_records(
        store,
        [exchanges, facts] if facts else exchanges,
        Query(
            message,
            timeline=view,
            before=before,
            limit=options.most,
            budget=tokens - sum(map(cost, always)),
            cost=cost,
            weights=options.weights,
            present=await present_of(state, runtime, now),
            fitting=options.max_cosine_distance is None,
            max_cosine_distance=options.max_cosine_distance,
            refine=hold,
            rerank=options.rerank,
            accesses=context.campaign_namespace("accesses"),
        ),
    )
    return sorted(
        map(to_memory, [*always, *best]),
        key=lambda memory: (
            int(memory["turn"]),
            "" if memory["turn"] else str(memory["said_at"]),
            memory["kind"] != "exchange",
        ),
    )


def memory_of(record: Recalled, now: datetime, timeline: Sequence[Segment] = ()) -> JSON:
    """Make a memory of a record: its key, kind, turn, age, score, why it was recalled, and what it says.

    The turn is 0 if it is another thread's, which counts its own turns.
    """
    value = record.value
    kind = str(value.get("kind") or "exchange")
    turn = 0 if _is_elsewhere(record, timeline) else value["turn"]
    memory: JSON = {"key": record.key, "kind": kind, "turn": turn, "said_at": value.get("said_at")}
    memory |= {"age": phrase_age(memory["said_at"], now), "score": record.score, "why": str(record.reason)}
    parts = ("player", "reply") if kind == "exchange" else ("text", "claimed_by")
    return memory | {part: value.get(part) or "" for part in parts}


def memory_line(memory: JSON) -> str:
    """Render a memory on one line: an exchange as it was, anything else under the name of its kind."""
    shown = {"turn": "turn", "age": "age", "player": "user", "reply": "assistant", "text": "fact"}
    if memory.get("kind") in ("insight", "rumour"):
        shown["text"] = str(memory["kind"])
    shown["claimed_by"] = "claimed_by"
    return render_value({label: memory[name] for name, label in shown.items() if memory.get(name)})


async def _profile(
    store: BaseStore,
    facts: tuple[str, ...],
    timeline: Sequence[Segment],
    cost: Callable[[Recalled], int],
    budget: int,
) -> list[Recalled]:
    """Return what the person is and has, as far as it holds and fits: what matters most first, then the latest."""
    only = {"subject": PERSON, "slot": {"$ne": ""}}
    items = await latest_facts(store, facts, only, timeline=timeline, count=_PROFILE)
    items = await keep_valid(store, items, timeline=timeline)
    because = Reason(because="is known of you")
    kept: list[Recalled] = []
    for item in sorted(items, key=lambda item: (importance_of(item.value), position_of(item.value)), reverse=True):
        record = Recalled(item.key, item.value, None, 0.0, tuple(item.namespace), because)
        if record.value.get("kind") != "rumour" and (tokens := cost(record)) <= budget:
            budget -= tokens
            kept.append(record)
    return kept


def _is_shown(record: Recalled, since: int, timeline: Sequence[Segment]) -> bool:
    """Whether the prompt has an exchange word for word."""
    is_late = record.value.get("kind", "exchange") == "exchange" and int(record.value.get("turn") or 0) >= since
    return is_late and not _is_elsewhere(record, timeline)


def _is_elsewhere(record: Recalled, timeline: Sequence[Segment]) -> bool:
    """Whether another thread of the user wrote a record."""
    if not isinstance(timeline, UserTimeline):
        return False
    value = record.value
    return bool(timeline.other_thread(str(value.get("thread") or ""), str(value.get("branch")), int(value["turn"])))


async def present_of(
    state: TurnState,
    runtime: Runtime[SettingsT],
    now: datetime,
    *,
    day: int | None = None,
    store: BaseStore | None = None,
) -> Present:
    """Return what time it is when a turn is played, for words such as "yesterday" or "last session".

    Args:
        state: The thread's state, its turn opened.
        runtime: The run's.
        now: Real time, in the zone whose midnight changes the day.
        day: Day of the story, if there is one.
        store: What is read; None: the run's store.

    Returns:
        The person's time, the story's day, and the number of the session that goes on or begins now.
    """
    last, past = min(state.turn - 1, state.remembered_through), None
    if last >= 1 and (store := store or runtime.store) is not None:
        exchanges = runtime.context.campaign_namespace("exchanges")
        past = await store.aget(exchanges, record_key(branch_of(state.timeline, last), last, "exchange"))
    here = Stamp(thread=run_thread(runtime) or "", said_at=now.isoformat())
    return Present(now, day, session_number(Stamp.from_json(past.value) if past else None, here))


def _record(turn: JSON, state: TurnState) -> JSON:
    buffered = dict(split_turns(state.messages, state.turn))
    words = stored_words(turn)
    return {
        "kind": "exchange",
        "text": f"{words['player']}\n{words['reply']}",
        "player": words["player"],
        "reply": words["reply"],
        **({WITHHELD: True} if words.get(WITHHELD) else {}),
        "line": state.line,
        "messages": [message.id for message in buffered[turn["turn"]]],
    }


async def _last_accesses(state: TurnState, store: BaseStore, settings: Settings) -> dict[str, str] | None:
    """Return when each record was last used before this turn; None if nothing was, or scoring does not go by it."""
    if settings.weights.scoring != "generative_agents" or not state.recalled:
        return None
    accesses = settings.campaign_namespace("accesses")
    return await last_accesses(store, accesses, state.timeline, state.turn)
