"""Where a turn goes next."""

from __future__ import annotations

from typing import Literal

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.reflect.trigger import reflection_due
from questbook.graphs.turn.buffer import eviction
from questbook.graphs.turn.node import context_or_none
from questbook.graphs.turn.tool_calls import has_calls
from questbook.graphs.turn.turn import check_start


def route_mode(state: DungeonState) -> Literal["build_character", "recall"]:
    """Begin a turn: a complete character switches the game from interview to quest.

    Raises:
        InputError: The input cannot be played. Raised here, before any node has run, it leaves the state untouched.
    """
    check_start(state, Context)
    return "recall" if state.character.complete else "build_character"


def route_after_interview(state: DungeonState) -> Literal["recall", "__end__"]:
    """Open the quest in the same turn once the character is complete; else wait for the player's next answer."""
    return "recall" if state.character.complete else "__end__"


def route_tools(state: DungeonState) -> Literal["roll_dice", "update_state"]:
    """Roll the dice that the model asked for; a reply without such a call ends the player's wait."""
    return "roll_dice" if has_calls(state) else "update_state"


def route_upkeep(state: DungeonState) -> Literal["reflect", "condense", "__end__"]:
    """Reflect when enough was noted since the last time; then, or else, look after the buffer."""
    return "reflect" if reflection_due(state, Context.of(context_or_none())) else route_reflected(state)


def route_reflected(state: DungeonState) -> Literal["condense", "__end__"]:
    """Fold turns into the summary when the buffer is over its budget."""
    return "condense" if eviction(state, Context.of(context_or_none())) else "__end__"
