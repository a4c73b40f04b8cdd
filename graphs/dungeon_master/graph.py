"""The dungeon master: an interview that writes the character, then a quest that remembers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from langchain_core.tools import BaseTool
from langgraph.graph import END, START
from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.dice import roll_dice
from questbook.graphs.dungeon_master.facts import noted_facts, remember
from questbook.graphs.dungeon_master.interview import build_character
from questbook.graphs.dungeon_master.notes import update_state
from questbook.graphs.dungeon_master.prompts import interview_prompt, quest_prompt
from questbook.graphs.dungeon_master.quest import recall, recall_plan, run_quest
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.reflect.trigger import reflect
from questbook.graphs.turn.buffer import condense, upkeep_edge
from questbook.graphs.turn.node import ANSWERS, ASKS, Machine
from questbook.graphs.turn.recall import with_recalled
from questbook.graphs.turn.state import TurnInput
from questbook.graphs.turn.tool_calls import has_calls, tools_from
from questbook.graphs.turn.turn import open_turn
from questbook.notebooks import DeclarationError
from questbook.types import JSON

_OWN_TOOLS = frozenset({"roll_dice", "keep_secret"})


def route_mode(state: DungeonState) -> Literal["build_character", "recall"]:
    """Begin a turn: a complete character switches the game from interview to quest."""
    return "recall" if state.character.complete else "build_character"


def route_tools(state: DungeonState) -> Literal["roll_dice", "update_state"]:
    """Roll the dice that the model asked for; a reply without such a call ends the player's wait."""
    return "roll_dice" if has_calls(state) else "update_state"


def build_graph(*, tools: Sequence[BaseTool | Callable[..., Any]] = ()) -> Machine[DungeonState, Context]:
    """Return the machine, uncompiled: compile it with a checkpointer and a store of your own.

    `tools` are LangChain's, or functions with a docstring, that the dungeon master may call before it tells what
    happens. What they return is data for the story, never an instruction. Two of one name are refused.
    """
    own = tools_from(tools)
    names = [*_OWN_TOOLS, *(tool.name for tool in own)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DeclarationError(f"Two tools cannot have one name: {twice[0]!r}. Give yours another one.")
    context: Any = type("Context", (Context,), {"TOOLS": tuple(own)}) if own else Context
    builder: Machine[DungeonState, Context] = Machine(DungeonState, context_schema=context, input_schema=TurnInput)

    builder.add_steps(build_character, speaks=ASKS)
    builder.add_steps(recall)
    builder.add_steps(run_quest, speaks=ANSWERS)
    builder.add_steps(roll_dice)
    builder.add_steps(update_state, remember, reflect, condense(prompts.CONDENSE, noted_facts), upkeep=True)

    builder.add_conditional_edges(START, route_mode, ["build_character", "recall"])
    builder.add_conditional_edges(  # the quest opens in the same turn
        "build_character", lambda state: "recall" if state.character.complete else "remember", ["recall", "remember"]
    )
    builder.add_edge("recall", "run_quest")
    builder.add_conditional_edges("run_quest", route_tools, ["roll_dice", "update_state"])
    builder.add_edge("roll_dice", "run_quest")
    builder.add_edge("update_state", "remember")
    builder.add_conditional_edges("remember", upkeep_edge(Context, reflects=True), ["reflect", "condense", END])
    builder.add_conditional_edges("reflect", upkeep_edge(Context), ["condense", END])
    builder.add_edge("condense", END)
    return builder


async def last_prompt(values: Mapping[str, Any], node: str, runtime: Runtime[Context]) -> JSON:
    """Make the prompt of an earlier turn again, of the channels before its node ran; nothing is written.

    Returns `recalled`, the memories of the turn, None in the interview; and `report`, as `Prompt.report` makes it.
    """
    state = DungeonState.model_validate(values)
    if node == "build_character":
        turn = open_turn(state, runtime)["turn"]
        return {"recalled": None, "report": interview_prompt(state, runtime.context).report(node, turn)}
    state = await with_recalled(state, runtime, recall_plan)
    return {"recalled": state.recalled, "report": quest_prompt(state, runtime.context).report(node, state.turn)}


graph: Any = build_graph().compile()
"""The machine without checkpointer and store, for LangGraph Server and Studio, which bring their own."""
