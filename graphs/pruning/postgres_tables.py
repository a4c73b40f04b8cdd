"""`PostgresTables`: the tables of LangGraph's saver for PostgreSQL, or ours.

A blob is the value of a channel in one version, which all checkpoints share that name it. It goes if a checkpoint that
is deleted named it, and no other one does; so does a message that only such lists have (`PostgresCheckpointer`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Error

from questbook.graphs.local.home import HomeError
from questbook.graphs.local.postgres_checkpointer import LISTED, MESSAGES, PART
from questbook.graphs.pruning.tables import Nodes, Plan, Tables, Volume, nodes_of, went_on
from questbook.memory.text.parts import read_parts

_SQL = read_parts("questbook.graphs.pruning", "postgres.toml", LISTED=LISTED, MESSAGES=MESSAGES)


class PostgresTables(Tables):
    """A thread that is pruned is to be held, or to rest: nothing keeps a run from beginning at what is deleted."""

    errors = (Error, HomeError)
    copies = "SELECT metadata FROM checkpoints WHERE metadata ? 'copied_from'"

    async def survey(self, thread: str) -> Nodes:  # noqa: D102
        async with self._saver._cursor() as cursor:
            return await _survey(cursor, thread)

    async def remove(self, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Volume | None:  # noqa: D102
        volume = Volume()
        async with self._saver._cursor() as cursor, cursor.connection.transaction():
            if not dry_run and went_on(await _survey(cursor, thread), plans):
                return None
            for namespace, plan in plans.items():
                place = {"thread": thread, "namespace": namespace, "removed": sorted(plan.removed)}
                blobs = await _blobs(cursor, place)
                [rows] = await _fetch(cursor, _SQL["VOLUME"], place)
                [values] = await _fetch(cursor, _SQL["SIZE"], blobs)
                size = int(rows["bytes"] + values["bytes"])
                volume = volume.plus(Volume(rows["checkpoints"], rows["writes"], values["blobs"], size))
                if not dry_run:
                    for table in ("WRITES", "CHECKPOINTS", "BLOBS"):
                        await cursor.execute(_SQL[f"DELETE_{table}"], blobs)
                    for checkpoint, parent in plan.parents.items():
                        await cursor.execute(_SQL["MOVE"], place | {"id": checkpoint, "parent": parent})
        return volume

    async def compact(self) -> bool | None:  # noqa: D102
        return None  # autovacuum lets what is written next take the place

    async def _query(self, statement: str) -> list[tuple[Any, ...]]:
        async with self._saver._cursor() as cursor:
            return [tuple(row.values()) for row in await _fetch(cursor, statement)]


async def _survey(cursor: Any, thread: str) -> Nodes:
    rows = [tuple(row.values()) for row in await _fetch(cursor, _SQL["NODES"], (thread,))]
    pending = {(row["checkpoint_ns"], row["checkpoint_id"]) for row in await _fetch(cursor, _SQL["PENDING"], (thread,))}
    return nodes_of(rows, pending)


async def _blobs(cursor: Any, place: Mapping[str, Any]) -> dict[str, Any]:
    """Return a place with channels and versions of the blobs that only what goes there needs."""
    pairs = [(row["key"], row["value"]) for row in await _fetch(cursor, _SQL["UNNAMED"], place)]
    lists = [version for channel, version in pairs if channel == MESSAGES]
    pairs += [(PART, row["digest"]) for row in await _fetch(cursor, _SQL["UNLISTED"], {**place, "lists": lists})]
    return {**place, "channels": [channel for channel, _ in pairs], "versions": [version for _, version in pairs]}


async def _fetch(cursor: Any, statement: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> list[Any]:
    await cursor.execute(statement, values)
    rows: list[Any] = await cursor.fetchall()
    return rows
