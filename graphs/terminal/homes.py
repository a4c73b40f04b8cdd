"""`questbook migrate` and `questbook copy`: a database for games, and games brought from one home to another."""

from __future__ import annotations

import argparse
import asyncio

from questbook.graphs.errors import SettingsError
from questbook.graphs.local.homes import DATABASE, find_home
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
