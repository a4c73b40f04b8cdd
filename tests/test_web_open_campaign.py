"""The campaign of the page: which turn those who watch see, and what they change of it."""

import asyncio
from contextlib import AsyncExitStack

from questbook.graphs.companion.context import CompanionContext, own_campaign
from questbook.graphs.events import NodeStart, ReplyPiece
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import Home
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.graphs.web.story import rewrite_reply


class SlowGame:
    """A game whose notes on a turn take as long as a test wants."""

    machine = "dungeon_master"

    def __init__(self):
        self.noted = asyncio.Event()

    async def wait_for_upkeep(self, seconds):
        await self.noted.wait()

    def unread_notices(self):
        return []


async def test_the_end_of_a_turn_s_notes_leaves_the_next_turn_on_the_page():
    game = SlowGame()
    campaign = OpenCampaign(game, AsyncExitStack())

    async def first():
        yield ReplyPiece("The gate opens.", "a")
        yield NodeStart("update_state", upkeep=True)

    async def second():
        yield ReplyPiece("The dragon", "b")
        await asyncio.Event().wait()

    await campaign.play(first(), "I knock.")
    await campaign.wait_for_reply(5)
    await campaign.play(second(), "I go in.")
    game.noted.set()
    while campaign.in_upkeep or not campaign.live.pieces:
        await asyncio.sleep(0)
    assert campaign.is_replying
    assert (campaign.live.player, campaign.live.pieces) == ("I go in.", {"b": "The dragon"})
    await campaign.close()


async def test_the_assistant_s_reply_is_rewritten_too_and_remembered_so(tmp_path):
    home = Home(tmp_path)
    home.locks.mkdir()
    context = CompanionContext(model="offline", user="ann", campaign=own_campaign("chat"), seed=1)
    async with open_game(context, home, "companion") as game:
        async for _ in game.send("My cat is called Soot."):
            pass
        await game.wait_for_upkeep(20)
        config = await rewrite_reply(await game.history(), "Soot is a fine name.")
        assert config is not None
        async for _ in game.replay(config):
            pass
        await game.wait_for_upkeep(20)
        turns = await (await game.history()).turns()
    assert [turn.reply for turn in turns if "soot is a fine" in turn.reply.casefold()] == ["Soot is a fine name."]
