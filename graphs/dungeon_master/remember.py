"""remember: write the turn to the semantic store, once."""

from __future__ import annotations

import logging
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.sections import transcript
from graphs.dungeon_master.session import head_op
from graphs.dungeon_master.state import DungeonState
from graphs.dungeon_master.turn import notice
from memory.buffer import turns_of
from memory.namespaces import campaign_namespace
from memory.timeline import Segment, branch_of, claim, record_key

_log = logging.getLogger(__name__)


async def remember(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Store each turn that is not stored yet as one record: the player's words and the reply together.

    A record's key follows from its branch and turn, so that writing twice is writing once; a turn that another future
    has taken already goes on a branch of its own. If the store fails, the turn stays in the buffer, a notice says so,
    and the next turn writes it too.
    """
    if runtime.store is None:
        first = [] if state.remembered_through else [notice(state.turn, "remember", "No store: nothing is recalled.")]
        return {"remembered_through": state.turn, "notices": first}
    turns = transcript(state, state.remembered_through + 1, state.turn)
    campaign = (runtime.context.user, runtime.context.campaign)
    timeline = list(state.timeline)
    try:
        for told in turns:
            owner = _reply_id(state, told["turn"])
            timeline = await claim(
                runtime.store, campaign_namespace(*campaign, "claims"), timeline, told["turn"], owner
            )
        exchanges = campaign_namespace(*campaign, "exchanges")
        records = [PutOp(exchanges, *_record(told, timeline, state, runtime)) for told in turns]
        thread = runtime.execution_info.thread_id if runtime.execution_info else None
        await runtime.store.abatch([*records, head_op(state, timeline, runtime.context, thread)])
    except Exception as error:  # noqa: BLE001 (any store may stand behind this; the reply must outlive its failure)
        _log.warning("Turn %d was not remembered: %s", state.turn, error, exc_info=True)
        text = f"The turn was not written to memory; the next turn will write it. {error}"
        return {"notices": [notice(state.turn, "remember", text)]}
    return {"remembered_through": state.turn, "timeline": [list(segment) for segment in timeline]}


def _record(
    told: dict[str, Any], timeline: list[Segment], state: DungeonState, runtime: Runtime[Context]
) -> tuple[str, dict[str, Any]]:
    branch, turn = branch_of(timeline, told["turn"]), told["turn"]
    info = runtime.execution_info
    return record_key(branch, turn, "exchange"), {
        "kind": "exchange",
        "text": f"{told['player']}\n{told['reply']}",
        "player": told["player"],
        "reply": told["reply"],
        "branch": branch,
        "turn": turn,
        "after": branch_of(timeline, turn - 1) if turn > 1 else None,
        "line": state.line,
        "thread": info.thread_id if info else None,
        "checkpoint": info.checkpoint_id if info else None,
        "messages": [message.id for message in _messages(state, turn)],
        "location": state.quest.location,
        "noted": state.noted if turn == state.turn else {},
        "said_at": _said_at(info.checkpoint_id if info else None),
    }


def _said_at(checkpoint: str | None) -> str:
    """When the reply stood in a checkpoint, ISO 8601 in UTC: the same if the node is run again."""
    # A checkpoint id is a UUID of version 6, which begins with its time in 100 ns since 15 October 1582 (RFC 9562).
    if checkpoint and (made := uuid.UUID(checkpoint)).version == 6:
        ticks = int(made.hex[:12] + made.hex[13:16], 16)
        return (datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=ticks // 10)).isoformat(timespec="seconds")
    return datetime.now(UTC).isoformat(timespec="seconds")


def _messages(state: DungeonState, turn: int) -> list[AnyMessage]:
    return next(messages for number, messages in turns_of(state.messages, state.turn) if number == turn)


def _reply_id(state: DungeonState, turn: int) -> str:
    """Tell this attempt at a turn from every other: the id of its last message, which is in the checkpoint already."""
    return _messages(state, turn)[-1].id or ""
