"""One run at a time on a thread, whatever server it comes from: a second one waits, and is refused after two minutes.

Some servers begin the answers to two messages at once, and the second reply drops out of the thread. So each run of a
graph takes an advisory lock in PostgreSQL, the one by which the page and the terminal hold a campaign, where
QUESTBOOK_DATABASE names a database. Elsewhere the server's own queue has to do: of two runs at once, each goes on with
a branch of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from functools import cache
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from questbook.graphs.errors import InputError

DATABASE = "QUESTBOOK_DATABASE"
TRY = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0)) AS done"
FREE = "SELECT pg_advisory_unlock(hashtextextended(%s, 0)) AS done"
LONGEST_WAIT = 120.0  # seconds: longer than a model may take
_POLL = 0.2
held_here: set[str] = set()
"""Threads that this process holds as a page or terminal does: their runs follow one another already."""


class GuardedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose runs on a thread follow one another."""

    async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncGenerator[Any]:  # noqa: A002
        """Run as `CompiledStateGraph.astream`, when the run before has ended.

        Raises:
            InputError: It has not ended after `LONGEST_WAIT` seconds.
        """
        locks, thread = _locks_for(config)
        ends = time.monotonic() + LONGEST_WAIT
        while locks and not await asyncio.to_thread(locks.take, thread):
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


class _Locks:
    """The session in which this process holds the threads of its runs; its methods block, in any thread."""

    def __init__(self, url: str) -> None:
        self._url, self._one, self._threads = url, threading.Lock(), set[str]()
        self._session: Any = None

    def take(self, thread: str) -> bool:
        """Take a thread, unless another run has it."""
        with self._one:
            if thread in self._threads or not self._ask(TRY, thread):
                return False
            self._threads.add(thread)
            return True

    def free(self, thread: str) -> None:
        """Let the next run have it."""
        with self._one:
            self._threads.discard(thread)
            self._ask(FREE, thread)

    def _ask(self, statement: str, thread: str) -> bool:
        """Ask, once more in a new session where the old one has ended: its threads are taken again, or others run."""
        import psycopg

        for last in (False, True):
            try:
                if self._session is None:
                    self._session = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
                    for name in self._threads:
                        self._session.execute(TRY, (name,))
                return bool(self._session.execute(statement, (thread,)).fetchone()[0])
            except psycopg.OperationalError as error:
                self._session = None
                if last:
                    raise InputError(f"Whether thread {thread} is being played cannot be said: {error}") from error
        return False


@cache
def _locks_of(url: str) -> _Locks:
    return _Locks(url)


def _locks_for(config: Mapping[str, Any] | None) -> tuple[_Locks | None, str]:
    """Return what a run has to hold, and its thread; nothing within another graph's run, or where it is held here."""
    where = (config or {}).get("configurable") or {}
    thread, url = str(where.get("thread_id") or ""), os.environ.get(DATABASE, "")
    is_inner = where.get("checkpoint_ns") or "__pregel_read" in where
    return (_locks_of(url) if url and thread and not is_inner and thread not in held_here else None), thread


def _check_time(thread: str, ends: float) -> None:
    if time.monotonic() > ends:
        problem = f"Thread {thread} is being played, and the turn has not ended after {LONGEST_WAIT:.0f} seconds."
        raise InputError(f"{problem} Nothing was changed: say it again when the reply is there.")
