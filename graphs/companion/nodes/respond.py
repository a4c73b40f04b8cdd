"""respond: the companion's reply."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.companion.context import Context
from questbook.graphs.companion.ltm import ltm_of, with_memories
from questbook.graphs.companion.nodes.recall import memories_for
from questbook.graphs.companion.sections import assist_prompt
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.companion.tools import tools_for
from questbook.graphs.turn.reply import reply


async def respond(state: CompanionState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Answer the person, call tools, or both.

    Raises:
        LtmConfigError: The settings of the character's memory have become wrong.
        ModelError: The model failed or said nothing; the message is kept, and the turn can be run again.
    """
    if state.recalled is None:  # the run was resumed here, and what was recalled is not checkpointed
        state = state.model_copy(update={"recalled": await memories_for(state, runtime)})
    prompt, rounds = assist_prompt(state, runtime.context), runtime.context.max_tool_rounds
    if (ltm := await ltm_of(runtime.context, runtime.server_info)) is not None:
        prompt = with_memories(prompt, state.recalled or [], ltm, runtime.context)
    said = await reply(state, runtime, prompt, node="respond", tools=tools_for(state), most_rounds=rounds)
    return {"messages": [said]}
