"""`Checkpointer`: LangGraph's saver for SQLite, but a channel's value is written once, not again at every step.

Where the values are, and how checkpoints share them, says `checkpoint_tables`.
"""

import asyncio
import json
import logging
import sqlite3
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint import base
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.checkpoint.sqlite.utils import load_pending_writes, search_where

from questbook.graphs.errors import InputError, QuestbookError, UnreadableError
from questbook.graphs.local import checkpoint_tables as tables
from questbook.graphs.local.checkpoint_tables import Place, Saved, Work, kind_in_parts, kind_of_rest
from questbook.graphs.local.saved_game import OWNER, STOPPED, HomeCheckpointer, check_caller, is_of_another
from questbook.graphs.turn.clock import keep_ids_after
from questbook.memory.errors import StoreError
from questbook.memory.store.database_file import switch_to_wal
from questbook.memory.tracing import traced
from questbook.types import JSON

T = TypeVar("T")

IDLE = timedelta(minutes=5)
"""How long a run may be without a step; one that has been so for longer was stopped. Models are given two minutes."""
_TASKS, _FAILED, _ASKS, _ANSWERED = "__pregel_tasks", "__error__", "__interrupt__", "__resume__"  # LangGraph's channels
_log = logging.getLogger(__name__)
_CALLER = "00000000-0000-0000-0000-000000000000"  # the task of what a run's command writes
_MESSAGES = "messages"  # the channel
_PAGE = 32  # checkpoints that `alist` reads at a time
_AFTER = "(checkpoint_id, thread_id, checkpoint_ns) < (?, ?, ?)"


def is_unfinished(checkpoint: base.Checkpoint) -> bool:
    """Whether a checkpoint is in the middle of a turn: another step follows, or was to follow."""
    values = checkpoint["channel_values"]
    return bool(values.get(_TASKS)) or any(name == "__start__" or name.startswith("branch:to:") for name in values)


def is_running(saved: base.CheckpointTuple, idle: timedelta = IDLE) -> bool:
    """Whether a run seems to be in progress on a thread, as its newest checkpoint says.

    None is, if it failed, if it waits for an answer, or if it has made no step for the time `idle`.
    """
    pending = {channel for task, channel, _ in saved.pending_writes or [] if task != STOPPED[0]}
    stopped = _FAILED in pending or (_ASKS in pending and _ANSWERED not in pending)
    is_young = datetime.now(UTC) - datetime.fromisoformat(saved.checkpoint["ts"]) < idle
    return is_unfinished(saved.checkpoint) and not stopped and is_young


def writes_of(task: str, writes: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
    """Return the writes of a task that may be saved: of a caller's command those to state, which alone can be read."""
    return [each for each in writes if each[0] != "__start__" and not each[0].isupper()] if task == _CALLER else writes


def needs_parent(parent: str | None, checkpoint: base.Checkpoint, new_versions: base.ChannelVersions) -> bool:
    """Whether a checkpoint takes channels from its parent. A copied one has all, and its parent may be gone."""
    return bool(parent) and not checkpoint["channel_versions"].keys() <= new_versions.keys()


def deleted(thread: str) -> QuestbookError:
    """Return the error of a run whose thread was deleted."""
    from questbook.graphs.turn.run_guard import ThreadLostError  # loads what runs graphs

    return ThreadLostError(f"Thread {thread} was deleted in the middle of a run. Nothing more of it is saved.")


class Checkpointer(AsyncSqliteSaver, HomeCheckpointer):
    """`AsyncSqliteSaver` that writes each value once, whose ids only grow, and which can roll runs back."""

    _has_blobs = False

    def __init__(self, conn: aiosqlite.Connection, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(conn, serde=serde)
        self._waiting: list[tuple[Work[Any], Future[Any]]] = []
        self._running: asyncio.Task[None] | None = None
        # The messages that were written or read last: most of what a checkpoint takes to decode, and a turn reads the
        # one that the turn before has written, twice.
        self._messages: tuple[tuple[str, bytes], list[Any]] = ("", b""), []

    async def setup(self) -> None:
        """Make the tables that are missing. Called automatically."""
        if self._has_blobs:
            return
        await self._run(switch_to_wal)  # so that Studio can read while the terminal plays
        await super().setup()
        await self._run(tables.add_blobs)
        self._has_blobs = True

    async def aget_tuple(self, config: RunnableConfig) -> base.CheckpointTuple | None:
        """Return a checkpoint, the thread's latest if the config names none; ids made after this are greater than it.

        A run, an edit and a fork load a checkpoint before they write one. See `questbook.graphs.turn.clock`. On a
        server with a log-in, a thread that another user began on the page or in the terminal is an InputError for all
        methods that are given a thread; `alist` leaves such threads out.
        """
        place, checkpoint = place_of(config), base.get_checkpoint_id(config)

        def read(database: sqlite3.Connection) -> tuple[Saved | None, str]:
            saved = tables.read_one(database, place, checkpoint)
            return saved, tables.newest_id(database, place) if saved else ""  # the thread may have gone on from it

        saved, newest = await self._transact(read, place[0], mode="DEFERRED")
        if saved is None:
            return None
        keep_ids_after(newest)
        return self._opened(saved, config if checkpoint else None)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[base.CheckpointTuple]:
        """Return checkpoints, the newest first. See `AsyncSqliteSaver.alist`."""
        caller = self.caller()
        where, parameters = search_where(config, filter, before)
        after = f"{where} AND {_AFTER}" if where else f"WHERE {_AFTER}"

        def read(where: str, given: Sequence[Any], most: int, database: sqlite3.Connection) -> list[tuple[Saved, bool]]:
            began = cache(partial(_began, database))
            found = tables.read(database, where, given, most)
            return [(saved, caller is not None and is_of_another(began(saved.place[0]), caller)) for saved in found]

        left, last = sys.maxsize if limit is None else limit, tuple[Any, ...]()
        while left > 0:
            size = min(left, _PAGE)
            reading = partial(read, after if last else where, (*parameters, *last), size)
            page = await self._transact(reading, mode="DEFERRED")
            for saved, is_of_others in page:
                if not is_of_others:
                    yield self._opened(saved)
            if len(page) < size:
                return
            left, last = left - size, (page[-1][0].id, *page[-1][0].place)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: base.Checkpoint,
        metadata: base.CheckpointMetadata,
        new_versions: base.ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint. At the end of a turn, what was to be forgotten meanwhile leaves the thread.

        A run that has ended, and begins again at its earlier checkpoint, as after a kill -9 in LangGraph's queue, is an
        InputError: what was played since would no longer be the thread's latest. A ThreadLostError: it was deleted.
        """
        place, parent = place_of(config), base.get_checkpoint_id(config)
        notes = {name: note for name, note in base.get_checkpoint_metadata(config, metadata).items() if name != OWNER}
        values = checkpoint["channel_values"]
        long = {name: value for name, value in values.items() if not _is_short(value)}
        changed = {name: self.serde.dumps_typed(long[name]) for name in new_versions if name in long}
        if _MESSAGES in changed and isinstance(values[_MESSAGES], list):
            self._messages = changed[_MESSAGES], [*values[_MESSAGES]]
        finished, caller = not is_unfinished(checkpoint), self.caller()

        def write(database: sqlite3.Connection) -> bool:
            if self.log_in:  # whose the thread is, is who began it, not who writes now
                began = _began(database, place[0])
                owner = caller if began is None else began.get(OWNER)
                notes.update({OWNER: owner} if owner else {})
            if notes.get("source") == "input" and parent and parent != tables.newest_id(database, place):
                self._refuse_repeated(database, place, str(notes.get("run_id") or ""))
            shared = tables.ids_of_values(database, place, parent)
            if not (shared or tables.has_place(database, place)) and needs_parent(parent, checkpoint, new_versions):
                raise deleted(place[0])
            blobs, inline = list[int](), {name: value for name, value in values.items() if name not in long}
            for name, value in long.items():
                version = str(checkpoint["channel_versions"].get(name, ""))
                if name not in changed and version and (name, version) in shared:
                    blobs.append(shared[name, version])
                    continue
                kind, data = changed.get(name) or self.serde.dumps_typed(value)
                if len(data) < tables.SHORT:
                    inline[name] = value
                else:
                    blobs.append(tables.put_value(database, name, version, kind, data))
            kind, data = self.serde.dumps_typed({**checkpoint, "channel_values": inline})
            kind, listed = (kind_in_parts(kind), json.dumps(blobs)) if blobs else (kind, None)
            written = json.dumps(notes, ensure_ascii=False).encode("utf-8", "ignore")
            tables.put(database, Saved(place, checkpoint["id"], parent, kind, data, written, listed, [], []))
            return finished and tables.has_forgetting(database, place[0])

        if await self._transact(write, place[0], on_disk=finished or metadata.get("source") not in ("input", "loop")):
            await self._finish_forgetting(place[0])
        return config_of(place, checkpoint["id"])

    def _refuse_repeated(self, database: sqlite3.Connection, place: Place, run: str) -> None:
        of_run = [each[2] for each in tables.of_runs(database, [run]) if each[:2] == place] if run else []
        last = tables.read_one(database, place, max(of_run)) if of_run else None
        if last and not is_unfinished(self._opened(last).checkpoint):
            raise InputError(f"Run {run} has ended, and its turn is in the thread: it is not played once more.")

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save pending writes, but none of a caller to what is no state: LangGraph could never read the thread again.

        A run's command may name any channel. `__start__` and a state's class variables, which LangGraph takes for
        channels too, refuse a second value; a state's own channels leave it out (`questbook.graphs.turn.channels`).
        """
        if not (writes := writes_of(task_id, writes)):
            return
        task = (*place_of(config), str(config["configurable"]["checkpoint_id"]), task_id, task_path)
        encoded = enumerate((channel, *self.serde.dumps_typed(value)) for channel, value in writes)
        rows = [(*task, base.WRITES_IDX_MAP.get(channel, at), channel, *value) for at, (channel, *value) in encoded]
        is_special = all(channel in base.WRITES_IDX_MAP for channel, _ in writes)  # an error, a question to a person
        await self._transact(partial(tables.put_writes, rows=rows, again=is_special), task[0], on_disk=is_special)

    async def adelete_thread(self, thread_id: str) -> None:  # noqa: D102
        await self._transact(partial(tables.delete_thread, thread=str(thread_id)), str(thread_id))

    async def show_threads(self, names: Mapping[str, str]) -> None:  # noqa: D102
        await self._transact(partial(tables.show_threads, names=names))

    async def newest_of_threads(self, user: str | None = None) -> list[tuple[str, JSON]]:  # noqa: ARG002, D102
        return await self._transact(tables.newest_of_threads, mode="DEFERRED")

    async def first(self, thread: str) -> tuple[str, JSON] | None:  # noqa: D102
        return await self._transact(partial(tables.first_of, thread=thread), mode="DEFERRED")

    aprune = HomeCheckpointer.aprune

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs wrote, and the pending writes on them; `run_ids` are the server's.

        Without this method, LangGraph's server stops all runs as soon as one is rolled back
        (`multitask_strategy="rollback"`). Where a caller logged in, runs on threads that others began are left alone:
        the server in memory asks here before it knows that the run is not of the thread that the caller named.
        """
        caller = self.caller()

        def delete(database: sqlite3.Connection) -> None:
            found = tables.of_runs(database, run_ids)
            if caller is not None:
                owners = {thread: (_began(database, thread) or {}).get(OWNER, caller) for thread, _, _ in found}
                found = [place for place in found if owners[place[0]] == caller]
            tables.delete(database, found)

        await self._transact(delete)

    # Not that of AsyncSqliteSaver, which reads whole checkpoints of its own tables.
    aget_delta_channel_history = base.BaseCheckpointSaver.aget_delta_channel_history

    def _opened(self, saved: Saved, config: RunnableConfig | None = None) -> base.CheckpointTuple:
        """Return a checkpoint as LangGraph has it, under the config that named it, or one that names its row."""
        try:
            return self._decoded(saved, config)
        except (ValueError, KeyError, TypeError, EOFError) as error:
            name = f"Checkpoint {saved.id} of thread {saved.place[0]}"
            raise UnreadableError(f"{name} cannot be read: {error!s:.120}") from error

    def _decoded(self, saved: Saved, config: RunnableConfig | None) -> base.CheckpointTuple:
        if saved.blobs and len(saved.values) != len(json.loads(saved.blobs)):
            raise ValueError("Values of the checkpoint are missing in checkpoint_blobs.")
        checkpoint = self.serde.loads_typed((kind_of_rest(saved.type) if saved.blobs else saved.type, saved.checkpoint))
        checkpoint["channel_values"] |= {name: self._value(name, kind, value) for name, kind, value in saved.values}
        parent = config_of(saved.place, saved.parent) if saved.parent else None
        metadata: Any = json.loads(saved.metadata) if saved.metadata is not None else {}
        writes = load_pending_writes(saved.writes, self.serde)
        return base.CheckpointTuple(config or config_of(saved.place, saved.id), checkpoint, metadata, parent, writes)

    def _value(self, name: str, kind: str, data: bytes) -> Any:
        known, messages = self._messages
        if name == _MESSAGES and known == (kind, data):
            return [*messages]
        value = self.serde.loads_typed((kind, data))
        if name == _MESSAGES and isinstance(value, list):
            self._messages = (kind, data), [*value]
        return value

    async def _finish_forgetting(self, thread: str) -> None:
        forgetting = await asyncio.to_thread(import_module, "questbook.graphs.forgetting.forget")
        [(_, _, file), *_] = await self.conn.execute_fetchall("PRAGMA database_list")
        try:
            await forgetting.forget_left(self, Path(file).with_name("memory.db"), thread)
        except (QuestbookError, StoreError) as error:  # the turn itself is saved
            _log.warning("What was to be forgotten in thread %s is left for its next turn: %s", thread, error)

    async def _transact(self, work: Work[T], thread: str = "", mode: str = "IMMEDIATE", *, on_disk: bool = True) -> T:
        """Do some work in a transaction; with a thread, after it was checked that the caller may have it."""
        await self.setup()
        caller = self.caller()

        def do(database: sqlite3.Connection) -> T:
            with tables.transaction(database, mode, on_disk=on_disk):
                if thread and caller is not None:
                    check_caller(thread, _began(database, thread), caller)
                return work(database)

        name = "sql.read" if mode == "DEFERRED" else "sql.write"
        with traced(name, db__system__name="sqlite", db__namespace="checkpoints.db"):
            return await self._run(do)

    async def _run(self, work: Work[T]) -> T:
        """Do some work in the connection's own thread, with what others want of it at the same moment.

        Each way there and back takes as long as several statements, and at the end of a step LangGraph saves what the
        node wrote and the checkpoint after it.
        """
        result: Future[T] = Future()
        result.set_running_or_notify_cancel()  # it is done although its caller is cancelled
        self._waiting.append((work, result))
        if len(self._waiting) == 1:
            self._running = asyncio.create_task(self._run_waiting())
        return await asyncio.wrap_future(result)

    async def _run_waiting(self) -> None:
        connection: Any = self.conn
        async with self.lock:
            await asyncio.sleep(0)
            together = self._waiting[:]
            self._waiting.clear()  # not a new list: LangGraph copies savers, and the copy has the same list and lock
            try:
                await connection._execute(_do_each, together, connection._conn)
            except Exception as error:  # noqa: BLE001 (the connection is closed, or its thread has ended)
                for result in (result for _, result in together if not result.done()):
                    result.set_exception(error)


def _do_each(works: Sequence[tuple[Work[Any], Future[Any]]], database: sqlite3.Connection) -> None:
    """Do each work; an error that it raises is for its caller alone."""
    for work, result in works:
        try:
            result.set_result(work(database))
        except Exception as error:  # noqa: BLE001 (its caller gets it)
            result.set_exception(error)


def _began(database: sqlite3.Connection, thread: str) -> JSON | None:
    first = tables.first_of(database, thread)
    return first and first[1]


def place_of(config: RunnableConfig) -> Place:
    """Return the thread and namespace that a config names."""
    return str(config["configurable"]["thread_id"]), str(config["configurable"].get("checkpoint_ns", ""))


def config_of(place: Place, checkpoint: str) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    return {"configurable": {"thread_id": place[0], "checkpoint_ns": place[1], "checkpoint_id": checkpoint}}


def _is_short(value: Any) -> bool:
    """Whether a value is short for sure, at a glance; others are, if they are when they are written."""
    return value is None or isinstance(value, int | float) or (isinstance(value, str | list | dict) and not value)
