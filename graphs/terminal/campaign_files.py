"""`questbook export` and `questbook import`: a campaign as one file FILE.zip, or memories (`memories`)."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import SettingsError
from questbook.graphs.interface.text import one_line
from questbook.graphs.local.campaign_file import contents_of, export_campaign, import_campaign
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import Home
from questbook.graphs.local.locks import hold_campaign
from questbook.graphs.terminal.memories import export_csv, import_memories
from questbook.graphs.terminal.screen import say


async def send(context: Context, flags: argparse.Namespace) -> bool:
    """Do `questbook export`; return whether there was anything.

    Raises:
        CampaignFileError: The campaign has not begun, or the file cannot be written or exists.
    """
    if not flags.kind.lower().endswith(".zip"):
        _check_kind(flags, "csv")
        return await export_csv(context, flags)
    home = await asyncio.to_thread(Home.find)
    with hold_campaign(home, context.user, context.campaign):
        async with open_game(context, home) as game:
            done = await export_campaign(game, Path(flags.kind))
    records = f"{done.records:,} memories and other records"
    say(f"{flags.kind}: campaign {one_line(done.campaign, 60)!r} to turn {done.turn}, {records}.")
    return True


async def bring(context: Context, flags: argparse.Namespace) -> bool:
    """Do `questbook import`; a campaign that is not named keeps its name. Return whether anything could be read.

    Raises:
        CampaignFileError: It is no such file, or the campaign has begun here.
    """
    if not flags.kind.lower().endswith(".zip"):
        _check_kind(flags, "ltm")
        return await import_memories(context, flags)
    home = await asyncio.to_thread(Home.find)
    if not flags.campaign:
        contents = await asyncio.to_thread(contents_of, Path(flags.kind))
        context = context.model_copy(update={"campaign": contents.campaign})
    with hold_campaign(home, context.user, context.campaign):
        async with open_game(context, home) as game:
            done = await import_campaign(game, Path(flags.kind))
    say(f"Campaign {one_line(done.campaign, 60)!r} is here, to turn {done.turn}: questbook play --campaign NAME.")
    return True


def _check_kind(flags: argparse.Namespace, kind: str) -> None:
    if flags.kind != kind or flags.directory is None:
        raise SettingsError(
            f"{flags.command}: got {flags.kind!r}; expected ltm and a directory, csv, or a file FILE.zip."
        )
