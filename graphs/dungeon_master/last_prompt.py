"""What the model saw in a turn that was played earlier, made again of the turn's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.prompts import interview_prompt, quest_prompt
from questbook.graphs.dungeon_master.recall_plan import recall_plan
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.recall import with_recalled
from questbook.graphs.turn.turn import open_turn
from questbook.types import JSON


async def last_prompt(values: Mapping[str, Any], node: str, runtime: Runtime[Context]) -> JSON:
    """Make the prompt of an earlier turn again, of the channels before its node ran; nothing is written.

    Returns:
        `recalled`, the memories of the turn, None in the interview; and `report`, as `Prompt.report` makes it.
    """
    state = DungeonState.model_validate(values)
    if node == "build_character":
        turn = open_turn(state, runtime)["turn"]
        return {"recalled": None, "report": interview_prompt(state, runtime.context).report(node, turn)}
    state = await with_recalled(state, runtime, recall_plan)
    return {"recalled": state.recalled, "report": quest_prompt(state, runtime.context).report(node, state.turn)}
