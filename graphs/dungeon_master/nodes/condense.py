"""condense: let turns leave the buffer, as its policy says; what the policy summarises goes into the summary."""

from __future__ import annotations

from functools import partial
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.sections import transcript
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.leave import leave
from questbook.graphs.turn.leave import leaving as leaving_turns
from questbook.memory.buffer.policies import Eviction


def leaving(state: DungeonState, context: Context) -> Eviction:
    """Return what is to be done about the buffer; no turn leaves before it is noted and remembered."""
    return leaving_turns(state, context, prompts.CONDENSE, _done(state))


async def condense(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Summarise the turns that leave; if the summarizer fails, sentences of theirs stand in, and a notice says so."""
    return await leave(state, runtime.context, prompts.CONDENSE, _done(state), partial(transcript, state))


def _done(state: DungeonState) -> int:
    return min(state.noted_through, state.remembered_through)
