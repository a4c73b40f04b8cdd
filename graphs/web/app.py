"""The page's app: its routes together, what guards them, and what is closed at the end."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import QuestbookError
from questbook.graphs.local.home import Home, HomeError
from questbook.graphs.monitoring.endpoints import Endpoints
from questbook.graphs.web import campaigns, edits, memories, play, views
from questbook.graphs.web.app_state import AppState, html, state_of
from questbook.graphs.web.guard import PageGuard, new_token
from questbook.memory.errors import StoreError
from questbook.notebooks import NotebookError, PatchError
from questbook.notebooks.schema import shorten

_log = logging.getLogger(__name__)
_STATIC = Path(__file__).parent / "static"
OF_A_CAMPAIGN = [*play.ROUTES, *views.ROUTES, *edits.ROUTES, *memories.ROUTES, *campaigns.OF_ONE]


def create_app(
    context: Context,
    home: Home | None = None,
    *,
    people: Mapping[str, str] | None = None,
    developer: bool = False,
    root: str = "",
    log_in: bool = False,
) -> Starlette:
    """Make the page's app.

    Args:
        context: The settings; its user owns the campaigns.
        home: The data directory; None: `Home.find()`.
        people: Who may sign in: a token by name. They share all campaigns. None: no sign-in.
        developer: Whether the view of what the model saw, secrets included, is there.
        root: Path below which another server mounts the app, such as "/play"; "": it is served by itself.
        log_in: Whether the other server's log-in says whose each request is. Each person then has campaigns of their
            own, and those that others share with them.
    """
    home = home or Home.find()
    token, people = _token_of(home), people or {}
    state = AppState(context, home, token, developer=developer, root=root, crowd=len(people) > 1, log_in=log_in)
    owner = "/u/{owner}" if log_in else ""
    mounts = [Mount(f"{owner}/{kind}/{{campaign}}", routes=OF_A_CAMPAIGN) for kind in ("c", "a")]
    static = Mount("/static", StaticFiles(directory=_STATIC), name="static")
    routes = [*campaigns.ROUTES, *mounts, Route("/favicon.ico", _icon), static]
    guard = Middleware(PageGuard, token=token, people=people, root=root, log_in=log_in)
    handlers: dict[Any, Any] = dict.fromkeys((QuestbookError, StoreError, NotebookError), _refuse)
    handlers |= {Exception: _fail, HTTPException: _miss}
    checks = [guard, Middleware(state.pool.drain.refuse_changes), Middleware(state.pool.keep_open)]
    if not root:  # the other server has its own
        checks.insert(0, Middleware(Endpoints, problem=state.problem))
    app = Starlette(routes=routes, middleware=checks, exception_handlers=handlers, lifespan=_lifespan)
    app.state.page = state
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await app.state.page.pool.close()


async def _icon(request: Request) -> Response:
    return RedirectResponse(f"{state_of(request).root}/static/icon.svg")


async def _refuse(request: Request, error: Exception) -> Response:
    problems = error.problems if isinstance(error, PatchError) else [str(error)]
    return _problem(request, " ".join(shorten(problems)), 409)


async def _miss(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (it handles no other)
    is_bare = error.detail == HTTPStatus.NOT_FOUND.phrase
    answer = _problem(request, "There is nothing at this address." if is_bare else error.detail, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def _fail(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _problem(request, "That failed; the server's log says why. What was played is kept.", 500)


def _problem(request: Request, text: str, status: int) -> Response:
    """Say what went wrong: in its place on a page that htmx keeps, on a page of its own where the browser went."""
    return html(request, "problem.html" if "hx-request" in request.headers else "lost.html", {"text": text}, status)


def _token_of(home: Home) -> str:
    """Return the token that pages of this data directory send: the same after a restart, so that they stay good.

    Raises:
        HomeError: It cannot be read or written.
    """
    path = home.path / "page-token"
    try:
        if not path.exists() or path.stat().st_size < len(new_token()):  # a process was killed before it wrote it
            path.unlink(missing_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(new_token())
        return path.read_text("ascii")
    except (OSError, ValueError) as error:
        raise HomeError(f"Cannot use {path}: {error}. Remove it, or correct its permissions.") from error
