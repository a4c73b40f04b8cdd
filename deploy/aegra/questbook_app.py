"""Questbook on Aegra: what `aegra.json` beside this file names. Read "On Aegra" in docs/deploy.md first.

Aegra 0.11 names graphs by their files, wants a FastAPI app, and knows embedders of LangChain's providers alone. So this
file names the graphs, and puts Questbook's checkpoints and memories, with its own embedder, in the place of Aegra's.
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any

from aegra_api.api import store as store_api
from aegra_api.core.auth_ctx import get_auth_ctx
from aegra_api.core.database import db_manager
from fastapi import FastAPI, HTTPException
from starlette.middleware import Middleware

from questbook.graphs.local.homes import find_home
from questbook.graphs.monitoring.logs import start_logging
from questbook.graphs.monitoring.turns import watch_turns
from questbook.graphs.reflect.background import process_queue
from questbook.graphs.server import check_runs
from questbook.memory.timeline.namespaces import escape_label

DRAIN_SECONDS = float(os.environ.get("QUESTBOOK_DRAIN_SECONDS", "30"))

_request: ContextVar[dict[str, Any] | None] = ContextVar("request", default=None)
_home = AsyncExitStack()
_open_aegras, _close_aegras = db_manager.initialize, db_manager.close


async def _open() -> None:
    """Open Questbook's checkpoints and memories as soon as Aegra has opened its own, and use them instead."""
    await _open_aegras()
    home = find_home()
    checkpointer = await _home.enter_async_context(home.open_checkpointer())
    checkpointer.log_in = _who_logged_in
    store = await _home.enter_async_context(home.open_store())
    await _home.enter_async_context(process_queue(DRAIN_SECONDS))
    db_manager._checkpointer, db_manager._store = checkpointer, store


async def _close() -> None:
    """Close them when Aegra's runs have ended."""
    await _home.aclose()
    await _close_aegras()


def _who_logged_in() -> str | None:
    """Return who sends a request, or whose run a worker does; "" without a name; None where Aegra itself works."""
    if (request := _request.get()) is not None:
        return getattr(request.get("user"), "identity", "")
    run = get_auth_ctx()
    return run.user.identity if run and run.user else None


def _own_namespace(namespace: list[str], user: Any, **_: Any) -> list[str]:
    """Return a namespace of the user's own memories. Aegra would look below "users", where none are."""
    if namespace[:1] != [own := escape_label(user.identity)]:
        raise HTTPException(403, f"These are the memories of another user. Your memories are below {own!r}.")
    return namespace


def _remember_request(server: Any) -> Any:
    async def remember(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            _request.set(scope)  # Aegra adds the user to it
        await server(scope, receive, send)

    return remember


@asynccontextmanager
async def _attend(_: FastAPI) -> AsyncIterator[None]:
    start_logging("questbook")
    watch_turns()
    yield


db_manager.initialize, db_manager.close = _open, _close
store_api.apply_namespace_scoping = _own_namespace
_CHECKS = [Middleware(_remember_request), Middleware(check_runs)]
app = FastAPI(title="Questbook on Aegra", lifespan=_attend, middleware=_CHECKS)
