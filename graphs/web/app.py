"""The page's app: its routes together, what guards them, and what is closed at the end."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import QuestbookError
from questbook.graphs.forgetting.suppression import SuppressionList
from questbook.graphs.identity.identity import TokenCheck
from questbook.graphs.identity.sessions import Sessions
from questbook.graphs.local.home import CampaignBusyError, Home, HomeError
from questbook.graphs.local.homes import find_home
from questbook.graphs.monitoring.endpoints import Endpoints
from questbook.graphs.web import campaigns, edits, memories, play, views
from questbook.graphs.web.app_state import AppState, html, state_of
from questbook.graphs.web.audit import AuditLog
from questbook.graphs.web.guard import PageGuard, add_headers
from questbook.graphs.web.limits import Limits, Quotas
from questbook.graphs.web.sign_in import People, SignIn
from questbook.memory.errors import StoreError
from questbook.notebooks import NotebookError, PatchError
from questbook.notebooks.schema import shorten

_log = logging.getLogger(__name__)
_STATIC = Path(__file__).parent / "static"
OF_A_CAMPAIGN = [*play.ROUTES, *views.ROUTES, *edits.ROUTES, *memories.ROUTES, *campaigns.OF_ONE]  # below its path


def create_app(
    context: Context,
    home: Home | None = None,
    *,
    people: Mapping[str, str] | None = None,
    tokens: TokenCheck | None = None,
    developer: bool = False,
    root: str = "",
    log_in: bool = False,
) -> Starlette:
    """Make the page's app.

    Args:
        context: The settings; its user owns the campaigns.
        home: Where games are kept; None: `find_home()`.
        people: Who may sign in: a token by name. They share all campaigns. None: nobody.
        tokens: Says whose a token is. Each person then has campaigns of their own, and those that others share with
            them; so instead of `people`. Without both there is no sign-in.
        developer: Whether the view of what the model saw, secrets included, is there.
        root: Path below which another server mounts the app, such as "/play"; "": it is served by itself.
        log_in: Whether the other server's log-in says whose each request is, as tokens do.
    """
    home = home or find_home()
    secret, check = home.secret("page-token"), tokens or (People(people) if people else None)
    if (listed := SuppressionList.find()) and (unreadable := listed.check()):
        _log.warning("The list of what was forgotten: line %d cannot be read (of %d)", unreadable[0], len(unreadable))
    limits, audit, sign_in = None, None, None
    if check or log_in:
        limits, audit = Limits.from_environment(), AuditLog.from_environment(home.path)
    if check and limits and audit:
        idle, most = limits.idle_minutes * 60.0, limits.session_hours * 3600.0
        sign_in = SignIn(check, Sessions(home.sessions(), secret, idle=idle, most=most), audit, limits)
    own, crowd, quotas = log_in or tokens is not None, len(people or ()) > 1, Quotas(home, limits) if limits else None
    state = AppState(context, home, developer, root, crowd, log_in=own, quotas=quotas, audit=audit)
    owner = "/u/{owner}" if own else ""
    mounts = [Mount(f"{owner}/{kind}/{{campaign}}", routes=OF_A_CAMPAIGN) for kind in ("c", "a")]
    static = Mount("/static", StaticFiles(directory=_STATIC), name="static")
    routes = [*campaigns.ROUTES, *mounts, Route("/favicon.ico", RedirectResponse(f"{root}/static/icon.svg")), static]
    guard = Middleware(PageGuard, secret=secret, sign_in=sign_in, root=root, log_in=log_in, limits=limits)
    refusals: dict[Any, Any] = dict.fromkeys((QuestbookError, StoreError, NotebookError), _refuse)
    handlers = refusals | {Exception: _fail, HTTPException: _miss}
    told = Middleware(ExceptionMiddleware, handlers=refusals)  # what the guard meets, such as sessions that are away
    probes = [] if root else [Middleware(Endpoints, problem=state.problem)]  # the other server has its own
    checks = [*probes, told, guard, Middleware(state.pool.drain.refuse_changes), Middleware(state.pool.keep_open)]
    app = Starlette(routes=routes, middleware=checks, exception_handlers=handlers, lifespan=_lifespan)
    app.state.page = state
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    async with app.state.page.home.keep_open():
        try:
            yield
        finally:
            app.state.page.pool.drain.end()
            await app.state.page.pool.close()


_AWAY = "The games cannot be reached at the moment. Nothing was changed; try again in a moment."


async def _refuse(request: Request, error: Exception) -> Response:
    problems = error.problems if isinstance(error, PatchError) else [str(error)]
    is_away = isinstance(error, HomeError)
    hides = is_away and state_of(request).log_in  # where it is, only the log says to others
    answer = _problem(request, _AWAY if hides else " ".join(shorten(problems)), 503 if is_away else 409)
    add_headers(answer.headers, request.scope, answer.status_code)  # that of the guard does not come by it
    if isinstance(error, CampaignBusyError) and error.holder:
        answer.headers["questbook-held-by"] = error.holder  # for a proxy
    if isinstance(error, HomeError | StoreError):  # who runs the server should see this, too
        _log.warning("%s %s: %s", request.method, request.url.path, error, extra={"kind": type(error).__name__})
    return answer


async def _miss(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (it handles no other)
    is_bare = error.detail == HTTPStatus.NOT_FOUND.phrase
    answer = _problem(request, "There is nothing at this address." if is_bare else error.detail, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def _fail(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    answer = _problem(request, "That failed; the server's log says why. What was played is kept.", 500)
    add_headers(answer.headers, request.scope, answer.status_code)  # this answer does not come by the guard
    return answer


def _problem(request: Request, text: str, status: int) -> Response:
    """Say what went wrong: in its place on a page that htmx keeps, on a page of its own where the browser went."""
    return html(request, "problem.html" if "hx-request" in request.headers else "lost.html", {"text": text}, status)
