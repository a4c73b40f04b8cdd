"""The tree of all that was played, row by row, for readers, keys and the drawing over them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from questbook.graphs.history.tree import PlayedTurn, Stretch, stretches
from questbook.graphs.local.game import Game

_TITLE = 48  # characters of a row's words in its title


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
        first, last = stretch.turns[0], stretch.turns[-1]
        is_retold = parent >= 0 and played[_choice(first)] > 1
        points = [turn.hp for turn in stretch.turns if turn.hp is not None]
        rows.append(Row(
            f"{first.branch}-{first.turn}", stretch.handle, " → ".join(stretch.lines), list(stretch.lines) != [line],
            depth, first.turn, last.turn, " ".join(first.reply.split()) if is_retold else first.player,
            next((turn.turn for turn in stretch.turns if turn.key == current), 0), not rows, points[-1:] == [0], parent,
        ))  # fmt: skip
        waiting += [(fork, depth + 1, len(rows) - 1, _line_at(stretch, fork)) for fork in reversed(stretch.forks)]
    return rows


def _choice(turn: PlayedTurn) -> tuple[str | None, int, str]:
    """What two turns share that are two ways of playing the same words."""
    return turn.after, turn.turn, turn.player


def _line_at(stretch: Stretch, fork: Stretch) -> str:
    """Return the line on which the turn was played that a fork comes after."""
    return [line for line, first in stretch.lines.items() if first < fork.turns[0].turn][-1]
