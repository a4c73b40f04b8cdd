"""run_quest: the dungeon master's reply."""

from __future__ import annotations

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.keep_secret import KEEP_SECRET, read_secrets
from questbook.graphs.dungeon_master.nodes.roll_dice import ROLL_DICE
from questbook.graphs.dungeon_master.prompts import quest_prompt
from questbook.graphs.dungeon_master.recall_plan import recall_plan
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.recall import with_recalled
from questbook.graphs.turn.reply import reply
from questbook.graphs.turn.state import notice
from questbook.graphs.turn.tool_calls import MOST_CALLS, schemas_of
from questbook.graphs.turn.turn import is_private
from questbook.types import JSON


async def run_quest(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Answer the player, or ask for dice first; what the model keeps secret beside that waits for `update_state`.

    Raises:
        ModelError: The model failed or said nothing. The player's message is in the checkpoint; run the thread again
            without input to retry the turn.
    """
    state = await with_recalled(state, runtime, recall_plan)
    private = is_private(state)
    update, handed_over = await reply(
        state,
        runtime,
        quest_prompt(state, runtime.context),
        node="run_quest",
        tools=[ROLL_DICE, *([] if private else [KEEP_SECRET]), *schemas_of(runtime.context.TOOLS)],
        silent=[KEEP_SECRET["function"]["name"]],
        most_rounds=runtime.context.max_roll_rounds,
    )
    secrets = [] if private else read_secrets(call.args for call in handed_over[:MOST_CALLS])
    if len(secrets) < len(handed_over) and not private:
        text = "The dungeon master meant to keep something in mind that could not be read."
        update["notices"].append(notice(state.turn, "run_quest", text))
    return update | {"new_secrets": [*state.new_secrets, *secrets]}
