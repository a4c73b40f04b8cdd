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

_PLACE = "thread_id = %(thread)s AND checkpoint_ns = %(namespace)s"
_GONE = f"{_PLACE} AND checkpoint_id = ANY(%(removed)s)"
_VOLUME = f"""SELECT (SELECT count(*) FROM checkpoints WHERE {_GONE}) AS checkpoints,
    (SELECT count(*) FROM checkpoint_writes WHERE {_GONE}) AS writes,
    (SELECT coalesce(sum(pg_column_size(c.*)), 0) FROM checkpoints c WHERE {_GONE})
    + (SELECT coalesce(sum(pg_column_size(w.*)), 0) FROM checkpoint_writes w WHERE {_GONE}) AS bytes"""  # noqa: S608 (names of ours)
_VERSIONS = "SELECT v.key, v.value FROM checkpoints, jsonb_each_text(checkpoint -> 'channel_versions') AS v WHERE"
_UNNAMED = f"{_VERSIONS} {_GONE} EXCEPT {_VERSIONS} {_PLACE} AND checkpoint_id <> ALL(%(removed)s)"
_DIGESTS = f"""
SELECT digest FROM checkpoint_blobs, jsonb_array_elements_text(convert_from(blob, 'UTF8')::jsonb) AS digest
WHERE {_PLACE} AND channel = '{MESSAGES}' AND type = '{LISTED}' AND"""  # noqa: S608
_UNLISTED = f"{_DIGESTS} version = ANY(%(lists)s) EXCEPT {_DIGESTS} version <> ALL(%(lists)s)"
_BLOBS = f"{_PLACE} AND (channel, version) IN (SELECT * FROM unnest(%(channels)s::text[], %(versions)s::text[]))"  # noqa: S608
_SIZE = f"""SELECT count(*) AS blobs, coalesce(sum(pg_column_size(b.*)), 0) AS bytes
FROM checkpoint_blobs b WHERE {_BLOBS}"""  # noqa: S608
_DELETE = (
    f"DELETE FROM checkpoint_writes WHERE {_GONE}",  # noqa: S608
    f"DELETE FROM checkpoints WHERE {_GONE}",  # noqa: S608
    f"DELETE FROM checkpoint_blobs WHERE {_BLOBS}",  # noqa: S608
)
_MOVE = f"UPDATE checkpoints SET parent_checkpoint_id = %(parent)s WHERE {_PLACE} AND checkpoint_id = %(id)s"  # noqa: S608
_NODES = "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints WHERE thread_id = %s"
_PENDING = "SELECT DISTINCT checkpoint_ns, checkpoint_id FROM checkpoint_writes WHERE thread_id = %s"


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
                [rows], [values] = await _fetch(cursor, _VOLUME, place), await _fetch(cursor, _SIZE, blobs)
                size = int(rows["bytes"] + values["bytes"])
                volume = volume.plus(Volume(rows["checkpoints"], rows["writes"], values["blobs"], size))
                if not dry_run:
                    for statement in _DELETE:
                        await cursor.execute(statement, blobs)
                    for checkpoint, parent in plan.parents.items():
                        await cursor.execute(_MOVE, place | {"id": checkpoint, "parent": parent})
        return volume

    async def compact(self) -> bool | None:  # noqa: D102
        return None  # autovacuum lets what is written next take the place

    async def _query(self, statement: str) -> list[tuple[Any, ...]]:
        async with self._saver._cursor() as cursor:
            return [tuple(row.values()) for row in await _fetch(cursor, statement)]


async def _survey(cursor: Any, thread: str) -> Nodes:
    rows = [tuple(row.values()) for row in await _fetch(cursor, _NODES, (thread,))]
    pending = {(row["checkpoint_ns"], row["checkpoint_id"]) for row in await _fetch(cursor, _PENDING, (thread,))}
    return nodes_of(rows, pending)


async def _blobs(cursor: Any, place: Mapping[str, Any]) -> dict[str, Any]:
    """Return a place with channels and versions of the blobs that only what goes there needs."""
    pairs = [(row["key"], row["value"]) for row in await _fetch(cursor, _UNNAMED, place)]
    lists = [version for channel, version in pairs if channel == MESSAGES]
    pairs += [(PART, row["digest"]) for row in await _fetch(cursor, _UNLISTED, {**place, "lists": lists})]
    return {**place, "channels": [channel for channel, _ in pairs], "versions": [version for _, version in pairs]}


async def _fetch(cursor: Any, statement: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> list[Any]:
    await cursor.execute(statement, values)
    rows: list[Any] = await cursor.fetchall()
    return rows
