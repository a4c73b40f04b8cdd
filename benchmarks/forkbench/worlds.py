"""Worlds: what a person tells, how it changes, and what holds at any point. They are copied where a game forks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import NamedTuple, Protocol

ASKED = "What do you know of {}?"
SYLLABLES = [one + other for one in "bdfgklmnprstvz" for other in "aeiou"]
OWNERS, THINGS = ("Oda", "Ilse", "Goran"), ("lamp", "horse", "harbour", "motto")


class Event(NamedTuple):
    """Something that a person tells: a slot ("Oda's lamp") gets a value, or loses it.

    `token` is a word that occurs in no other event or reply, `said` what the person says, `noted` how a model notes it.
    """

    slot: str
    token: str
    said: str
    noted: str
    over: bool = False
    """Whether the slot is empty from now on."""


class World(Protocol):
    """A source of events."""

    def copy(self) -> World:
        """Return a world that goes on from here by itself."""

    def tell(self, dice: random.Random, token: str) -> Event:
        """Let something happen."""

    def current(self, slot: str) -> Event | None:
        """Return the event that made a slot what it is now."""


def tokens(seed: int) -> Iterator[str]:
    """Yield words of six letters that mean nothing, each once, another order for each seed."""
    for number in itertools.count(1):
        rank = (number * 104_729 + seed * 15_485_863) % len(SYLLABLES) ** 3
        yield "".join(SYLLABLES[rank // len(SYLLABLES) ** power % len(SYLLABLES)] for power in range(3)).capitalize()


class ToldWorld:
    """Our own games: facts about three people that are told, changed and taken back."""

    def __init__(self) -> None:
        self._slots: dict[str, Event] = {}

    def copy(self) -> ToldWorld:
        """Return a world that goes on from here by itself."""
        other = ToldWorld()
        other._slots = dict(self._slots)
        return other

    def tell(self, dice: random.Random, token: str) -> Event:
        """Fill a slot, change one or empty one: a third of the events is about a slot that holds something."""
        slot = f"{dice.choice(OWNERS)}'s {dice.choice(THINGS)}"
        if self._slots and dice.random() < 0.33:
            slot = dice.choice(sorted(self._slots))
        held = self.current(slot)
        if held and not held.over and dice.random() < 0.2:
            event = Event(slot, token, f"I was wrong about {slot}: it is gone, says {token}.", f"{slot}: {token}", True)
        else:
            event = Event(slot, token, f"From now on {slot} is called {token}.", f"{slot}: {token}")
        self._slots[slot] = event
        return event

    def current(self, slot: str) -> Event | None:
        """Return the event that made a slot what it is now."""
        return self._slots.get(slot)
