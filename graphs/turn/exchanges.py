"""Exchanges: each turn leaves one record in the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from questbook.graphs.errors import PastUnknownError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.clock import said_at
from questbook.graphs.turn.scope import visible_timeline
from questbook.graphs.turn.sessions import head_ops
from questbook.graphs.turn.shapes import Turn, turn_of
from questbook.graphs.turn.state import TurnState
from questbook.graphs.turn.turn import failure_notice, notice, stored_words
from questbook.memory.buffer.policies import split_turns
from questbook.memory.recall.intents import is_standing
from questbook.memory.recall.recall import access_op, last_accesses
from questbook.memory.timeline.records import STANDING, WITHHELD
from questbook.memory.timeline.timeline import Segment, branch_of, record_key
from questbook.memory.timeline.timeline import remember as remember_records
from questbook.types import JSON

SettingsT = TypeVar("SettingsT", bound=Settings)
StateT = TypeVar("StateT", bound=TurnState)

_MOST_EARLIER = 100  # turns of an earlier thread that notes catch up with
_log = logging.getLogger(__name__)


async def remember(
    state: TurnState,
    runtime: Runtime[SettingsT],
    writes: Callable[[list[Turn], list[Segment], JSON], list[PutOp]] | None = None,
) -> JSON:
    """Write the turns that are not stored yet, one record each; return the channels to write.

    To run the node twice is to run it once. A turn whose place on the timeline another future has taken goes on a
    branch of its own (`questbook.memory.timeline`). If the store fails, the turn stays in the buffer, a notice says so,
    and the next turn writes it too. Where recall scores by use (scoring "generative_agents"), what was recalled counts
    as used now.

    `state.record_fields` adds to each record. `writes` makes further writes of an application, given the turns, the
    timeline with their places, and where the records come from (`origin_of`).
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
        text = "The turn was not written to memory; the next turn will write it."
        return {"notices": [failure_notice(state.turn, "remember", text, error)]}
    return {"remembered_through": state.turn, "timeline": [list(segment) for segment in timeline]}


async def transcript_through(state: TurnState, runtime: Runtime[SettingsT], first: int) -> list[Turn]:
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
    return [turn_of(turn, value) for turn, value in past] + turns


def origin_of(runtime: Runtime[SettingsT]) -> JSON:
    """Return where and when a record is written, as its fields `thread`, `checkpoint`, `said_at`."""
    info = runtime.execution_info
    checkpoint = info.checkpoint_id if info else None
    return {"thread": info.thread_id if info else None, "checkpoint": checkpoint, "said_at": said_at(checkpoint)}


def _record(turn: Turn, state: TurnState) -> JSON:
    buffered = dict(split_turns(state.messages, state.turn))
    words = stored_words(turn)
    return {
        "kind": "exchange",
        "text": f"{words['player']}\n{words['reply']}",
        "player": words["player"],
        "reply": words["reply"],
        **({WITHHELD: True} if words.get(WITHHELD) else {}),
        **({STANDING: True} if is_standing(words["player"]) else {}),
        "line": state.line,
        "messages": [message.id for message in buffered[turn["turn"]]],
    }


async def _last_accesses(state: TurnState, store: BaseStore, settings: Settings) -> dict[str, str] | None:
    """Return when each record was last used before this turn; None if nothing was, or scoring does not go by it."""
    if settings.weights.scoring != "generative_agents" or not state.recalled:
        return None
    accesses = settings.campaign_namespace("accesses")
    return await last_accesses(store, accesses, state.timeline, state.turn)
