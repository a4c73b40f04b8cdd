"""What pruning reads and deletes in SQLite and in Postgres, as statements.

Values of channels are in the checkpoint's own row (LangGraph's saver for SQLite), or in rows that several checkpoints
share: by version (Postgres), or by the ids that the checkpoint lists (our own saver for SQLite). A shared one goes if a
checkpoint that is deleted needed it, and no other one does.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from questbook.graphs.pruning.backend import Plan, Volume
from questbook.graphs.pruning.connection import Connection, Execute
from questbook.graphs.pruning.retention import FOREIGN, STUB, Node
from questbook.types import JSON

_ROWS = (
    "SELECT COUNT(*), COALESCE(SUM({size}), 0) FROM {table} "
    "WHERE thread_id = {p} AND checkpoint_ns = {p} AND checkpoint_id {listed}"
)
_DELETE = "DELETE FROM {table} WHERE thread_id = {p} AND checkpoint_ns = {p} AND checkpoint_id {listed}"
_THREADS = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"
_NODES = "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, {metadata} FROM checkpoints WHERE thread_id = {p}"
_FREE = 0.1  # of a file; from then on it is worth the time to write it again
_SHARES = "SELECT 1 FROM pragma_table_info('checkpoints') WHERE name = 'blobs'"
_PENDING = "SELECT DISTINCT checkpoint_ns, checkpoint_id FROM {writes} WHERE thread_id = {p}"


class Dialect(NamedTuple):
    """How one kind of database says it.

    Attributes:
        p: A parameter.
        listed: "is one of", of a parameter that `one_of` makes.
        writes: Table of the pending writes.
        metadata: A checkpoint's metadata as JSON text.
        sizes: Bytes of a row, by table.
        copies: Statement for the metadata of all copies to another thread.
        move: Statement that gives a checkpoint another parent.
        blobs: Statement for the shared values that the checkpoints need which are listed, and their bytes.
        others: The same for all checkpoints that are not listed.
        delete_blobs: Statement that deletes shared values.
        by_version: Whether a shared value's key is channel and version, and not an id.
    """

    p: str
    listed: str
    writes: str
    metadata: str
    sizes: Mapping[str, str]
    copies: str
    move: str
    blobs: str = ""
    others: str = ""
    delete_blobs: str = ""
    by_version: bool = False

    def says(self, statement: str, **names: str) -> str:
        """Return a statement with this dialect's words."""
        words = {"p": self.p, "listed": self.listed, "writes": self.writes, "metadata": self.metadata}
        return statement.format(**words | names)

    def one_of(self, values: Collection[Any]) -> Any:
        """Return the parameter for `listed`."""
        return list(values) if self.by_version else json.dumps(list(values))


_LISTED_BLOBS = (
    "SELECT b.id, LENGTH(b.value) FROM checkpoint_blobs b WHERE b.id IN (SELECT j.value FROM checkpoints c, "
    "json_each(c.blobs) j WHERE c.thread_id = ? AND c.checkpoint_ns = ? AND c.checkpoint_id {not_}IN "
    "(SELECT value FROM json_each(?)))"
)
SQLITE = Dialect(
    p="?",
    listed="IN (SELECT value FROM json_each(?))",
    writes="writes",
    metadata="CAST(metadata AS TEXT)",
    sizes={
        "checkpoints": "LENGTH(checkpoint) + COALESCE(LENGTH(CAST(metadata AS BLOB)), 0)",
        "writes": "COALESCE(LENGTH(value), 0)",
    },
    copies="SELECT CAST(metadata AS TEXT) FROM checkpoints WHERE instr(CAST(metadata AS TEXT), '\"copied_from\"') > 0",
    move="UPDATE checkpoints SET parent_checkpoint_id = ? "
    "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
)
EMBEDDED = SQLITE._replace(
    blobs=_LISTED_BLOBS.format(not_=""),
    others=_LISTED_BLOBS.format(not_="NOT "),
    delete_blobs="DELETE FROM checkpoint_blobs WHERE id IN (SELECT value FROM json_each(?))",
)
_VERSION_BLOBS = (
    "SELECT DISTINCT v.key, v.value, octet_length(b.blob) FROM checkpoints c "
    "CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') AS v "
    "JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns "
    "AND b.channel = v.key AND b.version = v.value "
    "WHERE c.thread_id = %s AND c.checkpoint_ns = %s AND {not_}c.checkpoint_id = ANY(%s)"
)
POSTGRES = Dialect(
    p="%s",
    listed="= ANY(%s)",
    writes="checkpoint_writes",
    metadata="metadata::text",
    sizes={
        "checkpoints": "octet_length(checkpoint::text) + octet_length(metadata::text)",
        "writes": "octet_length(blob)",
    },
    copies="SELECT metadata::text FROM checkpoints WHERE metadata ? 'copied_from'",
    # A checkpoint of an old version finds its pending sends with its parent; it must not find another one's.
    move="UPDATE checkpoints SET parent_checkpoint_id = CASE WHEN (checkpoint ->> 'v')::int < 4 THEN NULL ELSE %s END "
    "WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s",
    blobs=_VERSION_BLOBS.format(not_=""),
    others=_VERSION_BLOBS.format(not_="NOT "),
    delete_blobs="DELETE FROM checkpoint_blobs b USING unnest(%s::text[], %s::text[]) AS gone (channel, version) "
    "WHERE b.thread_id = %s AND b.checkpoint_ns = %s AND b.channel = gone.channel AND b.version = gone.version",
    by_version=True,
)


class Tables:
    """The tables of a saver for SQLite or Postgres.

    Args:
        connection: The saver's.
        dialect: How the database says it.
    """

    def __init__(self, connection: Connection, dialect: Dialect) -> None:
        self._connection, self._sql = connection, dialect

    async def open(self) -> None:
        """See `Backend.open`."""
        if self._sql is SQLITE and await self._connection.query(_SHARES):
            self._sql = EMBEDDED

    async def threads(self) -> list[str]:
        """See `Backend.threads`."""
        return [str(thread) for (thread,) in await self._connection.query(_THREADS)]

    async def origins(self) -> set[tuple[str, str]]:
        """See `Backend.origins`."""
        origins = [_metadata(text).get("copied_from") for (text,) in await self._connection.query(self._sql.copies)]
        return {(str(one["thread_id"]), str(one["checkpoint_id"])) for one in origins if one}

    async def survey(self, thread: str) -> dict[str, dict[str, Node]]:
        """See `Backend.survey`."""
        return await self._survey(self._connection.query, thread)

    async def remove(self, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Volume | None:
        """See `Backend.remove`."""
        volume = Volume()
        async with self._connection.session(transaction=not dry_run) as execute:
            if not dry_run and went_on(await self._survey(execute, thread), plans):
                return None
            for namespace, plan in plans.items():
                volume = volume.plus(await self._remove(execute, thread, namespace, plan, dry_run=dry_run))
        return volume

    async def compact(self) -> bool | None:
        """See `Backend.compact`."""
        if self._sql.by_version:
            return None  # Postgres vacuums its tables by itself
        [(free,)] = await self._connection.query("PRAGMA freelist_count")
        [(pages,)] = await self._connection.query("PRAGMA page_count")
        if free < pages * _FREE:
            return None  # what is written next takes its place
        await self._connection.query("VACUUM")
        [(busy, *_)] = await self._connection.query("PRAGMA wal_checkpoint(TRUNCATE)")
        return not busy

    async def _survey(self, execute: Execute, thread: str) -> dict[str, dict[str, Node]]:
        pending = set(await execute(self._sql.says(_PENDING), thread))
        rows = await execute(self._sql.says(_NODES), thread)

        def read() -> dict[str, dict[str, Node]]:
            nodes: dict[str, dict[str, Node]] = defaultdict(dict)
            for namespace, checkpoint, parent, text in rows:
                has_writes = (namespace, checkpoint) in pending
                nodes[namespace][checkpoint] = node_of(checkpoint, parent, _metadata(text), pending=has_writes)
            return nodes

        return await self._connection.compute(read)

    async def _remove(self, execute: Execute, thread: str, namespace: str, plan: Plan, *, dry_run: bool) -> Volume:
        chosen = (thread, namespace, self._sql.one_of(sorted(plan.removed)))
        tables = {"checkpoints": "checkpoints", "writes": self._sql.writes}
        counts, sizes = dict[str, int](), 0
        for name, table in tables.items():
            [(count, size)] = await execute(self._sql.says(_ROWS, table=table, size=self._sql.sizes[name]), *chosen)
            counts[name], sizes = int(count), sizes + int(size)
        blobs: dict[Any, int] = {}
        if self._sql.blobs:
            blobs = {tuple(key): size or 0 for *key, size in await execute(self._sql.blobs, *chosen)}
            for *key, _ in await execute(self._sql.others, *chosen) if blobs else ():
                blobs.pop(tuple(key), None)
        if not dry_run:
            for table in tables.values():
                await execute(self._sql.says(_DELETE, table=table), *chosen)
            for checkpoint, parent in plan.parents.items():
                await execute(self._sql.move, parent, thread, namespace, checkpoint)
            if blobs and self._sql.by_version:
                channels, versions = map(list, zip(*blobs, strict=True))
                await execute(self._sql.delete_blobs, channels, versions, thread, namespace)
            elif blobs:
                await execute(self._sql.delete_blobs, json.dumps([blob for (blob,) in blobs]))
        return Volume(counts["checkpoints"], counts["writes"], len(blobs), sizes + sum(blobs.values()))


def node_of(checkpoint: str, parent: str | None, metadata: JSON, *, pending: bool) -> Node:
    """Return a checkpoint as pruning needs it.

    Args:
        checkpoint: Its id.
        parent: Its parent's id.
        metadata: Its metadata.
        pending: Whether writes are saved on it.
    """
    return Node(
        id=str(checkpoint),
        parent=parent or None,
        source=str(metadata.get("source", "")),
        step=int(metadata.get("step") or 0),
        root=(metadata.get("parents") or {}).get(""),
        deltas=frozenset(metadata.get("counters_since_delta_snapshot") or ()) | ({FOREIGN} & metadata.keys()),
        pending=pending,
        stub=STUB in metadata,
    )


def went_on(nodes: Mapping[str, Mapping[str, Node]], plans: Mapping[str, Plan]) -> bool:
    """Whether what was planned fits no more: somebody went on from what is to go, or what is to be kept is gone."""
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
