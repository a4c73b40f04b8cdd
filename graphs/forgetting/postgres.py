"""`PostgresErasure`: taking things out of the checkpoints that LangGraph's AsyncPostgresSaver keeps.

Afterwards the tables are vacuumed, so no query returns what was deleted. The database's files belong to its server:
free space in them, the write-ahead log and backups hold old bytes until they are used again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting.erasure import Cutting, holds
from questbook.graphs.forgetting.phrase import Phrase

SAVERS: tuple[type, ...] = ()
SYNC_SAVERS: tuple[type, ...] = ()
STORES: tuple[type, ...] = ()
SYNC_STORES: tuple[type, ...] = ()
try:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
except ImportError:  # an app without PostgreSQL has no object of these classes
    pass
else:
    SAVERS, SYNC_SAVERS = (AsyncPostgresSaver,), (PostgresSaver,)
    STORES, SYNC_STORES = (AsyncPostgresStore, PostgresStore), (PostgresStore,)

_ROWS_AT_ONCE = 200  # in one transaction
_OF_USER = "SELECT DISTINCT thread_id, metadata->>'campaign' FROM checkpoints WHERE metadata->>'user' = %s"
_ROWS = "SELECT ctid::text FROM {table} WHERE thread_id = ANY(%s)"
_JSON = {
    "read": "SELECT ctid::text, checkpoint, metadata FROM checkpoints WHERE ctid = ANY(%s::tid[]) {own}",
    "write": "UPDATE checkpoints SET checkpoint = %s, metadata = %s WHERE ctid = %s::tid",
}
_BLOBS = {
    "read": "SELECT ctid::text, channel, type, blob FROM {table} "
    "WHERE ctid = ANY(%s::tid[]) AND blob IS NOT NULL {own}",
    "write": "UPDATE {table} SET type = %s, blob = %s WHERE ctid = %s::tid",
}
# Between two statements a row's place may have become another row's.
_OWN = "AND thread_id = ANY(%s)"
_EXISTING = "SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NOT NULL"
_BLOB_TABLES = ("checkpoint_blobs", "checkpoint_writes")
CHECKPOINT_TABLES = ("checkpoints", *_BLOB_TABLES)
STORE_TABLES = ("store", "store_vectors")


async def vacuum(owner: Any, tables: Sequence[str]) -> None:
    """Vacuum the tables of an AsyncPostgresSaver or of one of `STORES`, as far as there are such tables.

    Raises:
        ForgettingError: The database refuses.
    """
    from psycopg import Error

    try:
        if isinstance(owner, SYNC_STORES):
            await asyncio.to_thread(_vacuum_in_sync, owner, tables)
            return
        async with _cursor(owner) as cursor:
            await cursor.execute(_EXISTING, (list(tables),))
            for (table,) in await cursor.fetchall():
                await cursor.execute(f"VACUUM {table}")
    except Error as error:
        raise ForgettingError(
            f"What was to be forgotten is removed, but the database was not vacuumed: {error}. VACUUM "
            f"{', '.join(tables)} yourself, or let autovacuum do it."
        ) from error


class PostgresErasure(Cutting):
    """Takes things out of the checkpoints of an AsyncPostgresSaver's threads."""

    async def threads_of(self, user: str) -> dict[str, str]:  # noqa: D102
        if "\0" in user:  # which no JSON in PostgreSQL can hold
            return {}
        async with _cursor(self._saver) as cursor:
            await cursor.execute(_OF_USER, (user,))
            return {str(thread): str(campaign or "") for thread, campaign in await cursor.fetchall()}

    async def compact(self) -> None:  # noqa: D102
        await vacuum(self._saver, CHECKPOINT_TABLES)

    async def _each(self, threads: Iterable[str], phrase: Phrase, *, write: bool) -> int:
        count, named = 0, sorted(set(threads))
        for table in CHECKPOINT_TABLES:
            statements, look = (_JSON, self._changed_json) if table == "checkpoints" else (_BLOBS, self._changed_blobs)
            async with _cursor(self._saver) as cursor:
                await cursor.execute(_ROWS.format(table=table), (named,))
                rows = [row for (row,) in await cursor.fetchall()]
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                async with _cursor(self._saver) as cursor, cursor.connection.transaction():
                    read = statements["read"].format(table=table, own=f"{_OWN} FOR UPDATE" if write else _OWN)
                    await cursor.execute(read, (rows[start : start + _ROWS_AT_ONCE], named))
                    changed = await asyncio.to_thread(look, await cursor.fetchall(), phrase)
                    count += len(changed)
                    if write and changed:
                        await cursor.executemany(statements["write"].format(table=table), changed)
        return count

    def _changed_json(self, rows: Sequence[Any], phrase: Phrase) -> list[tuple[Any, ...]]:
        from psycopg.types.json import Jsonb

        changed: list[tuple[Any, ...]] = []
        for row, checkpoint, metadata in rows:
            cut = phrase.cut(checkpoint), phrase.cut(metadata)
            if cut != (checkpoint, metadata):
                changed.append((*map(Jsonb, cut), row))
        return changed

    def _changed_blobs(self, rows: Sequence[Any], phrase: Phrase) -> list[tuple[Any, ...]]:
        changed: list[tuple[Any, ...]] = []
        for row, channel, kind, blob in rows:
            value = bytes(blob)
            if kind in ("empty", "null") or not holds(kind, value, phrase.may_be_in):
                continue
            # Under its channel's name, as in a whole checkpoint: some channels hold technical names alone.
            named = {channel: self._saver.serde.loads_typed((kind, value))}
            if (cut := phrase.cut(named)) is not named:
                changed.append((*self._saver.serde.dumps_typed(cut[channel]), row))
        return changed


@asynccontextmanager
async def _cursor(owner: Any) -> AsyncIterator[Any]:
    from psycopg.rows import tuple_row

    pooled = hasattr(owner.conn, "getconn")
    async with (
        nullcontext() if pooled else owner.lock,
        owner.conn.connection() if pooled else nullcontext(owner.conn) as connection,
        connection.cursor(row_factory=tuple_row) as cursor,
    ):
        yield cursor


def _vacuum_in_sync(owner: Any, tables: Sequence[str]) -> None:
    from psycopg.rows import tuple_row

    pooled = hasattr(owner.conn, "getconn")
    with (
        nullcontext() if pooled else owner.lock,
        owner.conn.connection() if pooled else nullcontext(owner.conn) as connection,
        connection.cursor(row_factory=tuple_row) as cursor,
    ):
        for (table,) in cursor.execute(_EXISTING, (list(tables),)).fetchall():
            cursor.execute(f"VACUUM {table}")
