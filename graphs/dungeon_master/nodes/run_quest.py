"""run_quest: the dungeon master's reply."""

from __future__ import annotations

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.nodes.recall import memories_for
from questbook.graphs.dungeon_master.nodes.roll_dice import ROLL_DICE
from questbook.graphs.dungeon_master.prompts import quest_prompt
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.exchanges import with_recalled
from questbook.graphs.turn.reply import reply
from questbook.types import JSON


async def run_quest(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Answer the player, or ask for dice first.

    Raises:
        ModelError: The model failed or said nothing. The player's message is in the checkpoint; run the thread again
            without input to retry the turn.
    """
    state = await with_recalled(state, runtime, memories_for)
    prompt, rounds = quest_prompt(state, runtime.context), runtime.context.max_roll_rounds
    message, notices = await reply(state, runtime, prompt, node="run_quest", tools=[ROLL_DICE], most_rounds=rounds)
    return {"messages": [message], "notices": notices}
