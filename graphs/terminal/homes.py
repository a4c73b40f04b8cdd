"""`questbook migrate` and `questbook copy`: a database for games, and games brought from one home to another."""

from __future__ import annotations

import argparse
import asyncio
import time

from questbook.graphs.errors import SettingsError
from questbook.graphs.local.copying import copy_home
from questbook.graphs.local.homes import DATABASE, find_home, home_at
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.screen import say


async def migrate(context: Settings, flags: argparse.Namespace) -> None:  # noqa: ARG001 (as all commands)
    """Do `questbook migrate`.

    Raises:
        SettingsError: No database is named.
        HomeError: It cannot be used, or a newer Questbook made its tables.
    """
    home = await asyncio.to_thread(find_home)
    if not hasattr(home, "migrate"):
        raise SettingsError(f"Which database? Name it with --database postgresql://… or {DATABASE}.")
    done = await home.migrate(flags.embeddings)
    say(f"The {home.name} is ready." + "".join(f"\n{line}" for line in done))


_STEP = 2.0  # seconds between two lines that say how far it is


async def copy(context: Settings, flags: argparse.Namespace) -> None:  # noqa: ARG001 (as all commands)
    """Do `questbook copy`; the errors are those of `copy_home`."""
    here = (await asyncio.to_thread(find_home, "")).path
    source, target = [await asyncio.to_thread(home_at, place, here) for place in (flags.source, flags.target)]
    if source.name == target.name:
        raise SettingsError(f"--from and --to are the same place: {source.name}.")
    said, done = time.monotonic(), None
    async for done in copy_home(source, target):
        if time.monotonic() - said > _STEP:
            said = time.monotonic()
            say(f"{done.threads:,} of {done.of_threads:,} threads, {done.records:,} records …")
    if done is None:
        say(f"There is nothing in {source.name}.")
    else:
        what = f"{done.threads:,} threads with {done.checkpoints:,} checkpoints, {done.records:,} records"
        say(f"The same in both: {what}. Written now: {done.written:,}.")
