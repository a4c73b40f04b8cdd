"""/health, /ready and /metrics of a server, in front of its sign-in and of the check of its host's name.

/health answers while the process does. /ready answers 503 while it drains, and where its home cannot be read. They say
nothing else, so anybody may ask. /metrics is for programs on this computer that ask for it under a name of this
computer, so not through a proxy; with QUESTBOOK_METRICS_TOKEN, only for who brings that token.
"""

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

VARIABLE = "QUESTBOOK_METRICS_TOKEN"
_LOCAL = frozenset({"127.0.0.1", "::1"})
_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_OF_PROXIES = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
_NOBODY = "Metrics are for programs on this computer; for others, set QUESTBOOK_METRICS_TOKEN and send it as a bearer."
_SECONDS = 3.0  # in which the home must answer


class Endpoints:
    """ASGI middleware in front of `app` that answers the three paths below `root` ("": at the top).

    `problem` returns why no turn can be played here, such as "draining"; "" if turns can.
    """

    def __init__(self, app: ASGIApp, problem: Callable[[], Awaitable[str]], root: str = "") -> None:
        self._app, self._problem = app, problem
        self._answers = {f"{root}/health": _health, f"{root}/ready": self._ready, f"{root}/metrics": _metrics}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        answer = self._answers.get(scope["path"]) if scope["type"] == "http" else None
        response = await answer(scope) if answer else self._app
        if isinstance(response, Response):
            response.headers.update({"cache-control": "no-store", "x-content-type-options": "nosniff"})
        await response(scope, receive, send)

    async def _ready(self, _: Scope) -> Response:
        try:
            async with asyncio.timeout(_SECONDS):
                problem = await self._problem()
        except TimeoutError:
            problem = "slow"
        return PlainTextResponse(problem or "ready", 503 if problem else 200)


async def _health(_: Scope) -> Response:
    return PlainTextResponse("ok")


async def _metrics(scope: Scope) -> Response:
    if not _may_read(scope):
        return PlainTextResponse(_NOBODY, 403)
    try:
        from questbook.graphs.monitoring.metrics import render
    except ImportError as error:
        return PlainTextResponse(f"Metrics need {error.name}: pip install 'questbook[ops]'.", 501)
    return Response(await asyncio.to_thread(render), media_type="text/plain; version=0.0.4; charset=utf-8")


def _may_read(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    if token := os.environ.get(VARIABLE, ""):
        return hmac.compare_digest(headers.get("authorization", "").encode(), f"Bearer {token}".encode())
    host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
    passed_on = any(name in headers for name in _OF_PROXIES)
    return (scope.get("client") or ("",))[0] in _LOCAL and host in _LOCAL_NAMES and not passed_on
