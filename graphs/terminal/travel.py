"""Slash commands that go back, try again, and go to other lines; the tree of what was played; `questbook rewind`."""

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from questbook.graphs.errors import InputError
from questbook.graphs.history.tree import PlayedTurn, Stretch, branch_names, last_of_lines, stretches
from questbook.graphs.interface.text import number_of, one_line, plain, quote
from questbook.graphs.local.game import open_game
from questbook.graphs.terminal.pages import difference_rows
from questbook.graphs.terminal.screen import Screen
from questbook.graphs.terminal.slash_commands import Ask, Command, Outcome, Play, Terminal, run_command
from questbook.memory.timeline.timeline import Segment

# The history comes with the graph, which the first prompt does not wait for: imported where they are used.
if TYPE_CHECKING:
    from langgraph.types import StateSnapshot
    from rich.tree import Tree

    from questbook.graphs.history.history import History
    from questbook.graphs.history.view import Position
    from questbook.graphs.settings import Settings

_TEXT_WIDTH, _TREE_TEXT_WIDTH, _NAME_WIDTH = 80, 60, 40
_TURNS_SHOWN = 6


async def rewind(context: "Settings", flags: argparse.Namespace) -> None:
    """Do `questbook rewind`: take a campaign back to the end of the turn `to`, and show what was said there last."""
    async with open_game(context, holds=True) as game:
        await game.enter()
        _show_position(Screen(live=flags.live), await (await game.history()).rewind(flags.to))


async def _undo(terminal: Terminal, rest: str) -> None:
    if rest and not (rest.isdecimal() and len(rest) < 16):
        raise InputError(f"/undo takes a number of turns, got {one_line(rest, 40)}.")
    _arrive(terminal, await (await terminal.game.history()).undo(int(rest or 1)))


async def _retry(terminal: Terminal, rest: str) -> Outcome:
    if rest not in ("", "dice"):
        raise InputError(f"/retry plays the last turn again, /retry dice also rolls again; got {one_line(rest, 40)}.")
    turn = (await _position(terminal)).turn
    if await terminal.game.has_unfinished_turn():
        terminal.screen.say(f"Turn {turn} goes on.")
        return Play(terminal.game.resume())
    terminal.screen.answer(f"Turn {turn} again, " + ("with new dice." if rest else terminal.partner.again))
    return Play(terminal.game.retry(dice=bool(rest)))


async def _edit(terminal: Terminal, rest: str) -> Outcome:
    if rest.startswith("/"):
        raise InputError("/edit NEW WORDS takes your words, not a command.")
    if rest:
        return await _replace_message(terminal, rest)
    position = await _position(terminal)
    if not terminal.screen.live:
        raise InputError("/edit NEW WORDS plays the last turn again with these in place of yours.")
    return Ask(one_line(position.player), partial(_replace_message, terminal))


async def _replace_message(terminal: Terminal, words: str) -> Outcome:
    if not words or words.startswith("/"):
        terminal.screen.say("Your message was not changed.")
        return await run_command(terminal, words) if words else None
    if not terminal.is_too_long(words):
        terminal.screen.answer(f"Turn {(await _position(terminal)).turn} again, with your new words.")
        return Play(terminal.game.edit(words))
    return None


async def _branch(terminal: Terminal, rest: str) -> None:
    if not rest:
        raise InputError("/branch NAME gives the line from here on a name.")
    position = await _position(terminal)
    await (await terminal.game.history()).name_line(rest)
    named = f"What follows turn {position.turn} is the line “{one_line(rest)}”"
    terminal.screen.answer(f"{named}; /go {position.line} goes back to that one.")


async def _branches(terminal: Terminal, rest: str) -> None:  # noqa: ARG001
    from questbook.graphs.companion.context import assistant_name

    history = await terminal.game.history(only_looks=True)
    if not (turns := await history.turns()):
        return terminal.screen.answer("No branches yet: they begin with the first turn that is remembered.")
    branches = len({turn.branch for turn in turns})
    count = f"{number_of(len(turns), 'turn')} on {number_of(branches, 'branch', 'branches')}"
    name = one_line(assistant_name(terminal.game.context.campaign), 60)
    title = f"{name}: {count} (/go NAME goes to a line, a branch or a turn)"
    current, names = await history.current_turn(), await history.line_names()
    return terminal.screen.draw(draw_tree(title, turns, current, names, terminal.game.thread_id))


async def _go(terminal: Terminal, rest: str) -> None:
    if not rest:
        raise InputError("/go NAME goes to the end of a line, a branch or a turn; /branches shows them.")
    _arrive(terminal, await (await terminal.game.history()).go(rest))


async def _diff(terminal: Terminal, rest: str) -> None:
    screen, history = terminal.screen, await terminal.game.history(only_looks=True)
    if not (names := await _one_or_two_names(history, rest)):
        raise InputError("/diff A B compares two lines, branches or turns; /diff A compares one with where you are.")
    difference = await history.difference(*names)
    labels = [f"turn {name}" if name.isdecimal() else quote(name, 60) if name else "here" for name in names]
    if not any(difference):
        screen.answer(f"{labels[0]} and {labels[1]} agree: the same pages, the same memories.")
    if difference.pages:
        screen.table(f"Pages, {labels[0]} → {labels[1]}", ("", ""), difference_rows(difference.pages))
    for label, turns in zip(labels, (difference.only_before, difference.only_after), strict=True):
        if turns:
            where = "here" if label == "here" else f"at {label}"
            more = f"; the last {_TURNS_SHOWN}" if len(turns) > _TURNS_SHOWN else ""
            title = f"Remembered only {where}: {number_of(len(turns), 'turn')}{more}"
            rows = [(str(turn.turn), turn.player, plain(turn.reply)) for turn in turns[-_TURNS_SHOWN:]]
            rows = [(turn, one_line(said, _TEXT_WIDTH), one_line(reply, _TEXT_WIDTH)) for turn, said, reply in rows]
            screen.table(title, ("Turn", "You said", "Reply"), rows, right="Turn")


def _arrive(terminal: Terminal, state: "StateSnapshot") -> None:
    terminal.clear()  # the memories and the prompt of the turn that was left are not those of the last turn here
    _show_position(terminal.screen, state)


def _show_position(screen: Screen, state: "StateSnapshot") -> None:
    from questbook.graphs.history.view import position_of

    position = position_of(state)
    line = "" if position.line == "main" else f" on the line {quote(position.line)}"
    screen.answer(f"Back at the end of turn {position.turn}{line}. {quote(position.player, _TEXT_WIDTH)}")
    screen.answer("")
    screen.tell(position.reply)


async def _position(terminal: Terminal) -> "Position":
    from questbook.graphs.history.view import position_of

    return position_of(await (await terminal.game.history()).current_state())


async def _one_or_two_names(history: "History", text: str) -> tuple[str, str] | None:
    """Read one or two names of lines, branches or turns; names of several words may be written without quotes."""
    try:
        words = shlex.split(text)
    except ValueError:  # a lone quote or apostrophe
        words = text.split()
    if len(words) < 2:
        return (words[0], "") if words else None
    turns = await history.turns()
    names = {*await history.line_names(), *(turn.line for turn in turns), *branch_names(turns).values()}
    pairs = ((" ".join(words[:cut]), " ".join(words[cut:])) for cut in range(len(words), 0, -1))
    known = (pair for pair in pairs if all(not name or name in names or name.isdecimal() for name in pair))
    return next(known, (words[0], words[1]) if len(words) == 2 else None)


def draw_tree(
    title: str, turns: Sequence[PlayedTurn], current: Segment | None, line_names: Mapping[str, Segment], thread: str
) -> "Tree":
    """Draw all finished turns as a tree of stretches; marked are the current turn, and those of other threads.

    Lines that a person has named come with the branch and turn from which the name holds.
    """
    from rich.text import Text
    from rich.tree import Tree

    played = last_of_lines(turns)
    unplayed = {at: name for name, at in line_names.items() if name not in played}
    tree = Tree(Text(one_line(title), "bold", no_wrap=True, overflow="ellipsis"), guide_style="dim")
    stack = [(tree, stretch) for stretch in reversed(stretches(turns, current))]
    while stack:
        above, stretch = stack.pop()
        text = Text(no_wrap=True, overflow="ellipsis")
        for part, style in _parts_of(stretch, current, unplayed, thread):
            text.append(part, style)
        node = above.add(text)
        stack += [(node, fork) for fork in reversed(stretch.forks)]
    return tree


def _parts_of(
    stretch: Stretch, current: Segment | None, unplayed: Mapping[Segment, str], thread: str
) -> Iterator[tuple[str, str]]:
    first, last = stretch.turns[0], stretch.turns[-1]
    yield (f"turn {first.turn} · " if first == last else f"turns {first.turn}–{last.turn} · "), "cyan"
    yield _line_names(stretch), "bold"
    keys = {turn.key for turn in stretch.turns}
    if current in keys:
        yield " · ● you are here" + ("" if current == last.key else f" at turn {current[1]}"), "bold green"
    for at, name in unplayed.items():
        if at in keys:
            yield f" · {quote(name, _NAME_WIDTH)} begins after turn {at[1]}", ""
    if last.thread != thread:
        yield f" · on thread {one_line(last.thread, _NAME_WIDTH)}", ""
    yield f" · {quote(plain(last.reply), _TREE_TEXT_WIDTH)}", "dim"


def _line_names(stretch: Stretch) -> str:
    """Return the lines of a stretch, or what `History.go` takes if no line's name leads to its end."""
    (first, _), *more = stretch.lines.items()
    names = one_line(first, _NAME_WIDTH)
    if more:
        (last, turn), between = more[-1], ", …" if len(more) > 1 else ""
        names += f"{between}, {one_line(last, _NAME_WIDTH)} from turn {turn}"
    if stretch.handle in stretch.lines:
        return names
    return f"{names} ({stretch.handle})" if more else stretch.handle


TRAVEL = {
    "/undo": Command("[N]", "go back a turn, or N turns", _undo),
    "/retry": Command("[dice]", "play the last turn again in other words; with dice, roll again", _retry, ("dice",)),
    "/edit": Command("[NEW WORDS]", "play the last turn again with another message of yours", _edit),
    "/branch": Command("NAME", "give the line from here on a name", _branch),
    "/branches": Command("", "all that was played, as a tree, and where you are", _branches, looks=True),
    "/go": Command("NAME", "go to the end of a line, a branch or a turn", _go),
    "/diff": Command("A [B]", "what differs between two turns: pages and memories", _diff, looks=True),
}
