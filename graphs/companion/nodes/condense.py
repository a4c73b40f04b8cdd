"""condense: let turns leave the buffer, as its policy says; what the policy summarises goes into the summary."""

from __future__ import annotations

from functools import partial
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.companion import prompts
from questbook.graphs.companion.context import Context
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.turn.leave import leave
from questbook.graphs.turn.turn import spoken_turns


async def condense(state: CompanionState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Summarise the turns that leave; no turn leaves before it is remembered."""
    told = partial(spoken_turns, state)
    return await leave(state, runtime.context, prompts.CONDENSE, state.remembered_through, told)
