"""The tree of all that was played: rows for readers and keys, and a drawing over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from questbook.graphs.history.tree import PlayedTurn, Stretch, stretches
from questbook.graphs.local.game import Game
from questbook.memory.timeline.timeline import Segment
from questbook.types import JSON

_WIDTH, _ROW, _MARGIN = 300, 26, 12  # of the drawing, in its own units
_TITLE = 48  # characters of a row's words in its title
_FADE = 60  # rows that are drawn; the list below has all


class Row(NamedTuple):
    """A stretch of turns."""

    id: str  # what no other row has, however the tree grows: branch and number of its first turn
    handle: str  # what `History.go` takes
    name: str  # the lines that it was played on, such as "main → the cave"
    is_named: bool  # whether a reader needs the name: it begins the tree, or forks off from another line
    depth: int  # in the tree, from 0
    first: int  # its first turn
    last: int
    says: str  # the player's first words on it; how they were answered, if they were also played another way
    here: int  # the turn on it where the campaign is; 0: elsewhere
    on_the_way: bool  # whether it leads to where the campaign is
    dead: bool  # whether the character's hit points were 0 at its end
    parent: int  # number of the row that it forks off from; -1: none

    @property
    def title(self) -> str:
        """What tells it apart in a list of places: its last turn, its lines, and its words."""
        words = self.says if len(self.says) <= _TITLE else f"{self.says[:_TITLE].rsplit(' ', 1)[0]}…"
        return f"turn {self.last}{f' of {self.name}' if self.is_named else ''}: {words}"


class Stroke(NamedTuple):
    """A row of the drawing, in units of its view box."""

    row: Row
    x1: float
    x2: float
    y: float
    path: str


async def rows_of(game: Game) -> list[Row]:
    """Return the tree row by row; empty before the first turn is remembered."""
    if await game.saved_game() is None:
        return []
    history = await game.history()
    current, turns = await history.current_turn(), await history.turns()
    rows: list[Row] = []
    played = Counter(_choice(turn) for turn in turns)
    waiting = [(root, 0, -1, "") for root in reversed(stretches(turns, current))]
    while waiting:
        stretch, depth, parent, line = waiting.pop()
        row = _row(stretch, depth, parent, current, on_the_way=not rows)
        is_retold = parent >= 0 and played[_choice(stretch.turns[0])] > 1
        says = " ".join(stretch.turns[0].reply.split()) if is_retold else row.says
        rows.append(row._replace(says=says, is_named=list(stretch.lines) != [line]))
        waiting += [(fork, depth + 1, len(rows) - 1, _line_at(stretch, fork)) for fork in reversed(stretch.forks)]
    return rows


async def tree_values(game: Game) -> JSON:
    """Return what the templates of the tree show: its rows, their drawing, and the drawing's height."""
    rows = await rows_of(game)
    strokes = drawing(rows)
    return {"rows": rows, "strokes": strokes, "height": 2 * _MARGIN + _ROW * max(len(strokes) - 1, 0)}


def drawing(rows: Sequence[Row]) -> list[Stroke]:
    """Lay the rows out: from left to right by turn, one below the other."""
    last = max((row.last for row in rows), default=1)
    step = (_WIDTH - 2 * _MARGIN) / max(last, 1)
    strokes: list[Stroke] = []
    for place, row in enumerate(rows[:_FADE]):
        y, x1, x2 = _MARGIN + place * _ROW, _MARGIN + (row.first - 1) * step, _MARGIN + row.last * step
        path = ""
        if 0 <= row.parent < len(strokes):
            path = f"M{x1:.1f} {strokes[row.parent].y:.1f} C{x1:.1f} {y:.1f} {x1:.1f} {y:.1f} {x1 + 6:.1f} {y:.1f}"
        strokes.append(Stroke(row, x1 + (6 if path else 0), max(x2, x1 + 6), y, path))
    return strokes


def _choice(turn: PlayedTurn) -> tuple[str | None, int, str]:
    """What two turns share that are two ways of playing the same words."""
    return turn.after, turn.turn, turn.player


def _line_at(stretch: Stretch, fork: Stretch) -> str:
    """Return the line on which the turn was played that a fork comes after."""
    return [line for line, first in stretch.lines.items() if first < fork.turns[0].turn][-1]


def _row(stretch: Stretch, depth: int, parent: int, current: Segment | None, *, on_the_way: bool) -> Row:
    first, last = stretch.turns[0], stretch.turns[-1]
    points = next((turn.hp for turn in reversed(stretch.turns) if turn.hp is not None), None)
    here = next((turn.turn for turn in stretch.turns if turn.key == current), 0)
    return Row(
        f"{first.branch}-{first.turn}", stretch.handle, " → ".join(stretch.lines), True, depth, first.turn, last.turn,
        first.player, here, on_the_way, points == 0, parent,
    )  # fmt: skip
