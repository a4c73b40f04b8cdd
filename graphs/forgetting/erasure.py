"""Erasure: taking things out of checkpoints that SQLite keeps, so that no byte of them stays in the file.

A checkpointer only adds. What is to be forgotten is therefore cut out of the rows themselves: decoded and encoded with
the saver's own serializer, with ids and structure as they were, so that every thread plays on.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from questbook.graphs.embedded.databases import uncompressed
from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting.phrase import Phrase

_BLOCK, _OVERLAP = 1 << 22, 1 << 14  # bytes of a file that are looked through at a time
_AT_ONCE = 200  # rows in one transaction
_TABLES = ("checkpoints", "writes")
_READ = {
    "checkpoints": "SELECT rowid, '', type, checkpoint, metadata FROM checkpoints "
    "WHERE rowid IN (SELECT value FROM json_each(?))",
    "writes": "SELECT rowid, channel, type, value, NULL FROM writes WHERE rowid IN (SELECT value FROM json_each(?))",
}
_WRITE = {
    "checkpoints": "UPDATE checkpoints SET type = ?, checkpoint = ?, metadata = ? WHERE rowid = ?",
    "writes": "UPDATE writes SET type = ?, value = ?, channel = coalesce(?, channel) WHERE rowid = ?",
}
_ROWS = {
    "checkpoints": "SELECT rowid FROM checkpoints WHERE thread_id IN (SELECT value FROM json_each(?))",
    "writes": "SELECT rowid FROM writes WHERE thread_id IN (SELECT value FROM json_each(?))",
}
_COMPRESSED = {
    "checkpoints": "SELECT type, checkpoint FROM checkpoints WHERE type LIKE '%+%'",
    "writes": "SELECT type, value FROM writes WHERE type LIKE '%+%'",
}
_SQLITE = b"SQLite format 3\x00"
_OF_PLAYER = (
    "SELECT DISTINCT thread_id, json_extract(CAST(metadata AS TEXT), '$.campaign') FROM checkpoints "
    "WHERE metadata IS NOT NULL AND json_valid(CAST(metadata AS TEXT)) "
    "AND json_extract(CAST(metadata AS TEXT), '$.user') = ?"
)


class Row(NamedTuple):
    """A value as a saver keeps it.

    Attributes:
        id: Its number in its table.
        channel: Name of the channel, for a pending write.
        type: Name of the encoding.
        value: The encoded value.
        metadata: JSON, for a checkpoint.
    """

    id: int
    channel: str
    type: str | None
    value: bytes | None
    metadata: bytes | str | None


class Erasure:
    """Takes things out of the checkpoints of threads.

    Args:
        saver: The checkpointer.

    Raises:
        ForgettingError: The checkpointer is none whose rows can be read and written here.
    """

    def __init__(self, saver: Any) -> None:
        if not isinstance(saver, AsyncSqliteSaver):
            raise ForgettingError(
                f"checkpoints that {type(saver).__name__} keeps cannot be changed from here: only those of "
                "AsyncSqliteSaver can"
            )
        self._saver = saver

    async def threads_of(self, user: str) -> dict[str, str]:
        """Return the campaign of each thread that was run for a user, by thread, as the checkpoints' metadata say."""
        await self._saver.setup()
        async with self._saver.lock, self._explained(), self._saver.conn.execute(_OF_PLAYER, (user,)) as cursor:
            return {str(thread): str(campaign or "") for thread, campaign in await cursor.fetchall()}

    async def nothing_left(self) -> bool:
        """Whether there is no checkpoint of anything."""
        await self._saver.setup()
        async with self._saver.lock, self._explained():
            return not list(await self._saver.conn.execute_fetchall("SELECT 1 FROM checkpoints LIMIT 1"))

    async def holding(self, threads: Iterable[str], phrase: Phrase) -> int:
        """Count the checkpoints and pending writes of threads that hold a phrase. Nothing is changed.

        Raises:
            ForgettingError: It cannot be cut out of one of them.
        """
        return await self._each(threads, phrase, write=False)

    async def cut(self, threads: Iterable[str], phrase: Phrase) -> int:
        """Cut a phrase out of every checkpoint and pending write of threads; return how many held it.

        Stopped in the middle, it is done for some; done again, it goes on with the rest.

        Raises:
            ForgettingError: It cannot be cut out of one of them.
        """
        return await self._each(threads, phrase, write=True)

    async def compact(self) -> None:
        """Write the file anew and empty its -wal, so that no byte of what was cut or deleted is left in either.

        Raises:
            ForgettingError: Another program holds the file.
        """
        connection = self._saver.conn
        await self._saver.setup()
        async with self._saver.lock, self._explained():
            await connection.commit()
            await connection.execute_fetchall("PRAGMA secure_delete = ON")  # pages taken anew hold no old bytes either
            await connection.execute_fetchall("VACUUM")
            [(busy, *_)] = await connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            raise ForgettingError(
                "Another program reads the checkpoints, so old bytes may still stand in their file. Close it "
                "(another terminal, Studio) and forget once more."
            )

    async def _each(self, threads: Iterable[str], phrase: Phrase, *, write: bool) -> int:
        await self._saver.setup()
        found = 0
        wanted = json.dumps(sorted(set(threads)))
        for table in _TABLES:
            async with self._saver.lock, self._explained():
                ids = [row[0] for row in await self._saver.conn.execute_fetchall(_ROWS[table], (wanted,))]
            for start in range(0, len(ids), _AT_ONCE):
                chosen = json.dumps(ids[start : start + _AT_ONCE])
                async with self._saver.lock, self._transaction() if write else self._explained():
                    rows = [Row(*row) for row in await self._saver.conn.execute_fetchall(_READ[table], (chosen,))]
                    changed = await asyncio.to_thread(self._changed, rows, phrase)
                    found += len(changed)
                    if write and changed:
                        await self._saver.conn.executemany(_WRITE[table], changed)
        return found

    def _changed(self, rows: Sequence[Row], phrase: Phrase) -> list[tuple[Any, ...]]:
        """Return the new columns of the rows that hold the phrase."""
        changed: list[tuple[Any, ...]] = []
        for row in rows:
            kind, value, metadata = row.type, row.value, row.metadata
            if value is not None and kind is not None and _may_hold(kind, value, phrase):
                known = self._saver.serde.loads_typed((kind, value))
                if (cut := phrase.cut(known, row.channel)) is not known:
                    kind, value = self._saver.serde.dumps_typed(cut)
            if metadata is not None:
                told = json.loads(metadata)
                if (cut := phrase.cut(told)) is not told and cut != told:
                    metadata = json.dumps(cut, ensure_ascii=False).encode("utf-8", "ignore")
            if (kind, value, metadata) != (row.type, row.value, row.metadata):
                changed.append((kind, value, metadata, row.id))
        return changed

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        connection = self._saver.conn
        async with self._explained():
            await connection.execute_fetchall("BEGIN IMMEDIATE")
            try:
                yield
                await connection.commit()
            except BaseException:
                await connection.rollback()
                raise

    @asynccontextmanager
    async def _explained(self) -> AsyncIterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ForgettingError(
                f"The checkpoints cannot be read or written: {error}. What is forgotten so far is; mend that and "
                "forget once more, which does the rest."
            ) from error


async def delete_threads(saver: Any, threads: Iterable[str]) -> int:
    """Delete every checkpoint of threads, with any checkpointer; return how many threads there were.

    Raises:
        ForgettingError: The checkpointer cannot delete threads.
    """
    found = 0
    for thread in sorted(set(threads)):
        found += await saver.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}) is not None
        try:
            await saver.adelete_thread(thread)
        except NotImplementedError as error:
            raise ForgettingError(
                f"{type(saver).__name__} cannot delete threads: delete {', '.join(sorted(set(threads)))} by its own "
                "means. Memories and all else of the campaign were left as they were."
            ) from error
    return found


def files_with(directory: Path, phrase: Phrase) -> list[str]:
    """Name the files under a directory that hold a phrase: as text in UTF-8, or in a compressed checkpoint."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return [str(path.relative_to(directory)) for path in files if _says(path, phrase) or _keeps(path, phrase)]


def _says(path: Path, phrase: Phrase) -> bool:
    with path.open("rb") as file:
        before = b""
        while block := file.read(_BLOCK):
            if phrase.may_be_in(before + block):
                return True
            before = block[-_OVERLAP:]
    return False


def _keeps(path: Path, phrase: Phrase) -> bool:
    """Whether a database of checkpoints holds a phrase in a compressed value."""
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            return False
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return any(
            _may_hold(kind, value, phrase)
            for table in _TABLES
            if table in tables
            for kind, value in database.execute(_COMPRESSED[table])
        )


def _may_hold(kind: str, value: bytes, phrase: Phrase) -> bool:
    """Whether a saved value can hold a phrase; one that only its serializer can open always can."""
    try:
        texts = uncompressed(kind, value)
    except ValueError as error:
        raise ForgettingError(f"A checkpoint cannot be read: {error} What is forgotten so far is.") from error
    return texts is None or phrase.may_be_in(texts)
