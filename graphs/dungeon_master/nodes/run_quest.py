"""run_quest: the dungeon master's reply."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.nodes.recall import memories_for
from questbook.graphs.dungeon_master.nodes.roll_dice import ROLL_DICE
from questbook.graphs.dungeon_master.sections import quest_prompt
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.reply import reply


async def run_quest(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Answer the player, or ask for dice first.

    Raises:
        ModelError: The model failed or said nothing. The player's message stands in the checkpoint; run the thread
            again without input to retry the turn.
    """
    if state.recalled is None:  # the run was resumed here, and what was recalled is not checkpointed
        state = state.model_copy(update={"recalled": await memories_for(state, runtime)})
    prompt, rounds = quest_prompt(state, runtime.context), runtime.context.max_roll_rounds
    told = await reply(state, runtime, prompt, node="run_quest", tools=[ROLL_DICE], most_rounds=rounds)
    return {"messages": [told]}
