"""Where a turn of the companion goes next."""

from __future__ import annotations

from typing import Literal

from langchain_core.messages import AIMessage, ToolMessage

from questbook.graphs.companion import prompts
from questbook.graphs.companion.context import Context
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.turn.leave import leaving
from questbook.graphs.turn.node import context_or_none
from questbook.graphs.turn.tool_calls import calls_of
from questbook.graphs.turn.turn import check_beginning


def route_start(state: CompanionState) -> Literal["recall"]:
    """Begin a turn.

    Raises:
        InputError: The input cannot be answered. Raised here, before any node has run, it leaves the state untouched.
    """
    check_beginning(state, Context)
    return "recall"


def route_tools(state: CompanionState) -> Literal["use_tools", "remember"]:
    """Do what the model asked of its tools; a reply without such a call ends the person's wait."""
    reply = state.messages[-1]
    return "use_tools" if isinstance(reply, AIMessage) and calls_of(reply) else "remember"


def route_heartbeat(state: CompanionState) -> Literal["respond", "remember"]:
    """Ask the model again while results stand last; `use_tools` puts the reply behind them when the turn is over."""
    return "respond" if isinstance(state.messages[-1], ToolMessage) else "remember"


def route_upkeep(state: CompanionState) -> Literal["condense", "__end__"]:
    """Let turns leave the buffer when its policy says so."""
    due = leaving(state, Context.of(context_or_none()), prompts.CONDENSE, state.remembered_through)
    return "condense" if due else "__end__"


def route_home(state: CompanionState) -> Literal["__end__"]:  # noqa: ARG001 (that the state can be read is the point)
    """End the turn. As an edge that reads the state, it has an edit by hand checked after the last node, too."""
    return "__end__"
