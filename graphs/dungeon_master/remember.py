"""remember: write the turn to the semantic store, once."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.sections import transcript
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
        await runtime.store.abatch(
            [
                PutOp(campaign_namespace(*campaign, "exchanges"), *_record(told, timeline, state, runtime))
                for told in turns
            ]
        )
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
        "thread": info.thread_id if info else None,
        "checkpoint": info.checkpoint_id if info else None,
        "messages": [message.id for message in _messages(state, turn)],
        "location": state.quest.location,
        "said_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _messages(state: DungeonState, turn: int) -> list[AnyMessage]:
    return next(messages for number, messages in turns_of(state.messages, state.turn) if number == turn)


def _reply_id(state: DungeonState, turn: int) -> str:
    """Tell this attempt at a turn from every other: the id of its last message, which is in the checkpoint already."""
    return _messages(state, turn)[-1].id or ""
