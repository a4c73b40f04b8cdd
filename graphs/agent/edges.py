"""Where a turn of an agent goes next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END

from questbook.graphs.agent.context import Context
from questbook.graphs.agent.nodes.condense import leaving
from questbook.graphs.agent.nodes.update_pages import due_pages
from questbook.graphs.agent.state import AgentState
from questbook.graphs.turn.node import context_or_none
from questbook.graphs.turn.tool_calls import calls_of
from questbook.graphs.turn.turn import check_input

StateT = TypeVar("StateT", bound=AgentState)
"""The state's class is made with the agent: an edge must not say that it reads AgentState, which has no pages."""


def route_start(state: StateT) -> str:
    """Begin a turn.

    Raises:
        InputError: The input cannot be answered. Raised here, before any node has run, it leaves the state untouched.
    """
    check_input(state, Context.of(context_or_none()))
    return "begin"


def route_mode(state: StateT) -> str:
    """Go into the turn's mode: an interview, or an answer with what is recalled for it."""
    return state.mode if state.AGENT.named(state.mode).fills else "recall"


def route_filled(interview: str) -> Callable[[StateT], str]:
    """Wait for the person's next words, or go on in the same turn: an interview that is over has set the next mode."""

    def route(state: StateT) -> str:
        return END if state.mode == interview else route_mode(state)

    return route


def route_reply(state: StateT) -> str:
    """Answer as the turn's mode says."""
    return state.mode


def route_tools(state: StateT) -> str:
    """Do what the model asked of its tools; a reply without such a call ends the person's wait."""
    reply = state.messages[-1]
    return "use_tools" if isinstance(reply, AIMessage) and calls_of(reply) else route_answered(state)


def route_again(state: StateT) -> str:
    """Ask the model again while results stand last, unless the person is handed over."""
    asked = isinstance(state.messages[-1], ToolMessage) and not state.handover
    return state.mode if asked else route_answered(state)


def route_answered(state: StateT) -> str:
    """Bring the pages up to date that are due after this turn."""
    return "update_pages" if due_pages(state) else "remember"


def route_upkeep(state: StateT) -> str:
    """Let turns leave the buffer when its policy says so."""
    return "condense" if leaving(state, Context.of(context_or_none())) else END


def route_home(state: StateT) -> str:  # noqa: ARG001 (that the state can be read is the point)
    """End the turn. As an edge that reads the state, it has an edit by hand checked after the last node, too."""
    return END
