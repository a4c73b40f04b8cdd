"""`questbook export FILE.zip` and `questbook import FILE.zip`: a campaign as one file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.campaign_archive import contents_of
from questbook.graphs.embedded.campaign_file import export_campaign, import_campaign
from questbook.graphs.embedded.campaigns import hold_campaign
from questbook.graphs.embedded.game import open_game
from questbook.graphs.embedded.home import Home
from questbook.graphs.interface.text import one_line


async def send(context: Context, name: str, *, named: bool) -> bool:  # noqa: ARG001 (as `bring`)
    """Write a campaign to a file.

    Raises:
        CampaignFileError: It has not begun, or the file cannot be written or exists.
    """
    home = await asyncio.to_thread(Home.find)
    with hold_campaign(home, context.user, context.campaign):
        async with open_game(context, home) as game:
            done = await export_campaign(game, Path(name))
    records = f"{done.records:,} memories and other records"
    _say(f"{name}: campaign {one_line(done.campaign, 60)!r} to turn {done.turn}, {records}.")
    return True


async def bring(context: Context, name: str, *, named: bool) -> bool:
    """Read a campaign from a file; without a name of its own it keeps the one that it had.

    Raises:
        CampaignFileError: It is no such file, or the campaign has begun here.
    """
    home = await asyncio.to_thread(Home.find)
    if not named:
        contents = await asyncio.to_thread(contents_of, Path(name))
        context = context.model_copy(update={"campaign": contents.campaign})
    with hold_campaign(home, context.user, context.campaign):
        async with open_game(context, home) as game:
            done = await import_campaign(game, Path(name))
    _say(f"Campaign {one_line(done.campaign, 60)!r} is here, to turn {done.turn}: questbook play --campaign NAME.")
    return True


def _say(text: str) -> None:
    print(text)  # noqa: T201
