"""Who may send what: sign-in, headers of every answer, and a check of every change.

A page of another site can make a browser send a form here. So a change must come from a page of ours: browsers say so
in `Sec-Fetch-Site`, and every change has the page's token. Without sign-in only this computer is served, by names that
no other page can have (DNS rebinding).
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from html import escape

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "x-questbook-token"
PERSON = "questbook_person"
"""Key of the scope that holds the name of who signed in; "" without sign-in."""
_COOKIE = "questbook_session"
_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
_MOST_BYTES = 25_000_000  # of a request
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """ASGI middleware: adds the headers, asks for sign-in, and refuses changes that do not come from a page of ours.

    Args:
        app: What it guards.
        token: The token that a page of ours sends with each change.
        people: Sign-in token of each person, by name; empty: no sign-in, and only this computer's names are served.
        hosts: Whether the host is checked; False: another layer does it.
    """

    def __init__(self, app: ASGIApp, token: str, people: Mapping[str, str], *, hosts: bool = True) -> None:
        self._app, self._token, self._hosts = app, token, hosts
        self._people = {secret: name for name, secret in people.items()}
        self._sessions: dict[str, str] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope, receive)
        refusal = await self._refusal(request)
        await (refusal or self._app)(scope, receive, send_with_headers)

    async def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        if self._hosts and not self._people and host not in _LOCAL:
            return PlainTextResponse(f"This server is not called {host!r:.100}.", status_code=400)
        if int(request.headers.get("content-length") or 0) > _MOST_BYTES:
            return PlainTextResponse(f"A request may have {_MOST_BYTES:,} bytes at most.", status_code=413)
        changes = request.method not in ("GET", "HEAD")
        if changes and request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("This change was asked for by a page of another site.", status_code=403)
        if request.url.path.startswith("/static/"):
            return None
        request.scope[PERSON] = ""
        if self._people:
            if request.url.path == "/sign-in" and changes:
                return await self._sign_in(request)
            name = self._sessions.get(request.cookies.get(_COOKIE, ""))
            if name is None:
                return _ask_for_sign_in(401)
            request.scope[PERSON] = name
        if changes and not hmac.compare_digest(request.headers.get(HEADER, "").encode(), self._token.encode()):
            return PlainTextResponse("The page is older than the server. Load it again.", status_code=403)
        return None

    async def _sign_in(self, request: Request) -> Response:
        said = str((await request.form()).get("token", "")).encode()
        name = next((name for secret, name in self._people.items() if hmac.compare_digest(said, secret.encode())), None)
        if name is None:
            return _ask_for_sign_in(403, "This is nobody's token.")
        session = new_token()
        self._sessions[session] = name
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(_COOKIE, session, httponly=True, samesite="strict", secure=request.url.scheme == "https")
        return answer


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
