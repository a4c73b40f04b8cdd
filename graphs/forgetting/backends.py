"""What can be done to which store and checkpointer: the one place that asks of what class they are.

What is taken out of the checkpoints of LangGraph's AsyncPostgresSaver, or its store, no query returns: the tables are
vacuumed. The database's files belong to its server: free space in them, the write-ahead log and backups hold old bytes
until they are used again.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from questbook.graphs.errors import ForgettingError, UnreadableError
from questbook.graphs.forgetting.erasure import Cutting, Erasure
from questbook.graphs.forgetting.phrase import Phrase
from questbook.memory.store.any_store import StoreBehind
from questbook.memory.store.faiss_store import FaissStore
from questbook.memory.text.parts import read_parts

try:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
except ImportError:  # an app without PostgreSQL has no object of these classes
    _SAVERS = _SYNC_SAVERS = _STORES = _SYNC_STORES = tuple[type, ...]()
else:
    _SAVERS, _SYNC_SAVERS = (AsyncPostgresSaver,), (PostgresSaver,)
    _STORES, _SYNC_STORES = (AsyncPostgresStore, PostgresStore), (PostgresStore,)

_ROWS_AT_ONCE = 200  # in one transaction
_SQL = read_parts("questbook.graphs.forgetting", "postgres.toml")
_CHECKPOINT_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_WITHOUT_WORDS = ("empty", "null", "listed")  # types of blobs; the last is a list of digests
_STORE_TABLES = ("store", "store_vectors")


def erasure_of(checkpointer: BaseCheckpointSaver[Any] | None) -> Cutting | None:
    """Return what takes things out of a checkpointer's checkpoints; None if nothing does.

    One without asynchronous methods is a ForgettingError. Nothing was changed.
    """
    if isinstance(checkpointer, (SqliteSaver, *_SYNC_SAVERS)):
        name = type(checkpointer).__name__
        hint = f"open its database with Async{name} to forget in it. Nothing was changed."
        raise ForgettingError(f"{name} has no asynchronous methods: {hint}")
    if isinstance(checkpointer, AsyncSqliteSaver):
        return Erasure(checkpointer)
    return PostgresErasure(checkpointer) if isinstance(checkpointer, _SAVERS) else None


async def delete_threads(saver: BaseCheckpointSaver[Any], threads: Iterable[str]) -> int:
    """Delete every checkpoint of threads; return how many there were. ForgettingError: the checkpointer cannot."""
    count, names = 0, sorted(set(threads))
    for thread in names:
        try:
            count += await saver.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}) is not None
        except UnreadableError:
            count += 1
        try:
            await saver.adelete_thread(thread)
        except NotImplementedError as error:
            problem = f"{type(saver).__name__} cannot delete threads: delete {', '.join(names)} by its own means."
            kept = "Memories and everything else of the campaign were not changed."
            raise ForgettingError(f"{problem} {kept}") from error
    return count


async def compact(
    store: BaseStore, checkpointer: BaseCheckpointSaver[Any] | None, erasure: Cutting | None, done: str, *, cut: bool
) -> None:
    """Write the databases of a store and a checkpointer again, so that no deleted byte stays in a file.

    `cut` says whether words were to be cut out of checkpoints, `done` what was done, for the ForgettingError that says
    what could not be done here.
    """
    problems: list[str] = []
    while isinstance(store, StoreBehind):
        store = store.store
    if isinstance(store, FaissStore):
        await asyncio.to_thread(store.compact)
    elif isinstance(store, _STORES):
        await _vacuum(store, _STORE_TABLES)
    elif not isinstance(store, InMemoryStore):
        problem = "may keep deleted rows in its files until it is vacuumed by its own means"
        problems.append(f"{type(store).__name__} {problem}")
    if erasure is not None:
        await erasure.compact()
    elif cut and checkpointer is not None:
        hint = "only those of AsyncSqliteSaver and AsyncPostgresSaver can be changed; delete the threads there"
        name = type(checkpointer).__name__
        problems.append(f"the checkpoints of {name} were not changed and may still hold it: {hint}")
    if problems:
        raise ForgettingError(f"{done}, but {'; '.join(problems)}.")


async def _vacuum(owner: Any, tables: Sequence[str]) -> None:
    """Vacuum the tables of an AsyncPostgresSaver or of one of the stores, as far as there are such tables."""
    from psycopg import Error

    said: list[str] = []

    def note(notice: Any) -> None:
        if notice.severity_nonlocalized == "WARNING":  # it skips a table of another role
            said.append(notice.message_primary)

    try:
        if isinstance(owner, _SYNC_STORES):
            await asyncio.to_thread(_vacuum_in_sync, owner, tables, note)
        else:
            async with owner._cursor() as cursor:
                await cursor.execute(_SQL["EXISTING"], (list(tables),))
                cursor.connection.add_notice_handler(note)
                try:
                    for row in await cursor.fetchall():
                        await cursor.execute(f"VACUUM {row['name']}")
                finally:  # a pool lends the connection to others
                    cursor.connection.remove_notice_handler(note)
        if said:
            raise Error("; ".join(said))
    except Error as error:
        problem = f"What was to be forgotten is removed, but the database was not vacuumed: {error}."
        raise ForgettingError(f"{problem} VACUUM {', '.join(tables)} yourself, or let autovacuum do it.") from error


def _vacuum_in_sync(owner: Any, tables: Sequence[str], note: Any) -> None:
    with owner._cursor() as cursor:
        cursor.connection.add_notice_handler(note)
        for row in cursor.execute(_SQL["EXISTING"], (list(tables),)).fetchall():
            cursor.execute(f"VACUUM {row['name']}")
        cursor.connection.remove_notice_handler(note)


class PostgresErasure(Cutting):
    """Takes things out of the checkpoints of an AsyncPostgresSaver's threads."""

    async def threads_of(self, user: str) -> dict[str, str]:  # noqa: D102
        if "\0" in user:  # which no JSON in PostgreSQL can hold
            return {}
        async with self._saver._cursor() as cursor:
            await cursor.execute(_SQL["OF_USER"], (user,))
            return {row["thread_id"]: row["campaign"] or "" for row in await cursor.fetchall()}

    async def compact(self) -> None:  # noqa: D102
        await _vacuum(self._saver, _CHECKPOINT_TABLES)

    async def cut(self, threads: Iterable[str], phrase: Phrase, *, write: bool = True) -> int:  # noqa: D102
        count, named = 0, sorted(set(threads))
        for table in _CHECKPOINT_TABLES:
            kind, look = ("JSON", self._changed_json) if table == "checkpoints" else ("BLOBS", self._changed_blobs)
            async with self._saver._cursor() as cursor:
                await cursor.execute(_SQL["ROWS"].format(table=table), (named,))
                rows = [row["place"] for row in await cursor.fetchall()]
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                async with self._saver._cursor() as cursor, cursor.connection.transaction():
                    read = _SQL[f"READ_{kind}"].format(table=table) + (" FOR UPDATE" if write else "")
                    await cursor.execute(read, (rows[start : start + _ROWS_AT_ONCE], named))
                    found = [tuple(row.values()) for row in await cursor.fetchall()]
                    changed = await asyncio.to_thread(look, found, phrase)
                    count += len(changed)
                    if write and changed:
                        await cursor.executemany(_SQL[f"WRITE_{kind}"].format(table=table), changed)
        return count

    def _changed_json(self, rows: Sequence[Any], phrase: Phrase) -> list[tuple[Any, ...]]:
        from psycopg.types.json import Jsonb

        return [(*map(Jsonb, cut), row) for row, *old in rows if (cut := list(map(phrase.cut, old))) != old]

    def _changed_blobs(self, rows: Sequence[Any], phrase: Phrase) -> list[tuple[Any, ...]]:
        return [
            (*new, row)
            for row, channel, kind, blob in rows
            if kind not in _WITHOUT_WORDS and (new := self._cut_value(channel, kind, bytes(blob), phrase))
        ]
