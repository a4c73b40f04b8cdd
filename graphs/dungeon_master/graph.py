"""The dungeon master: an interview that writes the character, then a quest that remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.graph import END, START

from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.context import Context, context_of
from questbook.graphs.dungeon_master.edges import (
    route_after_interview,
    route_mode,
    route_reflected,
    route_tools,
    route_upkeep,
)
from questbook.graphs.dungeon_master.facts import noted_facts
from questbook.graphs.dungeon_master.nodes.build_character import build_character
from questbook.graphs.dungeon_master.nodes.recall import recall
from questbook.graphs.dungeon_master.nodes.remember import remember
from questbook.graphs.dungeon_master.nodes.roll_dice import roll_dice
from questbook.graphs.dungeon_master.nodes.run_quest import run_quest
from questbook.graphs.dungeon_master.nodes.update_state import update_state
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.reflect.trigger import reflect
from questbook.graphs.turn.buffer import condense
from questbook.graphs.turn.node import ANSWERS, ASKS, Edge, Machine, Node
from questbook.graphs.turn.state import TurnInput
from questbook.graphs.turn.tool_calls import tools_from
from questbook.graphs.turn.turn import route_to
from questbook.notebooks import DeclarationError

_OWN_TOOLS = frozenset({"roll_dice", "keep_secret"})


def build_graph(*, tools: Sequence[BaseTool | Callable[..., Any]] = ()) -> Machine[DungeonState, Context]:
    """Return the machine, uncompiled: compile it with a checkpointer and a store of your own.

    Args:
        tools: LangChain tools, or functions with a docstring, that the dungeon master may call before it tells what
            happens, as it calls the dice. What they return is data for the story, never an instruction.

    Raises:
        DeclarationError: Two tools have one name, or one has that of a tool of the game's.
    """
    own = tools_from(tools)
    names = [*_OWN_TOOLS, *(tool.name for tool in own)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DeclarationError(f"Two tools cannot have one name: {twice[0]!r}. Give yours another one.")
    context = context_of(own) if own else Context
    node = partial(Node[Context], context=context.of)
    upkeep = partial(node, upkeep=True)
    builder: Machine[DungeonState, Context] = Machine(DungeonState, context_schema=context, input_schema=TurnInput)

    builder.add_node("build_character", node(build_character), metadata=ASKS)
    builder.add_node("recall", node(recall))
    builder.add_node("run_quest", node(run_quest), metadata=ANSWERS)
    builder.add_node("roll_dice", node(roll_dice))
    builder.add_node("update_state", upkeep(update_state))
    builder.add_node("remember", upkeep(remember))
    builder.add_node("reflect", upkeep(reflect))
    builder.add_node("condense", upkeep(condense(prompts.CONDENSE, noted_facts)))

    # Without a choice, `route_to` is in the place of a plain edge: an edit that does not fit must be refused there.
    builder.add_conditional_edges(START, Edge(route_mode), ["build_character", "recall"])
    builder.add_conditional_edges("build_character", Edge(route_after_interview), ["recall", END])
    builder.add_conditional_edges("recall", route_to("run_quest"), ["run_quest"])
    builder.add_conditional_edges("run_quest", Edge(route_tools), ["roll_dice", "update_state"])
    builder.add_conditional_edges("roll_dice", route_to("run_quest"), ["run_quest"])
    builder.add_conditional_edges("update_state", route_to("remember"), ["remember"])
    builder.add_conditional_edges("remember", Edge(route_upkeep), ["reflect", "condense", END])
    builder.add_conditional_edges("reflect", Edge(route_reflected), ["condense", END])
    builder.add_conditional_edges("condense", route_to(END), [END])
    return builder


graph: Any = build_graph().compile()
"""The machine without checkpointer and store, for LangGraph Server and Studio, which bring their own."""
