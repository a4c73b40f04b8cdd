"""The companion: a personal assistant that answers with a memory of its own, and edits it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langgraph.graph import END, START

from questbook.graphs.companion import prompts
from questbook.graphs.companion.context import Context, Own, context_of
from questbook.graphs.companion.edges import (
    route_heartbeat,
    route_learned,
    route_remembered,
    route_start,
    route_tools,
    route_upkeep,
)
from questbook.graphs.companion.nodes import recall, remember, respond
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.companion.tools import use_tools
from questbook.graphs.reflect.trigger import reflect
from questbook.graphs.turn.buffer import condense
from questbook.graphs.turn.facts import learn
from questbook.graphs.turn.machine import Machine
from questbook.graphs.turn.node import ANSWERS, Node
from questbook.graphs.turn.state import TurnInput
from questbook.graphs.turn.turn import route_to
from questbook.memory.recall.query import Reranker
from questbook.notebooks import CoreTool, core_tool


def build_graph(
    *, core_tools: Sequence[CoreTool | Callable[..., str]] = (), rerank: Reranker | None = None
) -> Machine[CompanionState, Context]:
    """Return the machine, uncompiled: compile it with a checkpointer and a store of your own.

    Args:
        core_tools: More tools that edit core memory, or functions that `questbook.notebooks.core_tool` makes tools of.
        rerank: Given the message and what may be recalled, best first, returns it in an order of its own; what it
            leaves out is not recalled.

    Raises:
        DeclarationError: A function is no tool; the message says why.
    """
    own = Own(tuple(each if isinstance(each, CoreTool) else core_tool(each) for each in core_tools), rerank)
    context = context_of(own) if any(own) else Context
    node = partial(Node[Context], context=context.of)
    upkeep = partial(node, upkeep=True)
    builder: Machine[CompanionState, Context] = Machine(CompanionState, context_schema=context, input_schema=TurnInput)

    builder.add_node("recall", node(recall))
    builder.add_node("respond", node(respond), metadata=ANSWERS)
    builder.add_node("use_tools", node(use_tools))
    builder.add_node("remember", upkeep(remember))
    builder.add_node("learn", upkeep(learn))
    builder.add_node("reflect", upkeep(reflect))
    builder.add_node("condense", upkeep(condense(prompts.CONDENSE)))

    builder.add_conditional_edges(START, route_start, ["recall"])
    builder.add_conditional_edges("recall", route_to("respond"), ["respond"])
    builder.add_conditional_edges("respond", route_tools, ["use_tools", "remember"])
    builder.add_conditional_edges("use_tools", route_heartbeat, ["respond", "remember"])
    builder.add_conditional_edges("remember", route_remembered, ["learn", "condense", END])
    builder.add_conditional_edges("learn", route_learned, ["reflect", "condense", END])
    builder.add_conditional_edges("reflect", route_upkeep, ["condense", END])
    builder.add_conditional_edges("condense", route_to(END), [END])
    return builder


graph: Any = build_graph().compile()
"""The machine without checkpointer and store, for LangGraph Server and Studio, which bring their own."""
