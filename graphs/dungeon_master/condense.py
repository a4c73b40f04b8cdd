"""condense: let turns leave the buffer, as its policy says; what the policy summarises goes into the summary."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.runtime import Runtime

from graphs.dungeon_master import prompts
from graphs.dungeon_master.context import Context
from graphs.dungeon_master.sections import transcript
from graphs.dungeon_master.state import DungeonState
from graphs.summarize import fold, policy_of
from graphs.turn import notice
from memory.buffer_policies import Due


def leaving(state: DungeonState, context: Context) -> Due:
    """Return what is to be done about the buffer; no turn leaves before it is noted and remembered."""
    return policy_of(context, prompts.CONDENSE).due(
        state.messages,
        last_turn=state.turn,
        folded=state.summarised_through,
        may_leave=min(state.noted_through, state.remembered_through),
    )


async def condense(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Summarise the turns that leave; if the summarizer fails, sentences of theirs stand in, and a notice says so."""
    folded, dropped = leaving(state, runtime.context)
    update: dict[str, Any] = {"messages": [RemoveMessage(m.id) for _, turn in dropped for m in turn if m.id]}
    summarizer = policy_of(runtime.context, prompts.CONDENSE).summarizer
    if folded and summarizer:
        first, last = folded[0][0], folded[-1][0]
        told = transcript(state, first, last)
        update["summary"], failure = await fold(state.summary, told, runtime.context, summarizer)
        update["summarised_through"] = last
        if failure:
            update["notices"] = [notice(state.turn, "condense", failure)]
    return update
