"""remember: write the turn, and the facts that were noted of it, to the semantic store, once."""

from __future__ import annotations

import logging
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.note_facts import note_facts, taught
from questbook.graphs.dungeon_master.sections import transcript
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.exchanges import origin_of, write_turns
from questbook.graphs.turn.session import move_head
from questbook.graphs.turn.turn import notice

_log = logging.getLogger(__name__)


async def remember(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Store each turn that is not stored yet as one record: the player's words and the reply together.

    The facts that wait follow once the turn has its place on the timeline; without a store they are dropped.
    """

    def content(told: dict[str, Any]) -> dict[str, Any]:
        # Two attempts at a turn that differ in their facts alone are two futures.
        return state.noted_after(told["turn"]) | {"taught": taught(state, told["turn"])}

    turns = transcript(state, state.remembered_through + 1, state.turn)
    update = await write_turns(state, runtime, turns, content)
    if runtime.store is None:
        return update | {"facts": []}
    if "remembered_through" not in update:
        return update
    timeline = [(branch, turn) for branch, turn in update["timeline"]]
    origin = origin_of(runtime)
    update |= await note_facts(state, runtime, timeline, origin)
    if update.get("facts", state.facts) != state.facts:
        # The head was moved with the exchange, before the facts were written, lest a crash lose them. Left as it is, it
        # would hand all of them on, and sessions of one turn would note them again and again instead of their own.
        left = {"timeline": timeline, "facts": update["facts"], "unreflected": update["unreflected"]}
        try:
            await move_head(state.model_copy(update=left), runtime.store, runtime.context, origin["thread"])
        except Exception as error:  # noqa: BLE001 (any store may stand behind this; the reply must outlive its failure)
            _log.warning("The head of turn %d hands on facts that are written: %s", state.turn, error, exc_info=True)
            text = f"A new session will note the facts of this turn once more. {error}"
            update["notices"] = [*update.get("notices", []), notice(state.turn, "remember", text)]
    return update
