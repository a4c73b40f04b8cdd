"""The tree of all that was played: `PlayedTurn`s in `Stretch`es, which forks divide.

The one that leads through the current turn comes first, and the longer one at every other fork: the tree stays flat.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from questbook.memory.timeline.timeline import Segment
from questbook.types import JSON


class PlayedTurn(NamedTuple):
    """A turn that was played to its end, on any branch."""

    branch: str  # the branch that it belongs to
    turn: int  # its number
    after: str | None  # the branch of the turn before it; None for the first
    line: str  # the name of the line on which it was played
    player: str  # what the person said
    reply: str  # what was answered
    location: str  # `location` of the record
    thread: str  # the thread that played it
    checkpoint: str  # the checkpoint from which it was remembered
    said_at: str  # when, ISO 8601 in UTC
    hp: int | None = None  # hit points that its notes set; None: they did not

    @classmethod
    def of(cls, record: Mapping[str, object]) -> Self:
        """Read the record of an exchange; a field that an older version did not write is empty."""
        fields: JSON = {name: record.get(name) or (None if name == "after" else "") for name in cls._fields}
        return cls(**fields | {"hp": _hit_points(record.get("noted"))})

    @property
    def key(self) -> Segment:
        """Branch and number, which no other turn of the campaign has."""
        return self.branch, self.turn

    @property
    def age(self) -> tuple[str, str, int]:
        """Sort key: when it was played. Checkpoint ids grow from turn to turn, even if the clock goes back."""
        return self.checkpoint, self.said_at, self.turn


class Stretch(NamedTuple):
    """Turns in a row, and the stretches that fork off from them."""

    turns: list[PlayedTurn]  # the turns, the earliest first
    handle: str  # the line whose last turn is the last of these, or the name of their branch (`branch_names`)
    lines: dict[str, int]  # names of the lines that these turns were played on, each with its first turn here
    forks: list["Stretch"]  # what else was played after one of these turns, in the order of turns


def stretches(turns: Sequence[PlayedTurn], current: Segment | None = None) -> list[Stretch]:
    """Arrange all finished turns of a campaign in stretches; return those that begin it, the current turn's first."""
    by_key = {turn.key: turn for turn in turns}
    parents = {turn.key: _parent(turn, by_key) for turn in turns}
    children: dict[Segment | None, list[PlayedTurn]] = defaultdict(list)
    for turn in turns:
        children[parents[turn.key]].append(turn)
    sizes: dict[Segment, int] = defaultdict(int)
    for turn in sorted(turns, key=lambda turn: -turn.turn):
        sizes[turn.key] += 1
        if (parent := parents[turn.key]) is not None:
            sizes[parent] += sizes[turn.key]
    trunk: set[Segment] = set()
    step = current if current in by_key else None
    while step is not None:
        trunk.add(step)
        step = parents[step]

    def rank(turn: PlayedTurn) -> tuple[bool, int, tuple[str, str, int]]:
        return turn.key in trunk, sizes[turn.key], turn.age

    def stretch_from(turn: PlayedTurn) -> Stretch:
        row, forks = [turn], list[Stretch]()
        while nexts := sorted(children[row[-1].key], key=rank):
            row.append(nexts.pop())
            forks += [stretch_from(other) for other in sorted(nexts, key=lambda other: other.age)]
        lines: dict[str, int] = {}
        for passed in row:
            lines.setdefault(passed.line, passed.turn)
        last = row[-1]
        return Stretch(row, last.line if last_turns[last.line] == last else names[last.branch], lines, forks)

    last_turns, names = last_of_lines(turns), branch_names(turns)
    return [stretch_from(root) for root in sorted(children[None], key=rank, reverse=True)]


def last_of_lines(turns: Iterable[PlayedTurn]) -> dict[str, PlayedTurn]:
    """Return the last turn of each line."""
    return {turn.line: turn for turn in sorted(turns, key=lambda turn: turn.age)}


def branch_names(turns: Iterable[PlayedTurn]) -> dict[str, str]:
    """Name each branch for people: "main#2" is the second that began on the line main. A branch keeps its name."""
    names, numbers = dict[str, str](), Counter[str]()
    for turn in sorted(turns, key=lambda turn: turn.age):
        if turn.branch not in names:
            numbers[turn.line] += 1
            names[turn.branch] = f"{turn.line}#{numbers[turn.line]}"
    return names


def _hit_points(noted: object) -> int | None:
    for name in ("patch", "condition", "hp"):
        noted = noted.get(name) if isinstance(noted, Mapping) else None
    return noted if isinstance(noted, int) else None


def _parent(turn: PlayedTurn, by_key: Mapping[Segment, PlayedTurn]) -> Segment | None:
    before = (turn.after, turn.turn - 1)
    return (before[0], before[1]) if before[0] is not None and before in by_key else None
