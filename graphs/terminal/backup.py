"""`questbook backup` and `questbook restore`: the games of a data directory copied, and put back."""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from questbook.graphs.errors import SettingsError
from questbook.graphs.forgetting.replay import forget_again
from questbook.graphs.forgetting.suppression import VARIABLE, SuppressionList
from questbook.graphs.interface.text import number_of
from questbook.graphs.local.backup import back_up, restore
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.home import Home
from questbook.graphs.local.homes import find_home
from questbook.graphs.terminal.screen import say

if TYPE_CHECKING:
    from questbook.graphs.settings import Settings


async def backup(_: Settings, flags: argparse.Namespace) -> None:
    """Copy both databases; a HomeError says what could not be done."""
    home = await _files()
    await asyncio.to_thread(back_up, home, Path(flags.directory))
    say(f"{home.path} was copied to {flags.directory}. Keep it as carefully: it holds all that was said.")


async def bring_back(context: Settings, flags: argparse.Namespace) -> None:
    """Put a backup into an empty data directory, and forget again what was forgotten since it was made.

    Raises:
        HomeError, SettingsError: It could not be restored, or the list of what was forgotten cannot be used.
        ForgettingError: It is restored, but not everything could be forgotten again.
    """
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
    """Forget again what was forgotten since a time, ISO 8601.

    Raises:
        SettingsError: The time cannot be read, or no list can be used.
        ForgettingError: Not everything could be forgotten again.
    """
    try:
        time = datetime.fromisoformat(since).astimezone()
    except ValueError as error:
        raise SettingsError(f"--again: got {since!r:.40}; expected a time such as 2027-01-31T04:00.") from error
    async with home.open_checkpointer() as checkpointer, home.open_store() as store:
        done = await forget_again(store, checkpointer, [context.user], time)
    say(f"Forgotten again: {number_of(len(done), 'entry', 'entries')} of the list.")
