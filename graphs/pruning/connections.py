"""Who answers the steps of pruning: the saver's own connection, synchronous or not.

A query has the saver's lock while it runs, and a transaction has it to its end: runs of this process that use the same
connection wait for it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from questbook.graphs.errors import UnreadableError
from questbook.graphs.pruning.steps import Atomic, Load, Put, Query, Replayed, Request, Result, Steps

Rows = list[tuple[Any, ...]]
Execute = Callable[[Query], Rows]
ExecuteAsync = Callable[[Query], Awaitable[Rows]]
_BEGIN = "BEGIN IMMEDIATE"  # nobody else can write until it ends
_FOR_STEPS = (UnreadableError, sqlite3.OperationalError)  # they decide what becomes of these
_TASK = "00000000-0000-4000-8000-000000000000"  # of a stub's writes; not that of what callers write
_DAMAGED = (ValueError, KeyError, TypeError, EOFError)  # what a serializer raises


def run(steps: Steps[Result], saver: Any, execute: Execute | None = None) -> Result:
    """Run steps over a synchronous saver: SQLite's, Postgres', or in memory.

    Args:
        steps: The steps.
        saver: The checkpointer.
        execute: Runs a query in the transaction that these steps belong to; None: each query is alone.
    """
    request, result = _advance(steps)
    while request is not None:
        answer: Any = None
        failure: Exception | None = None
        try:
            if isinstance(request, Load):
                with _explained(request):
                    answer = saver.get_tuple(_config(request))
            elif isinstance(request, Replayed):
                answer = saver.get_delta_channel_history(config=_config(request), channels=request.channels)
            elif isinstance(request, Put):
                saved = saver.put(*_arguments(saver, request))
                saver.put_writes(saved, request.writes, _TASK)
            elif isinstance(request, Atomic):
                with _session(saver, transaction=True) as inside:
                    answer = run(request.steps, saver, inside)
            elif execute:
                answer = execute(request)
            else:
                with _session(saver) as alone:
                    answer = alone(request)
        except _FOR_STEPS as error:
            failure = error
        request, result = _advance(steps, answer, failure)
    return result  # type: ignore[return-value]  # set with the last request


async def run_async(steps: Steps[Result], saver: Any, execute: ExecuteAsync | None = None) -> Result:
    """Run steps over an asynchronous saver, SQLite's or Postgres'; what they compute is done in other threads."""
    request, result = await asyncio.to_thread(_advance, steps)
    while request is not None:
        answer: Any = None
        failure: Exception | None = None
        try:
            if isinstance(request, Load):
                with _explained(request):
                    answer = await saver.aget_tuple(_config(request))
            elif isinstance(request, Replayed):
                answer = await saver.aget_delta_channel_history(config=_config(request), channels=request.channels)
            elif isinstance(request, Put):
                saved = await saver.aput(*_arguments(saver, request))
                await saver.aput_writes(saved, request.writes, _TASK)
            elif isinstance(request, Atomic):
                async with _async_session(saver, transaction=True) as inside:
                    answer = await run_async(request.steps, saver, inside)
            elif execute:
                answer = await execute(request)
            else:
                async with _async_session(saver) as alone:
                    answer = await alone(request)
        except _FOR_STEPS as error:
            failure = error
        request, result = await asyncio.to_thread(_advance, steps, answer, failure)
    return result  # type: ignore[return-value]  # set with the last request


def is_async(saver: Any) -> bool:
    """Whether a saver has asynchronous methods only (or, of Postgres, an asynchronous connection)."""
    return isinstance(saver, AsyncSqliteSaver) or (
        not isinstance(saver, (SqliteSaver, InMemorySaver)) and asyncio.iscoroutinefunction(saver.setup)
    )


def _advance(
    steps: Steps[Result], answer: Any = None, failure: Exception | None = None
) -> tuple[Request | None, Result | None]:
    """Return the next request and None, or None and the result."""
    try:
        return (steps.throw(failure) if failure else steps.send(answer)), None
    except StopIteration as end:
        return None, end.value


def _arguments(saver: Any, put: Put) -> tuple[RunnableConfig, Checkpoint, CheckpointMetadata, ChannelVersions]:
    """Return what a saver's `put` takes."""
    where = {"thread_id": put.thread, "checkpoint_ns": put.namespace, "checkpoint_id": put.parent}
    versions = {name: saver.get_next_version(None, None) for name in put.checkpoint["channel_values"]}
    checkpoint: Checkpoint = {**put.checkpoint, "channel_versions": versions}
    return {"configurable": where}, checkpoint, put.metadata, versions


def _config(load: Load | Replayed) -> RunnableConfig:
    named = {"checkpoint_id": load.checkpoint} if load.checkpoint else {}
    return {"configurable": {"thread_id": load.thread, "checkpoint_ns": load.namespace, **named}}


@contextmanager
def _explained(load: Load) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        name = load.checkpoint or "its newest one"
        raise UnreadableError(f"Checkpoint {name} of thread {load.thread} cannot be read: {error!s:.120}") from error


@contextmanager
def _session(saver: Any, *, transaction: bool = False) -> Iterator[Execute]:
    if isinstance(saver, InMemorySaver):
        yield lambda _: []  # nothing is asked of it
        return
    with saver.lock:
        if isinstance(saver, SqliteSaver):
            saver.setup()
            connection = saver.conn
            connection.execute(_BEGIN) if transaction else None
            try:
                yield lambda query: connection.execute(query.statement, query.parameters).fetchall()
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
            return
        with _lent(saver.conn) as connection, connection.cursor(row_factory=_tuples()) as cursor:

            def execute(query: Query) -> Rows:
                cursor.execute(query.statement, query.parameters, prepare=False)
                return cursor.fetchall() if query.has_rows else []

            if saver.pipe:
                saver.pipe.sync()
            if transaction:
                with connection.transaction():
                    yield execute
            else:
                yield execute


@asynccontextmanager
async def _async_session(saver: Any, *, transaction: bool = False) -> AsyncIterator[ExecuteAsync]:
    if isinstance(saver, AsyncSqliteSaver):
        await saver.setup()
    async with saver.lock:
        if isinstance(saver, AsyncSqliteSaver):
            connection = saver.conn
            await connection.execute_fetchall(_BEGIN) if transaction else None

            async def fetch(query: Query) -> Rows:
                return [tuple(row) for row in await connection.execute_fetchall(query.statement, query.parameters)]

            try:
                yield fetch
            except BaseException:
                await connection.rollback()
                raise
            await connection.commit()
            return
        async with _lent_async(saver.conn) as lent, lent.cursor(row_factory=_tuples()) as cursor:

            async def execute(query: Query) -> Rows:
                await cursor.execute(query.statement, query.parameters, prepare=False)
                return await cursor.fetchall() if query.has_rows else []

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
