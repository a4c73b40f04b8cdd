"""`Tables`: what pruning reads and deletes in a saver's SQLite database.

LangGraph's saver keeps the values of channels in the checkpoint's own row. Ours keeps them in rows that several
checkpoints share, by the ids that a checkpoint lists: such a row goes if a checkpoint that is deleted needed it, and no
other one does.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Set
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from questbook.graphs.errors import UnreadableError
from questbook.graphs.pruning.retention import Node
from questbook.types import JSON

Execute = Callable[..., Awaitable[list[tuple[Any, ...]]]]
"""Runs a statement with its parameters; returns the rows."""

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
_COUNT = "SELECT COUNT(*), COALESCE(SUM({size}), 0) FROM {table} WHERE {chosen}"
_DELETE = "DELETE FROM {table} WHERE {chosen}"
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
    """The tables of a saver for SQLite: LangGraph's, or ours.

    A query has the saver's lock while it runs, and a transaction has it to its end: runs of this process that use the
    same connection wait for it.
    """

    def __init__(self, saver: AsyncSqliteSaver) -> None:
        self.saver = saver

    async def load(self, thread: str, namespace: str = "", checkpoint: str = "") -> CheckpointTuple | None:
        """Return a checkpoint with its values; without an id the newest of the namespace; None if there is none.

        Raises:
            UnreadableError: It is damaged.
        """
        try:
            return await self.saver.aget_tuple(config_of(thread, namespace, checkpoint))
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
        return await _survey(self._query, thread)

    async def remove(self, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Volume | None:
        """Delete what the plans say, by namespace, and what only that needed; return how much that is.

        It is done as a whole or not at all, and nobody else writes to the same rows meanwhile. None, and nothing is
        done, if another run went on from what is to be deleted since the thread was surveyed.
        """
        volume = Volume()
        async with self._session(transaction=not dry_run) as execute:
            if not dry_run and _went_on(await _survey(execute, thread), plans):
                return None
            shares = bool(await execute(_SHARES))
            for namespace, plan in plans.items():
                chosen = (thread, namespace, json.dumps(sorted(plan.removed)))
                gone, blobs = await _volume(execute, chosen, shares=shares)
                volume = volume.plus(gone)
                if not dry_run:
                    for table in _SIZES:
                        await execute(_DELETE.format(table=table, chosen=_IN), *chosen)
                    for checkpoint, parent in plan.parents.items():
                        await execute(_MOVE, parent, thread, namespace, checkpoint)
                    await execute(_DELETE_BLOBS, json.dumps(blobs)) if blobs else None
        return volume

    async def compact(self) -> bool | None:
        """Make the file smaller. Return whether that was done; False: another program holds it; None: not needed."""
        [(free,)] = await self._query("PRAGMA freelist_count")
        [(pages,)] = await self._query("PRAGMA page_count")
        if free < pages * _FREE:
            return None  # what is written next takes its place
        await self._query("VACUUM")
        [(busy, *_)] = await self._query("PRAGMA wal_checkpoint(TRUNCATE)")
        return not busy

    async def _query(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        async with self._session() as execute:
            return await execute(statement, *parameters)

    @asynccontextmanager
    async def _session(self, *, transaction: bool = False) -> AsyncIterator[Execute]:
        await self.saver.setup()
        connection = self.saver.conn

        async def execute(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in await connection.execute_fetchall(statement, parameters)]

        async with self.saver.lock:
            if transaction:
                await execute("BEGIN IMMEDIATE")  # nobody else can write until it ends
            try:
                yield execute
            except BaseException:
                await connection.rollback()
                raise
            await connection.commit()


def config_of(thread: str, namespace: str, checkpoint: str) -> RunnableConfig:
    """Return the config that names a checkpoint; without an id the newest."""
    named = {"checkpoint_id": checkpoint} if checkpoint else {}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, **named}}


async def _survey(execute: Execute, thread: str) -> dict[str, dict[str, Node]]:
    pending = set(await execute(_PENDING, thread))
    rows = await execute(_NODES, thread)

    def read() -> dict[str, dict[str, Node]]:
        nodes: dict[str, dict[str, Node]] = defaultdict(dict)
        for namespace, checkpoint, parent, text in rows:
            has_writes = (namespace, checkpoint) in pending
            nodes[namespace][checkpoint] = _node(str(checkpoint), parent, _metadata(text), pending=has_writes)
        return nodes

    return await asyncio.to_thread(read)


async def _volume(execute: Execute, chosen: tuple[str, str, str], *, shares: bool) -> tuple[Volume, list[int]]:
    """Return how much is in the chosen checkpoints, and the ids of the shared values that only they need."""
    counts, total = list[int](), 0
    for table, size in _SIZES.items():
        [(count, used)] = await execute(_COUNT.format(table=table, size=size, chosen=_IN), *chosen)
        counts.append(count)
        total += used
    blobs = dict[int, int]()
    if shares:
        blobs = {blob: used or 0 for blob, used in await execute(_BLOBS.format("IN"), *chosen)}
        for blob, _ in await execute(_BLOBS.format("NOT IN"), *chosen) if blobs else ():
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
