"""remember: write the turn, and the facts that were noted of it, to the semantic store, once."""

from __future__ import annotations

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.facts import write_waiting_facts
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.turn import origin_of, remember_turns
from questbook.memory.timeline.timeline import read_timeline
from questbook.types import JSON


async def remember(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Store each turn that is not stored yet as one record: the player's words and the reply together.

    The facts that wait follow once the turn has its place on the timeline; without a store they are dropped.
    """
    update = await remember_turns(state, runtime)
    if runtime.store is None:
        return update | {"facts": []}
    if "remembered_through" not in update:
        return update
    timeline = read_timeline(update)
    origin = origin_of(runtime)
    return update | await write_waiting_facts(state, runtime, timeline, origin)
