"""remember: write the turn to the semantic store, once."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.sections import transcript
from graphs.dungeon_master.state import DungeonState
from graphs.dungeon_master.turn import notice
from memory.namespaces import campaign_namespace
from memory.timeline import branch_of, record_key

_log = logging.getLogger(__name__)


async def remember(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Store each turn that is not stored yet as one record: the player's words and the reply together.

    A record's key follows from its branch and turn, so that writing twice is writing once. If the store fails, the
    turn stays in the buffer, a notice says so, and the next turn writes it too.
    """
    if runtime.store is None:
        first = [] if state.remembered_through else [notice(state.turn, "remember", "No store: nothing is recalled.")]
        return {"remembered_through": state.turn, "notices": first}
    namespace = campaign_namespace(runtime.context.user, runtime.context.campaign, "exchanges")
    thread = runtime.execution_info.thread_id if runtime.execution_info else None
    records = [
        PutOp(
            namespace,
            record_key(branch := branch_of(state.timeline, told["turn"]), told["turn"], "exchange"),
            {
                "kind": "exchange",
                "text": f"{told['player']}\n{told['reply']}",
                "player": told["player"],
                "reply": told["reply"],
                "branch": branch,
                "turn": told["turn"],
                "thread": thread,
                "location": state.quest.location,
                "said_at": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )
        for told in transcript(state, state.remembered_through + 1, state.turn)
    ]
    try:
        await runtime.store.abatch(records)
    except Exception as error:  # noqa: BLE001 (any store may stand behind this; the reply must outlive its failure)
        _log.warning("Turn %d was not remembered: %s", state.turn, error, exc_info=True)
        text = f"The turn was not written to memory; the next turn will write it. {error}"
        return {"notices": [notice(state.turn, "remember", text)]}
    return {"remembered_through": state.turn}
