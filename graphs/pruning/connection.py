"""`Connection`: a saver's own connection, synchronous or not, by one set of methods.

A query has the saver's lock while it runs, and a transaction has it to its end: runs of this process that use the same
connection wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from questbook.graphs.errors import UnreadableError

Rows = list[tuple[Any, ...]]
Execute = Callable[..., Awaitable[Rows]]
"""Runs a statement with its parameters; returns the rows, as tuples."""
T = TypeVar("T")

_BEGIN = "BEGIN IMMEDIATE"  # nobody else can write until it ends
_TASK = "00000000-0000-4000-8000-000000000000"  # of a stub's writes; not that of what callers write
_DAMAGED = (ValueError, KeyError, TypeError, EOFError)  # what a serializer raises


class Connection:
    """What pruning asks of any saver.

    Args:
        saver: The checkpointer: SQLite's, Postgres', or in memory.

    Attributes:
        is_async: Whether it has asynchronous methods only (or, of Postgres, an asynchronous connection). Over another
            one no method here ever waits, so that `run_at_once` can run them.
    """

    def __init__(self, saver: Any) -> None:
        self._saver = saver
        self.is_async = isinstance(saver, AsyncSqliteSaver) or (
            not isinstance(saver, (SqliteSaver, InMemorySaver))
            and asyncio.iscoroutinefunction(getattr(saver, "setup", None))
        )

    async def load(self, thread: str, namespace: str = "", checkpoint: str = "") -> CheckpointTuple | None:
        """Return a checkpoint with its values; without an id the newest of the namespace; None if there is none.

        Raises:
            UnreadableError: It is damaged.
        """
        try:
            saved: CheckpointTuple | None = await self._call("get_tuple", _config(thread, namespace, checkpoint))
        except _DAMAGED as error:
            name = checkpoint or "its newest one"
            raise UnreadableError(f"Checkpoint {name} of thread {thread} cannot be read: {error!s:.120}") from error
        return saved

    async def replayed(
        self, thread: str, namespace: str, checkpoint: str, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the history of channels whose value is not in a checkpoint alone."""
        config = _config(thread, namespace, checkpoint)
        history: Mapping[str, DeltaChannelHistory] = await self._call(
            "get_delta_channel_history", config=config, channels=channels
        )
        return history

    async def put(
        self,
        thread: str,
        namespace: str,
        parent: str | None,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        writes: Sequence[tuple[str, Any]],
    ) -> None:
        """Write a checkpoint, whose values get versions of their own, with pending writes."""
        versions = {name: self._saver.get_next_version(None, None) for name in checkpoint["channel_values"]}
        where = _config(thread, namespace, parent or "")
        saved = await self._call("put", where, {**checkpoint, "channel_versions": versions}, metadata, versions)
        await self._call("put_writes", saved, writes, _TASK)

    async def query(self, statement: str, *parameters: Any) -> Rows:
        """Run one statement."""
        async with self.session() as execute:
            return await execute(statement, *parameters)

    @asynccontextmanager
    async def session(self, *, transaction: bool = False) -> AsyncIterator[Execute]:
        """Hold the database for some statements, which are done as a whole if they are a transaction."""
        if self.is_async:
            async with _async_session(self._saver, transaction=transaction) as execute:
                yield execute
            return
        with _session(self._saver, transaction=transaction) as execute_now:

            async def execute_at_once(statement: str, *parameters: Any) -> Rows:
                return execute_now(statement, *parameters)

            yield execute_at_once

    async def compute(self, work: Callable[[], T]) -> T:
        """Return what some work computes; in another thread if an event loop would wait for it."""
        return await asyncio.to_thread(work) if self.is_async else work()

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if self.is_async:
            return await getattr(self._saver, f"a{method}")(*args, **kwargs)
        return getattr(self._saver, method)(*args, **kwargs)


def run_at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits; return its result. No event loop is needed."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("Something waited in work that is to be done at once.")


def _config(thread: str, namespace: str, checkpoint: str) -> RunnableConfig:
    named = {"checkpoint_id": checkpoint} if checkpoint else {}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, **named}}


@contextmanager
def _session(saver: Any, *, transaction: bool = False) -> Iterator[Callable[..., Rows]]:
    with saver.lock:
        if isinstance(saver, SqliteSaver):
            saver.setup()
            connection = saver.conn
            connection.execute(_BEGIN) if transaction else None
            try:
                yield lambda statement, *parameters: connection.execute(statement, parameters).fetchall()
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
            return
        with _lent(saver.conn) as connection, connection.cursor(row_factory=_tuples()) as cursor:

            def execute(statement: str, *parameters: Any) -> Rows:
                cursor.execute(statement, parameters, prepare=False)
                return cursor.fetchall() if statement.startswith("SELECT") else []

            if saver.pipe:
                saver.pipe.sync()
            if transaction:
                with connection.transaction():
                    yield execute
            else:
                yield execute


@asynccontextmanager
async def _async_session(saver: Any, *, transaction: bool = False) -> AsyncIterator[Execute]:
    if isinstance(saver, AsyncSqliteSaver):
        await saver.setup()
    async with saver.lock:
        if isinstance(saver, AsyncSqliteSaver):
            connection = saver.conn
            await connection.execute_fetchall(_BEGIN) if transaction else None

            async def fetch(statement: str, *parameters: Any) -> Rows:
                return [tuple(row) for row in await connection.execute_fetchall(statement, parameters)]

            try:
                yield fetch
            except BaseException:
                await connection.rollback()
                raise
            await connection.commit()
            return
        async with _lent_async(saver.conn) as lent, lent.cursor(row_factory=_tuples()) as cursor:

            async def execute(statement: str, *parameters: Any) -> Rows:
                await cursor.execute(statement, parameters, prepare=False)
                return await cursor.fetchall() if statement.startswith("SELECT") else []

            if saver.pipe:
                await saver.pipe.sync()
            if transaction:
                async with lent.transaction():
                    yield execute
            else:
                yield execute


def _tuples() -> Any:
    from psycopg.rows import tuple_row  # only if there is a saver for Postgres

    return tuple_row


@contextmanager
def _lent(connection: Any) -> Iterator[Any]:
    """Yield a connection, one of a pool's if it is a pool."""
    if not hasattr(connection, "getconn"):
        yield connection
        return
    with connection.connection() as lent:
        yield lent


@asynccontextmanager
async def _lent_async(connection: Any) -> AsyncIterator[Any]:
    if not hasattr(connection, "getconn"):
        yield connection
        return
    async with connection.connection() as lent:
        yield lent
