"""`Desk`: what all routes share: the open campaigns, the templates, and what a page is made of."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.game import open_game
from questbook.graphs.embedded.home import Home
from questbook.graphs.embedded.saved_game import SavedGame
from questbook.graphs.terminal.campaigns import hold_campaign
from questbook.graphs.web import panels
from questbook.graphs.web.story import latest_turns, takes_of
from questbook.graphs.web.table import Table
from questbook.types import JSON

_TEMPLATES = Path(__file__).parent / "templates"
_WORK = {
    "recall": "The dungeon master remembers…",
    "build_character": "The dungeon master thinks…",
    "run_quest": "The dungeon master thinks…",
    "roll_dice": "The dice are rolling…",
}


class Desk:
    """What the routes share.

    Args:
        context: The settings of every game; its user owns the campaigns.
        home: The data directory.
        token: What a page sends with each change.
    """

    def __init__(self, context: Context, home: Home, token: str) -> None:
        self.context, self.home = context, home
        self._tables: dict[str, Table] = {}
        self._resources = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._templates = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"token": token, "place": place_of}

    async def table(self, request: Request) -> Table:
        """Return the table of the campaign that a request names."""
        return await self.open(request.path_params["campaign"])

    async def open(self, campaign: str) -> Table:
        """Return the table of a campaign; open it if it is not, and answer a message that was left without a reply."""
        async with self._opening:
            if campaign not in self._tables:
                context = self.context.model_copy(update={"campaign": campaign})
                self._resources.enter_context(hold_campaign(self.home, context.user or "", campaign))
                game = await self._resources.enter_async_context(open_game(Context.of(context), self.home))
                if await game.saved_game() is None:
                    await game.enter()
                table = self._tables[campaign] = Table(game)
                if (saved := await game.saved_game()) and saved.unanswered is not None:
                    await table.play(game.resume(), saved.unanswered)
            return self._tables[campaign]

    async def close(self) -> None:
        """Close all campaigns."""
        for table in self._tables.values():
            await table.close()
        await self._resources.aclose()

    async def state(self, table: Table) -> JSON:
        """Return what the templates show of a campaign; nothing of it is a secret."""
        saved = await table.game.saved_game()
        view = saved.view if saved else None
        turns = latest_turns(saved) if saved else []
        if table.passage is not None and turns and turns[-1].player == table.passage.player:
            turns = turns[:-1]  # it is shown as it comes
        return {
            "campaign": table.game.context.campaign,
            "number": table.number,
            "ticket": uuid.uuid4().hex,
            "turns": turns,
            "takes": [] if table.passage else await takes_of(table.game),
            "passage": table.passage,
            "work": _WORK.get(table.passage.work, "The dungeon master thinks…") if table.passage else "",
            "problem": table.problem,
            "sheet": panels.sheet(view) if view else None,
            "quest": panels.quest(view) if view and view.character.complete else None,
            "memories": table.memories,
            "rolls": panels.dice(saved),
            "summary": view.summary if view else "",
            "fidelity": table.report.fidelity if table.report else None,
            "tokens": sum(section["tokens"] for section in table.report.sections) if table.report else 0,
            "turn": saved.turn if saved else 0,
            "wish": _wish(saved),
            "line": saved.values.get("line") or "main" if saved else "main",
        }

    def html(self, name: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
        """Render a template."""
        return HTMLResponse(self._templates.get_template(name).render(values), status)


def _wish(saved: SavedGame | None) -> JSON:
    note: JSON = (saved.values.get("note") if saved else None) or {}
    left = int(note.get("through", 0)) - (saved.turn if saved else 0)
    return {"text": note.get("text", ""), "turns": left} if left > 0 else {}


def place_of(campaign: str) -> str:
    """Return the path of a campaign's page."""
    return f"/c/{quote(campaign, safe='')}"
