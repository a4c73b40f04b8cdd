"""respond: the reply."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.agent.context import Context
from questbook.graphs.agent.nodes.recall import memories_for
from questbook.graphs.agent.sections import reply_prompt
from questbook.graphs.agent.state import AgentState
from questbook.graphs.agent.tools import tools_of
from questbook.graphs.turn.reply import reply
from questbook.graphs.turn.withheld import private


async def respond(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Answer the person as the turn's mode says, call tools, or both.

    Raises:
        ModelError: The model failed or said nothing; the message is kept, and the turn can be run again.
    """
    if state.recalled is None:  # the run was resumed here, and what was recalled is not checkpointed
        state = state.model_copy(update={"recalled": await memories_for(state, runtime)})
    mode = state.AGENT.named(state.mode)
    prompt, rounds = reply_prompt(state, runtime.context, mode), runtime.context.max_tool_rounds
    tools = tools_of(state.AGENT, silent=private(state))
    said = await reply(state, runtime, prompt, node=mode.name, tools=tools, most_rounds=rounds)
    return {"messages": [said]}
