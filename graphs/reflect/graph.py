"""The machine: it runs at the end of a turn, or in the background on LangGraph Server.

    START ─ note ─ gather ─┬─ not enough is new ─► END
                           └─► question ─┬─ nothing to ask ──────────────────► write ─► END
                                         └─► retrieve ─► conclude ─────────────┘
Where the model or the store fails, the run ends there, and the next one begins with the same turns and facts.
"""

from collections.abc import Callable
from typing import Any

from langgraph.graph import END, START

from questbook.graphs.reflect.nodes import NODES, ends_on_failure
from questbook.graphs.reflect.state import ReflectInput, ReflectState
from questbook.graphs.settings import ReflectContext
from questbook.graphs.turn.node import Machine


def route_noted(state: ReflectState) -> str:
    """Note the turns that are left; then reflect, unless notes are all that is asked for."""
    if state.note_from <= state.turn:
        return "note"
    return END if state.notes_only else "gather"


def unless_failed(route: Callable[[ReflectState], str]) -> Callable[[ReflectState], str]:
    """Make an edge that ends the reflection after a failure: nothing is written, so that the next one tries again."""
    return lambda state: END if state.failed else route(state)


def build_graph() -> Machine[ReflectState, ReflectContext]:
    """Return the machine, uncompiled: compile it with a store of your own."""
    builder: Machine[ReflectState, ReflectContext] = Machine(
        ReflectState, context_schema=ReflectContext, input_schema=ReflectInput
    )

    builder.add_steps(*map(ends_on_failure, NODES))
    builder.add_conditional_edges(START, lambda state: "note" if state.note_from else "gather", ["note", "gather"])
    for node, route, others in (
        ("note", route_noted, ["note", "gather"]),
        ("gather", lambda state: "question" if state.facts else END, ["question"]),
        ("question", lambda state: "retrieve" if state.questions else "write", ["retrieve", "write"]),
        ("conclude", lambda _: "write", ["write"]),
    ):
        builder.add_conditional_edges(node, unless_failed(route), [*others, END])
    builder.add_edge("retrieve", "conclude")
    builder.add_edge("write", END)
    return builder


graph: Any = build_graph().compile()
"""The machine without checkpointer and store, for LangGraph Server and Studio, which bring their own."""
