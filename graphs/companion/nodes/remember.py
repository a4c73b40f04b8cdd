"""remember: write the turn, and what it put into archival memory, to the store, once."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from questbook.graphs.companion.context import Context
from questbook.graphs.companion.ltm import ltm_of, memory_ops
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.turn.exchanges import write_turns
from questbook.graphs.turn.turn import spoken_turns
from questbook.memory.archive.archival_memory import entry_writes
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import Segment


async def remember(state: CompanionState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Store each turn that is not stored yet; what belongs to it goes into its place on the timeline with it.

    That are its archival entries and, with `ltm_config`, what the character remembers of it.

    Raises:
        LtmConfigError: The settings of the character's memory have become wrong; the reply stands, and the turn is
            stored when the thread is run again.
    """
    ltm = await ltm_of(runtime.context, runtime.server_info)
    archive = campaign_namespace(runtime.context.user, runtime.context.campaign, "archive")

    def also(timeline: list[Segment], origin: dict[str, Any]) -> list[PutOp]:
        writes: list[PutOp] = []
        for turn in dict.fromkeys(kept["turn"] for kept in state.archived):
            entries = [kept for kept in state.archived if kept["turn"] == turn]
            # When it was put away, not when it is written: a failed write may be a turn late.
            writes += entry_writes(archive, [{**origin, **kept} for kept in entries], timeline, turn, {})
        return writes + (memory_ops(state, runtime, ltm, turns, timeline, origin) if ltm else [])

    turns = spoken_turns(state, state.remembered_through + 1, state.turn)
    update = await write_turns(state, runtime, turns, lambda _: {}, also)
    written = runtime.store is not None and "remembered_through" in update
    return update | ({"archived": []} if written else {})
