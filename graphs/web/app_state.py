"""`AppState`: what all endpoints share (`request.app.state.page`): settings, who asks, URLs, templates."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import DictLoader, Environment
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.interface.text import clean, plain
from questbook.graphs.local.home import Home
from questbook.graphs.monitoring.logs import about
from questbook.graphs.web.audit import AuditLog, Event
from questbook.graphs.web.campaign_pool import COMPANION, GAME, CampaignPool, Key, guests_of
from questbook.graphs.web.guard import CSRF
from questbook.graphs.web.limits import Quotas
from questbook.graphs.web.markdown import to_html
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.graphs.web.sign_in import PERSON, SESSION, STILL_IN, address_of
from questbook.memory.timeline.namespaces import escape_label, read_label

_TEMPLATES = Path(__file__).parent / "templates"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f~/\\\ud800-\udfff]")
_SHORTENED = ("", ".", "..")
BEGUN, MOVED = "x-questbook-begun", "questbook-moved-to"  # headers: a page's campaign had begun; it is elsewhere now
Act = Callable[[Request, OpenCampaign, FormData], Awaitable[Response | None]]


@dataclass
class AppState:
    """What the endpoints share; `create_app` says what its options mean."""

    context: Context
    home: Home
    developer: bool = False
    root: str = ""
    crowd: bool = False  # whether several people may play, so that each message says whose it is
    log_in: bool = False
    quotas: Quotas | None = None  # None: nobody signs in
    audit: AuditLog | None = None

    def __post_init__(self) -> None:
        self.streams: list[Any] = []  # `play.EventStream`s that are open, the oldest first
        self.importing: Mapping[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # by person; of each one at a time
        self.pool = CampaignPool(self.context, self.home, self.quotas)
        files = DictLoader({path.name: path.read_text("utf-8") for path in _TEMPLATES.glob("*.html")})
        blocks: Any = {"trim_blocks": True, "lstrip_blocks": True}

        def shown(value: object) -> object:  # without control characters, and such as turn the direction of reading
            return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value

        self.templates = Environment(loader=files, autoescape=True, finalize=shown, **blocks)
        self.templates.filters |= {"markdown": to_html, "words": plain}
        self.templates.globals |= {"root": self.root, "developer": self.developer}

    async def problem(self) -> str:
        """Return in a word why no turn can be played here now: "draining", "home"; "" if turns can."""
        return "draining" if self.pool.drain.has_begun else await self.home.problem()

    def person(self, request: Request) -> str:
        """Return whose campaigns a request is about, unless it names another's."""
        return str(request.scope[PERSON]) if self.log_in else self.context.user

    async def admits(self, request: Request, new_name: str = "") -> bool:
        """Whether who asks may see, now, the campaign that a request names: a share may have ended since it began."""
        machine, owner, name = self.named(request)
        if STILL_IN in request.scope and not await request.scope[STILL_IN]():
            return False
        if owner == (person := self.person(request)):
            return True
        return machine == GAME and person in await guests_of(self.home, owner, new_name or name)

    def is_owner(self, request: Request) -> bool:
        """Whether the campaign is that of who asks, and not one that is shared with them."""
        return self.person(request) == self.named(request)[1]

    def named(self, request: Request) -> tuple[str, str, str]:
        """Return machine, owner and name of the campaign that a request names."""
        owner = read_label(request.path_params.get("owner", "")) or self.person(request)
        kind = str(request.scope["root_path"]).removeprefix(self.root).split("/")[3 if self.log_in else 1]
        return COMPANION if kind == "a" else GAME, owner, read_label(request.path_params["campaign"])

    def url(self, name: str, machine: str = GAME, owner: str = "") -> str:
        """Return the path of a campaign's page, or of a companion's."""
        of = f"/u/{label_of(owner)}" if self.log_in else ""
        return f"{self.root}{of}/{'c' if machine == GAME else 'a'}/{label_of(name)}"


def state_of(request: Request) -> AppState:
    """Return what the endpoints share."""
    state: AppState = request.app.state.page
    return state


async def campaign_of(request: Request, *, own: bool = False) -> OpenCampaign:
    """Return the campaign, or companion, that a request names; it stays open while the request lasts.

    An HTTPException refuses another person's; with `own`, also those with whom the owner shares it. It tells a page
    that was open when its campaign was renamed or removed, which begins no other under the old name.
    """
    state = state_of(request)
    machine, owner, name = key = state.named(request)
    if not await state.admits(request):
        if (new := state.pool.renamed.get(key)) and await state.admits(request, new):
            raise _gone(state, key)
        await note(request, "refused")
        raise HTTPException(404, "There is no such campaign, or nobody shares it with you.")
    if own and owner != state.person(request):
        await note(request, "refused")
        raise HTTPException(403, f"Only {owner!r:.60}, whose campaign it is, can do this.")
    campaign = await state.pool.get(request.scope, name, machine, owner)
    if campaign.is_new and (key in state.pool.renamed or BEGUN in request.headers) and not await campaign.has_begun():
        raise _gone(state, key)
    about(user=owner, campaign=campaign.game.context.campaign, thread_id=campaign.game.thread_id)
    return campaign


def _gone(state: AppState, key: Key) -> HTTPException:
    kind = "campaign" if key[0] == GAME else "companion"
    if new := state.pool.renamed.get(key):
        path, text = state.url(new, *key[:2]), Markup('This {} is called “{}” now. <a href="{}/">Go on there</a>.')
        return HTTPException(410, text.format(kind, clean(new), path), {MOVED: path})
    problem = f"This {kind} is not here any more: it was renamed or removed. Nothing was changed"
    return HTTPException(410, f"{problem}. Copy what you wrote, and go on in one of “Your campaigns”.")


def shows(path: str, show: Callable[[Request, OpenCampaign], Awaitable[Response]], *, own: bool = False) -> Route:
    """Return the route of what is shown of a campaign (`campaign_of`)."""

    async def endpoint(request: Request) -> Response:
        return await show(request, await campaign_of(request, own=own))

    return Route(path, endpoint)


_NO_LARGER = ("/undo", "/share", "/put-away", "/forget", "/retract", "/lore/remove")


def acts(path: str, act: Act, *, own: bool = False, also_get: bool = False) -> Route:
    """Return the route of what a form does with a campaign (`campaign_of`); where that returns nothing, 204 does.

    HEAD does nothing but open it: by that a proxy finds the process that holds it, before it sends a form on.
    """

    async def endpoint(request: Request) -> Response:
        campaign = await campaign_of(request, own=own)
        if request.method == "HEAD":
            return Response(status_code=204)
        if state_of(request).quotas and request.method == "POST" and path != "/stop":
            is_new = campaign.is_new and await campaign.game.saved_game() is None
            if is_new or path not in _NO_LARGER:
                await check_kept(request, is_new=is_new)
        return await act(request, campaign, await request.form()) or Response(status_code=204)

    return Route(path, endpoint, methods=["GET", "POST"] if also_get else ["HEAD", "POST"])


async def check_kept(request: Request, *, is_new: bool = False) -> None:
    """Refuse to let what a request's owner keeps become more, where people sign in and it is too much already."""
    state = state_of(request)
    if state.quotas:
        owner = state.named(request)[1] if "campaign" in request.path_params else state.person(request)
        await state.quotas.check_kept(owner, is_new=is_new)


def check_turn(request: Request) -> None:
    """Count a turn of who asks, or what takes as long; where people sign in, refuse one too many."""
    if quotas := state_of(request).quotas:
        quotas.check_turn(request.scope[PERSON])


async def note(request: Request, event: Event, **more: str | list[str]) -> None:
    """Write into the audit log, if there is one, what is about to be done with a request's campaign, or was refused."""
    state = state_of(request)
    if state.audit:
        machine, owner, name = state.named(request)
        of = {"owner": f"{owner:.200}", "campaign": f"{name:.200}", "machine": machine}
        await state.audit.write(event, str(request.scope[PERSON]), address_of(request), **of, **more)


def html(request: Request, name: str, values: Mapping[str, Any] | None = None, status: int = 200) -> HTMLResponse:
    """Render a template; `here` in it is the path of the campaign that the request names."""
    state, here = state_of(request), {"token": request.scope.get(CSRF, ""), "signed_in": SESSION in request.scope}
    if "campaign" in request.path_params:
        machine, owner, campaign = state.named(request)
        here["here"] = state.url(campaign, machine, owner)
    return HTMLResponse(state.templates.get_template(name).render(here | dict(values or {})), status)


def label_of(name: str) -> str:
    """Return a name as one part of a path, percent-encoded, that no browser shortens or splits."""
    return quote(escape_label(name) if name in _SHORTENED or _UNSAFE.search(name) else name, safe="")
