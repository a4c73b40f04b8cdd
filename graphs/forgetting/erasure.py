"""`Erasure`: taking things out of the checkpoints that SQLite keeps, so that no byte of them stays in the file.

A checkpointer only adds checkpoints. What is to be forgotten is therefore cut out of its rows: each is decoded and
encoded again with the saver's own serializer. Ids and structure stay, so every thread can go on.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from questbook.graphs.embedded.checkpointer import Checkpointer
from questbook.graphs.embedded.compression import decompress, kind_in_parts, kind_of_rest
from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting.phrase import Phrase
from questbook.memory.store.database_file import BLOCK, MAGIC, read_files

_OVERLAP = 1 << 14  # bytes that two blocks share, so that a phrase on their border is found
_ROWS_AT_ONCE = 200  # in one transaction
_TABLES = ("checkpoints", "writes", "checkpoint_blobs")
_READ = {
    "checkpoints": "SELECT rowid, '', type, checkpoint, metadata FROM checkpoints "
    "WHERE rowid IN (SELECT value FROM json_each(?))",
    "writes": "SELECT rowid, channel, type, value, NULL FROM writes WHERE rowid IN (SELECT value FROM json_each(?))",
    "checkpoint_blobs": "SELECT id, channel, type, value, NULL FROM checkpoint_blobs "
    "WHERE id IN (SELECT value FROM json_each(?))",
}
_WRITE = {
    "checkpoints": "UPDATE checkpoints SET type = ?, checkpoint = ?, metadata = ? WHERE rowid = ?",
    "writes": "UPDATE writes SET type = ?, value = ?, channel = coalesce(?, channel) WHERE rowid = ?",
    "checkpoint_blobs": "UPDATE checkpoint_blobs SET type = ?, value = ?, channel = coalesce(?, channel) WHERE id = ?",
}
_ROWS = {
    "checkpoints": "SELECT rowid FROM checkpoints WHERE thread_id IN (SELECT value FROM json_each(?))",
    "writes": "SELECT rowid FROM writes WHERE thread_id IN (SELECT value FROM json_each(?))",
    "checkpoint_blobs": "SELECT DISTINCT json_each.value FROM checkpoints, json_each(checkpoints.blobs) "
    "WHERE thread_id IN (SELECT value FROM json_each(?))",
}
_COMPRESSED = {
    "checkpoints": "SELECT type, checkpoint FROM checkpoints WHERE type LIKE '%+%'",
    "writes": "SELECT type, value FROM writes WHERE type LIKE '%+%'",
    "checkpoint_blobs": "SELECT type, value FROM checkpoint_blobs WHERE type LIKE '%+%'",
}
_HAS_BLOBS = "SELECT 1 FROM sqlite_master WHERE name = 'checkpoint_blobs'"  # not in the file of AsyncSqliteSaver
_DELETE_UNLISTED = (
    "DELETE FROM checkpoint_blobs "
    "WHERE id NOT IN (SELECT json_each.value FROM checkpoints, json_each(checkpoints.blobs))"
)
_FORGETTING = "CREATE TABLE IF NOT EXISTS forgetting (thread_id TEXT, user TEXT, campaign TEXT, words TEXT)"
_LEAVE = "INSERT INTO forgetting VALUES (?, ?, ?, ?)"
_LEFT = "SELECT user, campaign, words FROM forgetting WHERE thread_id = ?"
_DONE = "DELETE FROM forgetting WHERE thread_id = ? AND words = ?"
# How compressed bytes begin (RFC 1950): at any level in a window of 32 KB, or at level 1 in a smaller one.
_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x18\x19|\x28\x15|\x38\x11|\x48\x0d|\x58\x09|\x68\x05")
_TEXT_RUNS = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xf4]{8,}")
_OF_USER = (
    "SELECT DISTINCT thread_id, json_extract(CAST(metadata AS TEXT), '$.campaign') FROM checkpoints "
    "WHERE metadata IS NOT NULL AND json_valid(CAST(metadata AS TEXT)) "
    "AND json_extract(CAST(metadata AS TEXT), '$.user') = ?"
)


class Row(NamedTuple):
    """One row of a saver's table.

    Attributes:
        id: Its row id.
        channel: Name of the channel, if it is a channel's value or a pending write; else "".
        type: Name of the value's encoding.
        value: The encoded value.
        metadata: JSON, if it is a checkpoint.
    """

    id: int
    channel: str
    type: str | None
    value: bytes | None
    metadata: bytes | str | None


class Cutting(ABC):
    """Cuts words out of the rows of a checkpointer's database; how the rows are read and written differs.

    Attributes:
        comes_back: Whether the checkpointer itself forgets again, when a turn ends, what was left to it.
    """

    comes_back = False

    async def count(self, threads: Iterable[str], phrase: Phrase) -> int:
        """Count the checkpoints and pending writes of threads that hold a phrase. Nothing is changed.

        Raises:
            ForgettingError: It cannot be cut out of one of them.
        """
        return await self._each(threads, phrase, write=False)

    async def cut(self, threads: Iterable[str], phrase: Phrase) -> int:
        """Cut a phrase out of every checkpoint and pending write of threads; return how many held it.

        If it is stopped, some rows are done; a second call does the rest.

        Raises:
            ForgettingError: It cannot be cut out of one of them.
        """
        return await self._each(threads, phrase, write=True)

    @abstractmethod
    async def _each(self, threads: Iterable[str], phrase: Phrase, *, write: bool) -> int:
        """Look through the rows of threads, change those that hold the phrase if asked to, and count them."""


class Erasure(Cutting):
    """Takes things out of the checkpoints of threads.

    Args:
        saver: The checkpointer.

    Raises:
        ForgettingError: It is no AsyncSqliteSaver.
    """

    def __init__(self, saver: Any) -> None:
        if not isinstance(saver, AsyncSqliteSaver):
            raise ForgettingError(
                f"checkpoints that {type(saver).__name__} keeps cannot be changed from here: only those of "
                "AsyncSqliteSaver can"
            )
        self._saver = saver
        self.comes_back = isinstance(saver, Checkpointer)

    async def threads_of(self, user: str) -> dict[str, str]:
        """Return the threads that were run for a user, each with its campaign, as the checkpoints' metadata say."""
        await self._saver.setup()
        async with self._saver.lock, self._explain_errors(), self._saver.conn.execute(_OF_USER, (user,)) as cursor:
            return {str(thread): str(campaign or "") for thread, campaign in await cursor.fetchall()}

    async def is_empty(self) -> bool:
        """Whether there is no checkpoint at all."""
        await self._saver.setup()
        async with self._saver.lock, self._explain_errors():
            return not list(await self._saver.conn.execute_fetchall("SELECT 1 FROM checkpoints LIMIT 1"))

    async def leave_for_runs(
        self, threads: Iterable[str], playing: Iterable[str], owner: tuple[str, str], phrase: Phrase
    ) -> None:
        """Leave a phrase to be forgotten again when turns end that other programs play; the file holds it until then.

        Args:
            threads: The threads of a campaign; what was left for them before is done.
            playing: Those in the middle of a turn.
            owner: User and campaign.
            phrase: What was cut out of them.
        """
        async with self._saver.lock, self._transaction():
            connection = self._saver.conn
            await connection.execute_fetchall(_FORGETTING)
            await connection.executemany(_DONE, [(thread, phrase.words) for thread in threads])
            await connection.executemany(_LEAVE, [(thread, *owner, phrase.words) for thread in playing])

    async def left_for(self, thread: str) -> list[tuple[str, str, str]]:
        """Return what was left to be forgotten when a thread's turn ends: user, campaign and words of each."""
        async with self._saver.lock, self._explain_errors():
            rows = await self._saver.conn.execute_fetchall(_LEFT, (thread,))
            return [(str(user), str(campaign), str(words)) for user, campaign, words in rows]

    async def compact(self) -> None:
        """Write the file again and empty its -wal, so that neither holds a byte of what was cut or deleted.

        Raises:
            ForgettingError: Another program holds the file.
        """
        connection = self._saver.conn
        await self._saver.setup()
        async with self._saver.lock, self._explain_errors():
            if list(await connection.execute_fetchall(_HAS_BLOBS)):
                await connection.execute_fetchall(_DELETE_UNLISTED)  # an older version has deleted the thread
            await connection.commit()
            # Pages that are used again hold no old bytes either.
            await connection.execute_fetchall("PRAGMA secure_delete = ON")
            await connection.execute_fetchall("VACUUM")
            [(busy, *_)] = await connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            raise ForgettingError(
                "Another program reads the checkpoints, so old bytes may still be in their file. Close it "
                "(another terminal, Studio) and forget again."
            )

    async def _each(self, threads: Iterable[str], phrase: Phrase, *, write: bool) -> int:
        await self._saver.setup()
        count = 0
        thread_list = json.dumps(sorted(set(threads)))
        async with self._saver.lock, self._explain_errors():
            tables = _TABLES if list(await self._saver.conn.execute_fetchall(_HAS_BLOBS)) else _TABLES[:-1]
        for table in tables:
            async with self._saver.lock, self._explain_errors():
                ids = [row[0] for row in await self._saver.conn.execute_fetchall(_ROWS[table], (thread_list,))]
            for start in range(0, len(ids), _ROWS_AT_ONCE):
                chosen = json.dumps(ids[start : start + _ROWS_AT_ONCE])
                async with self._saver.lock, self._transaction() if write else self._explain_errors():
                    rows = [Row(*row) for row in await self._saver.conn.execute_fetchall(_READ[table], (chosen,))]
                    changed = await asyncio.to_thread(self._changed_rows, rows, phrase)
                    count += len(changed)
                    if write and changed:
                        await self._saver.conn.executemany(_WRITE[table], changed)
        return count

    def _changed_rows(self, rows: Sequence[Row], phrase: Phrase) -> list[tuple[Any, ...]]:
        """Return the new columns of the rows that hold the phrase."""
        changed: list[tuple[Any, ...]] = []
        for row in rows:
            kind, value, metadata = row.type, row.value, row.metadata
            if value is not None and kind is not None and holds(kind, value, phrase.may_be_in):
                decoded = self._saver.serde.loads_typed((kind_of_rest(kind), value))
                # Under its channel's name, as in a whole checkpoint: some channels hold technical names alone.
                named = {row.channel: decoded} if row.channel else decoded
                if (cut := phrase.cut(named)) is not named:
                    in_parts = kind != kind_of_rest(kind)
                    kind, value = self._saver.serde.dumps_typed(cut[row.channel] if row.channel else cut)
                    kind = kind_in_parts(kind) if in_parts else kind
            if metadata is not None:
                fields = json.loads(metadata)
                if (cut := phrase.cut(fields)) is not fields and cut != fields:
                    metadata = json.dumps(cut, ensure_ascii=False).encode("utf-8", "ignore")
            if (kind, value, metadata) != (row.type, row.value, row.metadata):
                changed.append((kind, value, metadata, row.id))
        return changed

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        connection = self._saver.conn
        async with self._explain_errors():
            await connection.execute_fetchall("BEGIN IMMEDIATE")
            try:
                yield
                await connection.commit()
            except BaseException:
                await connection.rollback()
                raise

    @asynccontextmanager
    async def _explain_errors(self) -> AsyncIterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ForgettingError(
                f"The checkpoints cannot be read or written: {error}. What was forgotten so far is gone; fix that and "
                "forget again, which does the rest."
            ) from error


async def delete_threads(saver: Any, threads: Iterable[str]) -> int:
    """Delete every checkpoint of threads, with any checkpointer; return how many threads there were.

    Raises:
        ForgettingError: The checkpointer cannot delete threads.
    """
    count = 0
    for thread in sorted(set(threads)):
        count += await saver.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}) is not None
        try:
            await saver.adelete_thread(thread)
        except NotImplementedError as error:
            raise ForgettingError(
                f"{type(saver).__name__} cannot delete threads: delete {', '.join(sorted(set(threads)))} by its own "
                "means. Memories and everything else of the campaign were not changed."
            ) from error
    return count


def files_with(directory: Path, phrase: Phrase) -> list[str]:
    """Return the files under a directory that hold a phrase: as text in UTF-8, or in a compressed checkpoint.

    Raises:
        ForgettingError: A file cannot be read.
    """
    files, found = [path for path in sorted(directory.rglob("*")) if path.is_file()], []
    try:
        for path, blocks in groupby(read_files(files, BLOCK), key=itemgetter(0)):
            is_database, in_text = _look_through((block for _, block in blocks), phrase)
            if is_database:
                in_text = (in_text and _in_rows(path, phrase)) or _in_checkpoints(path, phrase)
            if in_text:
                found.append(str(path.relative_to(directory)))
    except OSError as error:
        raise ForgettingError(
            f"It is forgotten, but whether a file still holds the words cannot be said: {error}. Correct that and "
            "forget again."
        ) from error
    return found


def _look_through(blocks: Iterator[bytes], phrase: Phrase) -> tuple[bool, bool]:
    """Return whether the bytes of a file are a database, and whether they hold a phrase."""
    block = next(blocks)
    is_database, found = block.startswith(MAGIC), phrase.seems_in(block)
    while not found and (following := next(blocks, b"")):
        block = block[-_OVERLAP:] + following
        found = phrase.seems_in(block)
    return is_database, found


def _in_rows(path: Path, phrase: Phrase) -> bool:
    """Whether a text in a database holds a phrase. Bytes of a vector may look like a short word, and say nothing."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        return any(
            _is_in_value(value, phrase)
            for (table,) in tables.fetchall()
            for row in database.execute(f'SELECT * FROM "{table}"')  # noqa: S608 (the name is the file's own)
            for value in row
        )


def _is_in_value(value: Any, phrase: Phrase) -> bool:
    if not isinstance(value, bytes):
        return isinstance(value, str) and phrase.is_in(value)
    if _ZLIB.match(value):  # any three letters are somewhere in it; `_in_checkpoints` unpacks it
        return False
    # Letters of a text stand among others; those of a vector stand among bytes that are no text.
    return any(phrase.seems_in(run) for run in _TEXT_RUNS.findall(value))


def _in_checkpoints(path: Path, phrase: Phrase) -> bool:
    """Whether a database is one of checkpoints that holds a phrase in a compressed value."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return any(
            holds(kind, value, phrase.seems_in)
            for table in _TABLES
            if table in tables
            for kind, value in database.execute(_COMPRESSED[table])
        )


def holds(kind: str, value: bytes, look: Callable[[bytes], bool]) -> bool:
    """Whether a saved value, unpacked, holds what is looked for; True if only its serializer can open it."""
    try:
        texts = decompress(kind, value)
    except ValueError as error:
        problem = f"A checkpoint cannot be read: {error} What was forgotten so far is gone."
        raise ForgettingError(problem) from error
    return texts is None or look(texts)
