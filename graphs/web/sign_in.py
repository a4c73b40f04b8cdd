"""`SignIn`: who asks for a page: by the bearer token of the request, or by a session that a token began."""

import hashlib
import hmac
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Template
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from questbook.graphs.errors import IdentityError
from questbook.graphs.identity.identity import Identity, TokenCheck, bearer_of
from questbook.graphs.identity.sessions import Sessions
from questbook.graphs.web.audit import AuditLog
from questbook.graphs.web.limits import Limits, Rate, network_of

PERSON = "questbook_person"  # key of the scope that holds the name of who asks; "" where nobody signs in
SESSION = "questbook_session"  # key of the scope that holds the key of the session; none without one
STILL_IN = "questbook_still_in"
"""Key of the scope that holds an async function: whether who signed in still is; none without a session."""
REFRESH = "x-questbook-refresh"  # header of what a page asks by itself, because others play
_ASKED_SECONDS = 1.0  # how often a page that listens asks this
_BEARER = {"www-authenticate": "Bearer"}
_FORM = Template((Path(__file__).parent / "templates" / "sign-in.html").read_text("utf-8"), autoescape=True)


class People:
    """A few people with a token each; `people` has the tokens by name."""

    def __init__(self, people: Mapping[str, str]) -> None:
        self._people = people
        self._names = {self._issuer_of(token): name for name, token in people.items()}

    async def identify_token(self, token: str) -> Identity:  # noqa: D102
        said = token.encode("utf-8", "surrogatepass")
        names = [name for name, secret in self._people.items() if hmac.compare_digest(said, secret.encode())]
        if not names:
            raise IdentityError("This is nobody's token.")
        return Identity(names[0], self._issuer_of(self._people[names[0]]), names[0])

    def vouches(self, person: str, issuer: str) -> bool:
        """Whether the person is still among them, with the same token."""
        return self._names.get(issuer) == person

    def _issuer_of(self, token: str) -> str:
        return f"token {hashlib.sha256(token.encode()).hexdigest()}"


class SignIn:
    """Sign-in, sign-out, and who asks: `check` says whose a token is, `audit` is told, `limits` say how often."""

    def __init__(self, check: TokenCheck, sessions: Sessions, audit: AuditLog, limits: Limits) -> None:
        self._check, self._sessions, self._audit = check, sessions, audit
        self._attempts, self._of_person = Rate(limits.sign_ins), Rate(limits.sign_ins)

    async def refusal(self, request: Request) -> Response | None:
        """Note in the scope who asks; or return why nobody does."""
        if token := bearer_of(request.headers):
            self._attempts.check(address_of(request), counts=False)  # who has guessed too often learns nothing
            try:
                request.scope[PERSON] = (await self._check.identify_token(token)).name
            except IdentityError as error:
                self._attempts.check(address_of(request))
                await self._audit.write("failed sign-in", "", address_of(request), reason=str(error))
                return PlainTextResponse(str(error), error.status, _BEARER)
            return None
        is_page = REFRESH in request.headers or request.url.path.endswith("/events")  # and nobody does anything
        if not (key := await self._session_of(request, uses=not is_page)):
            return _ask_for_sign_in(401)
        request.scope[SESSION] = key
        asked = time.monotonic()

        async def still_in() -> bool:
            nonlocal asked
            if time.monotonic() < asked + _ASKED_SECONDS:
                return True
            asked = time.monotonic()
            return bool(await self._session_of(request, uses=False))

        request.scope[STILL_IN] = still_in
        return None

    async def begin(self, request: Request) -> Response:
        """Begin a session with the token of a form, or of the request; the browser's last session ends."""
        self._attempts.check(address_of(request))
        token = bearer_of(request.headers) or str((await request.form()).get("token", "")).strip()
        try:
            who = await self._check.identify_token(token)
        except IdentityError as error:
            await self._audit.write("failed sign-in", "", address_of(request), reason=str(error))
            return _ask_for_sign_in(503 if error.status == 503 else 403, str(error))
        self._of_person.check(who.name)
        await self._audit.write("sign-in", who.name, address_of(request))
        if last := await self._session_of(request, uses=False):
            await self._sessions.end(last)
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(value=await self._sessions.begin(who.name, who.issuer), **_cookie(request))
        return answer

    async def end(self, request: Request) -> Response:
        """End the session; with `everywhere` in the form, all sessions of the person."""
        person, everywhere = str(request.scope[PERSON]), "everywhere" in await request.form()
        more = {"everywhere": "yes"} if everywhere else {}
        await self._audit.write("sign-out", person, address_of(request), **more)
        await self._sessions.end(str(request.scope.get(SESSION, "")), person if everywhere else "")
        answer = RedirectResponse("/", 303, {"clear-site-data": '"storage"'})  # drafts are there
        answer.delete_cookie(**_cookie(request))
        return answer

    async def _session_of(self, request: Request, *, uses: bool) -> str:
        """Return the key of the request's session, with its person in the scope; "" if there is none that holds."""
        found = await self._sessions.find(request.cookies.get(_cookie(request)["key"], ""), uses=uses)
        if found is None or not self._check.vouches(found[1].person, found[1].issuer):
            return ""
        request.scope[PERSON] = found[1].person
        return found[0]


def address_of(request: Request) -> str:
    """Return from where a request comes; behind a proxy that is trusted, as the proxy says."""
    return network_of(request.client.host) if request.client else ""


def _cookie(request: Request) -> dict[str, Any]:
    """Return the cookie's name and rules. With TLS no other host, and nobody without TLS, can have set one so named."""
    secure = request.url.scheme == "https"
    name = "__Host-questbook_session" if secure else "questbook_session"
    return {"key": name, "httponly": True, "samesite": "strict", "secure": secure}


def _ask_for_sign_in(status: int, problem: str = "") -> HTMLResponse:
    return HTMLResponse(_FORM.render(problem=problem), status)
