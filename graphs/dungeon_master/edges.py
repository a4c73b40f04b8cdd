"""Where a turn goes next."""

from __future__ import annotations

from typing import Literal

from langchain_core.messages import AIMessage

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.nodes.condense import leaving
from questbook.graphs.dungeon_master.nodes.reflect import due
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.node import context_or_none
from questbook.graphs.turn.tool_calls import calls_of
from questbook.graphs.turn.turn import check_beginning


def route_mode(state: DungeonState) -> Literal["build_character", "recall"]:
    """Begin a turn: a complete character is what switches the game from interview to quest.

    Raises:
        InputError: The input cannot be played. Raised here, before any node has run, it leaves the state untouched.
    """
    check_beginning(state, Context)
    return "recall" if state.character.complete else "build_character"


def route_after_interview(state: DungeonState) -> Literal["recall", "__end__"]:
    """Open the quest in the same turn once the character is complete; else wait for the player's next answer."""
    return "recall" if state.character.complete else "__end__"


def route_tools(state: DungeonState) -> Literal["roll_dice", "update_state"]:
    """Roll what the model asked for; a reply without such a call ends the player's wait."""
    reply = state.messages[-1]
    return "roll_dice" if isinstance(reply, AIMessage) and calls_of(reply) else "update_state"


def route_home(state: DungeonState) -> Literal["__end__"]:  # noqa: ARG001 (that the state can be read is the point)
    """End the turn. As an edge that reads the state, it has an edit by hand checked after the last node, too."""
    return "__end__"


def route_upkeep(state: DungeonState) -> Literal["reflect", "condense", "__end__"]:
    """Reflect when enough was noted since the last time; then, or else, look after the buffer."""
    return "reflect" if due(state, Context.of(context_or_none())) else route_reflected(state)


def route_reflected(state: DungeonState) -> Literal["condense", "__end__"]:
    """Fold turns into the summary when the buffer is over its budget."""
    return "condense" if leaving(state, Context.of(context_or_none())) else "__end__"
