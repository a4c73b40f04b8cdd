"""`Checkpointer`: LangGraph's saver for SQLite, but a channel's value is written once, not again at every step.

Two tables are LangGraph's, `checkpoints` and `writes`. One is ours, and `checkpoints` has one more column:

- `checkpoint_blobs (id, channel, version, type, value)`: the value of a channel at one version, 128 bytes or more.
- `checkpoints.blobs`: a JSON list of the ids of the values that belong to the checkpoint. They are missing in its
  `channel_values`, and its `type` says so ("msgpack+blobs+zlib"), so that no other program takes it for a whole
  one. NULL: the checkpoint is whole, as LangGraph and older versions of Questbook write it.

A checkpoint shares values with the one that it was made from, and so with others of the same thread and namespace,
never with other threads. Whoever deletes checkpoints deletes the values that no other one lists
(`Checkpointer.adelete_checkpoints`). A checkpoint and its values are written in one transaction.

A killed process loses nothing that was written. A power cut loses at most the steps of the turn that is under way: what
ends a turn, what waits for a person and what a person edits is on the disk when it is written, with all before it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.checkpoint.sqlite.utils import load_pending_writes, pending_writes_sql, search_where

from questbook.graphs.embedded.compression import kind_in_parts, kind_of_rest
from questbook.graphs.embedded.home import Home
from questbook.graphs.errors import QuestbookError
from questbook.graphs.turn.clock import keep_ids_after
from questbook.memory.errors import StoreError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, DeltaChannelHistory

T = TypeVar("T")

_log = logging.getLogger(__name__)
_CALLER = "00000000-0000-0000-0000-000000000000"  # the task of what a run's command writes
_SHORT = 128  # bytes: shorter values stay in the checkpoint; a row of their own would take more
_PAGE = 32  # checkpoints that `alist` reads at a time

_BLOBS = (
    "CREATE TABLE IF NOT EXISTS checkpoint_blobs "
    "(id INTEGER PRIMARY KEY, channel TEXT NOT NULL, version TEXT NOT NULL, type TEXT NOT NULL, value BLOB NOT NULL)"
)
_READ = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata, blobs "
    "FROM checkpoints"
)
_NEWEST_FIRST = "ORDER BY checkpoint_id DESC, thread_id DESC, checkpoint_ns DESC LIMIT ?"
_AFTER = "(checkpoint_id, thread_id, checkpoint_ns) < (?, ?, ?)"
_NEWEST = "SELECT MAX(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
_VALUES = "SELECT channel, type, value FROM checkpoint_blobs WHERE id IN (SELECT value FROM json_each(?))"
_PUT = (
    "INSERT OR REPLACE INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, "
    "checkpoint, metadata, blobs) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_PUT_BLOB = "INSERT INTO checkpoint_blobs (channel, version, type, value) VALUES (?, ?, ?, ?)"
_PUT_WRITES = (
    "INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_LISTED = "SELECT json_each.value FROM checkpoints, json_each(checkpoints.blobs) WHERE "
_PLACE = "thread_id = ? AND checkpoint_ns = ?"
_CHOSEN = f"{_PLACE} AND checkpoint_id IN (SELECT value FROM json_each(?))"  # noqa: S608
_PARENTS = f"SELECT id, channel, version FROM checkpoint_blobs WHERE id IN ({_LISTED}{_PLACE} AND checkpoint_id = ?)"  # noqa: S608
_DELETE_UNLISTED = (
    "DELETE FROM checkpoint_blobs WHERE id IN (SELECT value FROM json_each(?)) "  # noqa: S608
    f"AND id NOT IN ({_LISTED}{_PLACE})"
)
_OF_RUNS = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints "
    "WHERE json_extract(CAST(metadata AS TEXT), '$.run_id') IN (SELECT value FROM json_each(?))"
)
_HAS_FORGETTING = "SELECT 1 FROM sqlite_master WHERE name = 'forgetting'"
_LEFT = "SELECT 1 FROM forgetting WHERE thread_id = ? LIMIT 1"


def is_unfinished(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is in the middle of a turn: another step follows, or was to follow."""
    return any(name == "__start__" or name.startswith("branch:to:") for name in checkpoint["channel_values"])


class _Saved(NamedTuple):
    """A checkpoint as it is in the file: its row, the values that it lists, and its pending writes."""

    row: tuple[Any, ...]
    values: list[tuple[str, str, bytes]]
    writes: list[tuple[Any, ...]]


class Checkpointer(AsyncSqliteSaver):
    """`AsyncSqliteSaver` that writes each value once, whose ids only grow, and which can roll runs back."""

    _has_blobs = False

    async def setup(self) -> None:
        """Make the tables that are missing. Called automatically."""
        if self._has_blobs:
            return
        await super().setup()
        await self._run(_add_blobs)
        self._has_blobs = True

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, the thread's latest if the config names none; ids made after this are greater than it.

        A run, an edit and a fork load a checkpoint before they write one. See `questbook.graphs.turn.clock`.
        """
        await self.setup()
        place = _place(config)
        checkpoint = get_checkpoint_id(config)

        def read(database: sqlite3.Connection) -> tuple[list[_Saved], str]:
            where = _PLACE + (" AND checkpoint_id = ?" if checkpoint else "")
            key = (*place, checkpoint) if checkpoint else place
            saved = self._read(database, f"WHERE {where}", key, 1)
            # The thread may have gone on from the one that is named.
            return saved, str(database.execute(_NEWEST, place).fetchone()[0]) if saved else ""

        saved, newest = await self._run(read)
        if not saved:
            return None
        keep_ids_after(newest)
        return self._opened(saved[0], config if checkpoint else None)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Return checkpoints, the newest first. See `AsyncSqliteSaver.alist`."""
        await self.setup()
        where, parameters = search_where(config, filter, before)
        after = f"{where} AND {_AFTER}" if where else f"WHERE {_AFTER}"
        left, last = (sys.maxsize if limit is None else limit), tuple[Any, ...]()
        while left > 0:
            size = min(left, _PAGE)
            read = partial(self._read, where=after if last else where, parameters=(*parameters, *last), limit=size)
            page = await self._run(read)
            for saved in page:
                yield self._opened(saved)
            if len(page) < size:
                return
            thread, namespace, checkpoint, *_ = page[-1].row
            left, last = left - size, (checkpoint, thread, namespace)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint. At the end of a turn, what was to be forgotten meanwhile leaves the thread."""
        await self.setup()
        place, parent = _place(config), get_checkpoint_id(config)
        notes = json.dumps(get_checkpoint_metadata(config, metadata), ensure_ascii=False).encode("utf-8", "ignore")
        values = checkpoint["channel_values"]
        long = {name: value for name, value in values.items() if not _is_short(value)}
        changed = {name: self.serde.dumps_typed(long[name]) for name in new_versions if name in long}
        finished = not is_unfinished(checkpoint)
        on_disk = finished or metadata.get("source") not in ("input", "loop")

        def write(database: sqlite3.Connection) -> bool:
            with _transaction(database, on_disk=on_disk):
                replaced = [row[0] for row in database.execute(_PARENTS, (*place, checkpoint["id"]))]
                shared = {row[1:]: row[0] for row in database.execute(_PARENTS, (*place, parent))} if parent else {}
                inline, blobs = {name: value for name, value in values.items() if name not in long}, list[int]()
                for name, value in long.items():
                    version = str(checkpoint["channel_versions"].get(name, ""))
                    if name not in changed and version and (blob := shared.get((name, version))):
                        blobs.append(blob)
                        continue
                    kind, data = changed.get(name) or self.serde.dumps_typed(value)
                    if len(data) < _SHORT:
                        inline[name] = value
                    else:
                        blobs.append(cast(int, database.execute(_PUT_BLOB, (name, version, kind, data)).lastrowid))
                kind, data = self.serde.dumps_typed({**checkpoint, "channel_values": inline})
                kind, listed = (kind_in_parts(kind), json.dumps(blobs)) if blobs else (kind, None)
                database.execute(_PUT, (*place, checkpoint["id"], parent, kind, data, notes, listed))
                if replaced:
                    database.execute(_DELETE_UNLISTED, (json.dumps(replaced), *place))
            return (
                finished
                and database.execute(_HAS_FORGETTING).fetchone() is not None
                and database.execute(_LEFT, place[:1]).fetchone() is not None
            )

        if await self._run(write):
            await self._finish_forgetting(place[0])
        thread = config["configurable"]["thread_id"]
        return {"configurable": {"thread_id": thread, "checkpoint_ns": place[1], "checkpoint_id": checkpoint["id"]}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save pending writes, but none of a caller to what is no state: LangGraph could never read the thread again.

        A run's command may name any channel. `__start__` and a state's class variables, which LangGraph takes for
        channels too, refuse a second value; a state's own channels leave it out (`questbook.graphs.turn.channels`).
        """
        if task_id == _CALLER:
            writes = [(name, value) for name, value in writes if name != "__start__" and not name.isupper()]
        if not writes:
            return
        await self.setup()
        task = (*_place(config), str(config["configurable"]["checkpoint_id"]), task_id, task_path)
        rows = [
            (*task, WRITES_IDX_MAP.get(channel, index), channel, *self.serde.dumps_typed(value))
            for index, (channel, value) in enumerate(writes)
        ]
        is_special = all(channel in WRITES_IDX_MAP for channel, _ in writes)  # an error, a question to a person

        def write(database: sqlite3.Connection) -> None:
            with _transaction(database, on_disk=is_special):
                database.executemany(f"INSERT OR {'REPLACE' if is_special else 'IGNORE'} {_PUT_WRITES}", rows)

        await self._run(write)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints, values and pending writes of a thread."""
        await self.setup()
        thread = (str(thread_id),)

        def delete(database: sqlite3.Connection) -> None:
            with _transaction(database):
                database.execute(f"DELETE FROM checkpoint_blobs WHERE id IN ({_LISTED}thread_id = ?)", thread)  # noqa: S608
                for table in ("checkpoints", "writes"):
                    database.execute(f"DELETE FROM {table} WHERE thread_id = ?", thread)  # noqa: S608

        await self._run(delete)

    async def adelete_checkpoints(self, checkpoints: Iterable[tuple[str, str, str]]) -> None:
        """Delete checkpoints, the pending writes on them, and the values that no other checkpoint needs.

        Args:
            checkpoints: Thread, namespace and id of each.
        """
        await self.setup()
        chosen = sorted(checkpoints)
        await self._run(lambda database: _delete(database, chosen))

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
        await self._run(lambda database: _delete(database, sorted(database.execute(_OF_RUNS, (runs,)))))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what a `DeltaChannel` was written since it was last saved whole, checkpoint by checkpoint."""
        # AsyncSqliteSaver reads the rows themselves, which lack the values that are in checkpoint_blobs.
        return await BaseCheckpointSaver.aget_delta_channel_history(self, config=config, channels=channels)

    def _read(self, database: sqlite3.Connection, where: str, parameters: Sequence[Any], limit: int) -> list[_Saved]:
        writes = pending_writes_sql(self._has_task_path)
        with _transaction(database, "DEFERRED"):  # another program may delete or erase at the same moment
            return [
                _Saved(
                    row,
                    database.execute(_VALUES, row[7:]).fetchall() if row[7] else [],
                    database.execute(writes, row[:3]).fetchall(),
                )
                for row in database.execute(f"{_READ} {where} {_NEWEST_FIRST}", (*parameters, limit)).fetchall()
            ]

    def _opened(self, saved: _Saved, config: RunnableConfig | None = None) -> CheckpointTuple:
        thread, namespace, checkpoint_id, parent, kind, data, metadata, blobs = saved.row
        where = {"thread_id": thread, "checkpoint_ns": namespace}
        checkpoint = self.serde.loads_typed((kind_of_rest(kind) if blobs else kind, data))
        if blobs:
            if len(saved.values) != len(json.loads(blobs)):
                raise ValueError("Values that the checkpoint needs are missing in checkpoint_blobs.")
            checkpoint["channel_values"] |= {
                name: self.serde.loads_typed((kind, value)) for name, kind, value in saved.values
            }
        return CheckpointTuple(
            config or {"configurable": {**where, "checkpoint_id": checkpoint_id}},
            checkpoint,
            json.loads(metadata) if metadata is not None else {},
            {"configurable": {**where, "checkpoint_id": parent}} if parent else None,
            load_pending_writes(saved.writes, self.serde),
        )

    async def _finish_forgetting(self, thread: str) -> None:
        forgetting = await asyncio.to_thread(import_module, "questbook.graphs.forgetting.leftovers")
        [(_, _, file), *_] = await self.conn.execute_fetchall("PRAGMA database_list")
        try:
            await forgetting.forget_leftovers(self, Home(Path(file).parent).memory, thread)
        except (QuestbookError, StoreError) as error:  # the turn itself is saved
            _log.warning("What was to be forgotten in thread %s is left for its next turn: %s", thread, error)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do some work in the connection's own thread: each way there and back costs as much as three statements."""
        connection: Any = self.conn
        async with self.lock:
            result: T = await connection._execute(work, connection._conn)
        return result


def _place(config: RunnableConfig) -> tuple[str, str]:
    return str(config["configurable"]["thread_id"]), str(config["configurable"].get("checkpoint_ns", ""))


def _is_short(value: Any) -> bool:
    """Whether a value is short for sure, at a glance; others are, if they are when they are written."""
    return value is None or isinstance(value, int | float) or (isinstance(value, str | list | dict) and not value)


def _add_blobs(database: sqlite3.Connection) -> None:
    with _transaction(database):  # two programs may open a new file at the same moment
        database.execute(_BLOBS)
        if "blobs" not in {name for _, name, *_ in database.execute("PRAGMA table_info(checkpoints)")}:
            database.execute("ALTER TABLE checkpoints ADD COLUMN blobs TEXT")


def _delete(database: sqlite3.Connection, checkpoints: Sequence[tuple[str, str, str]]) -> None:
    with _transaction(database):
        for place, rows in groupby(checkpoints, lambda row: row[:2]):
            chosen = (*place, json.dumps([row[2] for row in rows]))
            listed = json.dumps([blob for (blob,) in database.execute(f"{_LISTED}{_CHOSEN}", chosen)])
            for table in ("checkpoints", "writes"):
                database.execute(f"DELETE FROM {table} WHERE {_CHOSEN}", chosen)  # noqa: S608
            database.execute(_DELETE_UNLISTED, (listed, *place))


@contextmanager
def _transaction(database: sqlite3.Connection, mode: str = "IMMEDIATE", *, on_disk: bool = True) -> Iterator[None]:
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
