"""`CampaignPool`: the campaigns that are open in this server, each while requests use it and a while longer.

A name that nobody has played yet is only looked at, without place or lock. When all places are taken, whoever has most
gives one up. Beside its story each campaign has a record: whether it was put away, its settings, who else may play.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TypeAlias
from weakref import WeakValueDictionary

from langgraph.store.base import PutOp
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from questbook.graphs.companion.context import CompanionContext, own_campaign
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import QuestbookError
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import Home
from questbook.graphs.local.saved_game import last_of_threads, read_saved_game, thread_id_of
from questbook.graphs.monitoring.draining import Drain
from questbook.graphs.settings import Settings
from questbook.graphs.web.limits import Quotas
from questbook.graphs.web.open_campaign import BusyError, OpenCampaign
from questbook.graphs.web.sign_in import PERSON
from questbook.memory.errors import StoreError
from questbook.memory.store.any_store import put_all
from questbook.memory.timeline.namespaces import campaign_namespace, read_label
from questbook.types import JSON

_KEY = "shelf"  # the name under which stores keep the record; it stays as it is
SETTINGS = (
    "model", "temperature", "seed", "buffer", "buffer_tokens", "buffer_turns", "summary_offset", "summarizer",
    "summary_tokens", "recall_tokens", "max_cosine_distance", "weights", "reflection", "facts", "guard_secrets",
    "max_roll_rounds", "max_tool_rounds", "max_message_chars", "max_reply_chars", "model_timeout", "update_timeout",
)  # fmt: skip
"""Settings that a campaign may have of its own, in the order of the page."""
_CAPPED = (
    "buffer_tokens", "buffer_turns", "summary_offset", "summary_tokens", "recall_tokens", "max_roll_rounds",
    "max_tool_rounds", "max_message_chars", "max_reply_chars", "model_timeout", "update_timeout",
)  # fmt: skip


async def settings_of(home: Home, user: str, campaign: str) -> JSON:
    """Return a campaign's own settings."""
    settings = (await home.read_item(_place(user, campaign), _KEY) or {}).get("settings")
    return settings if isinstance(settings, dict) else {}


async def put_away(home: Home, user: str) -> set[str]:
    """Return the names of the campaigns that were put away."""
    records = await home.records(campaign_namespace(user, "")[0], _KEY, _KEY)
    return {read_label(path[1]) for path, record in records.items() if record.get("put_away") is True}


async def guests_of(home: Home, owner: str, campaign: str) -> list[str]:
    """Return with whom an owner shares a campaign."""
    guests = (await home.read_item(_place(owner, campaign), _KEY) or {}).get("guests")
    return [str(guest) for guest in guests] if isinstance(guests, list) else []


async def shared_with(home: Home, person: str) -> list[tuple[str, str]]:
    """Return owner and name of each campaign that others share with a person."""
    guests = {path: record.get("guests") for path, record in (await home.records(None, _KEY, _KEY)).items()}
    paths = [path for path, named in guests.items() if isinstance(named, list) and person in named]
    shared = {path: (read_label(path[0]), read_label(path[1])) for path in paths if len(path) == len(_place("", ""))}
    # What others wrote over an API may stand where no campaign has its record.
    return [names for path, names in shared.items() if _place(*names) == path]


async def change_record(campaign: OpenCampaign, change: JSON) -> None:
    """Change what is kept of a campaign: {"put_away": …}, {"settings": …}, {"guests": …}."""
    store, context = await campaign.game.store(), campaign.game.context
    place = _place(context.user, context.campaign)
    async with campaign.record_lock:
        item = await store.aget(place, _KEY)
        await put_all(store, [PutOp(place, _KEY, (item.value if item else {}) | change, False)])


def _place(user: str, campaign: str) -> tuple[str, ...]:
    return campaign_namespace(user, campaign, _KEY)


GAME, COMPANION = "dungeon_master", "companion"
Key: TypeAlias = tuple[str, str, str]  # machine, owner, name
_log = logging.getLogger(__name__)
_MOST_OPEN = 200  # each takes about 0.3 MB, and no descriptor of its own on files
_PATIENCE_SECONDS = 30.0  # that a request waits to open one: what a browser has given up must not be played later
_IDLE_SECONDS = 60.0  # then a campaign that nobody looks at is closed, and a terminal may open it
_MOST_RENAMED = 1000
_IN_USE = "questbook_campaigns"  # key of the scope: the campaigns that a request uses


class CampaignPool:
    """The open campaigns of a data directory; a campaign's own settings come before those of `context`."""

    def __init__(self, context: Context, home: Home, quotas: Quotas | None = None) -> None:
        self._context, self._home, self._quotas = context, home, quotas
        self._campaigns: dict[Key, OpenCampaign] = {}
        self._previews: set[OpenCampaign] = set()
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()  # of those that open or close
        self._places, self._taken = asyncio.Lock(), dict[Key, str]()  # taken: by what is being opened, and for whom
        self._sweeper: asyncio.Task[None] | None = None
        self.renamed: dict[Key, str] = {}  # new names of those that were renamed last, while pages may be open
        self.drain = Drain(lambda: bool(self._locks) or any(one.is_working for one in self._campaigns.values()))

    def __len__(self) -> int:
        return len(self._campaigns)

    async def get(self, scope: Scope, name: str, machine: str, owner: str) -> OpenCampaign:
        """Return a campaign, which stays open while the request of `scope` lasts.

        If it is not open, it is opened, and a message whose reply nobody stopped is answered, as a turn of who asks if
        they may play one. If it has not begun, a request that changes nothing gets a preview, for itself alone.

        Raises:
            BusyError: Too many are open, and nobody has more than who asks; or too many are being opened.
            CampaignBusyError: A terminal plays it.
            HTTPException: Too many are open for who asks; or it is not open, and the server is about to stop.
        """
        key, person = (machine, owner, name), scope[PERSON]
        self._sweeper = self._sweeper or asyncio.create_task(self._sweep())
        if (campaign := self._campaigns.get(key)) is None:
            async with self._turn_to_open(key):
                if (campaign := self._campaigns.get(key)) is None:
                    self.drain.check()  # to open one may answer what was left without a reply
                    own = await settings_of(self._home, owner, name if machine == GAME else own_campaign(name))
                    base = self._context.model_copy(update={"user": owner})
                    context = context_of(base, machine, name, own, caps=self._quotas is not None)
                    if (is_new := await self._is_new(context)) and scope["method"] in ("GET", "HEAD"):
                        campaign = await self._open(key, context, person, is_new=True, is_preview=True)
                        self._previews.add(campaign)
                    else:
                        async with self._place_for(key, person):
                            campaign = self._campaigns[key] = await self._open(key, context, person, is_new=is_new)
                        for preview in [one for one in self._previews if one.game.thread_id == campaign.game.thread_id]:
                            await preview.end_streams()  # the browser asks again, and gets those of the campaign
        scope[_IN_USE].append(campaign)
        campaign.requests += 1
        campaign.used = time.monotonic()
        return campaign

    def keep_open(self, app: ASGIApp) -> ASGIApp:
        """Return an app during whose requests no campaign that they use is closed."""

        async def keep(scope: Scope, receive: Receive, send: Send) -> None:
            campaigns: list[OpenCampaign] = scope.setdefault(_IN_USE, [])
            try:
                await app(scope, receive, send)
            finally:
                for campaign in campaigns:
                    campaign.requests, campaign.used = campaign.requests - 1, time.monotonic()
                for campaign in dict.fromkeys(campaigns):  # after all are counted: one may fail to close
                    if campaign.is_preview or (campaign.is_new and campaign.is_idle and not await campaign.has_begun()):
                        await self.leave(campaign, if_idle=True)

        return keep

    async def leave(self, campaign: OpenCampaign, *, if_idle: bool = False) -> None:
        """Close a campaign, so that it can be renamed, replaced or removed; or only if no request uses it by now."""
        async with self._lock(campaign.key):
            if if_idle and not campaign.is_idle:
                return
            self._previews.discard(campaign)
            if self._campaigns.get(campaign.key) is campaign:
                del self._campaigns[campaign.key]
            await campaign.close()

    def note_name(self, key: Key, name: str) -> None:
        """Note the new name of a campaign; no names lead in a circle."""
        others = [(old, new) for old, new in self.renamed.items() if old != (*key[:2], name)]
        self.renamed = dict([*others[-_MOST_RENAMED:], (key, name)])

    async def end_streams(self) -> None:
        """End the streams of all who watch, so that the server can end."""
        for campaign in [*self._campaigns.values(), *self._previews]:
            await campaign.end_streams()

    async def close(self) -> None:
        """Close all campaigns."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.gather(*(campaign.close() for campaign in self._campaigns.values()))
        self._campaigns = {}

    def _lock(self, key: Key) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    @asynccontextmanager
    async def _turn_to_open(self, key: Key) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await stack.enter_async_context(self._lock(key))
            except TimeoutError as error:
                raise BusyError("This campaign is still being opened. Try again in a moment.") from error
            yield

    @asynccontextmanager
    async def _place_for(self, key: Key, person: str) -> AsyncIterator[None]:
        async with self._places:
            await self._make_room(person)
            self._taken[key] = person
        try:
            yield
        finally:
            del self._taken[key]

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_IDLE_SECONDS / 4)
            await self._close_idle(_IDLE_SECONDS)

    async def _make_room(self, person: str) -> None:
        """Close what nobody uses, and if all places are still taken, the campaign that who has most uses least."""
        if self._quotas and self._held_by(person) >= self._quotas.limits.open_campaigns:
            await self._close_idle(0.0, person, most=1)
            self._quotas.check_open("campaigns", self._held_by(person))
        await self._close_idle(_IDLE_SECONDS)
        if self._is_full():  # one place is needed: who plays on a moment later finds theirs open
            await self._close_idle(0.0, most=1)
        if not self._is_full():
            return
        holder = who_gives_way((campaign.person for campaign in self._campaigns.values()), person)
        theirs = [one for one in self._campaigns.values() if one.person == holder and not self._lock(one.key).locked()]
        if not theirs:
            raise BusyError(f"{_MOST_OPEN} campaigns are open here. Wait until one is no longer played.")
        await self.leave(min(theirs, key=lambda one: (one.is_replying, one.used)))

    def _is_full(self) -> bool:
        return len(self._campaigns) + len(self._taken) >= _MOST_OPEN

    def _held_by(self, person: str) -> int:
        return [*(campaign.person for campaign in self._campaigns.values()), *self._taken.values()].count(person)

    async def _close_idle(self, seconds: float, person: str | None = None, most: int = _MOST_OPEN) -> None:
        """Close at most so many campaigns, of a person or all, that nobody has used for so long, oldest first."""
        for campaign in sorted(self._campaigns.values(), key=lambda one: one.used):
            is_free = campaign.is_idle and not self._lock(campaign.key).locked()
            is_due = is_free and campaign.used + seconds <= time.monotonic()
            if most and is_due and person in (None, campaign.person) and campaign in self._campaigns.values():
                most -= 1
                try:
                    await self.leave(campaign)
                except (QuestbookError, StoreError) as error:  # to open it again shows whether it can be used
                    _log.warning("A campaign that nobody uses could not be closed: %s", error, exc_info=error)

    async def _is_new(self, context: Settings) -> bool:
        async with self._home.open_checkpointer() as saver:
            threads = [saved async for saved in last_of_threads(saver, context.user, context.campaign)]
            return not threads and await read_saved_game(saver, thread_id_of(context.user, context.campaign)) is None

    async def _open(
        self, key: Key, context: Settings, person: str, *, is_new: bool, is_preview: bool = False
    ) -> OpenCampaign:
        resources = AsyncExitStack()
        try:
            game = await resources.enter_async_context(open_game(context, self._home, key[0], holds=not is_preview))
            if not is_new and await game.saved_game() is None:
                await game.enter()
            campaign = OpenCampaign(game, resources, is_new=is_new, is_preview=is_preview)
            campaign.key, campaign.person, campaign.hides = key, person, self._quotas is not None
            campaign.load_ahead()
            if (saved := await game.saved_game()) and saved.unanswered is not None and not saved.is_stopped:
                with suppress(HTTPException):  # who has played too often finds it with *Try again*
                    if self._quotas:
                        self._quotas.check_turn(person)
                    await campaign.play(game.resume(), saved.unanswered, is_kept=True)
        except BaseException:
            await resources.aclose()
            raise
        return campaign


def who_gives_way(holders: Iterable[str], person: str) -> str | None:
    """Return who has most of what is all taken, so that a person with less gets one; None: nobody has enough more."""
    counts = Counter(holders)
    most = max(counts, key=counts.__getitem__, default=person)
    return most if counts[most] > counts[person] + 1 else None


def context_of(context: Context, machine: str, name: str, settings: JSON, *, caps: bool = False) -> Settings:
    """Return the settings of a game or companion: those for all, and its own, checked and, if `caps`, not `lifted`."""
    if "weights" in settings:
        settings = settings | {"weights": context.weights.model_dump() | settings["weights"]}
    made: Settings
    if machine == GAME:
        made = Context.of(context.model_dump() | settings | {"campaign": name})
    else:
        shared = {field: getattr(context, field) for field in Settings.model_fields if field != "campaign"}
        made = CompanionContext.of(shared | settings | {"campaign": own_campaign(name)})
    return made.model_copy(update=lifted(context_of(context, machine, name, {}), made)) if caps else made


def lifted(common: Settings, made: Settings) -> JSON:
    """Return the settings that a campaign has set higher than the server, with the server's values."""
    values = {name: getattr(common, name) for name in _CAPPED if name in type(common).model_fields}
    more = {name: value for name, value in values.items() if getattr(made, name) > value}
    return more | ({"buffer": common.buffer} if made.buffer == "unbounded" != common.buffer else {})
