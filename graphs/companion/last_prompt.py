"""What the model saw in a turn that was played earlier, made again of the turn's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.nodes import prompt_for, recall_plan
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.turn.recall import with_recalled
from questbook.types import JSON


async def last_prompt(values: Mapping[str, Any], node: str, runtime: Runtime[CompanionContext]) -> JSON:
    """Make the prompt of a turn again from the channels before the node ran; nothing is written.

    Returns:
        `recalled`, the memories of the turn, and `report`, as `Prompt.report` makes it.
    """
    state = await with_recalled(CompanionState.model_validate(values), runtime, recall_plan)
    return {"recalled": state.recalled, "report": (await prompt_for(state, runtime)).report(node, state.turn)}
