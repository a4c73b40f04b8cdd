"""Exchanges: the record that each turn leaves in the store, written once, whatever the application says in it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from questbook.graphs.settings import Settings
from questbook.graphs.turn.session import head_op
from questbook.graphs.turn.turn import notice
from questbook.graphs.turn.turn_state import TurnState
from questbook.graphs.turn.withheld import withheld
from questbook.memory.buffer.turns import split_turns
from questbook.memory.recall.access import access_op, last_accesses
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.privacy import WITHHELD
from questbook.memory.timeline.remember import remember
from questbook.memory.timeline.timeline import Segment

JSON = dict[str, Any]
SettingsT = TypeVar("SettingsT", bound=Settings)

_log = logging.getLogger(__name__)


async def write_turns(
    state: TurnState,
    runtime: Runtime[SettingsT],
    turns: Sequence[JSON],
    content: Callable[[JSON], JSON],
    also: Callable[[list[Segment], JSON], list[PutOp]] = lambda *_: [],
) -> JSON:
    """Write the turns that are not stored yet, one record each; return the channels to write.

    Running the node twice is running it once, and a turn that another future has taken already goes on a branch of its
    own (`questbook.memory.timeline.remember`). If the store fails, the turn stays in the buffer, a notice says so, and
    the next turn writes it too. Where recall goes by it (scoring "generative_agents"), what was recalled counts as
    used now.

    Args:
        state: The thread's state.
        runtime: The run's.
        turns: The turns as {"turn", "player", "reply", …}, oldest first; the last one is the present one.
        content: What the application says of a turn, beside what was said; the same if the node is run again.
        also: Makes further writes, once the turns have their places: of the timeline, and the record's provenance.
    """
    if runtime.store is None:
        first = [] if state.remembered_through else [notice(state.turn, "remember", "No store: nothing is recalled.")]
        return {"remembered_through": state.turn, "notices": first}
    campaign = (runtime.context.user, runtime.context.campaign)
    origin = origin_of(runtime)
    try:
        known = await _accessed(state, runtime.store, runtime.context)

        def besides(timeline: list[Segment]) -> list[PutOp]:
            writes = [*also(timeline, origin), head_op(state, timeline, runtime.context, origin["thread"])]
            if known is not None:
                used = [memory["key"] for memory in state.recalled or []]
                accesses = campaign_namespace(*campaign, "accesses")
                writes.append(access_op(accesses, timeline, state.turn, known, used, origin["said_at"]))
            return writes

        timeline = await remember(
            runtime.store,
            campaign_namespace(*campaign, "exchanges"),
            [_said(told, state) | content(told) for told in turns],
            turn=turns[0]["turn"] if turns else state.turn,
            timeline=state.timeline,
            claims=campaign_namespace(*campaign, "claims"),
            provenance=origin,
            also=besides,
        )
    except Exception as error:  # noqa: BLE001 (any store may stand behind this; the reply must outlive its failure)
        _log.warning("Turn %d was not remembered: %s", state.turn, error, exc_info=True)
        text = f"The turn was not written to memory; the next turn will write it. {error}"
        return {"notices": [notice(state.turn, "remember", text)]}
    return {"remembered_through": state.turn, "timeline": [list(segment) for segment in timeline]}


def origin_of(runtime: Runtime[SettingsT]) -> JSON:
    """Return the fields that tell where and when a record is written: thread, checkpoint, said_at."""
    info = runtime.execution_info
    checkpoint = info.checkpoint_id if info else None
    return {"thread": info.thread_id if info else None, "checkpoint": checkpoint, "said_at": _said_at(checkpoint)}


def _said(told: JSON, state: TurnState) -> JSON:
    buffered = dict(split_turns(state.messages, state.turn))
    told = withheld(told)
    return {
        "kind": "exchange",
        "text": f"{told['player']}\n{told['reply']}",
        "player": told["player"],
        "reply": told["reply"],
        **({WITHHELD: True} if told.get(WITHHELD) else {}),
        "line": state.line,
        "messages": [message.id for message in buffered[told["turn"]]],
    }


async def _accessed(state: TurnState, store: BaseStore, settings: Settings) -> dict[str, str] | None:
    """Return the last accesses before this turn; None if nothing was used, or nobody will ask."""
    if settings.weights.scoring != "generative_agents" or not state.recalled:
        return None
    accesses = campaign_namespace(settings.user, settings.campaign, "accesses")
    return await last_accesses(store, accesses, state.timeline, state.turn)


def _said_at(checkpoint: str | None) -> str:
    """When the reply stood in a checkpoint, ISO 8601 in UTC: the same if the node is run again."""
    # A checkpoint id is a UUID of version 6, which begins with its time in 100 ns since 15 October 1582 (RFC 9562).
    if checkpoint and (made := uuid.UUID(checkpoint)).version == 6:
        ticks = int(made.hex[:12] + made.hex[13:16], 16)
        return (datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=ticks // 10)).isoformat(timespec="seconds")
    return datetime.now(UTC).isoformat(timespec="seconds")
