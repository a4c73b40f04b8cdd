"""The shape of a turn as JSON, as steps hand it on to notes and summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from questbook.types import JSON


class Turn(TypedDict, total=False):
    """A turn of a conversation."""

    turn: int
    player: str  # what the person said
    rolls: list[JSON]  # in a game: the dice that were rolled, left out where there were none
    reply: str  # what they were answered
    facts: Sequence[str]  # sentences that were noted of it, for a summary without a model
    withheld: bool  # whether its words are not kept


def turn_of(number: int, record: Mapping[str, Any]) -> Turn:
    """Return the turn that a record tells of, without its dice."""
    return Turn(turn=number, player=str(record.get("player") or ""), reply=str(record.get("reply") or ""))
