"""Deleting the checkpoints that nobody goes back to, with any graph, of our checkpointers and LangGraph's.

What is kept, and what a turn is, `questbook.graphs.pruning.retention` says. Nothing of the store is changed: what was
remembered is found as before, and `/branches` still shows every turn that was played.
"""

import asyncio
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, NamedTuple

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from questbook.graphs.errors import PruningError, UnreadableError
from questbook.graphs.local.checkpointer import IDLE, is_running
from questbook.graphs.pruning.retention import Tree, kept_of_subgraph, kept_turns
from questbook.graphs.pruning.sqlite_tables import SqliteTables
from questbook.graphs.pruning.tables import Nodes, Plan, Tables, Volume

KEEP_TURNS = 50  # how many turns of each line are kept unless told otherwise
_TRIES = 3  # if a run goes on from an old checkpoint between the survey and the removal
_LINE, _FIRST_LINE = "line", "main"  # the channel, and what it means that it has no value


class Pruned(NamedTuple):
    """What was deleted; with `dry_run`, what would be.

    `compacted`: whether the file was made smaller; False if another program holds it, so that its free space is only
    used again; None where that is not done: in a dry run, and if less than a tenth of it is free.
    """

    threads: int  # how many threads were looked at
    checkpoints: int  # how many were deleted
    writes: int  # how many pending writes that were saved on them
    blobs: int  # how many values of channels that no other checkpoint needs, where they have rows of their own
    bytes: int  # of all these rows, as they were stored
    kept: int  # how many checkpoints are left in these threads
    skipped: dict[str, str]  # threads that were left as they are, each with the reason
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
        checkpointer: LangGraph's `AsyncSqliteSaver` or `AsyncPostgresSaver`, or one that a home opens. The database of
            a `SqliteSaver` or `PostgresSaver` is opened with these.
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
    tables = _tables_of(checkpointer)
    if isinstance(threads, str):
        raise PruningError(f"Threads are a list of ids, got the text {threads!r:.60}.")
    if type(keep_turns) is not int or keep_turns < 1:
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
        names = await tables.threads() if threads is None else list(dict.fromkeys(map(str, threads)))
        return await _prune(tables, names, limits, compact=compact and not dry_run)
    except tables.errors as error:
        text = f"The checkpoints cannot be read or written: {error} Threads that were pruned before stay so."
        raise PruningError(text) from error


class _Limits(NamedTuple):
    keep_turns: int
    since: datetime | None
    idle: timedelta
    dry_run: bool


def _tables_of(checkpointer: BaseCheckpointSaver[Any]) -> Tables:
    """Return the tables of a checkpointer; one of another kind is a PruningError, which says what to do."""
    if isinstance(checkpointer, AsyncSqliteSaver):
        return SqliteTables(checkpointer)
    postgres = sys.modules.get("langgraph.checkpoint.postgres.aio")  # loaded if there is such a checkpointer
    if postgres and isinstance(checkpointer, postgres.AsyncPostgresSaver):
        of_postgres: Tables = import_module("questbook.graphs.pruning.postgres_tables").PostgresTables(checkpointer)
        return of_postgres
    name = type(checkpointer).__name__
    if isinstance(checkpointer, SqliteSaver) or name == "PostgresSaver":
        raise PruningError(f"{name} cannot be pruned here: open its database with Async{name}, and prune that.")
    hint = "only AsyncSqliteSaver, AsyncPostgresSaver, and what a home opens. Nothing was changed."
    raise PruningError(f"{name} cannot be pruned here: {hint}")


async def _prune(tables: Tables, threads: Sequence[str], limits: _Limits, *, compact: bool) -> Pruned:
    origins = await tables.origins()
    volume, kept, skipped = Volume(), 0, dict[str, str]()
    for thread in threads:
        copied = {checkpoint for of_thread, checkpoint in origins if of_thread == thread}
        try:
            removed, left = await _prune_thread(tables, thread, copied, limits)
        except _SkippedError as reason:
            skipped[thread] = str(reason)
        else:
            volume, kept = volume.plus(removed), kept + left
    return Pruned(len(threads), *volume, kept, skipped, await tables.compact() if compact else None)


async def _prune_thread(tables: Tables, thread: str, copied: set[str], limits: _Limits) -> tuple[Volume, int]:
    """Prune one thread, or raise a _SkippedError; return how much was deleted, and how many checkpoints are left."""
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
                return Volume(), left
            volume = await tables.remove(thread, plans, dry_run=limits.dry_run)
            if volume is not None:
                return volume, left
    except UnreadableError as error:
        raise _SkippedError(str(error)) from error
    raise _SkippedError("Runs begin at old checkpoints of it at this moment: prune it again later.")


async def _plans(tables: Tables, thread: str, nodes: Nodes, copied: set[str], limits: _Limits) -> dict[str, Plan]:
    trees = await asyncio.to_thread(lambda: {space: Tree(checkpoints) for space, checkpoints in nodes.items()})
    roots = trees.get("", Tree({}))
    tips = await _tips(tables, thread, roots)

    def plan() -> dict[str, Plan]:
        plans, kept_roots = dict[str, Plan](), kept_turns(roots, tips, copied, limits.keep_turns, limits.since)
        for namespace, tree in trees.items():
            kept = kept_of_subgraph(namespace, tree, roots, kept_roots) if namespace else kept_roots
            plans[namespace] = Plan(tree.nodes.keys(), tree.nodes.keys() - kept, tree.new_parents(kept))
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
