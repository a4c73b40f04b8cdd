"""The story as the page shows it: turn by turn, the last ones from the checkpoint, older ones from memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from questbook.graphs.embedded.game import Game
from questbook.graphs.embedded.saved_game import SavedGame
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import branch_of, record_key
from questbook.types import JSON

SHOWN_AT_FIRST = 30
"""Turns that a page begins with; those before them come when the reader scrolls up."""
_PARAGRAPHS = re.compile(r"\n\s*\n")


class Told(NamedTuple):
    """A turn as the page shows it.

    Attributes:
        turn: Its number.
        player: What the player said.
        paragraphs: The reply.
        rolls: The dice, as `Roll.as_dict` makes them.
    """

    turn: int
    player: str
    paragraphs: list[str]
    rolls: list[JSON]


def latest_turns(saved: SavedGame, most: int = SHOWN_AT_FIRST) -> list[Told]:
    """Return the last turns that the checkpoint holds word for word, the earliest first."""
    from questbook.memory.buffer.turns import split_turns, turn_text

    rolls: Sequence[JSON] = saved.values.get("rolls") or []
    turns = split_turns(saved.values.get("messages") or [], saved.turn)[-most:]
    return [
        told(turn, *turn_text(messages), [roll for roll in rolls if roll.get("turn") == turn])
        for turn, messages in turns
    ]


async def turns_before(game: Game, turn: int, most: int = SHOWN_AT_FIRST) -> list[Told]:
    """Return the turns before a turn, on the way to where the campaign is, from memory; the earliest first."""
    saved, store = await game.saved_game(), (await game.load()).store
    if saved is None or store is None:
        return []
    timeline = [(str(branch), int(last)) for branch, last in saved.values.get("timeline") or []]
    numbers = range(max(1, turn - most), turn)
    space = campaign_namespace(game.context.user or "", game.context.campaign, "exchanges")
    records = [
        await store.aget(space, record_key(branch_of(timeline, number), number, "exchange"), refresh_ttl=False)
        for number in numbers
    ]
    return [
        told(number, str(record.value.get("player", "")), str(record.value.get("reply", "")), [])
        for number, record in zip(numbers, records, strict=True)
        if record is not None
    ]


def told(turn: int, player: str, reply: str, rolls: list[JSON]) -> Told:
    """Make a turn as the page shows it."""
    return Told(turn, player, [part for part in _PARAGRAPHS.split(reply.strip()) if part], rolls)
