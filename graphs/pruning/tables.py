"""`Tables`: what pruning reads and deletes in a saver's SQLite database.

LangGraph's saver keeps the values of channels in the checkpoint's own row. Ours keeps them in rows that several
checkpoints share, by the ids that a checkpoint lists: such a row goes if a checkpoint that is deleted needed it, and no
other one does.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Set
from functools import partial
from sqlite3 import Connection
from typing import Any, NamedTuple, TypeVar

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from questbook.graphs.errors import UnreadableError
from questbook.graphs.local.checkpoint_tables import transaction
from questbook.graphs.pruning.retention import Node
from questbook.types import JSON

T = TypeVar("T")

_DELTA = ("counters_since_delta_snapshot", "delta_writes_versioned")  # in metadata: LangGraph's field, and that of .js
_DAMAGED = (ValueError, KeyError, TypeError, EOFError)  # what a serializer raises
_FREE = 0.1  # of a file; from then on it is worth the time to write it again
_IN = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id IN (SELECT value FROM json_each(?))"
_SHARES = "SELECT 1 FROM pragma_table_info('checkpoints') WHERE name = 'blobs'"
_THREADS = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"
_COPIES = "SELECT CAST(metadata AS TEXT) FROM checkpoints WHERE instr(CAST(metadata AS TEXT), '\"copied_from\"') > 0"
_PENDING = "SELECT DISTINCT checkpoint_ns, checkpoint_id FROM writes WHERE thread_id = ?"
_NODES = (
    "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, CAST(metadata AS TEXT) FROM checkpoints "
    "WHERE thread_id = ?"
)
_SIZES = {
    "checkpoints": "LENGTH(checkpoint) + COALESCE(LENGTH(CAST(metadata AS BLOB)), 0)",
    "writes": "COALESCE(LENGTH(value), 0)",
}
_MOVE = (
    "UPDATE checkpoints SET parent_checkpoint_id = ? WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
)
_BLOBS = (
    "SELECT b.id, LENGTH(b.value) FROM checkpoint_blobs b WHERE b.id IN (SELECT j.value FROM checkpoints c, "
    "json_each(c.blobs) j WHERE c.thread_id = ? AND c.checkpoint_ns = ? AND c.checkpoint_id {} "
    "(SELECT value FROM json_each(?)))"
)
_DELETE_BLOBS = "DELETE FROM checkpoint_blobs WHERE id IN (SELECT value FROM json_each(?))"


class Plan(NamedTuple):
    """What is to be done in one namespace of a thread."""

    surveyed: Set[str]  # the checkpoints that there were
    removed: Set[str]  # those to delete
    parents: Mapping[str, str | None]  # new parents of kept ones; None: no parent


class Volume(NamedTuple):
    """How much was, or would be, deleted."""

    checkpoints: int = 0
    writes: int = 0
    blobs: int = 0
    bytes: int = 0

    def plus(self, other: Volume) -> Volume:
        """Return both together."""
        return Volume(*(one + another for one, another in zip(self, other, strict=True)))


class Tables:
    """The tables of a saver for SQLite: LangGraph's, or ours. Runs that use the same connection wait meanwhile."""

    def __init__(self, saver: AsyncSqliteSaver) -> None:
        self._saver = saver

    async def load(self, thread: str, checkpoint: str = "") -> CheckpointTuple | None:
        """Return a checkpoint of the root graph with its values, by default the newest; None if there is none.

        Raises:
            UnreadableError: It is damaged.
        """
        named = {"checkpoint_id": checkpoint} if checkpoint else {}
        try:
            return await self._saver.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": "", **named}})
        except _DAMAGED as error:
            name = checkpoint or "its newest one"
            raise UnreadableError(f"Checkpoint {name} of thread {thread} cannot be read: {error!s:.120}") from error

    async def threads(self) -> list[str]:
        """Return the ids of all threads."""
        return [str(thread) for (thread,) in await self._query(_THREADS)]

    async def origins(self) -> set[tuple[str, str]]:
        """Return thread and id of each checkpoint that a copy in another thread was made from."""
        origins = [_metadata(text).get("copied_from") for (text,) in await self._query(_COPIES)]
        return {(str(one["thread_id"]), str(one["checkpoint_id"])) for one in origins if one}

    async def survey(self, thread: str) -> dict[str, dict[str, Node]]:
        """Return a thread's checkpoints by namespace and id."""
        return await self._do(partial(_survey, thread=thread))

    async def remove(self, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Volume | None:
        """Delete what the plans say, by namespace, and what only that needed; return how much that is.

        It is done as a whole or not at all, and nobody else writes to the same rows meanwhile. None, and nothing is
        done, if another run went on from what is to be deleted since the thread was surveyed.
        """
        return await self._do(partial(_remove, thread=thread, plans=plans, dry_run=dry_run))

    async def compact(self) -> bool | None:
        """Make the file smaller. Return whether that was done; False: another program holds it; None: not needed."""
        [(free,)] = await self._query("PRAGMA freelist_count")
        [(pages,)] = await self._query("PRAGMA page_count")
        if free < pages * _FREE:
            return None  # what is written next takes its place
        await self._query("VACUUM")
        [(busy, *_)] = await self._query("PRAGMA wal_checkpoint(TRUNCATE)")
        return not busy

    async def _query(self, statement: str) -> list[tuple[Any, ...]]:
        return await self._do(lambda database: database.execute(statement).fetchall())

    async def _do(self, work: Callable[[Connection], T]) -> T:
        """Do some work in the connection's own thread."""
        await self._saver.setup()
        connection: Any = self._saver.conn
        async with self._saver.lock:
            done: T = await connection._execute(work, connection._conn)
            return done


def _survey(database: Connection, thread: str) -> dict[str, dict[str, Node]]:
    pending = set(database.execute(_PENDING, (thread,)))
    nodes: dict[str, dict[str, Node]] = defaultdict(dict)
    for namespace, checkpoint, parent, text in database.execute(_NODES, (thread,)):
        has_writes = (namespace, checkpoint) in pending
        nodes[namespace][checkpoint] = _node(str(checkpoint), parent, _metadata(text), pending=has_writes)
    return nodes


def _remove(database: Connection, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Volume | None:
    volume = Volume()
    with transaction(database, "DEFERRED" if dry_run else "IMMEDIATE"):
        if not dry_run and _went_on(_survey(database, thread), plans):
            return None
        for namespace, plan in plans.items():
            chosen = (thread, namespace, json.dumps(sorted(plan.removed)))
            gone, blobs = _volume(database, chosen)
            volume = volume.plus(gone)
            if dry_run:
                continue
            for table in _SIZES:
                database.execute(f"DELETE FROM {table} WHERE {_IN}", chosen)  # noqa: S608
            moves = [(parent, thread, namespace, checkpoint) for checkpoint, parent in plan.parents.items()]
            database.executemany(_MOVE, moves)
            if blobs:
                database.execute(_DELETE_BLOBS, (json.dumps(blobs),))
    return volume


def _volume(database: Connection, chosen: tuple[str, str, str]) -> tuple[Volume, list[int]]:
    """Return how much is in the chosen checkpoints, and the ids of the shared values that only they need."""
    counts, total = list[int](), 0
    for table, size in _SIZES.items():
        count = f"SELECT COUNT(*), COALESCE(SUM({size}), 0) FROM {table} WHERE {_IN}"  # noqa: S608
        [(number, used)] = database.execute(count, chosen)
        counts.append(number)
        total += used
    blobs = dict[int, int]()
    if database.execute(_SHARES).fetchone():
        blobs = {blob: used or 0 for blob, used in database.execute(_BLOBS.format("IN"), chosen)}
        for blob, _ in database.execute(_BLOBS.format("NOT IN"), chosen) if blobs else ():
            blobs.pop(blob, None)
    checkpoints, writes = counts
    return Volume(checkpoints, writes, len(blobs), total + sum(blobs.values())), list(blobs)


def _node(checkpoint: str, parent: str | None, metadata: JSON, *, pending: bool) -> Node:
    return Node(
        id=checkpoint,
        parent=parent or None,
        source=str(metadata.get("source", "")),
        step=int(metadata.get("step") or 0),
        root=(metadata.get("parents") or {}).get(""),
        pending=pending,
        delta=any(metadata.get(name) for name in _DELTA),
    )


def _went_on(nodes: Mapping[str, Mapping[str, Node]], plans: Mapping[str, Plan]) -> bool:
    """Whether the plans fit no more: a run went on from what is to go, or what is to be kept is gone."""
    gone = {checkpoint for plan in plans.values() for checkpoint in plan.removed}
    return any(
        not (plan.surveyed - plan.removed) <= nodes.get(namespace, {}).keys()
        or any(
            not gone.isdisjoint({node.parent, node.root})
            for checkpoint, node in nodes.get(namespace, {}).items()
            if checkpoint not in plan.surveyed
        )
        for namespace, plan in plans.items()
    )


def _metadata(text: str | None) -> JSON:
    try:
        metadata = json.loads(text or "{}")
    except ValueError:  # damaged; the checkpoint is then taken for what nothing is known of
        return {}
    return metadata if isinstance(metadata, dict) else {}
