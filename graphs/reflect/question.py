"""question: ask the model what is worth asking about the facts since the last reflection."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from graphs.dungeon_master.context import Context
from graphs.errors import ModelError
from graphs.reflect.answered import answered
from graphs.reflect.failing import failing
from graphs.reflect.prompts import question_prompt, questions_tool
from graphs.reflect.state import ReflectState
from graphs.turn import notice
from memory.reflection import read_questions


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
