"""`questbook forget`: words, a campaign or all of a player; it shows what will be gone, and asks first."""

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import SettingsError
from questbook.graphs.forgetting.forget import Forgetting, Removal
from questbook.graphs.interface.forgetting import find_words, forget_words, forgetting_of, name_of, remove_typed
from questbook.graphs.interface.text import one_line
from questbook.graphs.local.game import Game, open_game
from questbook.graphs.local.home import Home, hold_campaign
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.terminal.homes import forget_since
from questbook.graphs.terminal.screen import ask, say

_DECLINED = "Nothing was forgotten."
_WIDTH = 100


async def forget(context: Context, flags: argparse.Namespace) -> bool:
    """Do what `questbook forget` asks for; return whether it was done."""
    if getattr(flags, "again", None):
        return await forget_since(context, flags)
    words, yes = flags.what, flags.yes
    if flags.player and (words is not None or flags.campaign is not None):
        raise SettingsError("Forget either words, or a campaign, or with --player everything of a user: one of them.")
    if words is None and flags.campaign is None and not flags.player:
        raise SettingsError("Forget what? Give words, --campaign NAME for a whole campaign, or --player.")
    async with open_game(context, holds=True) as game:
        if words is None:
            result = await (forget_player if flags.player else forget_campaign)(game, yes=yes)
        elif yes or await ask((found := await find_words(game, words)).lines):
            emptied = bool(not yes and found.emptied and await ask(found.emptied))
            result = await forget_words(game, words, remove_emptied=emptied)
        else:
            result = _DECLINED
    say(result)
    return result != _DECLINED


async def forget_campaign(game: Game, *, yes: bool = False) -> str:
    """Ask unless `yes`, and remove everything of the game's campaign; return the line that says what was done."""
    campaign = name_of(game.context.campaign)
    if not yes and not await ask([f"Everything of {campaign} will be removed: every branch, page and memory."]):
        return _DECLINED
    forgetting = await forgetting_of(game)
    typed = await _remove_typed(game.home, forgetting, [game.context.campaign])
    removal = await forgetting.forget_campaign()
    await game.home.forget_lock(game.thread_id)
    return _removed(game.home, removal, typed, campaign)


async def forget_player(game: Game, *, yes: bool = False) -> str:
    """Ask unless `yes`, and remove everything of the game's user: all campaigns; return the line that says so.

    If no game of any user is left, the whole prompt history is removed too.
    """
    forgetting, user = await forgetting_of(game), game.context.user
    names, player = await forgetting.campaigns(), f"player {one_line(user, 60)!r}"
    async with AsyncExitStack() as locks:
        for name in sorted({*names, game.context.campaign} - {game.context.campaign}):
            await locks.enter_async_context(hold_campaign(game.home, user, name))
        campaigns = ", ".join(one_line(name, 60) for name in names) or "none"
        if not yes and not await ask([f"Everything of {player} will be removed. Campaigns: {campaigns}."]):
            return _DECLINED
        typed = await _remove_typed(game.home, forgetting, names)
        removal = await forgetting.forget_user()
        for name in names:
            await game.home.forget_lock(thread_id_of(user, name))
        if not await game.checkpointer.newest_of_threads():
            typed += await asyncio.to_thread(remove_typed, game.home.prompt_history, bool)
        return _removed(game.home, removal, typed, player)


async def _remove_typed(home: Home, forgetting: Forgetting, campaigns: Sequence[str]) -> int:
    """Remove what was typed in campaigns from the prompt history; return how many entries that were."""
    typed = 0
    for name in campaigns:
        messages = await forgetting.of_campaign(name).messages()
        typed += await asyncio.to_thread(remove_typed, home.prompt_history, messages.__contains__)
    return typed


def _removed(home: Home, removal: Removal, typed: int, what: str) -> str:
    if not (removal.threads or removal.items):
        return f"Nothing was kept of {what}."
    threads = f"Threads, with all their checkpoints: {removal.threads:,}"
    items = f"memories and other items: {removal.items:,}; typed lines: {typed:,}."
    return f"Forgotten: {what}. {threads}; {items} {home.out_of_reach}".strip()
