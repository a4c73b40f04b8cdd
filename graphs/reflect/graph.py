"""Reflection as a graph of its own: at the end of a dungeon master's turn, or in the background on LangGraph Server."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.reflect.conclude import conclude
from questbook.graphs.reflect.gather import gather
from questbook.graphs.reflect.question import question
from questbook.graphs.reflect.retrieve import retrieve
from questbook.graphs.reflect.state import ReflectInput, ReflectState
from questbook.graphs.reflect.write import write
from questbook.graphs.turn.node import Node

_node = partial(Node[Context], context=Context.of)


def route_due(state: ReflectState) -> Literal["question", "__end__"]:
    """Reflect if enough has been noted since the last time."""
    return "question" if state.facts and not state.failed else "__end__"


def route_on(state: ReflectState) -> Literal["retrieve", "write", "__end__"]:
    """Recall for the questions; if there are none, only say that this was reflected on."""
    if state.failed:
        return "__end__"
    return "retrieve" if state.questions else "write"


def route_concluded(state: ReflectState) -> Literal["write", "__end__"]:
    """Write what was concluded; a failure leaves everything as it was, for the next time."""
    return "__end__" if state.failed else "write"


def build_graph() -> StateGraph[ReflectState, Context, ReflectInput, ReflectState]:
    """Return the machine, uncompiled: compile it with a store of your own."""
    builder = StateGraph(ReflectState, context_schema=Context, input_schema=ReflectInput)

    builder.add_node("gather", _node(gather))
    builder.add_node("question", _node(question))
    builder.add_node("retrieve", _node(retrieve))
    builder.add_node("conclude", _node(conclude))
    builder.add_node("write", _node(write))

    builder.add_edge(START, "gather")
    builder.add_conditional_edges("gather", route_due, ["question", END])
    builder.add_conditional_edges("question", route_on, ["retrieve", "write", END])
    builder.add_edge("retrieve", "conclude")
    builder.add_conditional_edges("conclude", route_concluded, ["write", END])
    builder.add_edge("write", END)
    return builder


graph: Any = build_graph().compile(name="reflect")
"""The machine without checkpointer and store, for LangGraph Server and Studio, which bring their own."""
