"""remember: write the turn to the semantic store, once."""

from __future__ import annotations

import logging
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.note_facts import note_facts
from graphs.dungeon_master.sections import transcript
from graphs.dungeon_master.session import head_op
from graphs.dungeon_master.state import DungeonState
from graphs.dungeon_master.turn import notice
from graphs.dungeon_master.withheld import withheld
from memory.access import access_op, last_accesses
from memory.buffer import turns_of
from memory.namespaces import campaign_namespace
from memory.remember import remember as remember_exchanges
from memory.timeline import Segment

_log = logging.getLogger(__name__)


async def remember(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Store each turn that is not stored yet as one record: the player's words and the reply together.

    A turn that another future has taken already goes on a branch of its own. If the store fails, the turn stays in the
    buffer, a notice says so, and the next turn writes it too.
    """
    if runtime.store is None:
        first = [] if state.remembered_through else [notice(state.turn, "remember", "No store: nothing is recalled.")]
        return {"remembered_through": state.turn, "notices": first, "facts": []}
    turns = transcript(state, state.remembered_through + 1, state.turn)
    campaign = (runtime.context.user, runtime.context.campaign)
    info = runtime.execution_info
    thread, checkpoint = (info.thread_id, info.checkpoint_id) if info else (None, None)
    said: dict[str, Any] = {"thread": thread, "checkpoint": checkpoint, "said_at": _said_at(checkpoint)}
    try:
        known = await _accessed(state, runtime.store, runtime.context)

        def also(timeline: list[Segment]) -> list[PutOp]:
            writes = [head_op(state, timeline, runtime.context, thread)]
            if known is not None:
                used = [memory["key"] for memory in state.recalled or []]
                accesses = campaign_namespace(*campaign, "accesses")
                writes.append(access_op(accesses, timeline, state.turn, known, used, said["said_at"]))
            return writes

        timeline = await remember_exchanges(
            runtime.store,
            campaign_namespace(*campaign, "exchanges"),
            [_content(told, state) for told in turns],
            turn=turns[0]["turn"] if turns else state.turn,
            timeline=state.timeline,
            claims=campaign_namespace(*campaign, "claims"),
            provenance=said,
            also=also,
        )
    except Exception as error:  # noqa: BLE001 (any store may stand behind this; the reply must outlive its failure)
        _log.warning("Turn %d was not remembered: %s", state.turn, error, exc_info=True)
        text = f"The turn was not written to memory; the next turn will write it. {error}"
        return {"notices": [notice(state.turn, "remember", text)]}
    written = await note_facts(state, runtime, timeline, said)
    return {"remembered_through": state.turn, "timeline": [list(segment) for segment in timeline]} | written


def _content(told: dict[str, Any], state: DungeonState) -> dict[str, Any]:
    """Tell what a turn's record says, without where and when it was written."""
    now = told["turn"] == state.turn
    told = withheld(told)
    return {
        "kind": "exchange",
        "text": f"{told['player']}\n{told['reply']}",
        "player": told["player"],
        "reply": told["reply"],
        "line": state.line,
        "messages": [message.id for message in _messages(state, told["turn"])],
        "location": state.quest.location,
        "day": state.quest.clock.day,
        "noted": state.noted if now else {},
    }


async def _accessed(state: DungeonState, store: BaseStore, context: Context) -> dict[str, str] | None:
    """Return the last accesses before this turn; None if nothing was used, or nobody will ask."""
    if context.weights.scoring != "generative_agents" or not state.recalled:
        return None
    return await last_accesses(
        store, campaign_namespace(context.user, context.campaign, "accesses"), state.timeline, state.turn
    )


def _said_at(checkpoint: str | None) -> str:
    """When the reply stood in a checkpoint, ISO 8601 in UTC: the same if the node is run again."""
    # A checkpoint id is a UUID of version 6, which begins with its time in 100 ns since 15 October 1582 (RFC 9562).
    if checkpoint and (made := uuid.UUID(checkpoint)).version == 6:
        ticks = int(made.hex[:12] + made.hex[13:16], 16)
        return (datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=ticks // 10)).isoformat(timespec="seconds")
    return datetime.now(UTC).isoformat(timespec="seconds")


def _messages(state: DungeonState, turn: int) -> list[AnyMessage]:
    return next(messages for number, messages in turns_of(state.messages, state.turn) if number == turn)
