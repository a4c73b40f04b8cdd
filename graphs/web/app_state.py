"""`AppState`: what all routes share: the open campaigns, the templates, and what a page is made of."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from questbook.graphs.companion.context import Context as CompanionContext
from questbook.graphs.companion.context import assistant_name, own_campaign
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.campaigns import hold_campaign
from questbook.graphs.embedded.costs import costs_of
from questbook.graphs.embedded.game import open_game
from questbook.graphs.embedded.home import Home
from questbook.graphs.embedded.saved_game import SavedGame
from questbook.graphs.interface.text import clean
from questbook.graphs.settings import Settings
from questbook.graphs.web import panels
from questbook.graphs.web.campaign_record import guests_of, settings_of
from questbook.graphs.web.guard import PERSON, STILL_IN
from questbook.graphs.web.open_campaign import BusyError, OpenCampaign
from questbook.graphs.web.story import latest_turns, takes_of
from questbook.graphs.web.urls import label_of, name_of
from questbook.types import JSON

GAME, COMPANION = "dungeon_master", "companion"
_PARAGRAPHS = re.compile(r"\n\s*\n")
_MOST_OPEN = 40
_IDLE_SECONDS = 60.0  # then a campaign that nobody looks at is closed, and a terminal may open it
_IN_USE = "questbook_campaigns"  # key of the scope: the campaigns that a request uses
_TEMPLATES = Path(__file__).parent / "templates"
_WORK = {
    "recall": "The dungeon master remembers…",
    "build_character": "The dungeon master thinks…",
    "run_quest": "The dungeon master thinks…",
    "roll_dice": "The dice are rolling…",
    "respond": "The companion thinks…",
    "use_tools": "The companion looks it up…",
}


class AppState:
    """What the routes share.

    Args:
        context: The settings of every game; its user owns the campaigns.
        home: The data directory.
        token: What a page sends with each change.
        developer: Whether the view of what the model saw is there.
        root: Path below which the app is mounted.
        crowd: Whether several people may play, so that each message says whose it is.
        log_in: Whether each request says whose it is, and each person has campaigns of their own.
    """

    def __init__(
        self,
        context: Context,
        home: Home,
        token: str,
        *,
        developer: bool = False,
        root: str = "",
        crowd: bool = False,
        log_in: bool = False,
    ) -> None:
        self.context, self.home = context, home
        self.developer, self.root, self.crowd, self.log_in = developer, root, crowd, log_in
        self.streams = 0
        self._open_campaigns: dict[tuple[str, str, str], OpenCampaign] = {}
        self._opening = asyncio.Lock()
        self._sweeper: asyncio.Task[None] | None = None
        self._templates = Environment(
            loader=DictLoader({path.name: path.read_text("utf-8") for path in _TEMPLATES.glob("*.html")}),
            autoescape=True,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"token": token, "place": self.place, "root": root, "developer": developer}

    def person(self, request: Request) -> str:
        """Return whose campaigns a request is about, unless it names another's."""
        return str(request.scope[PERSON]) if self.log_in else self.context.user or ""

    async def campaign(self, request: Request, *, own: bool = False) -> OpenCampaign:
        """Return the campaign of the campaign, or companion, that a request names.

        Args:
            request: The request.
            own: Whether only the owner may do this, not those with whom they share the campaign.

        Raises:
            HTTPException: It is somebody else's.
            CampaignBusyError: A terminal plays it.
        """
        owner, name, machine = self._place_of(request)
        if not await self.admits(request):
            raise HTTPException(404, "There is no such campaign, or nobody shares it with you.")
        if own and owner != self.person(request):
            raise HTTPException(403, f"Only {owner!r:.60}, whose campaign it is, can do this.")
        return await self.take(request, name, machine, owner)

    async def admits(self, request: Request) -> bool:
        """Whether who asks may see, now, the campaign that a request names: a share may have ended since it began."""
        owner, name, machine = self._place_of(request)
        if not request.scope.get(STILL_IN, lambda: True)():
            return False
        person = self.person(request)
        return owner == person or (
            machine == GAME and person in await asyncio.to_thread(guests_of, self.home, owner, name)
        )

    def is_owner(self, request: Request, context: Settings) -> bool:
        """Whether a campaign is that of who asks, and not one that is shared with them."""
        return self.person(request) == context.user

    def _place_of(self, request: Request) -> tuple[str, str, str]:
        """Return owner and name of the campaign that a request names, and its machine."""
        owner = name_of(request.path_params.get("owner", "")) or self.person(request)
        kind = str(request.scope["root_path"]).removeprefix(self.root).split("/")[3 if self.log_in else 1]
        return owner, name_of(request.path_params["campaign"]), COMPANION if kind == "a" else GAME

    async def take(self, request: Request, name: str, machine: str, owner: str) -> OpenCampaign:
        """Return the campaign of a campaign, which stays open while the request lasts.

        If it is not open, it is opened, and a message that was left without a reply is answered.

        Raises:
            BusyError: Too many are open.
            CampaignBusyError: A terminal plays it.
        """
        key = (machine, owner, name)
        if key not in self._open_campaigns:
            async with self._opening:
                if key not in self._open_campaigns:
                    await self._close_idle(0.0 if len(self._open_campaigns) >= _MOST_OPEN else _IDLE_SECONDS)
                    if len(self._open_campaigns) >= _MOST_OPEN:
                        raise BusyError(f"{_MOST_OPEN} campaigns are open here. Wait until one is no longer played.")
                    self._open_campaigns[key] = await self._open(name, machine, owner)
        self._sweeper = self._sweeper or asyncio.create_task(self._sweep())
        campaign, campaigns = self._open_campaigns[key], request.scope[_IN_USE]
        campaigns.append(campaign)
        campaign.guests += 1
        return campaign

    def keep_open(self, app: ASGIApp) -> ASGIApp:
        """Return an app during whose requests no campaign that they use is closed."""

        async def hold(scope: Scope, receive: Receive, send: Send) -> None:
            campaigns: list[OpenCampaign] = scope.setdefault(_IN_USE, [])
            try:
                await app(scope, receive, send)
            finally:
                for campaign in campaigns:
                    campaign.guests -= 1
                    campaign.used = time.monotonic()

        return hold

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_IDLE_SECONDS / 4)
            async with self._opening:
                await self._close_idle(_IDLE_SECONDS)

    async def _close_idle(self, seconds: float) -> None:
        """Close the campaigns that nobody has used for so long."""
        for key, campaign in list(self._open_campaigns.items()):
            if campaign.is_idle and campaign.used + seconds <= time.monotonic():
                del self._open_campaigns[key]
                await campaign.close()

    async def _open(self, name: str, machine: str, user: str) -> OpenCampaign:
        base = self.context.model_copy(update={"user": user})
        label = name if machine == GAME else own_campaign(name)
        settings = await asyncio.to_thread(settings_of, self.home, user, label)
        context = context_of(base, machine, name, settings)
        resources = AsyncExitStack()
        try:
            lock = hold_campaign(self.home, user, context.campaign)
            await asyncio.to_thread(resources.enter_context, lock)  # it writes a file
            game = await resources.enter_async_context(open_game(context, self.home, machine))
            if await game.saved_game() is None:
                await game.enter()
            campaign = OpenCampaign(game, resources)
            campaign.load_ahead()
            if (saved := await game.saved_game()) and saved.unanswered is not None:
                await campaign.play(game.resume(), saved.unanswered, is_kept=True)
        except BaseException:
            await resources.aclose()
            raise
        return campaign

    async def leave(self, campaign: OpenCampaign) -> None:
        """Close a campaign, so that it can be renamed, replaced or removed."""
        async with self._opening:
            self._open_campaigns = {key: other for key, other in self._open_campaigns.items() if other is not campaign}
            await campaign.close()

    async def end_streams(self) -> None:
        """End the streams of all who watch, so that the server can end."""
        for campaign in self._open_campaigns.values():
            await campaign.end_streams()

    async def close(self) -> None:
        """Close all campaigns."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.gather(*(campaign.close() for campaign in self._open_campaigns.values()))
        self._open_campaigns = {}

    def here(self, campaign: OpenCampaign) -> str:
        """Return the path of a campaign's page."""
        context = campaign.game.context
        return self.place(assistant_name(context.campaign), campaign.game.machine, context.user or "")

    def place(self, name: str, machine: str = GAME, owner: str = "") -> str:
        """Return the path of a campaign's page, or of a companion's."""
        of = f"/u/{label_of(owner)}" if self.log_in else ""
        return f"{self.root}{of}/{'c' if machine == GAME else 'a'}/{label_of(name)}"

    async def words_of(self, request: Request, campaign: OpenCampaign, text: str) -> str:
        """Return what a person said, under their name where several may play."""
        person, context = request.scope.get(PERSON), campaign.game.context
        if not person:
            return text
        guests = await asyncio.to_thread(guests_of, self.home, context.user or "", context.campaign)
        return f"{person}: {text}" if self.crowd or guests else text

    async def values_of(self, campaign: OpenCampaign) -> JSON:
        """Return what the templates show of a campaign; nothing of it is a secret."""
        saved = await campaign.game.saved_game()
        game, is_game = campaign.game, campaign.game.machine == GAME
        view = saved.view if saved and is_game else None
        turns = latest_turns(saved) if saved else []
        if campaign.live is not None and turns and turns[-1].player == campaign.live.player:
            turns = turns[:-1]  # it is shown as it comes
        return {
            "campaign": assistant_name(game.context.campaign),
            "here": self.here(campaign),
            "is_game": is_game,
            "model": game.context.model,
            "costs": await asyncio.to_thread(costs_of, self.home, game.context.user or "", game.context.campaign),
            "core": panels.core(saved) if saved and not is_game else None,
            "number": campaign.number,
            "ticket": uuid.uuid4().hex,
            "turns": turns,
            "takes": [] if campaign.live else await takes_of(campaign.game),
            "live": campaign.live,
            "work": _WORK.get(campaign.live.work, "The dungeon master thinks…") if campaign.live else "",
            "problem": campaign.problem,
            "undo": campaign.undo,
            "sheet": panels.sheet(view) if view else None,
            "quest": panels.quest(view) if view and view.character.complete else None,
            "dice": panels.dice(saved),
            "summary": str(saved.values.get("summary") or "") if saved else "",
            "fidelity": campaign.report.fidelity if campaign.report else None,
            "tokens": sum(section["tokens"] for section in campaign.report.sections) if campaign.report else 0,
            "recap": _PARAGRAPHS.split(view.recap()) if view and view.character.complete and len(turns) > 1 else [],
            "turn": saved.turn if saved else 0,
            "wish": _wish(saved),
            "line": saved.values.get("line") or "main" if saved else "main",
        }

    def problem(self, request: Request, text: str, status: int) -> HTMLResponse:
        """Say what went wrong: in its place on a page that htmx keeps, on a page of its own where the browser went."""
        within = "hx-request" in request.headers
        return self.html("problem.html" if within else "lost.html", {"text": text}, status)

    def html(self, name: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
        """Render a template."""
        return HTMLResponse(self._templates.get_template(name).render(values), status)


def _shown(value: object) -> object:
    """Return what a template shows of a value: no control characters, and none that turn the direction of reading."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _wish(saved: SavedGame | None) -> JSON:
    note: JSON = (saved.values.get("note") if saved else None) or {}
    left = int(note.get("through", 0)) - (saved.turn if saved else 0)
    return {"text": note.get("text", ""), "turns": left} if left > 0 else {}


def context_of(context: Context, machine: str, name: str, settings: JSON) -> Settings:
    """Return the settings of a game, or of a companion.

    Raises:
        SettingsError: One of `settings` is not allowed.
    """
    if "weights" in settings:
        settings = settings | {"weights": context.weights.model_dump() | settings["weights"]}
    if machine == GAME:
        return Context.of(context.model_dump() | settings | {"campaign": name})
    shared = {field: getattr(context, field) for field in Settings.model_fields if field != "campaign"}
    return CompanionContext.of(shared | settings | {"campaign": own_campaign(name)})
