"""`Erasure`: taking things out of the checkpoints that SQLite keeps, so that no byte of them stays in the file.

A checkpointer only adds checkpoints. What is to be forgotten is therefore cut out of its rows: each is decoded and
encoded again with the saver's own serializer. Ids and structure stay, so every thread can go on.
"""

import asyncio
import json
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from langgraph.config import get_config

from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.local.checkpoint_tables import decompress, in_connection, kind_in_parts, kind_of_rest, transaction
from questbook.graphs.local.checkpointer import Checkpointer, is_running
from questbook.memory.store.database_file import BLOCK, MAGIC, read_files, write_again
from questbook.memory.text.parts import read_parts

T = TypeVar("T")
_OVERLAP = 1 << 14  # bytes that two blocks share, so that a phrase on their border is found
_ROWS_AT_ONCE = 200  # in one transaction
_PAUSE = 0.5  # seconds between two looks whether a turn has ended
_TABLES = {  # columns: id, channel, value, metadata
    "checkpoints": ("rowid", "''", "checkpoint", "metadata"),
    "writes": ("rowid", "channel", "value", "NULL"),
    "checkpoint_blobs": ("id", "channel", "value", "NULL"),
}
_SQL = read_parts("questbook.graphs.forgetting", "sqlite.toml")
_IN_THREADS = {
    "checkpoints": "SELECT rowid FROM checkpoints WHERE thread_id ",
    "writes": "SELECT rowid FROM writes WHERE thread_id ",
    "checkpoint_blobs": "SELECT DISTINCT value FROM checkpoints, json_each(checkpoints.blobs) WHERE thread_id ",
}
# How compressed bytes begin (RFC 1950): at any level in a window of 32 KB, or at level 1 in a smaller one.
_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x18\x19|\x28\x15|\x38\x11|\x48\x0d|\x58\x09|\x68\x05")
_TEXT_RUNS = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xf4]{8,}")


class Cutting(ABC):
    """Cuts words out of the rows of a checkpointer's database; how the rows are read and written differs."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver
        # Whether the checkpointer itself forgets again, when a turn ends, what was left to it.
        self.comes_back = isinstance(saver, Checkpointer)

    @abstractmethod
    async def cut(self, threads: Iterable[str], phrase: Phrase, *, write: bool = True) -> int:
        """Cut a phrase out of every checkpoint and pending write of threads, or only count; return how many held it.

        What cannot be cut is a ForgettingError. Some rows are done then; a second call does the rest.
        """

    @abstractmethod
    async def threads_of(self, user: str) -> dict[str, str]:
        """Return the threads that were run for a user, each with its campaign, as the checkpoints' metadata say."""

    @abstractmethod
    async def compact(self) -> None:
        """Write the database again, so that nothing of it holds what was cut or deleted, or raise a ForgettingError."""

    async def find_playing(self, threads: Iterable[str]) -> list[str]:
        """Return the threads in the middle of a turn: such a run has its state in memory, and writes it again."""
        playing = []
        for thread in sorted(set(threads)):
            saved = await self._saver.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
            if saved is not None and is_running(saved):
                playing.append(thread)
        return playing

    async def wait_for_end(self, threads: Iterable[str]) -> None:
        """Wait until no turn is played on threads any more."""
        while threads := await self.find_playing(threads):  # noqa: ASYNC110 (other programs end them)
            await asyncio.sleep(_PAUSE)

    def _cut_value(self, channel: str, kind: str, value: bytes, phrase: Phrase) -> tuple[str, bytes] | None:
        """Return type and bytes of a saved value without a phrase; None if it does not hold it.

        It is that of a channel or a pending write, or, if the channel is "", a checkpoint.
        """
        if not holds(kind, value, phrase.may_be_in):
            return None
        decoded = self._saver.serde.loads_typed((kind_of_rest(kind), value))
        # Under its channel's name, as in a whole checkpoint: some channels hold technical names alone.
        named = {channel: decoded} if channel else decoded
        if (cut := phrase.cut(named)) is named:
            return None
        new, encoded = self._saver.serde.dumps_typed(cut[channel] if channel else cut)
        return kind_in_parts(new) if kind != kind_of_rest(kind) else new, encoded


def own_thread() -> str:
    """Return the thread whose turn calls this, for example by a tool; "" if none does."""
    try:
        return str(get_config()["configurable"].get("thread_id", ""))
    except (RuntimeError, KeyError):
        return ""


class Erasure(Cutting):
    """Takes things out of the checkpoints of an AsyncSqliteSaver's threads."""

    async def threads_of(self, user: str) -> dict[str, str]:  # noqa: D102
        return {str(thread): str(campaign or "") for thread, campaign in await self._read(_SQL["OF_USER"], user)}

    async def leave_for_runs(
        self, threads: Iterable[str], playing: Iterable[str], owner: tuple[str, str], phrase: Phrase
    ) -> None:
        """Leave a phrase to be forgotten again when turns end that other programs play; the file holds it until then.

        Of the campaign's other threads, what was left for them before is done. The owner is user and campaign.
        """

        def leave(database: sqlite3.Connection) -> None:
            with transaction(database):
                database.execute(_SQL["FORGETTING"])
                database.executemany(_SQL["DONE"], [(thread, phrase.words) for thread in threads])
                database.executemany(_SQL["LEAVE"], [(thread, *owner, phrase.words) for thread in playing])

        await self._do(leave)

    async def left_for(self, thread: str) -> list[tuple[str, str, str]]:
        """Return what was left to be forgotten when a thread's turn ends: user, campaign and words of each."""
        left = await self._read(_SQL["LEFT"], thread)
        return [(str(user), str(campaign), str(words)) for user, campaign, words in left]

    async def compact(self) -> None:
        """Write the file again and empty its -wal, which no other program may hold meanwhile."""
        has_blobs = await self._read(_SQL["HAS_BLOBS"])

        def compact(database: sqlite3.Connection) -> bool:
            if has_blobs:
                database.execute(_SQL["DELETE_UNLISTED"])  # an older version has deleted the thread
            database.commit()
            return write_again(database)

        if not await self._do(compact):
            problem = "Another program reads the checkpoints, so old bytes may still be in their file."
            raise ForgettingError(f"{problem} Close it (another terminal, Studio) and forget again.")

    async def cut(self, threads: Iterable[str], phrase: Phrase, *, write: bool = True) -> int:  # noqa: D102
        count, thread_list = 0, json.dumps(sorted(set(threads)))
        names = list(_TABLES) if await self._read(_SQL["HAS_BLOBS"]) else list(_TABLES)[:-1]
        for table in names:
            key, channel, value, metadata = _TABLES[table]
            read = f"SELECT {key}, {channel}, type, {value}, {metadata} FROM {table} WHERE {key} {_SQL['CHOSEN']}"  # noqa: S608
            also = metadata if table == "checkpoints" else channel  # of what has no metadata, the new one is NULL
            change = f"UPDATE {table} SET type = ?, {value} = ?, {also} = coalesce(?, {also}) WHERE {key} = ?"  # noqa: S608
            ids = [row[0] for row in await self._read(_IN_THREADS[table] + _SQL["CHOSEN"], thread_list)]
            for start in range(0, len(ids), _ROWS_AT_ONCE):
                chosen = json.dumps(ids[start : start + _ROWS_AT_ONCE])
                count += await self._do(partial(self._cut_rows, read, change if write else "", chosen, phrase))
        return count

    def _cut_rows(self, read: str, change: str, chosen: str, phrase: Phrase, database: sqlite3.Connection) -> int:
        """Write the chosen rows that hold the phrase without it, or, without a statement, only count them."""
        with transaction(database, "IMMEDIATE" if change else "DEFERRED"):
            changed: list[tuple[Any, ...]] = []
            for row, channel, kind, value, old in database.execute(read, (chosen,)).fetchall():
                new = None if kind is None or value is None else self._cut_value(channel, kind, value, phrase)
                metadata, fields = old, None if old is None else json.loads(old)
                if (cut := phrase.cut(fields)) != fields:
                    metadata = json.dumps(cut, ensure_ascii=False).encode("utf-8", "ignore")
                if new or metadata != old:
                    changed.append((*(new or (kind, value)), metadata, row))
            if change:
                database.executemany(change, changed)
        return len(changed)

    async def _read(self, statement: str, *parameters: str) -> list[Any]:
        return await self._do(lambda database: database.execute(statement, parameters).fetchall())

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await in_connection(self._saver, work)
        except sqlite3.Error as error:
            hint = "What was forgotten so far is gone; fix that and forget again, which does the rest."
            raise ForgettingError(f"The checkpoints cannot be read or written: {error}. {hint}") from error


def files_with(directory: Path, phrase: Phrase) -> list[str]:
    """Return the files under a directory that hold a phrase: as text in UTF-8, or in a compressed checkpoint."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    try:
        read = groupby(read_files(files, BLOCK), key=itemgetter(0))
        holding = (path for path, blocks in read if _is_in_file(path, (block for _, block in blocks), phrase))
        return [str(path.relative_to(directory)) for path in holding]
    except (OSError, sqlite3.Error) as error:
        problem = f"whether a file still holds the words cannot be said: {error}"
        raise ForgettingError(f"It is forgotten, but {problem}. Correct that and forget again.") from error


def _is_in_file(path: Path, blocks: Iterator[bytes], phrase: Phrase) -> bool:
    block = next(blocks)
    is_database, found = block.startswith(MAGIC), phrase.seems_in(block)
    while not found and (following := next(blocks, b"")):
        block = block[-_OVERLAP:] + following
        found = phrase.seems_in(block)
    return _is_in_database(path, phrase, in_bytes=found) if is_database else found


def _is_in_database(path: Path, phrase: Phrase, *, in_bytes: bool) -> bool:
    """Whether a text in a database holds a phrase, or a compressed value of a checkpoint.

    Rows are read only if the file's bytes seem to hold it: bytes of a vector may look like a short word.
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        tables = [name for (name,) in rows]
        return any(
            _is_in_value(value, phrase)
            for table in (tables if in_bytes else ())
            if not table.endswith("vectors")  # two letters are somewhere in any million numbers
            for row in database.execute(f'SELECT * FROM "{table}"')  # noqa: S608 (the name is the file's own)
            for value in row
        ) or any(
            holds(kind, value, phrase.seems_in)
            for table, (_, _, column, _) in _TABLES.items()
            if table in tables
            for kind, value in database.execute(f"SELECT type, {column} FROM {table} WHERE type LIKE '%+%'")  # noqa: S608
        )


def _is_in_value(value: Any, phrase: Phrase) -> bool:
    if not isinstance(value, bytes):
        return isinstance(value, str) and phrase.is_in(value)
    # Any three letters are somewhere in compressed bytes, which are unpacked, and in those of a vector: of them, only
    # letters among others are words.
    if _ZLIB.match(value) or not phrase.seems_in(value):
        return False
    return any(phrase.seems_in(run) for run in _TEXT_RUNS.findall(value))


def holds(kind: str, value: bytes, look: Callable[[bytes], bool]) -> bool:
    """Whether a saved value, unpacked, holds what is looked for; True if only its serializer can open it."""
    try:
        texts = decompress(kind, value)
    except ValueError as error:
        raise ForgettingError(f"A checkpoint cannot be read: {error} What was forgotten so far is gone.") from error
    return texts is None or look(texts)
