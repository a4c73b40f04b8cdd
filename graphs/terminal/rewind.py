"""`questbook rewind`: a campaign goes back to the end of a turn, without being played."""

from __future__ import annotations

from questbook.graphs.embedded.game import open_game
from questbook.graphs.embedded.home import Home
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.campaigns import hold_campaign
from questbook.graphs.terminal.screen import Screen
from questbook.graphs.terminal.travel import arrived


async def rewind(context: Settings, turn: int, *, live: bool) -> None:
    """Go back, and show what was said there last.

    Args:
        context: Names the campaign.
        turn: The turn to go back to the end of.
        live: A person looks.

    Raises:
        HistoryError: There is no such turn on the line where the campaign stands.
        QuestbookError: The campaign is being played, or its data cannot be read.
    """
    home = Home.find()
    with hold_campaign(home, context.user, context.campaign):
        async with open_game(context, home) as game:
            await game.enter()
            arrived(Screen(live=live), await (await game.history()).rewind(turn))
