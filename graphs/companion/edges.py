"""Where a turn of the companion goes next."""

from __future__ import annotations

from typing import Literal

from langchain_core.messages import ToolMessage

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.reflect.trigger import reflection_due
from questbook.graphs.turn.buffer import eviction
from questbook.graphs.turn.node import context_or_none
from questbook.graphs.turn.tool_calls import has_calls
from questbook.graphs.turn.turn import check_start


def route_start(state: CompanionState) -> Literal["recall"]:
    """Begin a turn.

    Raises:
        InputError: The input cannot be answered. Raised here, before any node has run, it leaves the state untouched.
    """
    check_start(state, CompanionContext)
    return "recall"


def route_tools(state: CompanionState) -> Literal["use_tools", "remember"]:
    """Run the tools that the model called; a reply without such a call ends the person's wait."""
    return "use_tools" if has_calls(state) else "remember"


def route_heartbeat(state: CompanionState) -> Literal["respond", "remember"]:
    """Ask the model again while results come last; `use_tools` puts the reply behind them when the turn is over."""
    return "respond" if isinstance(state.messages[-1], ToolMessage) else "remember"


def route_remembered(state: CompanionState) -> Literal["learn", "condense", "__end__"]:
    """Note facts, unless the settings turn that off; then, or else, look after the buffer."""
    return "learn" if CompanionContext.of(context_or_none()).notes_facts else route_upkeep(state)


def route_learned(state: CompanionState) -> Literal["reflect", "condense", "__end__"]:
    """Reflect when enough was noted since the last time; then, or else, look after the buffer."""
    return "reflect" if reflection_due(state, CompanionContext.of(context_or_none())) else route_upkeep(state)


def route_upkeep(state: CompanionState) -> Literal["condense", "__end__"]:
    """Let turns leave the buffer when its policy says so."""
    return "condense" if eviction(state, CompanionContext.of(context_or_none())) else "__end__"
