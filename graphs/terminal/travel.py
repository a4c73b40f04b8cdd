"""Slash commands that move about in the story: back, again, another road; and those that show the roads."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from questbook.graphs.events import ReplyPiece
from questbook.graphs.terminal.screen import Screen
from questbook.graphs.terminal.table import Ask, Command, Outcome, Play, Table, Then
from questbook.graphs.terminal.text import one_line, quoted

# The history comes with the graph, which the first prompt does not wait for: it is imported where it is used.
if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from questbook.graphs.history.history import History
    from questbook.graphs.history.tree import PlayedTurn

_WORDS_SHOWN = 80
_MEMORIES_SHOWN = 6


async def _undo(table: Table, rest: str) -> Outcome:
    if rest and not rest.isdecimal():
        table.screen.complain(f"/undo takes a number of turns, got {one_line(rest, 40)}.")
        return Then.PROMPT
    history = await table.game.history()
    return _arrive(table, await history.undo(int(rest or 1)))


async def _retry(table: Table, rest: str) -> Outcome:
    if rest not in ("", "dice"):
        table.screen.complain(
            f"/retry tells the last turn again, /retry dice also rolls again; got {one_line(rest, 40)}."
        )
        return Then.PROMPT
    turn = await _turn(table)
    if await table.game.has_unfinished_turn():
        table.screen.say(f"Turn {turn} goes on.")
        return Play(table.game.resume())
    table.screen.answer(f"Turn {turn} again, " + ("and the dice too." if rest else table.again))
    return Play(table.game.retry(dice=bool(rest)))


async def _edit(table: Table, rest: str) -> Outcome:
    from questbook.graphs.history.checkpoints import position_of

    if rest:
        return await _rewrite(table, rest)
    state = await (await table.game.history()).current_state()
    if not table.screen.live:
        table.screen.complain("/edit NEW WORDS plays the last turn again with these in place of yours.")
        return Then.PROMPT
    return Ask(one_line(position_of(state).player), partial(_rewrite, table))


async def _rewrite(table: Table, words: str) -> Outcome:
    if not words:
        table.screen.say("Your message stands as it was.")
    elif not table.too_long(words):
        table.screen.answer(f"Turn {await _turn(table)} again, with your new words.")
        return Play(table.game.edit(words))
    return Then.PROMPT


async def _branch(table: Table, rest: str) -> Outcome:
    from questbook.graphs.history.checkpoints import position_of

    if not rest:
        table.screen.complain("/branch NAME gives the line from here on a name.")
        return Then.PROMPT
    history = await table.game.history()
    spot = position_of(await history.current_state())
    await history.name_line(rest)
    name = one_line(rest)
    table.screen.answer(f"What follows turn {spot.turn} is the line “{name}”; /go {spot.line} goes back to that one.")
    return Then.PROMPT


async def _branches(table: Table, rest: str) -> Outcome:  # noqa: ARG001
    from questbook.graphs.companion.context import assistant_name
    from questbook.graphs.terminal.roads import draw_roads

    history = await table.game.history()
    places = await history.turns()
    if not places:
        table.screen.answer("No branches yet: they begin with the first turn that is remembered.")
        return Then.PROMPT
    branches = len({place.branch for place in places})
    count = f"{_count(len(places), 'turn')} on {_count(branches, 'branch', 'branches')}"
    name = one_line(assistant_name(table.game.context.campaign), 60)
    title = f"{name}: {count} (/go NAME goes to a line, a branch or a turn)"
    here = await history.current_turn()
    table.screen.draw(draw_roads(title, places, here, await history.line_names(), table.game.thread_id))
    return Then.PROMPT


async def _go(table: Table, rest: str) -> Outcome:
    if not rest:
        table.screen.complain("/go NAME goes to the end of a line, a branch or a turn; /branches shows them.")
        return Then.PROMPT
    history = await table.game.history()
    return _arrive(table, await history.go(rest))


async def _diff(table: Table, rest: str) -> Outcome:
    from questbook.graphs.terminal.pages import difference_rows

    history = await table.game.history()
    if not (named := await _two(history, rest)):
        table.screen.complain(
            "/diff A B compares two lines, branches or turns; /diff A compares one with where you are."
        )
        return Then.PROMPT
    one, other = named
    found = await history.difference(one, other)
    labels = [_said(one), _said(other) if other else "here"]
    if not any(found):
        table.screen.answer(f"{labels[0]} and {labels[1]} agree: the same pages, the same memories.")
    if found.pages:
        table.screen.table(f"Pages, {labels[0]} → {labels[1]}", ("", ""), difference_rows(found.pages))
    for label, places in zip(labels, (found.only_before, found.only_after), strict=True):
        if places:
            where = "here" if label == "here" else f"at {label}"
            _remembered(table.screen, f"Remembered only {where}: {_count(len(places), 'turn')}", places)
    return Then.PROMPT


async def _recap(table: Table, rest: str) -> Outcome:  # noqa: ARG001
    saved = await table.game.saved_game()
    if saved is None or not saved.character.complete:
        table.screen.answer("Nothing to tell yet: the story begins once your character is complete.")
    else:
        _tell(table.screen, saved.view.recap())
    return Then.PROMPT


def _arrive(table: Table, state: StateSnapshot) -> Then:
    table.clear()  # what the turn that was left was told is not the last turn's
    arrived(table.screen, state)
    return Then.PROMPT


def arrived(screen: Screen, state: StateSnapshot) -> None:
    """Say where the player has come to, and what was said there last."""
    from questbook.graphs.history.checkpoints import position_of

    spot = position_of(state)
    line = "" if spot.line == "main" else f" on the line {quoted(spot.line)}"
    screen.answer(f"Back at the end of turn {spot.turn}{line}. {quoted(spot.player, _WORDS_SHOWN)}")
    screen.answer("")
    _tell(screen, spot.reply)


def _tell(screen: Screen, text: str) -> None:
    reply = screen.reply()
    reply.show(ReplyPiece(text, ""))
    reply.close()


async def _turn(table: Table) -> int:
    from questbook.graphs.history.checkpoints import position_of

    return position_of(await (await table.game.history()).current_state()).turn


async def _two(history: History, rest: str) -> tuple[str, str] | None:
    """Read one or two places; names of several words are found with and without quotes."""
    try:
        words = shlex.split(rest)
    except ValueError:  # a lone quote or apostrophe
        words = rest.split()
    if len(words) <= 2:
        return (words[0], words[1] if len(words) == 2 else "") if words else None
    places = await history.turns()
    known = {*await history.line_names(), *(name for place in places for name in (place.line, place.branch))}
    pairs = ((" ".join(words[:cut]), " ".join(words[cut:])) for cut in range(len(words), 0, -1))
    return next((pair for pair in pairs if all(not name or name in known or name.isdecimal() for name in pair)), None)


def _remembered(screen: Screen, title: str, places: Sequence[PlayedTurn]) -> None:
    rows = [
        (str(place.turn), one_line(place.player, _WORDS_SHOWN), one_line(place.reply, _WORDS_SHOWN))
        for place in places[-_MEMORIES_SHOWN:]
    ]
    left = len(places) - len(rows)
    screen.table(f"{title}; the last {len(rows)}" if left else title, ("Turn", "You said", "Reply"), rows, right="Turn")


def _said(where: str) -> str:
    return f"turn {where}" if where.isdecimal() else quoted(where, 60)


def _count(number: int, one: str, more: str = "") -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"


TRAVEL: dict[str, Command] = {
    "/undo": Command("[N]", "go back a turn, or N turns", _undo),
    "/retry": Command(
        "[dice]", "tell the last turn again in other words; with dice, roll again too", _retry, ("dice",)
    ),
    "/edit": Command("[NEW WORDS]", "play the last turn again with another message of yours", _edit),
    "/branch": Command("NAME", "give the line from here on a name", _branch),
    "/branches": Command("", "all that was played, as a tree, and where you are", _branches),
    "/go": Command("NAME", "go to the end of a line, a branch or a turn", _go),
    "/diff": Command("A [B]", "what the pages and memories of two places differ in", _diff),
    "/recap": Command("", "previously on…", _recap),
}
