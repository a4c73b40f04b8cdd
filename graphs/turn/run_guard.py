"""One run or edit at a time on a thread, from any program: a second one waits, and is refused after two minutes.

Some servers begin the answers to two messages at once, and the second reply drops out of the thread. So where
QUESTBOOK_DATABASE names a database, each run of a graph takes an advisory lock there, the one by which the page and the
terminal hold a campaign; a run that has lost it saves nothing more. Elsewhere the server's own queue has to do.
"""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple, Self, cast
from weakref import WeakSet

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph.state import CompiledStateGraph

from questbook.graphs.errors import InputError, QuestbookError, SettingsError
from questbook.graphs.turn.api_server import CHECKPOINTER, READ
from questbook.graphs.turn.scope import settings_of
from questbook.graphs.turn.state import TurnInput
from questbook.memory.sync import run_sync
from questbook.notebooks import DeclarationError
from questbook.types import JSON

_log = logging.getLogger(__name__)
DATABASE = "QUESTBOOK_DATABASE"
ADDRESS = "QUESTBOOK_ADDRESS"
"""What this process calls itself where it holds a thread, such as its URL behind a proxy; else host and process id."""
_PROGRAM = "questbook "
_MAX_NAME = 63 - len(_PROGRAM)  # bytes; PostgreSQL cuts a session's name
TRY = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_FREE = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
_PING = "SELECT %s::text IS NOT NULL"
# PostgreSQL notices within half a minute that a machine has vanished, and lets others have its locks.
_KEEPALIVE = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
HOLDER = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid), hashtextextended(%s, 0) AS number
WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND datname = current_database()
    AND classid = ((number >> 32) & 4294967295)::oid AND objid = (number & 4294967295)::oid
"""
LONGEST_WAIT = 120.0  # seconds: longer than a model may take
_POLL = 0.2
held_here: set[tuple[str, str]] = set()
"""URLs and threads that this process holds as a page or terminal does."""
players: WeakSet[Any] = WeakSet()  # graphs of pages and terminals: their runs on such a thread follow one another


class ThreadLostError(QuestbookError, RuntimeError):
    """A thread was lost in the middle of a run, and another may play it; the run saves nothing more."""


class GuardedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose runs and edits on a thread follow one another; who waits too long gets an InputError."""

    async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncGenerator[Any]:  # noqa: A002, D102
        if place := self._check_place(config):
            self._refuse_others(await place.saver.aget_tuple(place.config), place, options.get("context"))
        async with _Turn(self, config) as own:
            parts: Any = super().astream(input, own, **options)
            async with aclosing(parts):
                async for part in parts:
                    yield part

    def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:  # noqa: A002, D102
        if place := self._check_place(config):
            self._refuse_others(place.saver.get_tuple(place.config), place, options.get("context"))
        with _Turn(self, config) as own:
            yield from super().stream(input, own, **options)

    def bulk_update_state(self, config: Any, supersteps: Any) -> RunnableConfig:  # noqa: D102
        with _Turn(self, config) as own:
            return super().bulk_update_state(own, supersteps)

    async def abulk_update_state(self, config: Any, supersteps: Any) -> RunnableConfig:  # noqa: D102
        async with _Turn(self, config) as own:
            return await super().abulk_update_state(own, supersteps)

    def _refuse_others(self, saved: CheckpointTuple | None, place: "_Place", context: Any) -> None:
        """Refuse others before LangGraph returns the state, or drops for their message what waits for an answer."""
        if saved is not None:
            state, settings = SimpleNamespace(**saved.checkpoint["channel_values"]), cast(Any, self.context_schema)
            settings_of(settings.of(context), state, str(place.where["thread_id"]), place.where)

    def _check_place(self, config: Any) -> "_Place | None":
        """Refuse to run in a graph that keeps nothing of it; return what says whose the thread is, if that is asked."""
        outer, given = ((each or {}).get("configurable") or {} for each in (var_child_runnable_config.get(), config))
        where, saver = outer | given, self.checkpointer
        is_other = given.get("thread_id") not in (None, outer.get("thread_id"))
        is_kept = isinstance(saver, bool) or (is_other and isinstance(saver, BaseCheckpointSaver))
        is_kept |= not (READ in where and where.get(CHECKPOINTER))
        if self.builder.input_schema is not TurnInput:
            return None
        if not is_kept:
            wrong = f"{self.builder.state_schema.MACHINE!r} is inside another graph, which keeps nothing of it."
            remedy = "Make it a node by as_node(…), which goes back with that graph, or compile(checkpointer=True) it;"
            raise DeclarationError(f"{wrong} {remedy} with checkpointer=False each call is a new conversation.")
        return None if self in players else _Place.of(self, config)


class _Place(NamedTuple):
    """A thread and where it is saved: the saver, and the `configurable` of a run or an edit, as LangGraph merges it."""

    saver: Any
    where: JSON

    @classmethod
    def of(cls, graph: GuardedGraph, config: Any) -> Self | None:
        """Find it; None within another graph's run, and without a thread or a saver."""
        configs = var_child_runnable_config.get(), getattr(graph, "config", None), config
        outer, own, given = ((each or {}).get("configurable") or {} for each in configs)
        where = ({} if READ in outer else outer) | own | given
        saver: Any = where.get(CHECKPOINTER) or graph.checkpointer
        is_own = where.get("thread_id") and READ not in where and isinstance(saver, BaseCheckpointSaver)
        return cls(saver, where) if is_own else None

    @property
    def config(self) -> Any:
        """The config to read the thread's newest checkpoint."""
        return {"configurable": {**self.where, "checkpoint_ns": "", "checkpoint_id": None}}


class _Turn:
    """Takes a thread for a run or an edit, and gives the config to run with; nothing within another graph's run."""

    def __init__(self, graph: GuardedGraph, config: Any) -> None:
        self.config, place, url = config or {}, _Place.of(graph, config), os.environ.get(DATABASE, "")
        self.locks = locks_of(url) if url and place and not place.where.get("checkpoint_ns") else None
        self.thread, self.saver = (str(place.where["thread_id"]), place.saver) if place else ("", cast(Any, None))
        self.takes = None if graph in players and (url, self.thread) in held_here else self.locks

    async def __aenter__(self) -> Any:
        if self.locks is None:
            return self.config
        ends = time.monotonic() + LONGEST_WAIT
        try:
            while self.takes and not await self.takes.acquire(self.thread):
                if time.monotonic() > ends:
                    holder = await asyncio.to_thread(self.locks.holder, self.thread) or "a run that has just ended"
                    problem = f"Thread {self.thread} is being played, and not free after {LONGEST_WAIT:.0f} seconds."
                    then = "Nothing was changed: say it again when the turn there has ended, or the game is left."
                    raise InputError(f"{problem} It is held by {holder}. {then}")
                await asyncio.sleep(_POLL)
        except self.locks.driver.Error as error:  # nothing of the run has begun
            raise InputError(f"Whether thread {self.thread} is being played cannot be said: {error}") from error
        check: Any = partial(self.locks.check, self.thread, self.locks.session)
        saver = object.__new__(type(self.saver))  # a twin that checks the lock whenever a checkpoint begins
        vars(saver).update(vars(self.saver), get_next_version=lambda *of: check() or self.saver.get_next_version(*of))
        return {**self.config, "configurable": {**(self.config.get("configurable") or {}), CHECKPOINTER: saver}}

    async def __aexit__(self, *_: object) -> None:
        if self.takes:
            await asyncio.shield(asyncio.to_thread(self.takes.free, self.thread))

    def __enter__(self) -> Any:
        return run_sync(self.__aenter__())

    def __exit__(self, *_: object) -> None:
        run_sync(self.__aexit__())


class SessionLocks:
    """Advisory locks of one session of PostgreSQL, for this process; the methods block, and raise psycopg.Error."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.driver: Any = psycopg  # loaded where a database is named
        self.url, self._one, self._held = url, threading.Lock(), set[str]()
        self.session: Any = None

    def take(self, name: str) -> bool:
        """Take a lock, unless another process, or someone else in this one, has it."""
        with self._one:
            if name in self._held or not self._ask(TRY, name):
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

    def check(self, name: str, session: Any) -> None:
        """Check that a lock is held since `session` took it, or raise a ThreadLostError. The database is not asked."""
        is_held = name in self._held and self.session is session
        if is_held and self._one.acquire(blocking=False):  # else the session is in use, and its end is noticed there
            try:
                for _ in range(2):  # what the database sent at the session's end, and that nothing follows
                    session.pgconn.consume_input()
            except self.driver.OperationalError:
                is_held = False
            finally:
                self._one.release()
        if not is_held:
            problem = f"Thread {name}: its lock was lost in the middle of a run, and another may play it now"
            raise ThreadLostError(f"{problem}. Nothing more is saved: look at it, and say again what has no reply.")

    def free(self, name: str) -> None:
        """Let others have a lock; it raises nothing, for what was done under it is done."""
        with self._one:
            if name in self._held:
                self._held.discard(name)
                try:
                    self._ask(_FREE, name)
                except self.driver.Error as error:  # a session that has ended holds nothing
                    _log.warning("Thread %s: its lock could not be given back: %s", name, error)

    def holder(self, name: str) -> str:
        """Return what the process calls itself that has a lock; "" if none has."""
        with self._one:
            return str(self._ask(HOLDER, name) or "").removeprefix(_PROGRAM)

    def close_if_idle(self) -> None:
        """End the session, unless something is held."""
        with self._one:
            if self.session is not None and not self._held:
                self.session.close()
                self.session = None

    def _ask(self, statement: str, name: str) -> Any:
        """Ask, once more in a new session where the old one has ended; it takes what is free of the old one's locks."""
        if self.session is not None:
            try:
                return self._first(self.session, statement, name)
            except self.driver.OperationalError:
                if not self.session.closed:  # it lives, and its locks with it
                    raise
        self.session = None
        session = self.driver.connect(self.url, autocommit=True, **session_options())
        session.execute(_KEEPALIVE)
        self._held -= {each for each in self._held if not self._first(session, TRY, each)}
        self.session = session
        return self._first(session, statement, name)

    def _first(self, session: Any, statement: str, name: str) -> Any:
        row = session.execute(statement, (name,)).fetchone()
        return row and row[0]


def session_options() -> dict[str, Any]:
    """Return how this process connects: under its name, and so that either side notices when the other has vanished."""
    name = os.environ.get(ADDRESS) or f"{socket.gethostname()}:{os.getpid()}"[:_MAX_NAME]
    if len(os.fsencode(name)) > _MAX_NAME:
        raise SettingsError(f"{ADDRESS} takes at most {_MAX_NAME} bytes, got {name!r:.80}.")
    alive = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
    return {"application_name": f"{_PROGRAM}{name}", "connect_timeout": 10, **alive}


locks_of = cache(SessionLocks)
"""Returns the locks of this process in a database, by its URL."""
