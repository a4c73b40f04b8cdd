"""begin: open the turn, and settle in which mode it is."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from graphs.agent.context import Context
from graphs.agent.state import AgentState
from graphs.session import join
from graphs.turn import open_turn
from notebooks import diff_patch


async def begin(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Number the turn; take over the campaign's past, if the thread is new, and what a team has on shared pages."""
    past = await join(state, runtime, lambda _: "")
    known = {channel: past.pop(channel, None) for channel in state.PAGES} | state.handed
    pages = {channel: page.load(known[channel]) for channel, page in state.PAGES.items() if known[channel] is not None}
    now = state.model_copy(update=past | pages)
    opened = open_turn(now, runtime)
    patches = {name: diff_patch(getattr(state, name).as_json(), getattr(now, name).as_json()) for name in state.PAGES}
    return {
        **past,
        **opened,
        **{name: patch for name, patch in patches.items() if patch or not state.turn},  # JSON from the first turn on
        "mode": state.AGENT.mode(now).name,
        "recalled": None,
        "handed": {},
        "handover": "",
    }
