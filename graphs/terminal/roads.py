"""Roads: all that was played, drawn as a tree of stretches of turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text
from rich.tree import Tree

from questbook.graphs.history.tree import PlayedTurn, Stretch, last_of_lines, stretches
from questbook.graphs.terminal.text import one_line, quoted
from questbook.memory.timeline.timeline import Segment

_REPLY_SHOWN = 60
_NAME_SHOWN = 40


def draw_roads(
    title: str, places: Sequence[PlayedTurn], here: Segment | None, named: Mapping[str, Segment], thread: str
) -> Tree:
    """Draw the tree.

    Args:
        title: Stands at its root.
        places: All finished turns.
        here: The branch and turn where the player stands.
        named: Lines that were given a name, each with where that was.
        thread: The thread that is being played; what others played is marked.
    """
    played = last_of_lines(places)
    unplayed = {at: name for name, at in named.items() if name not in played}
    tree = Tree(_line(title, style="bold"), guide_style="dim")
    left = [(tree, stretch) for stretch in reversed(stretches(places, here))]
    while left:
        above, stretch = left.pop()
        node = above.add(_label(stretch, here, unplayed, thread))
        left += [(node, fork) for fork in reversed(stretch.forks)]
    return tree


def _label(stretch: Stretch, here: Segment | None, unplayed: Mapping[Segment, str], thread: str) -> Text:
    first, tip = stretch.turns[0], stretch.turns[-1]
    turns = f"turn {first.turn}" if first == tip else f"turns {first.turn}–{tip.turn}"
    label = _line(f"{turns} · ", style="cyan")
    label.append(_names(stretch), style="bold")
    keys = {place.key: place for place in stretch.turns}
    if here in keys:
        turn = "" if here == tip.key else f" at turn {here[1]}"
        label.append(f" · ● you are here{turn}", style="bold green")
    for at, name in unplayed.items():
        if at in keys:
            label.append(f" · {quoted(name, _NAME_SHOWN)} begins after turn {at[1]}")
    if tip.thread != thread:
        label.append(f" · on thread {one_line(tip.thread, _NAME_SHOWN)}")
    label.append(f" · {quoted(tip.reply, _REPLY_SHOWN)}", style="dim")
    return label


def _names(stretch: Stretch) -> str:
    """Say which lines the turns were played on; if no line's name leads to their end, the branch does."""
    (begun, _), *later = stretch.lines.items()
    names = one_line(begun, _NAME_SHOWN)
    if later:
        (last, turn), between = later[-1], ", …" if len(later) > 1 else ""
        names += f"{between}, {one_line(last, _NAME_SHOWN)} from turn {turn}"
    return names if stretch.handle in stretch.lines else f"{names} ({stretch.handle})"


def _line(text: str, style: str) -> Text:
    return Text(one_line(text) + (" " if text.endswith(" ") else ""), style=style, no_wrap=True, overflow="ellipsis")
