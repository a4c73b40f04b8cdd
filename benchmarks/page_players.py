"""Processes of `questbook web`, and players who use them over HTTP: what `load.py` and `faults.py` have in common.

Each turn of a player tells a word of its own, and the word itself says whose it is. So a text that a player sees, or a
model gets for them, is searched for the words of others without asking who told what (`foreign_words`). Each player is
a user of their own, signed in with a token (HS256) of one issuer, and asks now and then for another's campaign.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import secrets
import signal
import ssl
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx
import jwt
import psutil

ROOT = Path(__file__).parent.parent
_ALPHABET = "bcdfghjklmnprstv"
# Whole words, also after a line end in JSON: a page's random token may have letters like theirs in its middle.
_WORD = re.compile(rf"(?:(?<![\w-])|(?<=\\n))zq([{_ALPHABET}]{{3}})w[{_ALPHABET}]{{3}}(?![\w-])", re.IGNORECASE)
_TLS = ssl.create_default_context()  # made once: reading the certificates takes longer than a turn
_PAUSE = 0.1  # seconds before something refused is tried again
_PAUSE_IF_FULL = 1.0
_FULL = re.compile("campaigns are (being opened|open) here")  # so a process says that it has no place
_START_SECONDS = 120.0
_GRACE_SECONDS = 60.0  # in which a turn that a process took may still come to its end
_ISSUER, _AUDIENCE, _SECRET = "https://login.example.org", "questbook", secrets.token_hex(32)
_FOREIGN_PLACES = ("", "story", "chronicle.md", "events?after=0&brief=1", "panel/memories", "behind")
_NO_LIMITS = {  # those of one address and of one person: all players have one address, and make no pauses
    f"QUESTBOOK_MOST_{name}": "1000000" for name in ("SIGN_INS", "ADDRESS_REQUESTS", "REQUESTS", "TURNS")
}


class TurnFailedError(Exception):
    """A turn did not come to its end; the message says why."""


class Timed(NamedTuple):
    """Seconds of a turn since its player began to send it: to the first piece, the whole reply, and the notes."""

    first: float
    reply: float
    notes: float


def word_of(player: int, turn: int) -> str:
    """Return the word of a turn; both numbers are below 4,096."""
    return f"zq{_letters(player)}w{_letters(turn)}"


def _letters(number: int) -> str:
    return "".join(_ALPHABET[number // 16**place % 16] for place in (2, 1, 0))


def players_in(text: str) -> set[str]:
    """Return whose words a text has."""
    return {player.lower() for player in _WORD.findall(text)}


def foreign_words(text: str, player: int) -> int:
    """Return of how many other players a text has words."""
    return len(players_in(text) - {_letters(player)})


def sentence(player: int, turn: int) -> str:
    """Return what a player says in a turn, from 1."""
    word = word_of(player, turn)
    if turn == 1:
        return f"I'm Mira, a halfling thief who grew up on the docks of {word} and wants her sister back."
    return f"I write {word} on the wall, and go on."


class Process:
    """A server process that prints its address; it takes `--port`.

    Args:
        command: What `python` runs.
        log: File for what it says.
        environment: Further variables; those of this process that begin with QUESTBOOK are left out.
        tree: The checkout that it runs; another one may be set before it is started again.
    """

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, tree: Path = ROOT
    ) -> None:
        further = dict(environment or {})
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("QUESTBOOK", "LANGSMITH"))}
        self.environment = keep | further
        self.command, self.log, self.tree, self.port = list(command), log, tree, 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> Process:
        """Start it, on the port that it had before; return when it answers."""
        before = self.log.stat().st_size if self.log.exists() else 0
        command = [sys.executable, *self.command, "--port", str(self.port)]
        path = os.pathsep.join(filter(None, (self.environment.get("PYTHONPATH"), str(self.tree))))
        environment = self.environment | {"PYTHONPATH": path}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.tree)  # noqa: ASYNC220 (it returns at once)
        end = time.monotonic() + _START_SECONDS
        async with httpx.AsyncClient(verify=_TLS) as web:
            while self.process.poll() is None and time.monotonic() < end:
                if found := re.search(rb"http://127\.0\.0\.1:(\d+)", self.log.read_bytes()[before:]):
                    self.port = int(found[1])
                    with suppress(httpx.TransportError):
                        await web.get(self.url)
                        return self
                await asyncio.sleep(0.02)
        raise RuntimeError(f"It did not start: {self.log.read_text()[-2000:]}")

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it, as Ctrl-C does, or otherwise."""
        if self.process is not None:
            self.process.send_signal(how)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def cpu(self) -> float:
        """Return the seconds of CPU that it has used."""
        if self.process is None:
            raise RuntimeError("It was not started.")
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def memory(self) -> int:
        """Return the bytes of memory that it has now."""
        if self.process is None:
            raise RuntimeError("It was not started.")
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def tracebacks(self) -> list[str]:
        """Return the tracebacks in its log, each as the file of ours that it went through last, and the error."""
        return tracebacks_in(self.log.read_text("utf-8", "replace"))


def tracebacks_in(log: str) -> list[str]:
    """Return the tracebacks in a log, each as the file of ours that it went through last ("?": none), and the error."""
    found = []
    for text in log.split("Traceback (most recent call last):\n")[1:]:
        lines = list(takewhile(lambda line: line.startswith(" ") or not line, text.splitlines()))
        error = text.splitlines()[len(lines)] if len(lines) < len(text.splitlines()) else ""
        ours = re.findall(r'/((?:graphs|memory|notebooks)/[\w/]+\.py)", line (\d+)', "\n".join(lines))
        found.append(f"{':'.join(ours[-1]) if ours else '?'} {error:.100}")
    return found


def page(home: Path, log: Path, environment: Mapping[str, str] | None = None) -> Process:
    """Return a process of `questbook web`, in which people sign in with a token of our issuer."""
    sign_in = {"QUESTBOOK_OIDC_ISSUER": _ISSUER, "QUESTBOOK_OIDC_AUDIENCE": _AUDIENCE, "QUESTBOOK_JWT_SECRET": _SECRET}
    own = {"QUESTBOOK_HOME": str(home), "QUESTBOOK_SEED": "6"} | sign_in | _NO_LIMITS
    command = ["-m", "questbook.graphs.terminal", "web", "--no-browser", "--developer"]
    return Process(command, log, own | dict(environment or {}))


def user_of(player: int) -> str:
    """Return the user who the player is once they have signed in."""
    return f"p{player}@{_ISSUER.removeprefix('https://')}"


def campaign_of(player: int) -> str:
    """Return the name of the player's campaign."""
    return f"p{player}"


def token_of(player: int) -> str:
    """Return a token of the player, which holds for a day."""
    claims = {"iss": _ISSUER, "aud": _AUDIENCE, "sub": f"p{player}", "exp": int(time.time()) + 86_400}
    return jwt.encode(claims, _SECRET, "HS256")


class Player:
    """Somebody who plays a campaign of their own, and goes to the next process when one does not answer.

    Args:
        number: From 0.
        urls: Those of the processes; the first is tried first.
        counts: Where what happens is counted: "foreign" words, "refused" messages, "errors" by their sentence.
        players: How many there are, of whose campaigns this one asks for one after each turn.
    """

    def __init__(self, number: int, urls: Sequence[str], counts: Counter[str], players: int = 1) -> None:
        self.number, self.counts, self.urls, self.players = number, counts, list(urls), players
        self.told: list[str] = []  # the words of turns that a process took, in their order
        self.opened = 0.0  # when a page was shown last
        self._after, self._cookies = "0", dict[str, str]()
        self.web = httpx.AsyncClient(verify=_TLS, timeout=120, headers={"sec-fetch-site": "same-origin"})

    @property
    def path(self) -> str:
        """The address of the campaign's page, in the process that is asked now."""
        return self._path_of(self.number)

    def _path_of(self, player: int) -> str:
        return f"{self.urls[0]}/u/{quote(user_of(player), safe='')}/c/{campaign_of(player)}/"

    @property
    def number_shown(self) -> int:
        """The number of the last thing that happened in the campaign, as the page counts them."""
        return int(self._after)

    async def close(self) -> None:
        """Close its connections."""
        await self.web.aclose()

    def go_to_next(self) -> None:
        """Use the next process from now on."""
        self.urls.append(self.urls.pop(0))

    async def get(self, place: str = "") -> httpx.Response:
        """Get a page of the campaign, after signing in where that is needed."""
        answer = await self._send("GET", self.path + place)
        if answer.status_code == 401:
            signed = await self._send("POST", f"{self.urls[0]}/sign-in", data={"token": token_of(self.number)})
            self._cookies[self.urls[0]] = signed.headers.get("set-cookie", "").partition(";")[0]
            answer = await self._send("GET", self.path + place)
        self.look(answer.text)
        return answer

    async def post(self, place: str, **form: str) -> httpx.Response:
        """Send a form."""
        answer = await self._send("POST", self.path + place, data=form)
        self.look(answer.text)
        return answer

    async def _send(self, method: str, url: str, data: Mapping[str, str] | None = None) -> httpx.Response:
        self.web.cookies.clear()  # one jar would mix up the processes, which have one host
        cookie = self._cookies.get(self.urls[0], "")
        return await self.web.request(method, url, data=data, headers={"cookie": cookie} if cookie else None)

    async def pry(self, turn: int) -> None:
        """Ask for the campaign of another player; what is shown of it is foreign, even if it has none of their words.

        A process that does not answer, or that fails, shows nothing.
        """
        if self.players < 2:
            return
        other = (self.number + turn) % self.players
        other = other if other != self.number else (other + 1) % self.players
        try:
            answer = await self._send("GET", self._path_of(other) + _FOREIGN_PLACES[turn % len(_FOREIGN_PLACES)])
        except httpx.HTTPError:
            return
        self.counts["asked for others"] += 1
        self.look(answer.text)
        self.counts["foreign"] += answer.is_success

    def look(self, text: str) -> None:
        """Count the players whose words this one should not see."""
        self.counts["foreign"] += foreign_words(text, self.number)

    async def open(self) -> str:
        """Load the page; return it.

        Raises:
            TurnFailedError: There is none: the process has no place, another holds the campaign, or it fails.
        """
        page = await self.get()
        if page.status_code != 200:
            raise TurnFailedError(f"{page.status_code}: {_text(page.text)}")
        self.web.headers["x-questbook-token"] = _found(r'data-token="([^"]+)"', page.text)
        self._after = _found(r'data-number="(\d+)"', page.text)
        self.opened = time.monotonic()
        return page.text

    async def say(self, turn: int) -> Timed:
        """Play a turn once, to the end of its notes.

        Raises:
            TurnFailedError: The turn was refused, or has failed.
            httpx.TransportError: The process is gone.
        """
        began = time.perf_counter()
        await self.open()
        answer = await self.post("say", text=sentence(self.number, turn), ticket=uuid.uuid4().hex)
        if answer.status_code >= 400:
            self.counts["refused"] += 1
            raise TurnFailedError(f"{answer.status_code}: {_text(answer.text)}")
        self._took(turn)
        return await self.watch(began)

    def _took(self, turn: int) -> None:
        if (word := word_of(self.number, turn)) not in self.told:
            self.told.append(word)

    async def watch(self, began: float) -> Timed:
        """Read the stream of what happens to the end of a turn, and return when it happened."""
        first = reply = 0.0
        for _ in range(50):  # a browser opens a stream again that has ended
            event, cookie = "", self._cookies.get(self.urls[0], "")
            stream = self.web.stream("GET", f"{self.path}events?after={self._after}", headers={"cookie": cookie})
            async with stream as answer:
                if answer.status_code != 200:
                    raise TurnFailedError(f"{answer.status_code}: {_text((await answer.aread()).decode())}")
                async for line in answer.aiter_lines():
                    name, _, value = line.partition(": ")
                    now = time.perf_counter() - began
                    if name == "id":
                        self._after = value
                    elif name == "event":
                        event = value
                    elif name == "data":
                        self.look(value)
                        first = first or (now if event == "piece" else 0.0)
                        reply = reply or (now if event == "replied" else 0.0)
                        if event == "problem":
                            raise TurnFailedError(_text(value))
                        if event == "pages":
                            return Timed(first or now, reply or now, now)
            await asyncio.sleep(0.02)
        raise TurnFailedError("The stream ended without the turn's end.")

    async def play(self, turn: int, until: float) -> Timed | None:
        """Play a turn, again and again and on the other processes, until it is told or the time is over (then None).

        A turn that a process has taken gets another minute. Afterwards another's campaign is asked for.

        What became of a turn that broke off is looked up before it is said again: the story has it, or keeps its
        message, which is answered when the campaign is opened or when the player tries again.
        """
        began, is_new = time.perf_counter(), True
        while time.monotonic() < until + _GRACE_SECONDS * (word_of(self.number, turn) in self.told):
            try:
                timed = await self.say(turn) if is_new else await self._go_on(turn, began)
            except (TurnFailedError, httpx.HTTPError) as error:
                is_new, is_gone = False, isinstance(error, httpx.HTTPError)
                is_busy = "is open in another" in str(error)
                if is_full := bool(_FULL.search(str(error))):
                    self.counts["full"] += 1
                else:
                    said = f"the connection broke: {type(error).__name__}" if is_gone else str(error)[:110]
                    self.counts[f"because {said}"] += 1
                if is_gone or is_busy:
                    self.go_to_next()
                await asyncio.sleep((_PAUSE_IF_FULL if is_full else _PAUSE) * random.uniform(0.5, 1.5))
            else:
                await self.pry(turn)
                return timed
        return None

    async def _go_on(self, turn: int, began: float) -> Timed:
        page = await self.open()
        if (word := word_of(self.number, turn)) not in page.casefold():
            self.counts["lost"] += word in self.told  # a process had taken it
            answer = await self.post("say", text=sentence(self.number, turn), ticket=uuid.uuid4().hex)
            if answer.status_code >= 400:
                raise TurnFailedError(f"{answer.status_code}: {_text(answer.text)}")
            self._took(turn)
            return await self.watch(began)
        self._took(turn)
        if 'id="unanswered"' in page:
            answer = await self.post("retry")
            if answer.status_code >= 400:
                raise TurnFailedError(f"{answer.status_code}: {_text(answer.text)}")
            return await self.watch(began)
        if 'id="live"' in page:
            return await self.watch(began)
        now = time.perf_counter() - began
        return Timed(now, now, now)

    async def check(self) -> None:
        """Count the turns that are lost or doubled, and the foreign words on the pages and in the last prompt.

        The checkpoint says at which turn the story is; the chronicle is made of what the store holds.
        """
        page = await self.open()
        chronicle = (await self.get("chronicle.md")).text.casefold()
        for place in ("behind", "panel/memories", "panel/quest", "panel/summary"):
            answer = await self.get(place)
            self.counts["views that fail"] += answer.status_code >= 500
        said = [line for line in chronicle.splitlines() if line.startswith("> ")]
        times = [sum(word in line for line in said) for word in self.told]
        turn = int(_found(r'data-turn="(\d+)"', page))
        self.counts["lost"] += max(times.count(0), len(self.told) - turn)
        self.counts["doubled"] += max(sum(count - 1 for count in times if count), turn - len(self.told), 0)


def _found(pattern: str, text: str) -> str:
    if (found := re.search(pattern, text)) is None:
        raise TurnFailedError(f"The page has no {pattern}: {_text(text)}")
    return found[1]


def _text(html: str) -> str:
    """Return what a page says, in one line."""
    body = f"<{html.partition('<main')[2]}" if "<main" in html else html
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())[:300]
