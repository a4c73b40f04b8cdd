"""remember: write the turn, and the facts that were noted of it, to the semantic store, once."""

from __future__ import annotations

import logging

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.facts import write_waiting_facts
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn import exchanges
from questbook.graphs.turn.sessions import move_head
from questbook.graphs.turn.turn import notice
from questbook.types import JSON

_log = logging.getLogger(__name__)


async def remember(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Store each turn that is not stored yet as one record: the player's words and the reply together.

    The facts that wait follow once the turn has its place on the timeline; without a store they are dropped.
    """
    update = await exchanges.remember(state, runtime)
    if runtime.store is None:
        return update | {"facts": []}
    if "remembered_through" not in update:
        return update
    timeline = [(branch, turn) for branch, turn in update["timeline"]]
    origin = exchanges.origin_of(runtime)
    update |= await write_waiting_facts(state, runtime, timeline, origin)
    if update.get("facts", state.facts) != state.facts:
        # The head was moved with the exchange, before the facts were written, so that a crash loses none. Left as it
        # is, it would hand all of them on, and each new session would write them again before its own.
        moved = {"timeline": timeline, "facts": update["facts"], "unreflected": update["unreflected"]}
        try:
            await move_head(state.model_copy(update=moved), runtime.store, runtime.context, origin["thread"])
        except Exception as error:  # noqa: BLE001 (any store may be behind this; the reply must survive its failure)
            _log.warning("The head of turn %d hands on facts that are written: %s", state.turn, error, exc_info=True)
            text = f"A new session will note the facts of this turn once more. {error}"
            update["notices"] = [*update.get("notices", []), notice(state.turn, "remember", text)]
    return update
