"""LangGraph Server and Studio: `langgraph.json` names what is here, so that they use the terminal's own databases.

The server loads this file again under other module names, so it must hold no class and no state. It has no log-in: who
reaches it reads and deletes what was remembered. `app` lets in programs on this computer, and pages of the origins in
`http.cors` of `langgraph.json`; other pages that a browser shows here are refused. Nor does it let a graph run on
another graph's thread. Runs that name no user are those of the terminal's user, unless there is a log-in or the server
has further names.
"""

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from langgraph.store.base import BaseStore
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import HomeCheckpointer
from questbook.graphs.monitoring.endpoints import Endpoints
from questbook.graphs.monitoring.logs import start_logging
from questbook.graphs.settings import ONLY_USER, USER_VARIABLE
from questbook.graphs.turn import api_server

__all__ = ["app", "open_checkpointer", "open_store"]

_log = logging.getLogger(__name__)
_MOST_READ = 1_000_000  # bytes of a run that is looked through
VARIABLE = "QUESTBOOK_TRUSTED_HOSTS"
"""Further names of this server, separated by commas: "games.example.org, *.trycloudflare.com"; "*" for any."""

_LOCAL = ["localhost", "127.0.0.1", "[::1]"]
_LONGEST_NAME, _MOST_NAMES = 40, 50  # of keys of `configurable` that are compared with settings
_ID = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
"""An assistant's id; what is none is a graph's name."""
_RUNS = re.compile(r"(?:POST(?:/threads/([^/]+))?/(commands|runs(?:/\w+)?)|PATCH/threads/([^/]+)())/?")
"""What begins runs, or names a thread's graph. `/a2a` and `/mcp` do it by the same paths, which the server asks for."""


def refuse_strangers(server: ASGIApp) -> ASGIApp:
    """Answer requests to a host name that is not ours with 400, and those of pages of other origins with 403.

    The host is checked because a page's own name may be made to lead here (DNS rebinding); the origin, because CORS
    only keeps a page from reading the answer to a simple request, which has been carried out by then.
    """
    more = [host.strip() for host in os.environ.get(VARIABLE, "").split(",") if host.strip()]
    if not more and not api_server.has_log_in() and not os.environ.get(USER_VARIABLE):
        os.environ[USER_VARIABLE] = ONLY_USER  # nobody else can come
        _log.info("Nobody logs in: this server is for one person, %s, on this computer alone.", ONLY_USER)
    cors = api_server.read_settings("cors")
    origins, pattern = cors.get("allow_origins") or [], re.compile(cors.get("allow_origin_regex") or "(?!)")

    async def check_origin(scope: Scope, receive: Receive, send: Send) -> None:
        headers: Any = HTTPConnection(scope).headers if scope["type"] in ("http", "websocket") else {}
        origin, host = headers.get("origin", ""), headers.get("host", "")
        own = origin.partition("://")[2] == host
        if not origin or own or "*" in origins or origin in origins or pattern.fullmatch(origin):
            await server(scope, receive, send)
        else:
            text = f"Pages of {origin:.200} may not use this server. Add the origin to http.cors in langgraph.json."
            await PlainTextResponse(text, status_code=403)(scope, receive, send)

    trusted = TrustedHostMiddleware(check_origin, allowed_hosts=[*_LOCAL, *more], www_redirect=False)

    # With it `langgraph dev` lets whoever logged in delete everybody's threads.
    internal = PlainTextResponse("There is nothing here for those who log in.", status_code=403)

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        is_own = scope.get("root_path") == api_server.OWN_CALLS
        is_internal = str(scope.get("path", "")).startswith("/internal/") and api_server.has_log_in()
        await (server if is_own else internal if is_internal else trusted)(scope, receive, send)

    return check


def client_as(scope: Scope, server: ASGIApp) -> Any:
    """Return a client that asks a server, without a socket, as who sent a request: others learn nothing by it."""
    httpx, sdk = import_module("httpx"), import_module("langgraph_sdk.client")

    async def ask(asked: Scope, receive: Receive, send: Send) -> None:
        names = ("method", "path", "raw_path", "query_string", "headers")
        await server({**scope, **{name: asked[name] for name in names}}, receive, send)

    headers = [each for each in scope["headers"] if not each[0].startswith((b"accept", b"content-", b"host", b"trans"))]
    web = httpx.AsyncClient(transport=httpx.ASGITransport(ask), base_url="http://server", headers=headers)
    return sdk.LangGraphClient(web)


def check_runs(server: ASGIApp, client_of: Callable[[Scope, ASGIApp], Any] = client_as) -> ASGIApp:
    """Answer a run of a graph on another's thread, or giving it the thread, with 409, unknown context keys with 422.

    The graph itself would refuse both (`questbook.graphs.turn.channels.Own`, `Settings`). But the server has by then
    noted that the thread belongs to the new graph, and would show and edit the thread as one of that graph's; and it
    drops keys that it does not know without a word; in `configurable`, which others use too, only what is nearly a
    setting's name is refused. `client_of` makes a client of the server for who sends a request. What is larger than a
    megabyte goes on unread: nobody has logged in yet, and only the graph refuses it.
    """

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        if scope["type"] == "websocket" and path.endswith("/stream/events"):  # takes commands, which begin runs
            text = f"No socket is opened here. Begin runs by POST {path.removesuffix('stream/events')}runs or commands."
            await PlainTextResponse(text, status_code=403)(scope, receive, send)
            return
        runs = _RUNS.fullmatch(scope["method"] + path) if scope["type"] == "http" else None
        if runs is None:
            await server(scope, receive, send)
            return
        body, more = bytearray(), True
        while more and len(body) <= _MOST_READ:
            if (message := await receive())["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        first = iter([{"type": "http.request", "body": bytes(body), "more_body": more}])

        async def read_again() -> Message:
            return next(first, None) or await receive()

        status, problem = 0, ""
        if len(body) <= _MOST_READ:
            status, problem = await _problem_of(client_of(scope, server), body, runs[1] or runs[3], runs[2])
        if status:
            await JSONResponse({"detail": problem}, status_code=status)(scope, read_again, send)
        else:
            await server(scope, read_again, send)

    return check


async def _problem_of(client: Any, body: bytearray, thread: str | None, kind: str) -> tuple[int, str]:
    """Return the status and sentence with which runs are refused; 0 and "" if they are not, or the server says why."""
    errors = import_module("langgraph_sdk.errors")
    try:
        said = json.loads(body)
        for run in said if isinstance(said, list) else [said["params"] if kind == "commands" else said]:
            assistant = str(run["assistant_id"] if kind else run["metadata"]["graph_id"])
            owner = (await client.threads.get(thread))["metadata"].get("graph_id", "") if thread else ""
            is_id = owner != assistant and _ID.fullmatch(assistant)
            graph = (await client.assistants.get(assistant))["graph_id"] if is_id else assistant
            if thread and not owner and kind == "runs/crons":  # whose the thread is when it is time is not known
                return 409, f"This thread belongs to no graph yet. Run {graph} on it, then set the schedule."
            if owner and owner != graph:
                return 409, f"This thread belongs to {owner}, and {graph} cannot run on it. Begin a new thread."
            given, others = run.get("context") or {}, (run.get("config") or {}).get("configurable") or {}
            if given or others:
                [first] = await client.assistants.search(graph_id=graph, limit=1)  # schemas are got by its id alone
                schemas = await client.assistants.get_schemas(first["assistant_id"])
                settings = (schemas["context_schema"] or {}).get("properties") or {}
                few = [name for name in others if len(name) <= _LONGEST_NAME and "seed" in settings][:_MOST_NAMES]
                near = [name for name in few if get_close_matches(name, settings, 1, 0.85)]
                unknown = [name for name in (*given, *near) if name not in settings]
                if settings and unknown:
                    return 422, f"There is no setting {unknown[0]!r} of {graph}. Settings: {', '.join(settings)}."
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, errors.APIError):
        pass  # the server answers what is wrong with the request
    return 0, ""


@asynccontextmanager
async def open_checkpointer() -> AsyncIterator[HomeCheckpointer]:
    """Open the terminal's checkpoints; with a log-in, threads say who began them, and others' are refused."""
    async with (await asyncio.to_thread(find_home)).open_checkpointer() as checkpointer:
        checkpointer.log_in = api_server.who_logged_in if api_server.has_log_in() else None
        yield checkpointer


def open_store() -> AbstractAsyncContextManager[BaseStore]:
    """Open the semantic store as `index` and `ttl` of `store` in `langgraph.json` say, else as the terminal does."""
    settings = api_server.read_settings("store")
    return find_home().open_store(index=settings.get("index"), ttl=settings.get("ttl"))


async def play_page(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve the page of `questbook web` below /play, on the same data; it is made when it is first asked for.

    With a log-in, each request is its user's: `http.enable_custom_route_auth` in langgraph.json lets LangGraph's Auth
    name them. Without, it is the terminal's user, and nobody where others may come and no user is named.
    """
    page: ASGIApp
    if (log_in := api_server.has_log_in()) and "user" not in scope:
        problem = 'This server has a log-in: add "enable_custom_route_auth": true to http in langgraph.json.'
        page = PlainTextResponse(problem, status_code=403)
    elif not log_in and not os.environ.get(USER_VARIABLE):
        problem = f"Nobody says who plays: set {USER_VARIABLE}, or give the server a log-in (LangGraph's Auth)."
        page = PlainTextResponse(problem, status_code=403)
    else:
        try:
            async with app.state.making:
                app.state.page = app.state.page or await asyncio.to_thread(_make_page, log_in=log_in)
            page = app.state.page
        except ImportError as error:
            page = PlainTextResponse(f"The page needs {error.name}: pip install 'questbook[web]'.", status_code=501)
    await page(scope, receive, send)


def _make_page(*, log_in: bool) -> ASGIApp:
    context = import_module("questbook.graphs.dungeon_master.context").Context
    settings = context.of(None, user=os.environ.get(USER_VARIABLE) or ONLY_USER)
    page: ASGIApp = import_module("questbook.graphs.web.app").create_app(settings, root="/play", log_in=log_in)
    return page


@asynccontextmanager
async def attend(_: Starlette) -> AsyncIterator[None]:
    """Log and count what the server does, and close the campaigns of the page when it ends."""
    start_logging("questbook")
    with suppress(ImportError):  # without the extra `ops` nothing is counted; /play/metrics says so
        import_module("questbook.graphs.monitoring.turns").watch_turns()
    yield
    if app.state.page is not None:
        await app.state.page.state.page.pool.close()


async def _problem_of_home() -> str:
    return await (await asyncio.to_thread(find_home)).problem()


# Health comes first: who asks for it may know the server by another name.
_HEALTH = Middleware(Endpoints, problem=_problem_of_home, root="/play")
_CHECKS = [_HEALTH, Middleware(refuse_strangers), Middleware(check_runs)]
app = Starlette(routes=[Mount("/play", app=play_page)], middleware=_CHECKS, lifespan=attend)
app.state.page, app.state.making = None, asyncio.Lock()
