"""condense: let turns leave the buffer, as its policy says; what the policy summarises goes into the summary."""

from __future__ import annotations

from functools import partial
from typing import Any

from langgraph.runtime import Runtime

from graphs.dungeon_master import prompts
from graphs.dungeon_master.context import Context
from graphs.dungeon_master.sections import transcript
from graphs.dungeon_master.state import DungeonState
from graphs.leave import leave
from graphs.leave import leaving as leaving_turns
from memory.buffer_policies import Due


def leaving(state: DungeonState, context: Context) -> Due:
    """Return what is to be done about the buffer; no turn leaves before it is noted and remembered."""
    return leaving_turns(state, context, prompts.CONDENSE, _done(state))


async def condense(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Summarise the turns that leave; if the summarizer fails, sentences of theirs stand in, and a notice says so."""
    return await leave(state, runtime.context, prompts.CONDENSE, _done(state), partial(transcript, state))


def _done(state: DungeonState) -> int:
    return min(state.noted_through, state.remembered_through)
