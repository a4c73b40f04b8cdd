"""The vectors of a namespace: compared with a query in RAM, or straight from their rows.

What is in RAM is a cache of the rows that can be dropped at any time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from questbook.memory.store import rows
from questbook.memory.store.arrays import Ids, Places, Vector
from questbook.memory.store.filter_index import FilterMask
from questbook.memory.store.indexes import ExactIndex, InvertedIndex, vectors_in_blocks
from questbook.memory.store.rows import NamespaceRow
from questbook.memory.store.snapshots import IndexContents, Snapshot, read_snapshot, write_snapshot

FEW_DEAD = 256
"""So many removed vectors may stay in an index before it is built again."""
SNAPSHOT_VECTORS = 20_000
"""From how many vectors on a snapshot is written; fewer are read from their rows as fast."""

_STALE_SNAPSHOT = 0.1  # part of the vectors that may be newer than the snapshot before it is written again
_EMPTY = 4_096  # bytes of a namespace without vectors, about
_OVERHEAD = 17  # bytes beside each vector: its id, its item's id, whether it is alive


class ItemCosines(NamedTuple):
    """Items of one namespace, each once, with their cosine to a query."""

    items: Ids
    cosines: Vector

    @classmethod
    def none(cls) -> Self:
        """Return no items."""
        return cls(np.empty(0, np.int64), np.empty(0, np.float32))

    def with_others(self, others: ItemCosines) -> ItemCosines:
        """Add other items; of an item that is in both, this cosine counts."""
        items, first = np.unique(np.concatenate([self.items, others.items]), return_index=True)
        return ItemCosines(items, np.concatenate([self.cosines, others.cosines])[first])


class QueryBatch:
    """The queries of one batch under one prefix, whose cosines are computed in one pass over the vectors.

    Reading ten thousand vectors from memory takes longer than comparing them, and a recall has several queries.
    """

    def __init__(self, queries: Sequence[Vector]) -> None:
        self._queries = queries
        self._computed: dict[tuple[ExactIndex, int], dict[int, Vector]] = {}

    def cosines(self, index: ExactIndex, query: Vector) -> Vector:
        """Return the cosines of all vectors of an index to one of the queries, in the order of the vectors."""
        state = index, index.count  # an index only ever grows
        if state not in self._computed:
            cosines = index.cosines(self._queries)
            self._computed[state] = {id(vector): row for vector, row in zip(self._queries, cosines, strict=True)}
        return self._computed[state][id(query)]


class NamespaceVectors:
    """One namespace's vectors in RAM, in the order of their ids; from `exact_limit` vectors on approximate."""

    def __init__(self, namespace: int, dims: int, exact_limit: int, snapshot: Snapshot) -> None:
        self._namespace = namespace
        self._dims = dims
        self._exact_limit = exact_limit
        self._snapshot = snapshot
        self._saved = 0  # vectors in the snapshot on disk
        self._version = -1
        self._epoch = -1
        self._contents: IndexContents | None = None
        self._living: tuple[Places | None, Ids, Places | None] | None = None

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        if self._contents is None:
            return 0
        return _EMPTY + self._contents.index.bytes + _OVERHEAD * len(self._contents.vectors)

    @property
    def exact(self) -> bool:
        """Whether it compares a query with every vector."""
        return self._contents is not None and isinstance(self._contents.index, ExactIndex)

    def refresh(self, connection: sqlite3.Connection, space: NamespaceRow) -> None:
        """Take over what this or another process has written since the last time."""
        if space.version <= self._version:
            return
        contents = self._contents
        if contents is not None and self._must_rebuild(contents):
            contents = self._empty(connection, space)
        elif contents is None or space.epoch != self._epoch:
            snapshot = read_snapshot(self._snapshot, space, connection)
            contents = snapshot or self._empty(connection, space)
            self._saved = len(contents.vectors)
        self._remove(connection, contents)
        self._append(connection, contents)
        self._contents, self._living = contents, None
        self._version, self._epoch = space.version, space.epoch

    def _must_rebuild(self, contents: IndexContents) -> bool:
        too_dead = contents.dead > max(FEW_DEAD, len(contents.vectors) // 4)
        # Twice the limit, because an index that is in use is not rebuilt for a few vectors more.
        return too_dead or contents.index.outgrown(2 * self._exact_limit)

    def _empty(self, connection: sqlite3.Connection, space: NamespaceRow) -> IndexContents:
        self._saved = 0
        large = space.items > self._exact_limit
        index = (
            InvertedIndex.trained(connection, self._namespace, space.items, self._dims)
            if large
            else ExactIndex(self._dims)
        )
        return IndexContents.empty(index, rows.last_removal(connection))

    def _remove(self, connection: sqlite3.Connection, contents: IndexContents) -> None:
        """Mark the vectors as dead that were removed since the last time."""
        contents.removal, removed = rows.removed_vectors(connection, self._namespace, contents.removal)
        if not removed:
            return
        ids = np.array(removed, np.int64)
        places = np.searchsorted(contents.vectors, ids)
        inside = places < len(contents.vectors)
        places, ids = places[inside], ids[inside]
        alive = contents.alive.copy()  # a search that runs right now keeps the old one
        alive[places[contents.vectors[places] == ids]] = False
        contents.alive = alive

    def _append(self, connection: sqlite3.Connection, contents: IndexContents) -> None:
        """Add the vectors that are newer than all that are here."""
        after = int(contents.vectors[-1]) if len(contents.vectors) else 0
        vectors, items = [contents.vectors], [contents.items]
        for ids, owners, block in vectors_in_blocks(connection, self._namespace, after, self._dims):
            contents.index.add(block)
            vectors.append(ids)
            items.append(owners)
        if len(vectors) > 1:
            contents.vectors, contents.items = np.concatenate(vectors), np.concatenate(items)
            added = len(contents.vectors) - len(contents.alive)
            contents.alive = np.concatenate([contents.alive, np.ones(added, np.bool_)])

    def compare(
        self,
        connection: sqlite3.Connection,
        query: Vector,
        count: int,
        allowed: FilterMask | None = None,
        together: QueryBatch | None = None,
    ) -> ItemCosines:
        """Compare items with a unit query, by their best vector; `refresh` comes first.

        An exact index compares all items. An approximate one returns the `count` best that the filter allows, with
        their cosines computed from the rows. `together` are the queries of the batch, if there are several.
        """
        contents = self._contents
        if contents is None:
            return ItemCosines.none()
        if isinstance(contents.index, ExactIndex):
            return self._compare_all(contents, contents.index, query, together)
        alive = contents.alive if allowed is None else contents.alive & allowed.of(contents.items)
        places, cosines = contents.index.nearest(query, count, alive)
        cosines = _read_cosines(connection, contents.vectors[places], query, cosines)
        order = np.argsort(-cosines, kind="stable")
        items, first = np.unique(contents.items[places[order]], return_index=True)  # the first is the best
        return ItemCosines(items, cosines[order][first])

    def _compare_all(
        self, contents: IndexContents, index: ExactIndex, query: Vector, together: QueryBatch | None
    ) -> ItemCosines:
        cosines = (together or QueryBatch([query])).cosines(index, query)
        places, items, starts = self._living_places(contents)
        if places is not None:
            cosines = cosines[places]
        if starts is not None:
            cosines = np.maximum.reduceat(cosines, starts)
        return ItemCosines(items, cosines)

    def _living_places(self, contents: IndexContents) -> tuple[Places | None, Ids, Places | None]:
        """Return the places of the living vectors, their items, and where the vectors of each item begin.

        None for the places: all are alive. None for the beginnings: each item has one vector.
        """
        if self._living is None:
            places = np.flatnonzero(contents.alive) if contents.dead else None
            owners = contents.items if places is None else contents.items[places]
            starts: Places | None = np.flatnonzero(np.diff(owners, prepend=-1))
            if starts is not None and len(starts) == len(owners):
                starts = None
            self._living = places, owners if starts is None else owners[starts], starts
        return self._living

    def covers(self, items: int) -> bool:
        """Return whether a namespace with so many items has a vector for each of them."""
        contents = self._contents
        if contents is None:
            return items == 0
        if isinstance(contents.index, ExactIndex):
            return len(self._living_places(contents)[1]) == items
        return len(contents.vectors) - contents.dead == items

    def save(self, connection: sqlite3.Connection) -> None:
        """Write a snapshot if reading it will be faster than reading rows, and the last one is old."""
        contents = self._contents
        count = 0 if contents is None else len(contents.vectors)
        if contents is not None and count >= SNAPSHOT_VECTORS and count - self._saved > _STALE_SNAPSHOT * count:
            write_snapshot(self._snapshot, connection, self._version, self._epoch, contents)
            self._saved = count


def compare_items(connection: sqlite3.Connection, items: Sequence[int], query: Vector) -> ItemCosines:
    """Compare some items with a unit query, by the best of their vectors, read from their rows."""
    best: dict[int, float] = {}
    for item, blob in rows.vectors_of_items(connection, items):
        if _is_sound(blob, query):
            best[item] = max(best.get(item, -2.0), float(np.frombuffer(blob, "<f4") @ query))
    return ItemCosines(np.array(list(best), np.int64), np.array(list(best.values()), np.float32))


def compare_rows(connection: sqlite3.Connection, space: NamespaceRow, query: Vector) -> ItemCosines:
    """Compare all items of a namespace with a unit query, from their rows: for one that does not fit into RAM."""
    owners, scores = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for _, items_of_block, block in vectors_in_blocks(connection, space.id, 0, len(query)):
        owners.append(items_of_block)
        scores.append(block @ query)
    items, cosines = np.concatenate(owners), np.concatenate(scores)
    starts = np.flatnonzero(np.diff(items, prepend=-1))
    if len(starts) < len(items):
        cosines, items = np.maximum.reduceat(cosines, starts), items[starts]
    return ItemCosines(items, cosines)


def _read_cosines(connection: sqlite3.Connection, vectors: Ids, query: Vector, cosines: Vector) -> Vector:
    """Compute the cosines of some vectors from their rows; where a row is gone or damaged, the given one stays."""
    sound = [row for row in rows.vectors_by_id(connection, vectors.tolist()) if _is_sound(row[1], query)]
    if not sound:
        return cosines
    order = np.argsort(vectors)
    places = order[np.searchsorted(vectors, [number for number, _ in sound], sorter=order)]
    exact = cosines.copy()
    exact[places] = np.frombuffer(b"".join([blob for _, blob in sound]), "<f4").reshape(-1, len(query)) @ query
    return exact


def _is_sound(blob: object, query: Vector) -> bool:
    return isinstance(blob, bytes) and len(blob) == 4 * len(query)
