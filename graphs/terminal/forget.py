"""Commands about what is kept: `/forget`, `/retract`, `/why`, and `questbook forget`, which shows and asks first.

What forgets and the pages are imported where they are used: the first prompt does not wait for them.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from questbook.graphs.errors import InputError, SettingsError
from questbook.graphs.interface.forgetting import remove_typed
from questbook.graphs.interface.text import one_line
from questbook.graphs.local.game import Game, open_game
from questbook.graphs.local.home import Home
from questbook.graphs.local.locks import hold_campaign
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.terminal.screen import say
from questbook.graphs.terminal.slash_commands import Ask, Command, Outcome, Terminal

if TYPE_CHECKING:
    from questbook.graphs.dungeon_master.context import Context
    from questbook.graphs.forgetting.forget import Forgetting, Removal

_DECLINED = "Nothing was forgotten."
_WIDTH = 100


async def forget(context: Context, flags: argparse.Namespace) -> bool:
    """Do what `questbook forget` asks for; return whether it was done.

    Raises:
        SettingsError: It is not clear what to forget.
        CampaignBusyError: Another terminal holds the campaign. Nothing was changed.
    """
    words, yes = flags.what, flags.yes
    if flags.player and (words is not None or flags.campaign is not None):
        raise SettingsError("Forget either words, or a campaign, or with --player everything of a user: one of them.")
    if words is None and flags.campaign is None and not flags.player:
        raise SettingsError("Forget what? Give words, --campaign NAME for a whole campaign, or --player.")
    home = await asyncio.to_thread(Home.find)
    with hold_campaign(home, context.user, context.campaign):
        async with open_game(context, home) as game:
            if words is not None:
                result = await _forget_asking(game, words, yes=yes)
            else:
                result = await (forget_player if flags.player else forget_campaign)(game, yes=yes)
    say(result)
    return result != _DECLINED


async def ask(lines: Sequence[str], question: str = "Forget it for ever?") -> bool:
    """Show lines on what will be gone for ever, and ask for a yes; return whether it came."""
    print(*lines, sep="\n")  # noqa: T201
    print(f"{question} Type yes: ", end="", flush=True)  # noqa: T201
    answer = await asyncio.to_thread(sys.stdin.readline)
    if not answer.endswith("\n"):
        print()  # noqa: T201
    return is_yes(answer)


def is_yes(answer: str) -> bool:
    """Whether a person has agreed."""
    return answer.strip().casefold() in ("y", "yes")


async def _forget_asking(game: Game, words: str, *, yes: bool) -> str:
    from questbook.graphs.interface.forgetting import find_words, forget_words

    found = await find_words(game, words)
    if found.lines and not yes and not await ask(found.lines):
        return _DECLINED
    return await forget_words(game, words, remove_emptied=bool(found.emptied) and not yes and await ask(found.emptied))


async def forget_campaign(game: Game, *, yes: bool = False) -> str:
    """Ask unless `yes`, and remove everything of the game's campaign; return the line that says what was done."""
    from questbook.graphs.interface.forgetting import forgetting_of, name_of

    campaign = name_of(game.context.campaign)
    if not yes and not await ask([f"Everything of {campaign} will be removed: every branch, page and memory."]):
        return _DECLINED
    forgetting = await forgetting_of(game)
    typed = await _remove_typed(game.home, forgetting, [game.context.campaign])
    removal = await forgetting.forget_campaign()
    game.home.lock_of(game.thread_id).unlink(missing_ok=True)
    return _removed(removal, typed, campaign)


async def forget_player(game: Game, *, yes: bool = False) -> str:
    """Ask unless `yes`, and remove everything of the game's user: all campaigns; return the line that says so.

    If no game of any user is left, the whole prompt history is removed too.

    Raises:
        CampaignBusyError: One of them is open in another terminal. Nothing was changed.
    """
    from questbook.graphs.forgetting.erasure import Erasure
    from questbook.graphs.interface.forgetting import forgetting_of

    forgetting, user = await forgetting_of(game), game.context.user
    names = await forgetting.campaigns()
    player = f"player {one_line(user, 60)!r}"
    with ExitStack() as locks:
        for name in sorted({*names, game.context.campaign} - {game.context.campaign}):
            locks.enter_context(hold_campaign(game.home, user, name))
        campaigns = ", ".join(one_line(name, 60) for name in names) or "none"
        if not yes and not await ask([f"Everything of {player} will be removed. Campaigns: {campaigns}."]):
            return _DECLINED
        typed = await _remove_typed(game.home, forgetting, names)
        removal = await forgetting.forget_user()
        for name in names:
            game.home.lock_of(thread_id_of(user, name)).unlink(missing_ok=True)
        if await Erasure(game.checkpointer).is_empty():
            typed += await asyncio.to_thread(remove_typed, game.home.prompt_history, bool)
        return _removed(removal, typed, player)


async def _remove_typed(home: Home, forgetting: Forgetting, campaigns: Sequence[str]) -> int:
    """Remove what was typed in campaigns from the prompt history; return how many entries that were."""
    typed = 0
    for name in campaigns:
        messages = await forgetting.of_campaign(name).messages()
        typed += await asyncio.to_thread(remove_typed, home.prompt_history, messages.__contains__)
    return typed


def _removed(removal: Removal, typed: int, what: str) -> str:
    if not (removal.threads or removal.items):
        return f"Nothing was kept of {what}."
    return (
        f"Forgotten: {what}. Threads, with all their checkpoints: {removal.threads:,}; memories and other items: "
        f"{removal.items:,}; typed lines: {typed:,}."
    )


async def _forget(terminal: Terminal, rest: str) -> Outcome:
    from questbook.graphs.interface.forgetting import find_words

    if not rest:
        raise InputError("Forget what? /forget WORDS forgets them on every branch, and first shows what holds them.")
    found = await find_words(terminal.game, rest)
    if not found.lines:
        await _forget_now(terminal, rest, "")
        return None
    terminal.screen.answer("\n".join(found.lines))
    terminal.screen.say("Forget it for ever? yes, or anything else to keep it.")
    return Ask("", partial(_forget_if_yes, terminal, rest, found.emptied))


async def _forget_if_yes(terminal: Terminal, words: str, emptied: Sequence[str], answer: str) -> Outcome:
    if not is_yes(answer):
        terminal.screen.say(_DECLINED)
    elif emptied:
        terminal.screen.answer("\n".join(emptied))
        return Ask("", partial(_forget_now, terminal, words))
    else:
        await _forget_now(terminal, words, "")
    return None


async def _forget_now(terminal: Terminal, words: str, answer: str) -> None:
    from questbook.graphs.interface.forgetting import forget_words

    terminal.screen.say(await forget_words(terminal.game, words, remove_emptied=is_yes(answer)))
    terminal.clear()  # memories and prompt of the last turn may hold the words


async def _retract(terminal: Terminal, rest: str) -> None:
    from questbook.graphs.interface.forgetting import retract_turn

    terminal.screen.answer("\n".join(await retract_turn(terminal.game, rest)))
    terminal.clear()


async def _why(terminal: Terminal, rest: str) -> None:
    if not rest:
        from questbook.graphs.terminal.pages import entry_rows

        saved = await terminal.game.saved_game()
        if rows := entry_rows(saved.view) if saved else []:
            terminal.screen.table("Why what? /why with one of these, or with words of a memory", ("", ""), rows)
        else:
            terminal.screen.answer("Nothing is noted yet; /why gold, or words of a memory, says where it comes from.")
        return
    terminal.screen.table("Why", ("Turn", "When", "Noted", "You said"), await why_rows(terminal.game, rest))


async def why_rows(game: Game, what: str) -> list[tuple[str, str, str, str]]:
    """Return rows (turn, when, what was noted, the player's words) on what set a field or left a memory.

    Raises:
        HistoryError: No turn of this line did.
    """
    from questbook.graphs.dungeon_master.why import MEMORY, why

    rows = []
    for cause in await why(await game.load(), game.config, game.context, what):
        first, last = cause.turns
        value = "deleted by the notes of this turn" if cause.value is None else cause.value
        noted = "memory" if cause.field == MEMORY else f"{cause.field}: {value}"
        noted += "" if cause.holds else " (changed since)"
        turn = str(last) if first == last else f"{first}–{last}"
        rows.append((turn, cause.said_at, one_line(noted, _WIDTH), one_line(cause.player, _WIDTH)))
        rows += [("", "", one_line(f"drawn from: {text}", _WIDTH), "") for text in cause.drawn_from]
    return rows


FORGET = {"/forget": Command("WORDS", "forget words on every branch and in every file; asks first", _forget)}
PROVENANCE = {
    "/retract": Command("TURN", "undo what was noted, remembered and summarised of one turn", _retract),
    "/why": Command(
        "[FIELD|WORDS]",
        "which message set a field of the sheet or the quest, or left a memory; alone: what there is",
        _why,
        looks=True,
    ),
}
