"""Commands on a whole home: `questbook migrate`, `copy`, `backup` and `restore`."""

import argparse
import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path

from questbook.graphs.errors import SettingsError
from questbook.graphs.forgetting.replay import forget_again
from questbook.graphs.forgetting.suppression import VARIABLE, SuppressionList
from questbook.graphs.interface.text import number_of
from questbook.graphs.local.backup import back_up, restore
from questbook.graphs.local.copying import copy_home
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.home import Home
from questbook.graphs.local.homes import DATABASE, find_home, home_at
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.screen import say

_STEP = 2.0  # seconds between two lines that say how far it is


async def migrate(_: Settings, flags: argparse.Namespace) -> None:
    """Make or renew the tables of a database."""
    home = await asyncio.to_thread(find_home)
    if not hasattr(home, "migrate"):
        raise SettingsError(f"Which database? Name it with --database postgresql://… or {DATABASE}.")
    done = await home.migrate(flags.embeddings)
    say(f"The {home.name} is ready." + "".join(f"\n{line}" for line in done))


async def copy(_: Settings, flags: argparse.Namespace) -> None:
    """Bring all games from one home to another."""
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


async def backup(_: Settings, flags: argparse.Namespace) -> None:
    """Copy both databases."""
    home = await _files()
    await asyncio.to_thread(back_up, home, Path(flags.directory))
    say(f"{home.path} was copied to {flags.directory}. Keep it as carefully: it holds all that was said.")


async def bring_back(context: Settings, flags: argparse.Namespace) -> None:
    """Put a backup into an empty data directory, and forget again what was forgotten since it was made."""
    home, listed = await _files(), SuppressionList.find()
    if listed is not None:
        await asyncio.to_thread(listed.since, datetime.now(UTC))  # that it can be read
    begun = await asyncio.to_thread(restore, home, Path(flags.directory))
    say(f"{flags.directory} was restored to {home.path}. `questbook doctor` compares both files.")
    if listed is None:
        say(f"No list says what was forgotten since then ({VARIABLE}): whatever was, is back. Forget it again.")
    else:
        await replay(home, context, begun.isoformat())


async def _files() -> FileHome:
    home = await asyncio.to_thread(find_home)
    if not isinstance(home, FileHome):
        raise SettingsError(f"The {home.name} is copied by PostgreSQL's own means: pg_dump, pg_restore.")
    return home


async def replay(home: Home, context: Settings, since: str) -> None:
    """Forget again what was forgotten since a time, ISO 8601."""
    try:
        moment = datetime.fromisoformat(since).astimezone()
    except ValueError as error:
        raise SettingsError(f"--again: got {since!r:.40}; expected a time such as 2027-01-31T04:00.") from error
    async with home.open_checkpointer() as checkpointer, home.open_store() as store:
        done = await forget_again(store, checkpointer, [context.user], moment)
    say(f"Forgotten again: {number_of(len(done), 'entry', 'entries')} of the list.")
