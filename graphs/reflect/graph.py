"""The machine: it runs at the end of a turn, or in the background on LangGraph Server.

    START ─ note ─ gather ─┬─ not enough is new ─► END
                           └─► question ─┬─ nothing to ask ──────────────────► write ─► END
                                         └─► retrieve ─► conclude ─────────────┘
Where the model or the store fails, the run ends there, and the next one begins with the same turns and facts.
"""

from typing import Any, Literal

from langgraph.graph import END, START

from questbook.graphs.reflect.nodes import NODES, ends_on_failure
from questbook.graphs.reflect.state import ReflectInput, ReflectState
from questbook.graphs.settings import ReflectContext
from questbook.graphs.turn.node import Machine, Node


def route_start(state: ReflectState) -> Literal["note", "gather"]:
    """Note facts first, if that is asked for."""
    return "note" if state.note_from else "gather"


def route_noted(state: ReflectState) -> Literal["note", "gather", "__end__"]:
    """Note the turns that are left; then reflect, unless notes are all that is asked for."""
    if state.failed:
        return "__end__"
    if state.note_from <= state.turn:
        return "note"
    return "__end__" if state.notes_only else "gather"


def route_gathered(state: ReflectState) -> Literal["question", "__end__"]:
    """Reflect if enough has been noted since the last time."""
    return "question" if state.facts and not state.failed else "__end__"


def route_questions(state: ReflectState) -> Literal["retrieve", "write", "__end__"]:
    """Recall for the questions; if there are none, only write that the facts have been reflected on."""
    if state.failed:
        return "__end__"
    return "retrieve" if state.questions else "write"


def route_conclusions(state: ReflectState) -> Literal["write", "__end__"]:
    """Write the conclusions; after a failure write nothing, so that the next reflection tries again."""
    return "__end__" if state.failed else "write"


def build_graph() -> Machine[ReflectState, ReflectContext]:
    """Return the machine, uncompiled: compile it with a store of your own."""
    builder: Machine[ReflectState, ReflectContext] = Machine(
        ReflectState, context_schema=ReflectContext, input_schema=ReflectInput
    )

    for name, node in NODES.items():
        builder.add_node(name, Node[ReflectContext](ends_on_failure(node), context=ReflectContext.of))

    builder.add_conditional_edges(START, route_start, ["note", "gather"])
    builder.add_conditional_edges("note", route_noted, ["note", "gather", END])
    builder.add_conditional_edges("gather", route_gathered, ["question", END])
    builder.add_conditional_edges("question", route_questions, ["retrieve", "write", END])
    builder.add_edge("retrieve", "conclude")
    builder.add_conditional_edges("conclude", route_conclusions, ["write", END])
    builder.add_edge("write", END)
    return builder


graph: Any = build_graph().compile()
"""The machine without checkpointer and store, for LangGraph Server and Studio, which bring their own."""
