"""Who may send what: headers of every answer, and a check of every change.

A page of another site can make a browser send a form here. So a change must come from a page of ours: browsers say so
in `Sec-Fetch-Site`, and all that do not must send the page's token.
"""

from __future__ import annotations

import hmac
import secrets

from starlette.datastructures import MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "questbook_session"
HEADER = "x-questbook-token"
LOCAL = ["localhost", "127.0.0.1", "[::1]"]
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
    """ASGI middleware: adds the headers, and refuses changes that do not come from a page of ours.

    Args:
        app: What it guards.
        token: The token that a page of ours sends with each change.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = TrustedHostMiddleware(app, allowed_hosts=LOCAL, www_redirect=False), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if problem := self._problem(request):
            await PlainTextResponse(problem, status_code=403)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _problem(self, request: Request) -> str:
        if request.method in ("GET", "HEAD"):
            return ""
        if int(request.headers.get("content-length") or 0) > _MOST_BYTES:
            return f"A request may have {_MOST_BYTES:,} bytes at most."
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "This change was asked for by a page of another site."
        if not hmac.compare_digest(request.headers.get(HEADER, ""), self._token):
            return "The page is older than the server. Load it again."
        return ""


def new_token() -> str:
    """Make a token that nobody can guess."""
    return secrets.token_urlsafe(24)
