"""Hostile requests to `questbook web` with an issuer: its own sign-in, sign-out and sessions, and all its routes.

    python benchmarks/hostile_page.py                     2,000 requests on each home
    python benchmarks/hostile_page.py --requests 300 --homes sqlite --limit 600

Beside `hostile.py`, whose page lies below another server's log-in. Ann and bob sign in with tokens of one issuer
(HS256), and play. Then requests come with bob's session, bob's token, or what holds for nobody: cookies whose signature
is not ours, of sessions that have ended, or of another home; tokens of another secret, issuer or audience, without a
signature, without an end, too old; and true tokens of subjects that are written like ann. Each has the page token of
bob, of ann, or none, claims headers of ann's and of proxies, says now and then that it comes from another site, and has
a body that is broken off, far too large, or of another kind. Bob signs in and out all the time, also on all devices.

`foreign` is ann's word in any answer, and any page below ann's address. `let in` is an answer to who is nobody that is
no refusal, and a session that begins with a token that does not hold; `destroyed`, what ann has lost, her session, too.
A line of the audit log that is none, or has a token or a word of hers, is a `bad line`. Limits by address and person
are lifted, since all come from one address. Nothing leaves this machine.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import httpx  # noqa: E402
import jwt  # noqa: E402
import page_players  # noqa: E402
from hostile import CLAIMS, MIRA, VIEWS, WORD, Attack, attack_homes, page_schema, query_of  # noqa: E402

from questbook.graphs.identity.sessions import sign  # noqa: E402

ISSUER, AUDIENCE = "https://login.example.org", "questbook"
ANN, BOB = "ann@login.example.org", "bob@login.example.org"
_MUST_BE_0 = ("foreign", "let in", "destroyed", "views that answer 500", "tracebacks by a file of ours", "bad lines")
_OPEN = re.compile(r"/(static/.*|favicon\.ico|health|ready|metrics)\Z")  # what anybody may ask for
_LIKE_ANN = (
    ANN,
    "ANN",
    "ann ",
    "ann\u200b",
    "ann\0",
    "ann@",
    "ａｎｎ",
    "bob/../ann",
    "ann%40login.example.org",
    "",
    "é" * 300,
)
_PROXIES = {"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "https", "forwarded": "for=127.0.0.1;proto=https",
            "x-forwarded-host": "localhost", "host": "questbook.example.org"}  # fmt: skip
_SITES = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}
_FORM = {"content": {"application/x-www-form-urlencoded": {"schema": {
    "type": "object", "properties": {key: {"type": "string"} for key in ("token", "everywhere")},
}}}}  # fmt: skip


class PageAttack(Attack):
    """The page's program with ann's things, and the requests."""

    def __init__(self, directory: Path, number: int, database: str = "") -> None:
        super().__init__(number)
        self.directory, self.secret = directory / "home", page_players._SECRET
        self.process = page_players.page(self.directory, directory / "log", {"QUESTBOOK_DATABASE": database})
        self.ended: list[str] = []  # cookies of sessions that bob has ended

    def begin(self) -> None:
        """Start the program, and let ann and bob sign in and play."""
        asyncio.run(self.process.start())
        self.web = httpx.Client(base_url=self.process.url, timeout=60)
        self.anns, self.bobs = self.sign_in("ann"), self.sign_in("bob")
        self.anns_token = self._say(self.anns, ANN, MIRA, f"I write {WORD} on the wall, and go on.")
        self.bobs_token = self._say(self.bobs, BOB, "I'm Ada, an elf wizard.")

    def token(self, subject: str, key: str = "", algorithm: str = "HS256", **claims: Any) -> str:
        """Sign a token; a claim that is None is left out."""
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "exp": int(time.time()) + 3600} | claims
        said = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(said, None if algorithm == "none" else key or self.secret, algorithm)

    def sign_in(self, subject: str) -> str:
        """Begin a session; return its cookie."""
        answer = self.web.post("/sign-in", data={"token": self.token(subject)})
        self.web.cookies.clear()
        return answer.headers["set-cookie"].partition(";")[0]

    def _shown(self, cookie: str, path: str, name: str) -> str:
        """Return what a page has for its script: the "token" of its session, or the "number" of what happened last."""
        return re.search(rf'data-{name}="([^"]+)"', self.web.get(path, headers={"cookie": cookie}).text)[1]  # type: ignore[index]

    def _say(self, cookie: str, person: str, *words: str) -> str:
        place, token = f"/u/{quote(person)}/c/isle/", self._shown(cookie, "/", "token")
        headers = {"cookie": cookie, "x-questbook-token": token, "hx-request": "true"}
        for text in words:
            number = self._shown(cookie, place, "number")
            self.web.post(f"{place}say", data={"text": text, "ticket": text}, headers=headers).raise_for_status()
            with self.web.stream("GET", f"{place}events?after={number}", headers=headers) as events:
                any(line == "event: pages" for line in events.iter_lines())
        return token

    def schemas(self) -> list[dict[str, Any]]:  # noqa: D102
        schema = page_schema()
        answers = {"200": {"description": "a page"}}
        for path in ("/sign-in", "/sign-out"):
            schema["paths"][path] = {
                "get": {"responses": answers},
                "post": {"responses": answers, "requestBody": _FORM | {"required": True}},
            }
        for path in ("/health", "/ready", "/metrics"):
            schema["paths"][path] = {"get": {"responses": answers}, "post": {"responses": answers}}
        return [schema]

    def aims(self) -> dict[str, Any]:  # noqa: D102
        return {"owner": self.dice.choice([ANN, ANN, BOB]), "campaign": "isle"}

    def send(self, case: Any) -> None:  # noqa: D102
        path, who = self.path_of(case), self.dice.choices(["session", "bearer", "nobody"], [5, 2, 3])[0]
        headers, is_somebody = dict[str, str](), who != "nobody"
        if who == "session":
            headers["cookie"] = self.bobs
        elif who == "bearer":
            headers["authorization"] = f"Bearer {self.token('bob')}"
        else:
            headers, is_somebody = self.nobody()
        if token := self.dice.choices([self.bobs_token, self.anns_token, ""], [6, 2, 2])[0]:
            headers["x-questbook-token"] = token
        for claims, chance in ((CLAIMS, 0.2), (_PROXIES, 0.2), (_SITES, 0.05)):
            if self.dice.random() < chance:
                headers |= dict(self.dice.sample(sorted(claims.items()), 2))
        method, body, holds = case.method, self._spoilt(self.body_of(case)), False
        if self.dice.random() < 0.1:
            method, path = "POST", self.dice.choice(["/sign-in", "/sign-out"])
            body = {"data": {"token": ""} | self.dice.choice([{}, {"everywhere": "yes"}])}
        if method == "POST" and path in ("/sign-in", "/sign-out") and isinstance(form := body.get("data"), dict):
            given, holds = self._some_token() if self.dice.random() < 0.8 else (form.get("token", ""), False)
            form["token"] = given if path == "/sign-in" else token
        answer = self.ask(self.web, method, path, query_of(case), headers, body)
        self.web.cookies.clear()
        if answer is not None:
            self._look(answer, path, is_somebody=is_somebody or (path == "/sign-in" and holds))
            if path in ("/sign-in", "/sign-out") and answer.status_code == 303:
                self.counts[f"{path[1:]}s"] += 1
                self._sign_bob_in(must_have_ended=who == "session")

    def _sign_bob_in(self, *, must_have_ended: bool) -> None:
        """Begin a session for bob if his has ended; count it if it should have, and goes on."""
        if self.web.get("/", headers={"cookie": self.bobs}).status_code == 401:
            self.ended.append(self.bobs.partition("=")[2])
            self.bobs = self.sign_in("bob")
            self.bobs_token = self._shown(self.bobs, "/", "token")
        elif must_have_ended:
            self.counts["let in"] += 1
            print("let in: a session goes on after its end")

    def nobody(self) -> tuple[dict[str, str], bool]:
        """Return headers of nobody, or of a person whose name is like ann's, and whether that person may come in."""
        name, _, signature = self.bobs.partition("=")[2].partition(".")
        wrong = [
            f"{name}.{signature[:-1]}x", f"{name}.", f"x{name}.{signature}",
            f"{name}.{sign('x' * 32, 'session', name)}",
            f"{name}.{self.bobs_token}", f"{ANN}.{sign('', 'session', ANN)}", "", ".", "a" * 4000, *self.ended[-3:],
        ]  # fmt: skip
        if self.dice.random() < 0.5:
            return {"cookie": f"questbook_session={self.dice.choice(wrong)}"}, False
        token, is_somebody = self._some_token()
        return {"authorization": self.dice.choice(["Bearer ", "bearer ", "Bearer  "]) + token}, is_somebody

    def _some_token(self) -> tuple[str, bool]:
        """Return a token, and whether it holds for a person, never for ann."""
        if self.dice.random() < 0.3:
            return self.token(self.dice.choice(_LIKE_ANN)), True
        now, head = int(time.time()), self.token("ann").split(".")
        return self.dice.choice([
            self.token("ann", "y" * 32), self.token("ann", algorithm="none"), self.token("ann", algorithm="HS512"),
            self.token("ann", iss="https://evil.example"), self.token("ann", iss=None), self.token("ann", aud="other"),
            self.token("ann", aud=None), self.token("ann", exp=now - 3600), self.token("ann", exp=None),
            self.token("ann", nbf=now + 3600), f"{head[0]}.{head[1]}.", f"{head[0]}.{head[1]}.{head[2][::-1]}",
            f"{self.token('bob').split('.')[0]}.{head[1]}.{self.token('bob').split('.')[2]}", "", "a.b.c", "x" * 5000,
        ]), False  # fmt: skip

    def _spoilt(self, body: dict[str, Any]) -> dict[str, Any]:
        luck = self.dice.random()
        if luck > 0.1:
            return body
        kind = "multipart/form-data; boundary=x" if luck < 0.05 else "application/x-www-form-urlencoded"
        broken = b'--x\r\nContent-Disposition: form-data; name="token"; filename="../a"\r\n\r\n\xff\xfe'
        return {"content": broken if luck < 0.08 else b"token=%ff%00&" * 500, "headers": {"content-type": kind}}

    def _look(self, answer: httpx.Response, path: str, *, is_somebody: bool) -> None:
        """Count what an answer shows that it should not."""
        is_shown = answer.status_code < 400
        if is_shown and path.startswith((f"/u/{quote(ANN, safe='')}/", f"/u/{quote(ANN)}/")):
            self.counts["foreign"] += 1
            print(f"foreign: {answer.request.method} {path} answers {answer.status_code}")
        if is_shown and not is_somebody and not _OPEN.match(path):
            self.counts["let in"] += 1
            print(f"let in: {answer.request.method} {path} {dict(answer.request.headers)} answers {answer.status_code}")

    def look_afterwards(self) -> None:  # noqa: D102
        story = ""
        for cookie, person in ((self.anns, ANN), (self.bobs, BOB)):
            who = httpx.Client(base_url=self.process.url, timeout=60, headers={"cookie": cookie})
            for view in ("/", "/health", "/ready", *(f"/u/{quote(person)}/c/isle/{view}" for view in VIEWS)):
                text = self.view(who, "GET", view)
                if person == ANN and view.endswith("chronicle.md"):
                    story = text
        if WORD not in story.lower():  # her session is the one with which she began
            self.counts["destroyed"] += 1
            print(f"destroyed: ann's story: {story[:300]}")

    def end(self) -> None:  # noqa: D102
        self.process.end()

    def read_log(self) -> None:
        """Count the tracebacks, and the lines of the audit log."""
        for trace in self.process.tracebacks():
            self.counts["tracebacks"] += 1
            self.counts["tracebacks by a file of ours"] += not trace.startswith("?")
            self.counts[f"traceback {trace}"] += 1
        for line in (self.directory / "audit.log").read_text("utf-8").splitlines():
            try:
                self.counts[f"audit: {json.loads(line)['event']}"] += 1
                self.counts["bad lines"] += WORD in line.lower() or "eyJ" in line
            except (ValueError, KeyError):
                self.counts["bad lines"] += 1


if __name__ == "__main__":
    attack_homes(PageAttack, __doc__, 2_000, "page_{}", _MUST_BE_0)
