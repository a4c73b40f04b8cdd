"""The two databases of a data directory: `open_checkpointer` (SQLite) and `open_store` (SQLite and FAISS).

The saver writes the whole state at every step, and most of it is words; so checkpoints are compressed with zlib, to
about a third. Checkpoints that were written without compression can be read as before.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosqlite
from langgraph.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from questbook.graphs.embedded.home import Home, HomeError
from questbook.graphs.errors import QuestbookError
from questbook.graphs.turn.clock import keep_ids_after
from questbook.memory.errors import StoreError
from questbook.types import JSON

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple

    from questbook.memory.store.faiss_store import FaissStore

_LOCK_SECONDS = 30.0
_log = logging.getLogger(__name__)
_SQLITE_HEADER = b"SQLite format 3\x00"
_CIPHER = "zlib"
_CALLER = "00000000-0000-0000-0000-000000000000"  # the task of what a run's command writes
_CHECKPOINTS_OF_RUNS = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints "
    "WHERE json_extract(CAST(metadata AS TEXT), '$.run_id') IN (SELECT value FROM json_each(?))"
)
_NEWEST = "SELECT MAX(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
_LEFT = "SELECT 1 FROM forgetting WHERE thread_id = ? LIMIT 1"
_TABLES = ("checkpoints", "writes")


@asynccontextmanager
async def open_checkpointer(path: str | Path | None = None) -> AsyncIterator[AsyncSqliteSaver]:
    """Open the checkpointer.

    Args:
        path: The database file; None: the one in `Home`.

    Raises:
        HomeError: The file cannot be used; it is not changed.
    """
    file = Path(path) if path else (await asyncio.to_thread(Home.find)).checkpoints
    await asyncio.to_thread(create_database, file)
    with _explained(file):
        async with aiosqlite.connect(file, timeout=_LOCK_SECONDS) as connection:
            saver = Checkpointer(connection, serde=compressing_serializer())
            await saver.setup()  # turns on WAL, so that Studio can read while the terminal plays
            yield saver


@asynccontextmanager
async def open_store(
    path: str | Path | None = None,
    embeddings: str | None = None,
    *,
    known: Mapping[str, list[float]] | None = None,
) -> AsyncIterator[FaissStore]:
    """Open the semantic store.

    Args:
        path: The database file; None: the one in `Home`.
        embeddings: The embedder's name; None: the one of the settings. If the file was written with another embedder,
            its texts are embedded again.
        known: Vectors by text that this embedder has made before, so that it need not make them again.

    Raises:
        HomeError: The file cannot be used; it is not changed.
        StoreError: The store refused it for another reason, or there is no such embedder.
    """
    # numpy and FAISS take a while to import: not before they are needed, and not in the event loop.
    module = await asyncio.to_thread(import_module, "questbook.memory.store.faiss_store")
    file = Path(path) if path else (await asyncio.to_thread(Home.find)).memory
    await asyncio.to_thread(create_database, file)
    index = await asyncio.to_thread(_index_config, embeddings, known)
    async with module.FaissStore.open(file, index) as store:
        yield store


def create_database(path: Path) -> None:
    """Create a database file that only its owner may read; check that an existing one is SQLite's.

    Raises:
        HomeError: The file cannot be read and written, or it is no SQLite database.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        with path.open("rb") as file:
            header = file.read(len(_SQLITE_HEADER))
    except OSError as error:
        raise HomeError(
            f"Cannot use {path}: {error.strerror or error}. Correct its permissions, or move it."
        ) from error
    if header and header != _SQLITE_HEADER:
        raise _corrupt(path, "it is no SQLite database")


def compressing_serializer() -> SerializerProtocol:
    """Return LangGraph's serializer with compression."""
    return EncryptedSerializer(_Zlib())


def is_unfinished(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is in the middle of a turn: another step follows, or was to follow."""
    return any(name == "__start__" or name.startswith("branch:to:") for name in checkpoint["channel_values"])


def uncompressed(kind: str | None, value: bytes) -> bytes | None:
    """Return a saved value as bytes that can be searched for text; None if only its own serializer can open it.

    Args:
        kind: Its type, as the saver wrote it: "msgpack", "msgpack+zlib".
        value: Its bytes.

    Raises:
        ValueError: The bytes are damaged.
    """
    _, plus, cipher = (kind or "").partition("+")
    if not plus:
        return value
    return _Zlib().decrypt(cipher, value) if cipher == _CIPHER else None


class Checkpointer(AsyncSqliteSaver):
    """`AsyncSqliteSaver` whose ids only grow, and which the server can tell to roll runs back."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, the thread's latest if the config names none; ids made after this are greater than it.

        A run, an edit and a fork load a checkpoint before they write one. See `questbook.graphs.turn.clock`.
        """
        saved = await super().aget_tuple(config)
        if saved:
            where = saved.config["configurable"]
            newest = str(where["checkpoint_id"])
            if config["configurable"].get("checkpoint_id"):  # an older one: the thread has gone on from it
                place = (str(where["thread_id"]), str(where.get("checkpoint_ns", "")))
                async with self.lock, self.conn.execute(_NEWEST, place) as cursor:
                    [(newest,)] = await cursor.fetchall()
            keep_ids_after(newest)
        return saved

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint. At the end of a turn, what was to be forgotten meanwhile leaves the thread."""
        saved = await super().aput(config, checkpoint, metadata, new_versions)
        if not is_unfinished(checkpoint):
            await self._finish_forgetting(str(config["configurable"]["thread_id"]))
        return saved

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save pending writes, but none of a caller to what is no state: LangGraph could never read the thread again.

        A run's command may name any channel. `__start__` and a state's class variables, which LangGraph takes for
        channels too, refuse a second value; a state's own channels leave it out (`questbook.graphs.turn.channels`).
        """
        if task_id == _CALLER:
            writes = [(name, value) for name, value in writes if name != "__start__" and not name.isupper()]
        if writes:
            await super().aput_writes(config, writes, task_id, task_path)

    async def _finish_forgetting(self, thread: str) -> None:
        async with self.lock:
            table = await self.conn.execute_fetchall("SELECT 1 FROM sqlite_master WHERE name = 'forgetting'")
            if not list(table) or not list(await self.conn.execute_fetchall(_LEFT, (thread,))):
                return
        forgetting = await asyncio.to_thread(import_module, "questbook.graphs.forgetting.leftovers")
        [(_, _, file), *_] = await self.conn.execute_fetchall("PRAGMA database_list")
        try:
            await forgetting.forget_leftovers(self, Home(Path(file).parent).memory, thread)
        except (QuestbookError, StoreError) as error:  # the turn itself is saved
            _log.warning("What was to be forgotten in thread %s is left for its next turn: %s", thread, error)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs wrote, and the pending writes on them.

        Without this method, LangGraph's server stops all runs as soon as one is rolled back
        (`multitask_strategy="rollback"`).

        What the runs remembered stays in the store: no remaining checkpoint sees it
        (`questbook.memory.timeline.timeline`).

        Args:
            run_ids: The server's ids of the runs.
        """
        await self.setup()
        runs = json.dumps([str(run) for run in run_ids])
        async with self.lock:
            checkpoints = await self.conn.execute_fetchall(_CHECKPOINTS_OF_RUNS, (runs,))
            for table in _TABLES:
                condition = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
                await self.conn.executemany(f"DELETE FROM {table} WHERE {condition}", checkpoints)  # noqa: S608
            await self.conn.commit()


class _Zlib(CipherProtocol):
    """Compression in the place of a cipher: EncryptedSerializer names the cipher in each value's type."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return _CIPHER, zlib.compress(plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        if ciphername != _CIPHER:
            raise ValueError(f"The value was written with {ciphername!r}, which needs the serializer that wrote it.")
        try:
            return zlib.decompress(ciphertext)
        except zlib.error as error:
            raise ValueError(f"The value is damaged: {error}") from error


def _index_config(embeddings: str | None, known: Mapping[str, list[float]] | None) -> JSON:
    from questbook.memory.embeddings.embedders import load_embeddings

    if embeddings is None:
        from questbook.graphs.settings import Settings

        embeddings = Settings.of().embeddings
    embedder = load_embeddings(f"minilm:{Home.find().minilm}" if embeddings == "minilm" else embeddings)
    if known:
        from questbook.memory.embeddings.known_vectors import KnownVectors

        embedder = KnownVectors(embedder, known)
    return {"embed": embedder, "fields": ["text"]}


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:  # locked, full, read-only: the file itself is sound
        raise HomeError(f"Cannot use {path}: {error}. What was played so far is kept.") from error
    except sqlite3.DatabaseError as error:
        raise _corrupt(path, str(error)) from error


def _corrupt(path: Path, reason: str) -> HomeError:
    return HomeError(
        f"Cannot read {path}: {reason}. It was not changed: put back a copy, or move it away to start new."
    )
