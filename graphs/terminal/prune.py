"""`questbook prune`: deletes the checkpoints that nobody goes back to; first it shows how much that is, and asks."""

import argparse
import asyncio
import time
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from questbook.graphs.errors import SettingsError
from questbook.graphs.forgetting.backends import erasure_of
from questbook.graphs.interface.text import number_of, one_line
from questbook.graphs.local.home import CampaignBusyError, Home
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.pruning.prune import Pruned
from questbook.graphs.pruning.prune import prune as prune_threads
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.screen import ask, say


async def prune(context: Settings, flags: argparse.Namespace) -> bool:
    """Do what `questbook prune` asks for; return whether it was done."""
    if flags.keep_turns < 1:
        raise SettingsError(f"--keep-turns takes a number from 1, got {flags.keep_turns}.")
    if flags.older_than is not None and not 0 <= flags.older_than < timedelta.max.days:
        raise SettingsError(f"--older-than takes a number of days, got {flags.older_than}.")
    home = await asyncio.to_thread(find_home)
    if not await home.size():
        say(f"Nothing to prune: there are no checkpoints in {home.name}.")
        return True
    older_than = None if flags.older_than is None else timedelta(days=flags.older_than)
    async with AsyncExitStack() as locks, home.open_checkpointer() as saver:
        erasure = erasure_of(saver)
        campaigns = await erasure.threads_of(context.user) if erasure else {}
        if flags.campaign is None:
            threads = [thread for thread, _ in await saver.newest_of_threads()]
        else:
            threads = [thread for thread, campaign in campaigns.items() if campaign == context.campaign]
            threads = threads or [thread_id_of(context.user, context.campaign)]
        threads, busy = await _hold(locks, home, threads)
        limits: dict[str, Any] = {"threads": threads, "keep_turns": flags.keep_turns, "older_than": older_than}
        done = await prune_threads(saver, dry_run=True, **limits)
        would = f"{_amount(done)} would go. Kept: {done.kept:,}."
        if not done.checkpoints:
            say(f"Nothing to prune. Kept: {number_of(done.kept, 'checkpoint')}.")
        elif flags.dry_run:
            say(would)
        else:
            if not flags.yes and not await ask([would], "Delete them for ever?"):
                say("Nothing was deleted.")
                return False
            started, before = time.monotonic(), await home.size()
            done = await prune_threads(saver, **limits)
            seconds, size = time.monotonic() - started, await home.size()
            say(f"{_amount(done)} deleted.")
            sizes = f"had {before / 1e6:,.1f} MB and have {size / 1e6:,.1f} MB now"
            say(f"The checkpoints {sizes} ({seconds:.1f} s).")
    if done.compacted is False:
        reason = "because another program uses it or the disk is full: what is free in it is used again"
        say(f"The file could not be made smaller now, {reason}. The next `questbook prune` tries again.")
    for thread, reason in (done.skipped | busy).items():
        name = f"campaign {one_line(campaigns[thread], 60)!r}" if campaigns.get(thread) else f"thread {thread}"
        say(f"Left as it is: {name}. {one_line(reason, 200)}")
    return True


async def _hold(locks: AsyncExitStack, home: Home, threads: list[str]) -> tuple[list[str], dict[str, str]]:
    """Hold the campaigns of threads; return those that are held or need not be, and why the others are not."""
    free, busy = list[str](), dict[str, str]()
    for thread in threads:
        try:
            if await home.was_held(thread):  # else no terminal has ever played on it
                await locks.enter_async_context(home.hold(thread, "It is open in another terminal."))
            free.append(thread)
        except CampaignBusyError as error:
            busy[thread] = str(error)
    return free, busy


def _amount(pruned: Pruned) -> str:
    checkpoints, threads = number_of(pruned.checkpoints, "checkpoint"), number_of(pruned.threads, "thread")
    writes, values = number_of(pruned.writes, "write"), number_of(pruned.blobs, "value")
    return f"{checkpoints} of {threads}, with {writes} and {values} ({pruned.bytes / 1e6:,.1f} MB),"
