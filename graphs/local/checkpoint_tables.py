"""The tables of `Checkpointer`, rows in and out of them, and how values are written: LangGraph's serializer, then zlib.

Two tables are LangGraph's, `checkpoints` and `writes`. One is ours, and `checkpoints` has one more column:

- `checkpoint_blobs (id, channel, version, type, value)`: the value of a channel at one version, 128 bytes or more.
- `checkpoints.blobs`: a JSON list of the ids of the values that belong to the checkpoint. They are missing in its
  `channel_values`, and its `type` says so ("msgpack+blobs+zlib"), so that an older version of Questbook and other
  programs fail instead of reading a state that lacks its largest channels. NULL: the checkpoint is whole, as LangGraph
  and older versions of Questbook write it. What was written without compression can be read as well.

A checkpoint shares values with the one that it was made from, and so with others of the same thread and namespace,
never with other threads. Code that deletes checkpoints deletes the values that no other one lists (`delete`). A
checkpoint and its values are written in one transaction.

A killed process loses nothing that was written. A power cut loses at most the steps of the turn in progress: what
ends a turn, what waits for a person and what a person edits is on the disk when it is written, with all before it.
"""

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias, TypeVar

from langgraph.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.checkpoint.sqlite.utils import pending_writes_sql

from questbook.memory.text.parts import read_parts
from questbook.types import JSON

T = TypeVar("T")
_CIPHER = "zlib"
SHORT = 128
"""Bytes: shorter values are not compressed, and stay in the checkpoint; a row of their own would take more."""
_IN_PARTS = "+blobs"
_SQL = read_parts("questbook.graphs.local", "checkpoints.toml")
_WRITES = pending_writes_sql(has_task_path=True)

Place = tuple[str, str]  # thread and namespace
Work: TypeAlias = Callable[[sqlite3.Connection], T]  # what is done with a connection, in its own thread


class Saved(NamedTuple):
    """A checkpoint as it is in the file."""

    place: Place
    id: str
    parent: str | None  # id of the checkpoint that it was made from
    type: str  # encoding of `checkpoint`, which lacks the values that are listed
    checkpoint: bytes
    metadata: bytes | None  # JSON
    blobs: str | None  # JSON list of the values' ids; None if the checkpoint is whole
    values: list[tuple[str, str, bytes]]  # channel, encoding and bytes of each of those values
    writes: list[tuple[str, str, str, bytes, str, int]]  # rows of its pending writes, as LangGraph reads them


@contextmanager
def transaction(database: sqlite3.Connection, mode: str = "IMMEDIATE", *, on_disk: bool = True) -> Iterator[None]:
    """Do all of some statements or none ("DEFERRED": they only read), and wait until all is on the disk, or not."""
    if database.in_transaction:  # a write of LangGraph's saver that was cancelled; the saver's next one would commit it
        database.commit()
    if not on_disk:
        database.execute("PRAGMA synchronous = NORMAL")
    try:
        database.execute(f"BEGIN {mode}")
        yield
        database.commit()
    except BaseException:
        database.rollback()
        raise
    finally:
        if not on_disk:
            database.execute("PRAGMA synchronous = FULL")


async def in_connection(saver: AsyncSqliteSaver, work: Work[T]) -> T:
    """Do some work in the own thread of a saver's connection; runs that use the same connection wait meanwhile."""
    await saver.setup()
    connection: Any = saver.conn
    async with saver.lock:
        done: T = await connection._execute(work, connection._conn)
        return done


def add_blobs(database: sqlite3.Connection) -> None:
    """Add to LangGraph's tables what is missing."""
    with transaction(database):  # two programs may open a new file at the same moment
        database.execute(_SQL["BLOBS"])
        if "blobs" not in {name for _, name, *_ in database.execute("PRAGMA table_info(checkpoints)")}:
            database.execute("ALTER TABLE checkpoints ADD COLUMN blobs TEXT")


def read(database: sqlite3.Connection, where: str, parameters: Sequence[Any], limit: int) -> list[Saved]:
    """Read at most `limit` checkpoints, the newest first, where a condition holds ("WHERE …", or "").

    In a transaction, because another program may delete or erase at the same moment.
    """
    rows = database.execute(f"{_SQL['READ']} {where} {_SQL['NEWEST_FIRST']}", (*parameters, limit)).fetchall()
    saved = []
    for *place, checkpoint, parent, kind, data, metadata, blobs in rows:
        values = database.execute(_SQL["VALUES"], (blobs,)).fetchall() if blobs else []
        writes = database.execute(_WRITES, (*place, checkpoint)).fetchall()
        saved.append(Saved((place[0], place[1]), checkpoint, parent, kind, data, metadata, blobs, values, writes))
    return saved


def read_one(database: sqlite3.Connection, place: Place, checkpoint: str | None) -> Saved | None:
    """Read a checkpoint; None: the newest at its place."""
    where, key = (_SQL["ONE"], (*place, checkpoint)) if checkpoint else (_SQL["PLACE"], place)
    return next(iter(read(database, f"WHERE {where}", key, 1)), None)


def newest_id(database: sqlite3.Connection, place: Place) -> str:
    """Return the greatest id at a place."""
    return str(database.execute(_SQL["NEWEST"], place).fetchone()[0])


def ids_of_values(database: sqlite3.Connection, place: Place, checkpoint: str | None) -> dict[tuple[str, str], int]:
    """Return the ids of the values that a checkpoint lists, by channel and version."""
    rows = database.execute(_SQL["SHARED"], (*place, checkpoint)) if checkpoint else ()
    return {(channel, version): number for number, channel, version in rows}


def newest_of_threads(database: sqlite3.Connection) -> list[tuple[str, JSON]]:
    """Return each thread with the metadata of its newest checkpoint, the last written first."""
    return [(str(thread), json.loads(metadata)) for thread, metadata in database.execute(_SQL["LASTS"])]


def first_of(database: sqlite3.Connection, thread: str) -> tuple[str, JSON] | None:
    """Return id and metadata of a thread's first checkpoint, metadata that cannot be read as {}; None: it has none."""
    row = database.execute(_SQL["FIRST"], (thread,)).fetchone()
    return (str(row[0]), dict(json.loads(row[1]))) if row else None


def has_place(database: sqlite3.Connection, place: tuple[str, str]) -> bool:
    """Whether a thread has a checkpoint in a namespace; of one that was deleted a run may still go on."""
    return database.execute(f"{_SQL['OF_THREAD']} ? AND checkpoint_ns = ?", place).fetchone() is not None


def put_value(database: sqlite3.Connection, channel: str, version: str, kind: str, value: bytes) -> int:
    """Write a channel's value; return its id."""
    return int(database.execute(_SQL["PUT_VALUE"], (channel, version, kind, value)).lastrowid or 0)


def put(database: sqlite3.Connection, saved: Saved) -> None:
    """Write a checkpoint, whose values are written; one with the same id goes, with the values of its own."""
    replaced = ids_of_values(database, saved.place, saved.id)
    database.execute(_SQL["PUT"], (*saved.place, *saved[1:7]))
    if replaced:
        database.execute(_SQL["DELETE_UNLISTED"], (json.dumps(list(replaced.values())), *saved.place))


def put_writes(database: sqlite3.Connection, rows: Sequence[tuple[Any, ...]], *, again: bool) -> None:
    """Write pending writes; what is there already is replaced by the same write of another kind if `again`."""
    database.executemany(f"INSERT OR {'REPLACE' if again else 'IGNORE'} {_SQL['PUT_WRITES']}", rows)


def delete(database: sqlite3.Connection, checkpoints: Sequence[tuple[str, str, str]]) -> None:
    """Delete checkpoints (thread, namespace and id, sorted), their writes, and the values that no other one lists."""
    for place, rows in groupby(checkpoints, lambda row: row[:2]):
        chosen = (*place, json.dumps([row[2] for row in rows]))
        listed = json.dumps([number for (number,) in database.execute(f"{_SQL['LISTED']} {_SQL['CHOSEN']}", chosen)])
        for table in ("checkpoints", "writes"):
            database.execute(f"DELETE FROM {table} WHERE {_SQL['CHOSEN']}", chosen)  # noqa: S608
        database.execute(_SQL["DELETE_UNLISTED"], (listed, *place))


def delete_thread(database: sqlite3.Connection, thread: str) -> None:
    """Delete all of a thread."""
    database.execute(f"DELETE FROM checkpoint_blobs WHERE id IN ({_SQL['LISTED']} thread_id = ?)", (thread,))  # noqa: S608
    for table in ("checkpoints", "writes"):
        database.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread,))  # noqa: S608


def bytes_of(database: sqlite3.Connection, threads: Sequence[str]) -> int:
    """Return how many bytes the checkpoints of some threads have, with the values that they list."""
    return int(sum(size for (size,) in database.execute(_SQL["BYTES"], (json.dumps(threads),))))


def hidden(metadata: JSON) -> JSON:
    """Return metadata with which no list of campaigns shows a checkpoint, until `show_threads`."""
    return {"user": None, "campaign": None, "hidden": metadata}


def show_threads(database: sqlite3.Connection, names: Mapping[str, str]) -> None:
    """Give hidden threads their own ids, in `names` by the hidden ones, and their checkpoints their own metadata.

    What another caller has written under the id of a hidden thread, which can be computed, is deleted.
    """
    for name, own in names.items():
        delete(database, sorted(database.execute(_SQL["NOT_HIDDEN"], (name,))))
        database.execute(_SQL["SHOW"], (own, name))
        database.execute("UPDATE writes SET thread_id = ? WHERE thread_id = ?", (own, name))


def has_forgetting(database: sqlite3.Connection, thread: str) -> bool:
    """Whether words were left to be forgotten when a thread's turn ends (`questbook.graphs.forgetting`)."""
    exists = database.execute(_SQL["HAS_FORGETTING"]).fetchone()
    return bool(exists and database.execute(_SQL["LEFT"], (thread,)).fetchone())


def of_runs(database: sqlite3.Connection, runs: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return thread, namespace and id of the checkpoints that runs wrote, sorted."""
    return sorted(database.execute(_SQL["OF_RUNS"], (json.dumps([str(run) for run in runs]),)))


def compressing_serializer() -> SerializerProtocol:
    """Return LangGraph's serializer with compression."""
    return _Compressing(_Zlib())


class _Compressing(EncryptedSerializer):
    """Writes what is so short that compression saves nothing as it is: most of what a node writes."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = self.serde.dumps_typed(obj)
        if len(data) < SHORT:
            return kind, data
        cipher, compressed = self.cipher.encrypt(data)
        return f"{kind}+{cipher}", compressed


def decompress(kind: str | None, value: bytes) -> bytes | None:
    """Return a saved value as bytes that can be searched for text; None if only its own serializer can open it.

    Its kind is its type as the saver wrote it: "msgpack", "msgpack+zlib", "msgpack+blobs+zlib". If the bytes are
    damaged, that is a ValueError.
    """
    _, plus, cipher = kind_of_rest(kind or "").partition("+")
    if not plus:
        return value
    return _Zlib().decrypt(cipher, value) if cipher == _CIPHER else None


def kind_in_parts(kind: str) -> str:
    """Return the type of a checkpoint whose other parts are in `checkpoint_blobs`; `kind` is that of the rest."""
    name, plus, cipher = kind.partition("+")
    return f"{name}{_IN_PARTS}{plus}{cipher}"


def kind_of_rest(kind: str) -> str:
    """Return the type of what is left in a checkpoint whose other parts are in `checkpoint_blobs`."""
    return kind.replace(_IN_PARTS, "", 1)


class _Zlib(CipherProtocol):
    """Compression in the place of a cipher: EncryptedSerializer names the cipher in each value's type."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        # By default zlib takes 256 KB of memory for each value, which costs ten times what a short one's compression
        # does. A window as large as the value compresses it as well.
        window = min(max(len(plaintext).bit_length(), 9), zlib.MAX_WBITS)
        stream = zlib.compressobj(1, zlib.DEFLATED, window, 5)
        return _CIPHER, stream.compress(plaintext) + stream.flush()

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        if ciphername != _CIPHER:
            raise ValueError(f"The value was written with {ciphername!r}, which needs the serializer that wrote it.")
        try:
            return zlib.decompress(ciphertext)
        except zlib.error as error:
            raise ValueError(f"The value is damaged: {error}") from error
