"""Deleting the checkpoints that nobody goes back to, with any graph, of our checkpointer and LangGraph's for SQLite.

What is kept, and what a turn is, `questbook.graphs.pruning.retention` says. Nothing of the store is changed: what was
remembered is found as before, and `/branches` still shows every turn that was played.

LangGraph's saver keeps the values of channels in the checkpoint's own row. Ours keeps them in rows that several
checkpoints share, by the ids that a checkpoint lists: such a row goes if a checkpoint that is deleted needed it, and no
other one does.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from questbook.graphs.errors import PruningError, UnreadableError
from questbook.graphs.local.checkpoint_tables import in_connection, transaction
from questbook.graphs.local.checkpointer import IDLE, is_running
from questbook.graphs.pruning.retention import Tree, TreeNode, kept_of_subgraph, kept_turns
from questbook.types import JSON

KEEP_TURNS = 50  # how many turns of each line are kept unless told otherwise
_TRIES = 3  # if a run goes on from an old checkpoint between the survey and the removal
_LINE, _FIRST_LINE = "line", "main"  # the channel, and what it means that it has no value
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


class Pruned(NamedTuple):
    """What was deleted; with `dry_run`, what would be.

    Attributes:
        threads: How many threads were looked at.
        checkpoints: How many checkpoints were deleted.
        writes: How many pending writes that were saved on them.
        blobs: How many values of channels that no other checkpoint needs, where they have rows of their own.
        bytes: Bytes of all these rows, as they were stored.
        kept: How many checkpoints are left in these threads.
        skipped: Threads that were left as they are, each with the reason.
        compacted: Whether the file was made smaller; False if another program holds it, so that its free space is only
            used again; None where that is not done: in a dry run, and if less than a tenth of it is free.
    """

    threads: int
    checkpoints: int
    writes: int
    blobs: int
    bytes: int
    kept: int
    skipped: dict[str, str]
    compacted: bool | None = None


async def prune(
    checkpointer: BaseCheckpointSaver[Any],
    *,
    threads: Iterable[str] | None = None,
    keep_turns: int = KEEP_TURNS,
    older_than: timedelta | None = None,
    dry_run: bool = False,
    compact: bool = True,
    idle: timedelta = IDLE,
) -> Pruned:
    """Delete the checkpoints that nobody goes back to, with their pending writes and values.

    `questbook.graphs.pruning.retention` says what is kept. What was deleted cannot be brought back: take a copy of the
    database first if in doubt.

        result = await prune(checkpointer, dry_run=True)           # how much would go
        await prune(checkpointer, keep_turns=20)                   # of all threads
        await prune(checkpointer, threads=["7f3a"], older_than=timedelta(days=30))

    Others may play meanwhile, with one exception: nobody may begin a run at an old checkpoint at the moment
    at which it is deleted. A thread with a run in progress is skipped.

    Args:
        checkpointer: LangGraph's `AsyncSqliteSaver`, or the one that `open_checkpointer` opens. The file of a
            `SqliteSaver` is opened with the first; `PostgresSaver` has a method of its own.
        threads: Ids of threads; None: all that it keeps.
        keep_turns: How many turns of each line are kept, from 1. A line is the thread as it stands now, and, if the
            state has a channel `line`, each line that it names.
        older_than: Turns younger than this are kept, too; None: age does not count.
        dry_run: Only count what would be deleted.
        compact: Make SQLite's file smaller at the end, if a tenth of it is free. It is written again for that, which
            needs as much space on the disk.
        idle: How long a run may be without a step before it is taken for one that was stopped.

    Raises:
        PruningError: The checkpointer is of another kind, an argument cannot be used, or the database cannot be read
            or written. Threads that were done before stay done.
    """
    if not isinstance(checkpointer, AsyncSqliteSaver):
        raise PruningError(f"{type(checkpointer).__name__} cannot be pruned here: {_advice(checkpointer)}")
    if isinstance(threads, str):
        raise PruningError(f"Threads are a list of ids, got the text {threads!r:.60}.")
    if not isinstance(keep_turns, int) or keep_turns < 1:
        raise PruningError(f"The number of turns to keep is from 1, got {keep_turns!r:.80}.")
    if not isinstance(older_than, timedelta | None) or not isinstance(idle, timedelta):
        raise PruningError(f"Ages are timedeltas, got {older_than!r:.80} and {idle!r:.80}.")
    since = None
    if older_than is not None:
        try:
            since = datetime.now(UTC) - older_than
        except OverflowError as error:
            raise PruningError(f"{older_than.days:,} days ago there was no calendar; give fewer days.") from error
    limits = _Limits(keep_turns, since, idle, dry_run)
    try:
        tables = Tables(checkpointer)
        names = await tables.threads() if threads is None else list(dict.fromkeys(map(str, threads)))
        return await _prune(tables, names, limits, compact=compact and not dry_run)
    except sqlite3.Error as error:
        text = f"The checkpoints cannot be read or written: {error} Threads that were pruned before stay so."
        raise PruningError(text) from error


class _Limits(NamedTuple):
    keep_turns: int
    since: datetime | None
    idle: timedelta
    dry_run: bool


def _advice(checkpointer: BaseCheckpointSaver[Any]) -> str:
    """Return what to do with a checkpointer of another kind."""
    if isinstance(checkpointer, SqliteSaver):
        return "open its file with AsyncSqliteSaver, and prune that."
    if type(checkpointer).prune is not BaseCheckpointSaver.prune:
        return 'it has a method of its own, prune(thread_ids, strategy="keep_latest").'
    return "only AsyncSqliteSaver, and what open_checkpointer opens. Nothing was changed."


async def _prune(tables: Tables, threads: Sequence[str], limits: _Limits, *, compact: bool) -> Pruned:
    origins = await tables.origins()
    volume, kept, skipped = _Volume(), 0, dict[str, str]()
    for thread in threads:
        copied = {checkpoint for of_thread, checkpoint in origins if of_thread == thread}
        try:
            removed, left = await _prune_thread(tables, thread, copied, limits)
        except _SkippedError as reason:
            skipped[thread] = str(reason)
        else:
            volume, kept = volume.plus(removed), kept + left
    compacted = None
    if compact:
        try:
            compacted = await tables.compact()
        except sqlite3.OperationalError:  # locked, or no space left for the new file; the free space is used again
            compacted = False
    return Pruned(len(threads), *volume, kept, skipped, compacted)


async def _prune_thread(tables: Tables, thread: str, copied: set[str], limits: _Limits) -> tuple[_Volume, int]:
    """Prune one thread; return how much was deleted, and how many checkpoints are left.

    Raises:
        _SkippedError: It was left as it is.
    """
    try:
        newest = await tables.load(thread)
        if newest is None:
            raise _SkippedError("It has no checkpoints.")
        if is_running(newest, limits.idle):
            raise _SkippedError("A run is in progress: prune it again when that has ended.")
        for _ in range(_TRIES):
            nodes = await tables.survey(thread)
            if any(node.delta for checkpoints in nodes.values() for node in checkpoints.values()):
                raise _SkippedError("It has a DeltaChannel, whose value is in the writes of earlier checkpoints.")
            plans = await _plans(tables, thread, nodes, copied, limits)
            left = sum(len(plan.surveyed) - len(plan.removed) for plan in plans.values())
            if not any(plan.removed for plan in plans.values()):
                return _Volume(), left
            volume = await tables.remove(thread, plans, dry_run=limits.dry_run)
            if volume is not None:
                return volume, left
    except UnreadableError as error:
        raise _SkippedError(str(error)) from error
    raise _SkippedError("Runs begin at old checkpoints of it at this moment: prune it again later.")


async def _plans(
    tables: Tables, thread: str, nodes: Mapping[str, Mapping[str, TreeNode]], copied: set[str], limits: _Limits
) -> dict[str, _Plan]:
    """Return what is to be done in each namespace of a thread."""
    trees = await asyncio.to_thread(lambda: {space: Tree(checkpoints) for space, checkpoints in nodes.items()})
    roots = trees.get("", Tree({}))
    tips = await _tips(tables, thread, roots)

    def plan() -> dict[str, _Plan]:
        plans, kept_roots = dict[str, _Plan](), kept_turns(roots, tips, copied, limits.keep_turns, limits.since)
        for namespace, tree in trees.items():
            kept = kept_of_subgraph(namespace, tree, roots, kept_roots) if namespace else kept_roots
            plans[namespace] = _Plan(tree.nodes.keys(), tree.nodes.keys() - kept, tree.new_parents(kept))
        return plans

    return await asyncio.to_thread(plan)


async def _tips(tables: Tables, thread: str, tree: Tree) -> set[str]:
    """Return the last checkpoint of each line: of the thread as it stands now, and of each that a channel names."""
    tips, ends = {max(tree.nodes)} if tree.nodes else set[str](), tree.leaves()
    named = await _lines(tables, thread, ends)
    if not any(named.values()):
        return tips
    edits = [node.id for node in tree.nodes.values() if node.source == "update" or tree.parent(node.id) is None]
    named |= await _lines(tables, thread, edits)  # no run changes it
    lines, last = dict[str, str](), dict[str, str]()
    for checkpoint in tree.order:
        parent = tree.parent(checkpoint)
        inherited = lines[parent] if parent is not None else ""
        lines[checkpoint] = (named[checkpoint] or _FIRST_LINE) if checkpoint in named else inherited
        if tree.nodes[checkpoint].source != "fork":  # going back makes copies, but a line ends where it was played last
            last[lines[checkpoint]] = max(checkpoint, last.get(lines[checkpoint], ""))
    return tips | set(last.values())


async def _lines(tables: Tables, thread: str, checkpoints: Iterable[str]) -> dict[str, str]:
    """Return the line that each checkpoint names; "" if it names none."""
    lines: dict[str, str] = {}
    for checkpoint in checkpoints:
        saved = await tables.load(thread, checkpoint)
        lines[checkpoint] = str(saved.checkpoint["channel_values"].get(_LINE, "")) if saved else ""
    return lines


class _SkippedError(Exception):
    """A thread is left as it is; the message says why."""


class _Plan(NamedTuple):
    """What is to be done in one namespace of a thread."""

    surveyed: Set[str]  # the checkpoints that there were
    removed: Set[str]  # those to delete
    parents: Mapping[str, str | None]  # new parents of kept ones; None: no parent


class _Volume(NamedTuple):
    """How much was, or would be, deleted."""

    checkpoints: int = 0
    writes: int = 0
    blobs: int = 0
    bytes: int = 0

    def plus(self, other: _Volume) -> _Volume:
        """Return both together."""
        return _Volume(*(one + another for one, another in zip(self, other, strict=True)))


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

    async def survey(self, thread: str) -> dict[str, dict[str, TreeNode]]:
        """Return a thread's checkpoints by namespace and id."""
        return await in_connection(self._saver, partial(_survey, thread=thread))

    async def remove(self, thread: str, plans: Mapping[str, _Plan], *, dry_run: bool) -> _Volume | None:
        """Delete what the plans say, by namespace, and what only that needed; return how much that is.

        It is done as a whole or not at all, and nobody else writes to the same rows meanwhile. None, and nothing is
        done, if another run went on from what is to be deleted since the thread was surveyed.
        """
        return await in_connection(self._saver, partial(_remove, thread=thread, plans=plans, dry_run=dry_run))

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
        return await in_connection(self._saver, lambda database: database.execute(statement).fetchall())


def _survey(database: sqlite3.Connection, thread: str) -> dict[str, dict[str, TreeNode]]:
    pending = set(database.execute(_PENDING, (thread,)))
    nodes: dict[str, dict[str, TreeNode]] = defaultdict(dict)
    for namespace, checkpoint, parent, text in database.execute(_NODES, (thread,)):
        has_writes = (namespace, checkpoint) in pending
        nodes[namespace][checkpoint] = _node(str(checkpoint), parent, _metadata(text), pending=has_writes)
    return nodes


def _remove(database: sqlite3.Connection, thread: str, plans: Mapping[str, _Plan], *, dry_run: bool) -> _Volume | None:
    volume = _Volume()
    with transaction(database, "DEFERRED" if dry_run else "IMMEDIATE"):
        if not dry_run and _went_on(_survey(database, thread), plans):
            return None
        for namespace, plan in plans.items():
            chosen = (thread, namespace, json.dumps(sorted(plan.removed)))
            gone, blobs = _volume_of(database, chosen)
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


def _volume_of(database: sqlite3.Connection, chosen: tuple[str, str, str]) -> tuple[_Volume, list[int]]:
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
    return _Volume(checkpoints, writes, len(blobs), total + sum(blobs.values())), list(blobs)


def _node(checkpoint: str, parent: str | None, metadata: JSON, *, pending: bool) -> TreeNode:
    return TreeNode(
        id=checkpoint,
        parent=parent or None,
        source=str(metadata.get("source", "")),
        step=int(metadata.get("step") or 0),
        root=(metadata.get("parents") or {}).get(""),
        pending=pending,
        delta=any(name in metadata for name in _DELTA),
    )


def _went_on(nodes: Mapping[str, Mapping[str, TreeNode]], plans: Mapping[str, _Plan]) -> bool:
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
