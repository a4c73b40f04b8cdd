"""The companion: a personal assistant that answers with a memory of its own, and edits it."""

from __future__ import annotations

from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph

from questbook.graphs.companion import prompts
from questbook.graphs.companion.context import Context
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
from questbook.graphs.turn.node import ANSWERS, Node
from questbook.graphs.turn.state import TurnInput
from questbook.graphs.turn.turn import route_to

_node = partial(Node[Context], context=Context.of)
_upkeep = partial(_node, upkeep=True)


def build_graph() -> StateGraph[CompanionState, Context, TurnInput, CompanionState]:
    """Return the machine, uncompiled: compile it with a checkpointer and a store of your own."""
    builder = StateGraph(CompanionState, context_schema=Context, input_schema=TurnInput)

    builder.add_node("recall", _node(recall))
    builder.add_node("respond", _node(respond), metadata=ANSWERS)
    builder.add_node("use_tools", _node(use_tools))
    builder.add_node("remember", _upkeep(remember))
    builder.add_node("learn", _upkeep(learn))
    builder.add_node("reflect", _upkeep(reflect))
    builder.add_node("condense", _upkeep(condense(prompts.CONDENSE)))

    builder.add_conditional_edges(START, route_start, ["recall"])
    builder.add_conditional_edges("recall", route_to("respond"), ["respond"])
    builder.add_conditional_edges("respond", route_tools, ["use_tools", "remember"])
    builder.add_conditional_edges("use_tools", route_heartbeat, ["respond", "remember"])
    builder.add_conditional_edges("remember", route_remembered, ["learn", "condense", END])
    builder.add_conditional_edges("learn", route_learned, ["reflect", "condense", END])
    builder.add_conditional_edges("reflect", route_upkeep, ["condense", END])
    builder.add_conditional_edges("condense", route_to(END), [END])
    return builder


graph: Any = build_graph().compile(name="companion")
"""The machine without checkpointer and store, for LangGraph Server and Studio, which bring their own."""
