"""Who may send what: sign-in, headers of every answer, and a check of every change.

A page of another site can make a browser send a form here. So a change must come from a page of ours: browsers say so
in `Sec-Fetch-Site`, and every change has the page's token. Without sign-in only this computer is served, by names that
no other page can have (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import Mapping
from html import escape

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from questbook.graphs.web.upload_limit import LimitedBody, UploadLimitError

HEADER = "x-questbook-token"
PERSON = "questbook_person"
"""Key of the scope that holds the name of who signed in; "" without sign-in."""
STILL_IN = "questbook_still_in"
"""Key of the scope that holds a function: whether who signed in still is; none without sign-in."""
_COOKIE = "questbook_session"
_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PORT = re.compile(r":[0-9]*\Z")
_MOST_SESSIONS = 1_000
_WRONG_TOKEN_SECONDS = 0.5  # nobody tries tokens faster than this
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

_BELOW_THE_STORY = {"hx-retarget": "#problem", "hx-reswap": "innerHTML"}
"""For htmx: a message that was refused stays in its form."""


class Guard:
    """ASGI middleware: adds the headers, asks for sign-in, and refuses changes that do not come from a page of ours.

    Args:
        app: What it guards.
        token: The token that a page of ours sends with each change.
        people: As `create_app` takes them; empty: no sign-in, and only this computer's names are served.
        root: As there; with one, the other server checks the host.
        log_in: As there; a request for which the other server names nobody is refused.
    """

    def __init__(
        self, app: ASGIApp, token: str, people: Mapping[str, str], *, root: str = "", log_in: bool = False
    ) -> None:
        self._app, self._token, self._root, self._log_in = app, token, root, log_in
        self._people = {secret: name for name, secret in people.items()}
        self._sessions: dict[str, str] = {}
        self._wrong = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_static, began = scope["path"].startswith(f"{scope.get('root_path', '')}/static/"), False

        async def send_with_headers(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-cache" if is_static else "no-store")
                if message["status"] >= 400 and scope["path"].endswith("/say"):
                    headers |= _BELOW_THE_STORY
            await send(message)

        try:
            body = LimitedBody(scope, receive)
            refusal = await self._refusal(Request(scope, body.receive), is_static=is_static)
            await (refusal or self._app)(scope, body.receive, send_with_headers)
        except UploadLimitError as error:
            if began:
                raise
            answer = PlainTextResponse(str(error), error.status, {"connection": "close"})
            await answer(scope, receive, send_with_headers)

    async def _refusal(self, request: Request, *, is_static: bool) -> Response | None:
        changes = request.method not in ("GET", "HEAD")
        if not self._root and not self._people and _host_of(request) not in _LOCAL:
            return PlainTextResponse(f"This server is not called {_host_of(request)!r:.100}.", status_code=400)
        if problem := _foreign(request, changes=changes):
            return PlainTextResponse(problem, status_code=403)
        if is_static:
            return None
        request.scope[PERSON] = ""
        if self._log_in:
            user = request.scope.get("user")
            name = str(user.identity) if user is not None and user.is_authenticated else ""
            if not name:
                return PlainTextResponse(
                    "Nobody is logged in. This page is for those whom the server's log-in names.", status_code=401
                )
            request.scope[PERSON] = name
        elif self._people:
            if request.url.path == "/sign-in" and changes:
                return await self._sign_in(request)
            session = request.cookies.get(_COOKIE, "")
            if session not in self._sessions:
                return _ask_for_sign_in(401)
            request.scope[PERSON] = self._sessions[session]
            request.scope[STILL_IN] = lambda: session in self._sessions
        if changes and not hmac.compare_digest(request.headers.get(HEADER, "").encode(), self._token.encode()):
            return PlainTextResponse("The page is older than the server. Load it again.", status_code=403)
        return None

    async def _sign_in(self, request: Request) -> Response:
        said = str((await request.form()).get("token", "")).encode("utf-8", "surrogatepass")
        names = [name for secret, name in self._people.items() if hmac.compare_digest(said, secret.encode())]
        if not names:
            async with self._wrong:
                await asyncio.sleep(_WRONG_TOKEN_SECONDS)
            return _ask_for_sign_in(403, "This is nobody's token.")
        session = new_token()
        self._sessions[session] = names[0]
        if len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(_COOKIE, session, httponly=True, samesite="strict", secure=request.url.scheme == "https")
        return answer


def _host_of(request: Request) -> str:
    return _PORT.sub("", request.headers.get("host", "")).casefold()


def _foreign(request: Request, *, changes: bool) -> str:
    """Return why a request is refused that a page of another site made; "" if none did."""
    headers = request.headers
    if site := headers.get("sec-fetch-site"):
        is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        is_ours = site in ("same-origin", "none") or (is_link and not changes)
    else:
        origin = headers.get("origin")
        is_ours = not changes or origin is None or origin.partition("://")[2] == headers.get("host")
    if is_ours:
        return ""
    return "This was asked for by a page of another site." + (" Nothing was changed." if changes else "")


def new_token() -> str:
    """Make a token that nobody can guess."""
    return secrets.token_urlsafe(24)


def _ask_for_sign_in(status: int, problem: str = "") -> HTMLResponse:
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sign in · Questbook</title>'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/static/page.css"></head>'
        '<body><main class="shelf"><h1>Questbook</h1><form class="new" method="post" action="/sign-in">'
        '<label for="token">Your token</label><input id="token" name="token" type="password" required autofocus>'
        f'<button class="send">Sign in</button></form><p class="problem" role="alert"{"" if problem else " hidden"}>'
        f"{escape(problem)}</p></main></body></html>",
        status_code=status,
    )
