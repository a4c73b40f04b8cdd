"""Where a turn of an agent goes next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from langchain_core.messages import ToolMessage
from langgraph.graph import END

from questbook.graphs.agent.context import AgentContext
from questbook.graphs.agent.state import AgentState, FactAgentState
from questbook.graphs.turn.buffer import eviction
from questbook.graphs.turn.node import context_or_none
from questbook.graphs.turn.pages import due_pages
from questbook.graphs.turn.tool_calls import has_calls
from questbook.graphs.turn.turn import check_start

StateT = TypeVar("StateT", bound=AgentState)
"""The state of one agent. An edge must not name AgentState: LangGraph would read that, which has no pages."""


def route_start(settings: type[AgentContext]) -> Callable[[StateT], str]:
    """Begin a turn with settings of this class, unless the input cannot be answered or names another's thread.

    What is refused here, before any node has run, leaves the state untouched.
    """

    def route_start(state: StateT) -> str:
        check_start(state, settings)
        return "begin"

    return route_start


def route_mode(state: StateT) -> str:
    """Go into the turn's mode: an interview, or an answer with what is recalled for it."""
    return state.mode if state.SPEC.named(state.mode).fills else "recall"


def route_filled(interview: str) -> Callable[[StateT], str]:
    """Wait for the person's next words, or go on in the same turn: an interview that is over has set the next mode."""

    def route(state: StateT) -> str:
        return END if state.mode == interview else route_mode(state)

    return route


def route_reply(state: StateT) -> str:
    """Answer as the turn's mode says."""
    return state.mode


def route_tools(state: StateT) -> str:
    """Run the tools that the model called; a reply without such a call ends the person's wait."""
    return "use_tools" if has_calls(state) else route_answered(state)


def route_again(state: StateT) -> str:
    """Ask the model again while results come last, unless the person is handed over."""
    again = isinstance(state.messages[-1], ToolMessage) and not state.handover
    return state.mode if again else route_answered(state)


def route_answered(state: StateT) -> str:
    """Bring the pages up to date that are due after this turn."""
    return "update_pages" if due_pages(state) else "remember"


def route_learned(settings: type[AgentContext]) -> Callable[[StateT], str]:
    """Reflect when enough was noted since the last time; then, or else, look after the buffer."""

    def route_learned(state: StateT) -> str:
        context: Any = settings.of(context_or_none())
        return (
            "reflect"
            if context.reflects_at(cast("FactAgentState", state).unreflected)
            else route_buffer(state, context)
        )

    return route_learned


def route_upkeep(settings: type[AgentContext]) -> Callable[[StateT], str]:
    """Look after the buffer."""

    def route_upkeep(state: StateT) -> str:
        return route_buffer(state, settings.of(context_or_none()))

    return route_upkeep


def route_buffer(state: AgentState, context: AgentContext) -> str:
    """Let turns leave the buffer when its policy says so."""
    return "condense" if eviction(state, context) else END
