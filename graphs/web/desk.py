"""`Desk`: what all routes share: the open campaigns, the templates, and what a page is made of."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import DictLoader, Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse

from questbook.graphs.companion.context import Context as CompanionContext
from questbook.graphs.companion.context import assistant_name, own_campaign
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.campaigns import hold_campaign
from questbook.graphs.embedded.game import open_game
from questbook.graphs.embedded.home import Home
from questbook.graphs.embedded.saved_game import SavedGame
from questbook.graphs.settings import Settings
from questbook.graphs.web import panels
from questbook.graphs.web.guard import PERSON
from questbook.graphs.web.shelf import settings_of
from questbook.graphs.web.story import latest_turns, takes_of
from questbook.graphs.web.table import Table
from questbook.types import JSON

GAME, COMPANION = "dungeon_master", "companion"
_PARAGRAPHS = re.compile(r"\n\s*\n")
_TEMPLATES = Path(__file__).parent / "templates"
_WORK = {
    "recall": "The dungeon master remembers…",
    "build_character": "The dungeon master thinks…",
    "run_quest": "The dungeon master thinks…",
    "roll_dice": "The dice are rolling…",
    "respond": "The companion thinks…",
    "use_tools": "The companion looks it up…",
}


class Desk:
    """What the routes share.

    Args:
        context: The settings of every game; its user owns the campaigns.
        home: The data directory.
        token: What a page sends with each change.
        developer: Whether the view of what the model saw is there.
        root: Path below which the app is mounted.
        crowd: Whether several people may play, so that each message says whose it is.
    """

    def __init__(
        self, context: Context, home: Home, token: str, *, developer: bool = False, root: str = "", crowd: bool = False
    ) -> None:
        self.context, self.home = context, home
        self.developer, self.root, self.crowd = developer, root, crowd
        self._tables: dict[tuple[str, str], Table] = {}
        self._opening = asyncio.Lock()
        self._templates = Environment(
            loader=DictLoader({path.name: path.read_text("utf-8") for path in _TEMPLATES.glob("*.html")}),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"token": token, "place": self.place, "root": root, "developer": developer}

    async def table(self, request: Request) -> Table:
        """Return the table of the campaign, or companion, that a request names."""
        machine = COMPANION if request.url.path.startswith(f"{self.root}/a/") else GAME
        return await self.open(request.path_params["campaign"], machine)

    async def open(self, name: str, machine: str = GAME) -> Table:
        """Return the table of a campaign; open it if it is not, and answer a message that was left without a reply.

        Raises:
            CampaignBusyError: A terminal plays it.
        """
        async with self._opening:
            if (machine, name) not in self._tables:
                self._tables[machine, name] = await self._open(name, machine)
            return self._tables[machine, name]

    async def _open(self, name: str, machine: str) -> Table:
        user = self.context.user or ""
        settings = await asyncio.to_thread(settings_of, self.home, user, name) if machine == GAME else {}
        context = context_of(self.context, machine, name, settings)
        resources = AsyncExitStack()
        try:
            lock = hold_campaign(self.home, user, context.campaign)
            await asyncio.to_thread(resources.enter_context, lock)  # it writes a file
            game = await resources.enter_async_context(open_game(context, self.home, machine))
            if await game.saved_game() is None:
                await game.enter()
            table = Table(game, resources)
            table.load_ahead()
            if (saved := await game.saved_game()) and saved.unanswered is not None:
                await table.play(game.resume(), saved.unanswered)
        except BaseException:
            await resources.aclose()
            raise
        return table

    async def leave(self, table: Table) -> None:
        """Close a campaign, so that it can be renamed, replaced or removed."""
        async with self._opening:
            self._tables = {key: other for key, other in self._tables.items() if other is not table}
            await table.close()

    async def close(self) -> None:
        """Close all campaigns."""
        for table in list(self._tables.values()):
            await table.close()

    def here(self, table: Table) -> str:
        """Return the path of a table's page."""
        return self.place(assistant_name(table.game.context.campaign), table.game.machine)

    def place(self, name: str, machine: str = GAME) -> str:
        """Return the path of a campaign's page, or of a companion's."""
        return f"{self.root}/{'c' if machine == GAME else 'a'}/{quote(name, safe='')}"

    def words_of(self, request: Request, text: str) -> str:
        """Return what a person said, under their name where several may play."""
        person = request.scope.get(PERSON)
        return f"{person}: {text}" if self.crowd and person else text

    async def state(self, table: Table) -> JSON:
        """Return what the templates show of a campaign; nothing of it is a secret."""
        saved = await table.game.saved_game()
        game, is_game = table.game, table.game.machine == GAME
        view = saved.view if saved and is_game else None
        turns = latest_turns(saved) if saved else []
        if table.passage is not None and turns and turns[-1].player == table.passage.player:
            turns = turns[:-1]  # it is shown as it comes
        return {
            "campaign": assistant_name(game.context.campaign),
            "here": self.here(table),
            "is_game": is_game,
            "model": game.context.model,
            "cost": table.last_cost,
            "total": table.total_cost,
            "core": panels.core(saved) if saved and not is_game else None,
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
            "summary": str(saved.values.get("summary") or "") if saved else "",
            "fidelity": table.report.fidelity if table.report else None,
            "tokens": sum(section["tokens"] for section in table.report.sections) if table.report else 0,
            "recap": _PARAGRAPHS.split(view.recap()) if view and view.character.complete and len(turns) > 1 else [],
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


def context_of(context: Context, machine: str, name: str, settings: JSON) -> Settings:
    """Return the settings of a game, or of a companion.

    Raises:
        SettingsError: One of `settings` is not allowed.
    """
    if machine == GAME:
        return Context.of(context.model_dump() | settings | {"campaign": name})
    shared = {field: getattr(context, field) for field in Settings.model_fields if field != "campaign"}
    return CompanionContext.of(shared | settings | {"campaign": own_campaign(name)})
