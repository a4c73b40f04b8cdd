"""recall: open the turn, and find the memories of this timeline that help with the player's message."""

from __future__ import annotations

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.recall_plan import recall_plan
from questbook.graphs.dungeon_master.rules.sheet import fill_sheet
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.recall import recall_or_notice
from questbook.graphs.turn.state import failure_notice
from questbook.graphs.turn.turn import open_turn
from questbook.notebooks import NotebookError
from questbook.types import JSON


async def recall(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Open the turn and recall for it; what a person changed on the character's page by hand takes effect here."""
    opened = open_turn(state, runtime)
    notices: list[JSON] = opened["notices"]
    try:
        opened |= fill_sheet(state.character, state.character, state.quest)
    except NotebookError as error:
        notices.append(
            failure_notice(opened["turn"], "recall", "The rules could not fill up the character's page.", error)
        )
    now = state.model_copy(update={"turn": opened["turn"], "timeline": opened["timeline"]})
    recalled = await recall_or_notice(now, runtime, recall_plan)
    return {**opened, **recalled, "notices": [*notices, *recalled["notices"]]}
