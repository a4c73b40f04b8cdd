"""`Sessions`: who signed in with a browser, for how long, and what its pages must send. Shared by processes.

A cookie holds a random id and its signature. The store knows the id's digest alone, so who reads it cannot act as
anybody. A home says where they are: `FileHome`, in a file, `PostgresHome`, in its database.
"""

import hashlib
import hmac
import secrets
import time
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import NamedTuple

_TOUCH_SECONDS = 60.0  # how exactly it is known when a session was used last
_MARGIN_SECONDS = 7 * 86400.0  # that a session is kept after its end: the clock of one process may be ahead
TABLE = """CREATE TABLE IF NOT EXISTS sessions (key TEXT PRIMARY KEY, person TEXT NOT NULL, issuer TEXT NOT NULL,
began DOUBLE PRECISION NOT NULL, used DOUBLE PRECISION NOT NULL)"""


class Session(NamedTuple):
    """A browser with which a person signed in; times are seconds since 1970."""

    person: str  # the user
    issuer: str  # who vouched for them
    began: float
    used: float


class TableSessions(ABC):
    """Where sessions are kept, by a key of 64 characters: the table `sessions` (`TABLE`) of a home."""

    async def begin(self, key: str, session: Session, *, began_since: float) -> None:
        """Keep a new session; remove those that began before a time."""
        await self._ask("DELETE FROM sessions WHERE began < ?", began_since)
        await self._ask("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", key, *session)

    async def read(self, key: str) -> Session | None:
        """Return a session; None if it has ended."""
        rows = await self._ask("SELECT person, issuer, began, used FROM sessions WHERE key = ?", key)
        return Session(*rows[0]) if rows else None

    async def renew(self, key: str, used: float) -> None:
        """Note when a session was used, unless it has ended."""
        await self._ask("UPDATE sessions SET used = ? WHERE key = ?", used, key)

    async def end(self, key: str, person: str = "") -> None:
        """End a session, and all those of a person, if one is named."""
        await self._ask("DELETE FROM sessions WHERE key = ? OR (person = ? AND person != '')", key, person)

    @abstractmethod
    async def _ask(self, statement: str, *values: str | float) -> list[tuple[str, str, float, float]]:
        """Execute a statement whose values are question marks; return its rows."""


class Sessions:
    """The sessions of a home, kept in `store`. They end `idle` seconds after the last request, and `most` in any case.

    `secret` signs cookies and page tokens: the home's own. `clock` tells seconds since 1970.
    """

    def __init__(
        self, store: TableSessions, secret: str, *, idle: float, most: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._store, self._secret, self._idle, self._most, self._clock = store, secret, idle, most, clock

    async def begin(self, person: str, issuer: str) -> str:
        """Begin a session; return the value of its cookie."""
        name, now = secrets.token_urlsafe(24), self._clock()
        session = Session(person, issuer, now, now)
        await self._store.begin(_key(name), session, began_since=now - self._most - _MARGIN_SECONDS)
        return f"{name}.{sign(self._secret, 'session', name)}"

    async def find(self, cookie: str, *, uses: bool = True) -> tuple[str, Session] | None:
        """Return key and session of a cookie; None if it is none of ours, or its session has ended.

        `uses`: whether this is something that a person does, and not a page that waits.
        """
        name, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), sign(self._secret, "session", name).encode()):
            return None
        key, now = _key(name), self._clock()
        session = await self._store.read(key)
        if session is None or now >= min(session.used + self._idle, session.began + self._most):
            return None
        if uses and now >= session.used + min(_TOUCH_SECONDS, self._idle / 4):
            await self._store.renew(key, now)
        return key, session

    async def end(self, key: str, person: str = "") -> None:
        """End a session, and all those of a person, if one is named."""
        await self._store.end(key, person)


def sign(secret: str, purpose: str, text: str) -> str:
    """Return what only a holder of the secret can make of a text, for one purpose: 32 characters."""
    made = hmac.digest(secret.encode(), f"{purpose}:{text}".encode("utf-8", "surrogatepass"), "sha256")
    return urlsafe_b64encode(made[:24]).decode()


def _key(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
