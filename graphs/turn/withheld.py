"""Withheld: a turn whose player asked that it not be remembered.

It stands in the buffer for the talk at hand. Nothing is derived from it: no page, no fact, no summary, no record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from questbook.graphs.forgetting.phrase import FORGOTTEN
from questbook.graphs.turn.turn_state import TurnState
from questbook.memory.buffer.turns import split_turns, turn_text
from questbook.memory.timeline.privacy import WITHHELD, off_record

JSON = dict[str, Any]

REFUSED = "The person asked that this not be remembered: nothing of this turn is noted."
"""What a tool answers that would note something of such a turn."""


def private(state: TurnState) -> bool:
    """Whether the player asks, in the turn under way, that it not be remembered."""
    return bool(state.messages) and off_record(turn_text(split_turns(state.messages, state.turn)[-1][1])[0])


def withheld(told: JSON) -> JSON:
    """Return a turn's words as they are remembered: as they are, or none of them, if the player asked for that.

    That the turn was played is kept, as after `forget`: the tree of what was played must not fall apart.
    """
    return told | {"player": FORGOTTEN, "reply": FORGOTTEN, WITHHELD: True} if off_record(told["player"]) else told


def on_record(turns: Iterable[JSON]) -> list[JSON]:
    """Return the turns of which something may be noted: not those that are withheld, in the buffer or in the store."""
    return [told for told in turns if withheld(told)["player"] != FORGOTTEN]
