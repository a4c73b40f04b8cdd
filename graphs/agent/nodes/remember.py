"""remember: write the turn to the store, once."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.agent.context import Context
from questbook.graphs.agent.state import AgentState
from questbook.graphs.turn.exchanges import write_turns
from questbook.graphs.turn.turn import spoken_turns


async def remember(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Store each turn that is not stored yet as one record: the person's words and the reply together."""
    turns = spoken_turns(state, state.remembered_through + 1, state.turn)
    return await write_turns(state, runtime, turns, lambda _: {})
