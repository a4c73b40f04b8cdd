"""Who may send what, and how much: headers of every answer, a check of every change, rates, upload limits.

A change must come from a page of ours: browsers say so in `Sec-Fetch-Site`, and it has the token of the page, which
holds for its session alone. Without sign-in only this computer is served, by names that no other page can have.
"""

import asyncio
import hmac
import re
import time
from urllib.parse import parse_qs

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from questbook.graphs.identity.sessions import sign
from questbook.graphs.web.limits import Limits, Rate
from questbook.graphs.web.sign_in import PERSON, SESSION, SignIn, address_of

_FORM = (1_000_000, 60.0)  # bytes of a request, and seconds that its parts may be waited for, all in all
_LIMITS = {"/sign-in": (10_000, 10.0), "/lore": (25_000_000, 600.0), "/import": (200_000_000, 600.0)}
"""Those of other requests than a form, by the end of their path; strangers send the first."""
_PAUSE_SECONDS = 20.0  # between two parts of a request
_CLOSE = {"connection": "close"}


class LimitedBody:
    """The body of a request, as it comes; an HTTPException says that it is too much (413), or takes too long (408)."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._put_back: Message | None = None
        limits = (limit for end, limit in _LIMITS.items() if scope["path"].endswith(end))
        self._most, self._left = next(limits, _FORM)
        self._size, self._is_whole = 0, False
        length = Headers(scope=scope).get("content-length", "")
        self._check(int(length) if length.isdecimal() and len(length) < 20 else 0)

    async def receive(self) -> Message:
        """Return the next part; after the last one, wait for the end of the connection."""
        if self._put_back is not None:
            message, self._put_back = self._put_back, None
            return message
        if self._is_whole:
            return await self._receive()
        began = time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), min(_PAUSE_SECONDS, max(self._left, 0)))
        except TimeoutError:
            raise HTTPException(408, "The request came too slowly. Nothing was changed.", _CLOSE) from None
        self._left -= time.monotonic() - began  # not since the request began: it may have waited for a place here
        self._is_whole = message["type"] != "http.request" or not message.get("more_body", False)
        self._size += len(message.get("body", b""))
        self._check(self._size)
        return message

    def put_back(self, body: bytes) -> None:
        """Let the whole body, which was read already, be received again."""
        self._put_back = {"type": "http.request", "body": body}

    def _check(self, size: int) -> None:
        if size > self._most:
            text = f"This request may have {self._most:,} bytes at most. Nothing was changed."
            raise HTTPException(413, f"{text} A larger campaign comes in with: questbook import FILE.zip.", _CLOSE)


HEADER = "x-questbook-token"
CSRF = "questbook_csrf"  # key of the scope that holds the token that a page sends with each change
_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PORT = re.compile(r":[0-9]*\Z")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

_TLS = {"strict-transport-security": "max-age=31536000; includeSubDomains"}
_BELOW_THE_STORY = {"hx-retarget": "#problem", "hx-reswap": "innerHTML"}
"""For htmx: a message that was refused stays in its form."""


class PageGuard:
    """ASGI middleware: adds the headers, asks for sign-in, and refuses changes that do not come from a page of ours.

    Args:
        app: What it guards.
        secret: What makes the tokens that pages of ours send with each change.
        sign_in: Says who asks; None: nobody signs in here, and only this computer's names are served.
        root, log_in: As in `create_app`: the other server checks the host, and names who asks, or they are refused.
        limits: How often people may ask; None: as often as they like.
    """

    def __init__(
        self, app: ASGIApp, secret: str, sign_in: SignIn | None = None, *,
        root: str = "", log_in: bool = False, limits: Limits | None = None,
    ) -> None:  # fmt: skip
        self._app, self._secret, self._sign_in, self._root, self._log_in = app, secret, sign_in, root, log_in
        self._of_person = limits and Rate(limits.requests)
        self._of_address = limits and Rate(limits.address_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_static, began = scope["path"].startswith(f"{scope.get('root_path', '')}/static/"), False

        async def send_with_headers(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                add_headers(MutableHeaders(scope=message), scope, message["status"], is_static=is_static)
            await send(message)

        try:
            _check_charset(Headers(scope=scope).get("content-type", ""))
            body = LimitedBody(scope, receive)
            refusal = await self._refusal(Request(scope, body.receive), body, is_static=is_static)
            await (refusal or self._app)(scope, body.receive, send_with_headers)
        except HTTPException as error:
            if began:
                raise
            await PlainTextResponse(error.detail, error.status_code, error.headers)(scope, receive, send_with_headers)

    async def _refusal(self, request: Request, body: LimitedBody, *, is_static: bool) -> Response | None:
        changes, scope = request.method not in ("GET", "HEAD"), request.scope
        host = _PORT.sub("", request.headers.get("host", "")).casefold()
        if not self._root and self._sign_in is None and host not in _LOCAL:
            return PlainTextResponse(f"This server is not called {host!r:.100}.", status_code=400)
        if problem := _foreign(request, changes=changes):
            return PlainTextResponse(problem, status_code=403)
        if self._sign_in and self._of_address:
            self._of_address.check(address_of(request))
        if is_static:
            return None
        scope[PERSON] = ""
        if self._log_in:
            user = scope.get("user")
            scope[PERSON] = str(user.identity) if user is not None and user.is_authenticated else ""
            if not scope[PERSON]:
                return PlainTextResponse("Nobody is logged in. The page is for whom the server's log-in names.", 401)
        elif self._sign_in:
            if request.url.path == "/sign-in" and changes:
                return await self._sign_in.begin(request)
            if refusal := await self._sign_in.refusal(request):
                return refusal
        if scope[PERSON] and self._of_person:
            self._of_person.check(scope[PERSON])
        scope[CSRF] = page_token(self._secret, scope.get(SESSION) or scope[PERSON])
        is_sign_out = self._sign_in is not None and request.url.path == "/sign-out" and changes
        token = request.headers.get(HEADER, "")
        if changes and not token and (is_sign_out or request.url.path.endswith("/say")):  # without the page's script
            form = await request.body()
            body.put_back(form)
            token = parse_qs(form.decode("utf-8", "replace")).get("token", [""])[0]
        if changes and not hmac.compare_digest(token.encode(), scope[CSRF].encode()):
            return PlainTextResponse("The page is older than the server. Load it again.", status_code=403)
        return await self._sign_in.end(request) if self._sign_in and is_sign_out else None


def add_headers(headers: MutableHeaders, scope: Scope, status: int, *, is_static: bool = False) -> None:
    """Add what every answer says to browsers, unless it says something else already."""
    for name, value in (_HEADERS | (_TLS if scope.get("scheme") == "https" else {})).items():
        headers.setdefault(name, value)
    headers.setdefault("cache-control", "no-cache" if is_static else "no-store")
    headers |= _BELOW_THE_STORY if status >= 400 and scope["path"].endswith("/say") else {}


def page_token(secret: str, holder: str) -> str:
    """Return what a page sends with each change: another one for each session, or for each person without one."""
    return sign(secret, "page", holder)


def _check_charset(content_type: str) -> None:
    """Refuse a form in another encoding than UTF-8: some, such as punycode, take hours to read a megabyte."""
    if len(content_type) > 1000:  # even to read it takes long
        raise HTTPException(400, "The header Content-Type has 1,000 characters at most.", _CLOSE)
    kind, options = parse_options_header(content_type)
    if kind.startswith(b"multipart/") and options.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8"):
        raise HTTPException(400, "Forms are read in UTF-8 alone. Nothing was changed; send it so.", _CLOSE)


def _foreign(request: Request, *, changes: bool) -> str:
    """Return why a request is refused that a page of another site made; "" if none did."""
    headers = request.headers
    if site := headers.get("sec-fetch-site"):
        is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        is_own = site in ("same-origin", "none") or (is_link and not changes)
    else:
        origin = headers.get("origin")
        is_own = not changes or origin is None or origin.partition("://")[2] == headers.get("host")
    return (
        "" if is_own else f"This was asked for by a page of another site.{' Nothing was changed.' if changes else ''}"
    )
