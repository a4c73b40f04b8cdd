"""`SqliteTables`: the tables of a saver for SQLite, LangGraph's or ours.

LangGraph's saver keeps the values of channels in the checkpoint's own row. Ours keeps them in rows that several
checkpoints share, by the ids that a checkpoint lists: such a row goes if a checkpoint that is deleted needed it, and no
other one does.
"""

import json
import sqlite3
from collections.abc import Mapping
from functools import partial
from typing import Any

from questbook.graphs.local.checkpoint_tables import in_connection, transaction
from questbook.graphs.pruning.tables import Nodes, Plan, Tables, Volume, nodes_of, went_on
from questbook.memory.store.database_file import write_again
from questbook.memory.text.parts import read_parts

_FREE = 0.1  # of a file; from then on it is worth the time to write it again
_SQL = read_parts("questbook.graphs.pruning", "sqlite.toml")
_SIZES = {
    "checkpoints": "LENGTH(checkpoint) + COALESCE(LENGTH(CAST(metadata AS BLOB)), 0)",
    "writes": "COALESCE(LENGTH(value), 0)",
}


class SqliteTables(Tables):
    """In a thread of their own; runs that use the same connection, or write to the same file, wait meanwhile."""

    errors = (sqlite3.Error,)
    copies = "SELECT CAST(metadata AS TEXT) FROM checkpoints WHERE instr(CAST(metadata AS TEXT), '\"copied_from\"') > 0"

    async def survey(self, thread: str) -> Nodes:  # noqa: D102
        return await in_connection(self._saver, partial(_survey, thread=thread))

    async def remove(self, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Volume | None:  # noqa: D102
        return await in_connection(self._saver, partial(_remove, thread=thread, plans=plans, dry_run=dry_run))

    async def compact(self) -> bool | None:  # noqa: D102
        [(free,)] = await self._query("PRAGMA freelist_count")
        [(pages,)] = await self._query("PRAGMA page_count")
        if free < pages * _FREE:
            return None  # what is written next takes its place
        try:
            return await in_connection(self._saver, write_again)
        except sqlite3.OperationalError:  # locked, or no space left for the new file; the free space is used again
            return False

    async def _query(self, statement: str) -> list[tuple[Any, ...]]:
        return await in_connection(self._saver, lambda database: database.execute(statement).fetchall())


def _survey(database: sqlite3.Connection, thread: str) -> Nodes:
    return nodes_of(database.execute(_SQL["NODES"], (thread,)), set(database.execute(_SQL["PENDING"], (thread,))))


def _remove(database: sqlite3.Connection, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Volume | None:
    volume = Volume()
    with transaction(database, "DEFERRED" if dry_run else "IMMEDIATE"):
        if not dry_run and went_on(_survey(database, thread), plans):
            return None
        for namespace, plan in plans.items():
            chosen = (thread, namespace, json.dumps(sorted(plan.removed)))
            gone, blobs = _volume_of(database, chosen)
            volume = volume.plus(gone)
            if dry_run:
                continue
            for table in _SIZES:
                database.execute(f"DELETE FROM {table} WHERE {_SQL['IN']}", chosen)  # noqa: S608
            moves = [(parent, thread, namespace, checkpoint) for checkpoint, parent in plan.parents.items()]
            database.executemany(_SQL["MOVE"], moves)
            if blobs:
                database.execute(_SQL["DELETE_BLOBS"], (json.dumps(blobs),))
    return volume


def _volume_of(database: sqlite3.Connection, chosen: tuple[str, str, str]) -> tuple[Volume, list[int]]:
    """Return how much is in the chosen checkpoints, and the ids of the shared values that only they need."""
    counts, total = list[int](), 0
    for table, size in _SIZES.items():
        count = f"SELECT COUNT(*), COALESCE(SUM({size}), 0) FROM {table} WHERE {_SQL['IN']}"  # noqa: S608
        [(number, used)] = database.execute(count, chosen)
        counts.append(number)
        total += used
    blobs = dict[int, int]()
    if database.execute(_SQL["SHARES"]).fetchone():
        blobs = {blob: used or 0 for blob, used in database.execute(_SQL["BLOBS"].format("IN"), chosen)}
        for blob, _ in database.execute(_SQL["BLOBS"].format("NOT IN"), chosen) if blobs else ():
            blobs.pop(blob, None)
    checkpoints, writes = counts
    return Volume(checkpoints, writes, len(blobs), total + sum(blobs.values())), list(blobs)
