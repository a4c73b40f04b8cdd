"""condense: let turns leave the buffer, as its policy says; what the policy summarises goes into the summary."""

from __future__ import annotations

from functools import partial
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.agent import prompts
from questbook.graphs.agent.context import Context
from questbook.graphs.agent.state import AgentState
from questbook.graphs.turn.leave import leave
from questbook.graphs.turn.leave import leaving as leaving_turns
from questbook.graphs.turn.turn import spoken_turns
from questbook.memory.buffer.policies import Eviction


def leaving(state: AgentState, context: Context) -> Eviction:
    """Return what is to be done about the buffer; no turn leaves before all pages have it and it is remembered."""
    return leaving_turns(state, context, prompts.CONDENSE, _done(state), state.AGENT.buffer)


async def condense(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Summarise the turns that leave; if the summarizer fails, sentences of theirs stand in, and a notice says so."""
    told = partial(spoken_turns, state)
    return await leave(state, runtime.context, prompts.CONDENSE, _done(state), told, state.AGENT.buffer)


def _done(state: AgentState) -> int:
    return min(state.noted_through, state.remembered_through)
