"""begin: open the turn, and settle in which mode it is."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.agent.context import Context
from questbook.graphs.agent.state import AgentState
from questbook.graphs.turn.session import join
from questbook.graphs.turn.turn import open_turn
from questbook.notebooks import diff_patch


async def begin(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Number the turn; go on from where a team has the agent's conversation, or, if it is new, the campaign's past."""
    seat = {name: value for name, value in state.seat.items() if name not in state.PAGES}
    past = await join(state.model_copy(update=seat), runtime, lambda _: "")
    known = past | state.seat
    pages = {channel: page.load(known.pop(channel)) for channel, page in state.PAGES.items() if channel in known}
    now = state.model_copy(update=known | pages)
    patches = {name: diff_patch(getattr(state, name).as_json(), getattr(now, name).as_json()) for name in state.PAGES}
    return {
        **known,
        **open_turn(now, runtime),
        **{name: patch for name, patch in patches.items() if patch or not state.turn},  # JSON from the first turn on
        "mode": state.AGENT.mode(now).name,
        "recalled": None,
        "seat": {},
        "handover": "",
    }
