"""One run at a time on a thread, whatever server it comes from: a second one waits, and is refused after two minutes.

Some servers begin the answers to two messages at once, and the second reply drops out of the thread. So where
QUESTBOOK_DATABASE names a database, each run of a graph takes an advisory lock there, the one by which the page and the
terminal hold a campaign. Elsewhere the server's own queue has to do.
"""

import asyncio
import os
import socket
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from functools import cache
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from questbook.graphs.errors import InputError
from questbook.graphs.turn.api_server import READ

DATABASE = "QUESTBOOK_DATABASE"
ADDRESS = "QUESTBOOK_ADDRESS"
"""What this process calls itself where it holds a thread, such as its URL behind a proxy; else host and process id."""
_PROGRAM = "questbook "
_MAX_NAME = 60  # characters; PostgreSQL cuts a session's name
_TRY = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_FREE = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
_PING = "SELECT %s::text IS NOT NULL"
# PostgreSQL notices within half a minute that a machine has vanished, and lets others have its locks.
_KEEPALIVE = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
_HOLDER = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid), hashtextextended(%s, 0) AS number
WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND datname = current_database()
    AND classid = ((number >> 32) & 4294967295)::oid AND objid = (number & 4294967295)::oid
"""
LONGEST_WAIT = 120.0  # seconds: longer than a model may take
_POLL = 0.2
held_here: set[tuple[str, str]] = set()
"""URLs and threads that this process holds as a page or terminal does: their runs follow one another already."""


class GuardedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose runs on a thread follow one another."""

    async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncGenerator[Any]:  # noqa: A002
        """Run as `CompiledStateGraph.astream`, when the run before has ended; else an InputError says so."""
        locks, thread = _locks_for(config)
        ends = time.monotonic() + LONGEST_WAIT
        while locks and not await _asking(locks, thread):
            _check_time(thread, ends)
            await asyncio.sleep(_POLL)
        try:
            parts: Any = super().astream(input, config, **options)
            async with aclosing(parts):
                async for part in parts:
                    yield part
        finally:
            if locks:
                await asyncio.shield(asyncio.to_thread(locks.free, thread))

    def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:  # noqa: A002
        """Run as `CompiledStateGraph.stream`, in the same way."""
        locks, thread = _locks_for(config)
        ends = time.monotonic() + LONGEST_WAIT
        while locks and not locks.take(thread):
            _check_time(thread, ends)
            time.sleep(_POLL)
        try:
            yield from super().stream(input, config, **options)
        finally:
            if locks:
                locks.free(thread)


class SessionLocks:
    """Advisory locks of one session of PostgreSQL, for this process; the methods block, and raise psycopg.Error."""

    def __init__(self, url: str) -> None:
        self.url, self._one, self._held = url, threading.Lock(), set[str]()
        self._session: Any = None

    def take(self, name: str) -> bool:
        """Take a lock, unless another process, or someone else in this one, has it."""
        with self._one:
            if name in self._held or not self._ask(_TRY, name):
                return False
            self._held.add(name)
            return True

    async def acquire(self, name: str) -> bool:
        """As `take`, without blocking; who is cancelled meanwhile has nothing."""
        taking = asyncio.ensure_future(asyncio.to_thread(self.take, name))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            await asyncio.wait({taking})
            if taking.exception() is None and taking.result():
                await asyncio.to_thread(self.free, name)
            raise

    def holds(self, name: str) -> bool:
        """Whether a lock that was taken still is: where the session has ended, another process may have it by now."""
        with self._one:
            return bool(self._ask(_PING, name)) and name in self._held

    def free(self, name: str) -> None:
        """Let others have a lock."""
        with self._one:
            if name in self._held:
                self._held.discard(name)
                self._ask(_FREE, name)

    def holder(self, name: str) -> str:
        """Return what the process calls itself that has a lock; "" if none has."""
        with self._one:
            return str(self._ask(_HOLDER, name) or "").removeprefix(_PROGRAM)

    def close_if_idle(self) -> None:
        """End the session, unless something is held."""
        with self._one:
            if self._session is not None and not self._held:
                self._session.close()
                self._session = None

    def _ask(self, statement: str, name: str) -> Any:
        """Ask, once more in a new session where the old one has ended; it takes what is free of the old one's locks."""
        import psycopg

        for last in (False, True):
            try:
                if self._session is None:
                    self._session = psycopg.connect(self.url, autocommit=True, **session_options())
                    self._session.execute(_KEEPALIVE)
                    self._held -= {each for each in self._held if not self._first(_TRY, each)}
                return self._first(statement, name)
            except psycopg.OperationalError:
                self._session = None
                if last:
                    raise
        return None

    def _first(self, statement: str, name: str) -> Any:
        row = self._session.execute(statement, (name,)).fetchone()
        return row and row[0]


def session_options() -> dict[str, Any]:
    """Return how this process connects: under its name, and so that either side notices when the other has vanished."""
    name = os.environ.get(ADDRESS) or f"{socket.gethostname()}:{os.getpid()}"
    alive = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
    return {"application_name": f"{_PROGRAM}{name}"[:_MAX_NAME], "connect_timeout": 10, **alive}


@cache
def locks_of(url: str) -> SessionLocks:
    """Return the locks of this process in a database."""
    return SessionLocks(url)


def _locks_for(config: Mapping[str, Any] | None) -> tuple[SessionLocks | None, str]:
    """Return what a run has to hold, and its thread; nothing within another graph's run, or where it is held here."""
    where = (config or {}).get("configurable") or {}
    thread, url = str(where.get("thread_id") or ""), os.environ.get(DATABASE, "")
    is_inner = where.get("checkpoint_ns") or READ in where
    return (locks_of(url) if url and thread and not is_inner and (url, thread) not in held_here else None), thread


async def _asking(locks: SessionLocks, thread: str) -> bool:
    import psycopg

    try:
        return await locks.acquire(thread)
    except psycopg.Error as error:  # nothing of the run has begun
        raise InputError(f"Whether thread {thread} is being played cannot be said: {error}") from error


def _check_time(thread: str, ends: float) -> None:
    if time.monotonic() > ends:
        problem = f"Thread {thread} is being played, and the turn has not ended after {LONGEST_WAIT:.0f} seconds."
        raise InputError(f"{problem} Nothing was changed: say it again when the reply is there.")
