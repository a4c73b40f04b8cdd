"""`CampaignPool`: the campaigns that are open in this server, each while requests use it and a while longer.

Beside its story each campaign has a record: whether it was put away, its own settings, who else may play.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

from langgraph.store.base import PutOp
from starlette.types import ASGIApp, Receive, Scope, Send

from questbook.graphs.companion.context import CompanionContext, own_campaign
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.local.game import Game, open_game
from questbook.graphs.local.home import Home
from questbook.graphs.local.locks import hold_campaign
from questbook.graphs.settings import Settings
from questbook.graphs.web.open_campaign import BusyError, OpenCampaign
from questbook.memory.store.any_store import put_all
from questbook.memory.store.database_file import list_paths, read_item
from questbook.memory.timeline.namespaces import campaign_namespace, unescape_label
from questbook.types import JSON

_KEY = "shelf"  # the name under which stores keep the record; it stays as it is
SETTINGS = (
    "model", "temperature", "seed", "buffer", "buffer_tokens", "buffer_turns", "summary_offset", "summarizer",
    "summary_tokens", "recall_tokens", "max_cosine_distance", "weights", "reflection", "facts", "guard_secrets",
    "max_roll_rounds", "max_tool_rounds", "max_message_chars", "max_reply_chars", "model_timeout", "update_timeout",
)  # fmt: skip
"""Settings that a campaign may have of its own, in the order of the page."""


def settings_of(home: Home, user: str, campaign: str) -> JSON:
    """Return a campaign's own settings."""
    settings = (read_item(home.memory, _place(user, campaign), _KEY) or {}).get("settings")
    return settings if isinstance(settings, dict) else {}


def put_away(home: Home, user: str) -> set[str]:
    """Return the names of the campaigns that were put away."""
    paths = list_paths(home.memory, campaign_namespace(user, "")[0], _KEY)
    return {
        unescape_label(path[1]) for path in paths if (read_item(home.memory, path, _KEY) or {}).get("put_away") is True
    }


def guests_of(home: Home, owner: str, campaign: str) -> list[str]:
    """Return with whom an owner shares a campaign."""
    guests = (read_item(home.memory, _place(owner, campaign), _KEY) or {}).get("guests")
    return [str(guest) for guest in guests] if isinstance(guests, list) else []


def shared_with(home: Home, person: str) -> list[tuple[str, str]]:
    """Return owner and name of each campaign that others share with a person."""
    labels = [path for path in list_paths(home.memory, None, _KEY) if len(path) == len(_place("", ""))]
    names = [(unescape_label(path[0]), unescape_label(path[1])) for path in labels]
    return [(owner, campaign) for owner, campaign in names if person in guests_of(home, owner, campaign)]


async def change_record(game: Game, change: JSON) -> None:
    """Change what is kept of a game's campaign: {"put_away": …}, {"settings": …}, {"guests": …}."""
    store, place = (await game.load()).store, _place(game.context.user, game.context.campaign)
    if store is not None:
        item = await store.aget(place, _KEY)
        await put_all(store, [PutOp(place, _KEY, (item.value if item else {}) | change, False)])


def _place(user: str, campaign: str) -> tuple[str, ...]:
    return campaign_namespace(user, campaign, _KEY)


GAME, COMPANION = "dungeon_master", "companion"
_MOST_OPEN = 40
_IDLE_SECONDS = 60.0  # then a campaign that nobody looks at is closed, and a terminal may open it
_IN_USE = "questbook_campaigns"  # key of the scope: the campaigns that a request uses


class CampaignPool:
    """The open campaigns of a data directory; a campaign's own settings come before those of `context`."""

    def __init__(self, context: Context, home: Home) -> None:
        self._context, self._home = context, home
        self._campaigns: dict[tuple[str, str, str], OpenCampaign] = {}
        self._opening = asyncio.Lock()
        self._sweeper: asyncio.Task[None] | None = None

    async def get(self, scope: Scope, name: str, machine: str, owner: str) -> OpenCampaign:
        """Return a campaign, which stays open while the request of `scope` lasts.

        If it is not open, it is opened, and a message that was left without a reply is answered.

        Raises:
            BusyError: Too many are open.
            CampaignBusyError: A terminal plays it.
        """
        key = (machine, owner, name)
        if key not in self._campaigns:
            async with self._opening:
                if key not in self._campaigns:
                    await self._close_idle(0.0 if len(self._campaigns) >= _MOST_OPEN else _IDLE_SECONDS)
                    if len(self._campaigns) >= _MOST_OPEN:
                        raise BusyError(f"{_MOST_OPEN} campaigns are open here. Wait until one is no longer played.")
                    self._campaigns[key] = await self._open(name, machine, owner)
        self._sweeper = self._sweeper or asyncio.create_task(self._sweep())
        campaign = self._campaigns[key]
        scope[_IN_USE].append(campaign)
        campaign.requests += 1
        return campaign

    def keep_open(self, app: ASGIApp) -> ASGIApp:
        """Return an app during whose requests no campaign that they use is closed."""

        async def keep(scope: Scope, receive: Receive, send: Send) -> None:
            campaigns: list[OpenCampaign] = scope.setdefault(_IN_USE, [])
            try:
                await app(scope, receive, send)
            finally:
                for campaign in campaigns:
                    campaign.requests -= 1
                    campaign.used = time.monotonic()

        return keep

    async def leave(self, campaign: OpenCampaign) -> None:
        """Close a campaign, so that it can be renamed, replaced or removed."""
        async with self._opening:
            self._campaigns = {key: other for key, other in self._campaigns.items() if other is not campaign}
            await campaign.close()

    async def end_streams(self) -> None:
        """End the streams of all who watch, so that the server can end."""
        for campaign in self._campaigns.values():
            await campaign.end_streams()

    async def close(self) -> None:
        """Close all campaigns."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.gather(*(campaign.close() for campaign in self._campaigns.values()))
        self._campaigns = {}

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_IDLE_SECONDS / 4)
            async with self._opening:
                await self._close_idle(_IDLE_SECONDS)

    async def _close_idle(self, seconds: float) -> None:
        """Close the campaigns that nobody has used for so long."""
        for key, campaign in list(self._campaigns.items()):
            if campaign.is_idle and campaign.used + seconds <= time.monotonic():
                del self._campaigns[key]
                await campaign.close()

    async def _open(self, name: str, machine: str, user: str) -> OpenCampaign:
        base = self._context.model_copy(update={"user": user})
        own = await asyncio.to_thread(settings_of, self._home, user, name if machine == GAME else own_campaign(name))
        context = context_of(base, machine, name, own)
        resources = AsyncExitStack()
        try:
            lock = hold_campaign(self._home, user, context.campaign)
            await asyncio.to_thread(resources.enter_context, lock)  # it writes a file
            game = await resources.enter_async_context(open_game(context, self._home, machine))
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


def context_of(context: Context, machine: str, name: str, settings: JSON) -> Settings:
    """Return the settings of a game, or of a companion: those of all campaigns, and its own.

    Raises:
        SettingsError: One of `settings` is not allowed.
    """
    if "weights" in settings:
        settings = settings | {"weights": context.weights.model_dump() | settings["weights"]}
    if machine == GAME:
        return Context.of(context.model_dump() | settings | {"campaign": name})
    shared = {field: getattr(context, field) for field in Settings.model_fields if field != "campaign"}
    return CompanionContext.of(shared | settings | {"campaign": own_campaign(name)})
