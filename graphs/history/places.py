"""Places: the finished turns of a campaign, as a tree of stretches that a person can take in.

A campaign of thousands of turns and a hundred branches must fit on a screen, so turns that follow each other are one
stretch, and only forks make it branch. The stretch that leads through where one stands comes first, and so do the
longer ones at every fork: that keeps the tree flat, however it was played.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from questbook.memory.timeline.timeline import Segment


class Place(NamedTuple):
    """A finished turn, somewhere in the tree of all that was played.

    Attributes:
        branch: The branch that owns it.
        turn: Its number.
        after: The branch of the turn before it; None for the first.
        line: The name of the line on which it was played.
        player: What the player said.
        reply: What was answered.
        location: Where the character was.
        thread: The thread that played it.
        checkpoint: The checkpoint from which it was remembered.
        said_at: When, ISO 8601 in UTC.
    """

    branch: str
    turn: int
    after: str | None
    line: str
    player: str
    reply: str
    location: str
    thread: str
    checkpoint: str
    said_at: str

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Read the record of an exchange; a field that an older version did not write is empty."""
        fields: dict[str, Any] = {name: record.get(name) or (None if name == "after" else "") for name in cls._fields}
        return cls(**fields)

    @property
    def key(self) -> Segment:
        """What tells it from every other place."""
        return self.branch, self.turn

    @property
    def age(self) -> tuple[str, str, int]:
        """Sorts places by when they were played; checkpoint ids grow with time and part those of one second."""
        return self.said_at, self.checkpoint, self.turn


class Stretch(NamedTuple):
    """Turns in a row, and the stretches that part from them.

    Attributes:
        places: The turns, the earliest first.
        handle: The line or branch whose last turn is the last of these.
        lines: Names of the lines that these turns were played on, each with its first turn here.
        forks: What else was played after one of these turns, in story order.
    """

    places: list[Place]
    handle: str
    lines: dict[str, int]
    forks: list[Stretch]


def stretches(places: Sequence[Place], here: Segment | None = None) -> list[Stretch]:
    """Order places into stretches; more than one comes back if several threads began the campaign.

    Args:
        places: All finished turns.
        here: The branch and turn where one stands; its stretch is drawn as the trunk.
    """
    known = {place.key: place for place in places}
    parents = {place.key: _parent(place, known) for place in places}
    children: dict[Segment | None, list[Place]] = defaultdict(list)
    for place in places:
        children[parents[place.key]].append(place)
    weight: dict[Segment, int] = defaultdict(int)
    for place in sorted(places, key=lambda place: -place.turn):
        weight[place.key] += 1
        if (parent := parents[place.key]) is not None:
            weight[parent] += weight[place.key]
    trunk: set[Segment] = set()
    step = here if here in known else None
    while step is not None:
        trunk.add(step)
        step = parents[step]

    def first(place: Place) -> tuple[bool, int, tuple[str, str, int]]:
        return place.key in trunk, weight[place.key], place.age

    def stretch(place: Place) -> Stretch:
        run, forks = [place], list[Stretch]()
        while others := sorted(children[run[-1].key], key=first):
            run.append(others.pop())
            forks += [stretch(other) for other in sorted(others, key=lambda other: other.age)]
        lines: dict[str, int] = {}
        for passed in run:
            lines.setdefault(passed.line, passed.turn)
        tip = run[-1]
        return Stretch(run, tip.line if last[tip.line] == tip else tip.branch, lines, forks)

    last = last_of_lines(places)
    return [stretch(root) for root in sorted(children[None], key=first, reverse=True)]


def last_of_lines(places: Iterable[Place]) -> dict[str, Place]:
    """Return where each line was last played."""
    last: dict[str, Place] = {}
    for place in sorted(places, key=lambda place: place.age):
        last[place.line] = place
    return last


def _parent(place: Place, known: Mapping[Segment, Place]) -> Segment | None:
    before = (place.after, place.turn - 1)
    return (before[0], before[1]) if before[0] is not None and before in known else None
