"""conclude: ask the model for insights that cite, and for a judgement on contradictions, both sides before it."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ModelError
from questbook.graphs.reflect.answered import answered
from questbook.graphs.reflect.failing import failing
from questbook.graphs.reflect.prompts import conclude_prompt, reflection_tool
from questbook.graphs.reflect.state import ReflectState
from questbook.graphs.turn.turn import notice
from questbook.memory.facts.reflection import read_reflection


@failing("conclude")
async def conclude(state: ReflectState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask for insights and contradictions, in one call. No call means that there are none.

    Raises:
        ModelError: The model failed or wrote prose, or an earlier step was interrupted.
    """
    if state.failed:
        return {}
    if state.evidence is None or state.questions is None:
        raise ModelError("It was interrupted before the memories were recalled.")
    said = await answered(conclude_prompt(state.evidence, state.questions), reflection_tool(), runtime.context)
    if said.prose:
        raise ModelError("The model answered with prose instead of calling the tool.")
    concluded = read_reflection(said.args, state.evidence)
    return {"concluded": concluded, "notices": [notice(state.turn, "reflect", text) for text in concluded.notices]}
