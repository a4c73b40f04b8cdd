"""question: ask the model what is worth asking about the facts since the last reflection."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ModelError
from questbook.graphs.reflect.answered import answered
from questbook.graphs.reflect.failing import failing
from questbook.graphs.reflect.prompts import question_prompt, questions_tool
from questbook.graphs.reflect.state import ReflectState
from questbook.graphs.turn.turn import notice
from questbook.memory.facts.reflection import read_questions


@failing("question")
async def question(state: ReflectState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask for at most three questions, in one call. No call means that nothing is worth a thought.

    Raises:
        ModelError: The model failed, or wrote prose without a question in it.
    """
    if state.facts is None:
        raise ModelError("It was interrupted after it had gathered the facts.")
    said = await answered(question_prompt(state.facts), questions_tool(), runtime.context)
    questions, odd = read_questions(said.args, said.prose)
    if not questions and (said.prose or said.args):
        raise ModelError("The model answered without a question.")
    return {"questions": questions, "notices": [notice(state.turn, "reflect", text) for text in odd]}
