"""The vectors of one namespace in RAM: a cache of their rows that can be thrown away at any time."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from questbook.memory.store.changes import last_removed, removed_after
from questbook.memory.store.cosines import Together
from questbook.memory.store.indexes import ExactIndex, InvertedIndex, vectors_in_blocks
from questbook.memory.store.row_vectors import exactly
from questbook.memory.store.rows import NamespaceRow
from questbook.memory.store.scored import Allowed, Scored
from questbook.memory.store.snapshots import Snapshot, read_snapshot, write_snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from questbook.memory.embeddings.embedding_batch import Vector

    Ids = NDArray[np.int64]

_FEW_DEAD = 256  # this many removed vectors stay in an index before it is built anew
_WORTH_A_SNAPSHOT = 20_000  # fewer vectors than this are read from their rows as fast
_STALE_SNAPSHOT = 0.1  # part of the vectors that may be newer than the snapshot before it is written anew
_SHORT = 16  # dimensions up to which FAISS has other ways, and so other last digits, for one product than for all
_FEW = 128  # items that FAISS finds in less time than it takes to look through all scores
_EMPTY = 4_096  # bytes of a shard without vectors, about
_OVERHEAD = 17  # bytes beside each vector: its id, its item's id, whether it is alive


class Shard:
    """One namespace's vectors, in the order of their ids.

    Args:
        namespace: Its id.
        dims: Length of the vectors.
        exact_limit: From how many vectors on an approximate index is used.
        snapshot: Where a snapshot of it is kept, and what it must fit to.
    """

    def __init__(self, namespace: int, dims: int, exact_limit: int, snapshot: Snapshot) -> None:
        self._namespace = namespace
        self._dims = dims
        self._exact_limit = exact_limit
        self._snapshot = snapshot
        self._saved = 0  # vectors in the snapshot on disk
        self._version = -1
        self._epoch = -1
        self._loaded = False
        self._pool: tuple[NDArray[np.intp] | None, Ids, NDArray[np.intp] | None] | None = None

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return _EMPTY + self._index.bytes + _OVERHEAD * len(self._vectors) if self._loaded else 0

    @property
    def exact(self) -> bool:
        """Whether it compares a query with every vector."""
        return isinstance(self._index, ExactIndex)

    def refresh(self, connection: sqlite3.Connection, space: NamespaceRow) -> None:
        """Take over what this or another process has written since the last time.

        Args:
            connection: In a read transaction.
            space: The namespace as that transaction sees it.
        """
        if space.version <= self._version:
            return
        too_dead = self._loaded and self._dead > max(_FEW_DEAD, len(self._vectors) // 4)
        # Twice the limit, because an index that is in use is not rebuilt for a few vectors more.
        outgrown = self._loaded and self._index.outgrown(2 * self._exact_limit)
        if not self._loaded or space.epoch != self._epoch or too_dead or outgrown:
            self._load(connection, space, fresh=too_dead or outgrown)
        self._bury(removed_after(connection, self._namespace, self._mark))
        self._append(connection)
        self._version, self._epoch, self._pool = space.version, space.epoch, None

    def _load(self, connection: sqlite3.Connection, space: NamespaceRow, *, fresh: bool) -> None:
        import numpy as np

        found = None if fresh else read_snapshot(self._snapshot, space, connection)
        if found is not None:
            self._index, self._vectors, self._items, self._alive, self._mark = found
            self._saved = len(self._vectors)
        else:
            large = space.items > self._exact_limit
            self._index = (
                InvertedIndex.trained(connection, self._namespace, space.items, self._dims)
                if large
                else ExactIndex(self._dims)
            )
            self._vectors, self._items = np.empty(0, np.int64), np.empty(0, np.int64)
            self._alive = np.empty(0, np.bool_)
            self._mark = last_removed(connection)
            self._saved = 0
        self._dead = int(len(self._alive) - self._alive.sum())
        self._loaded = True

    def _bury(self, gone: "list[tuple[int, int]]") -> None:
        import numpy as np

        if not gone:
            return
        self._mark = gone[-1][0]
        ids = np.array([vector for _, vector in gone], np.int64)
        places = np.searchsorted(self._vectors, ids)
        known = places < len(self._vectors)
        places, ids = places[known], ids[known]
        alive = self._alive.copy()  # whoever ranks right now keeps the old one
        alive[places[self._vectors[places] == ids]] = False
        self._alive = alive
        self._dead = int(len(alive) - alive.sum())

    def _append(self, connection: sqlite3.Connection) -> None:
        import numpy as np

        after = int(self._vectors[-1]) if len(self._vectors) else 0
        vectors, items = [self._vectors], [self._items]
        for ids, owners, block in vectors_in_blocks(connection, self._namespace, after, self._dims):
            self._index.add(block)
            vectors.append(ids)
            items.append(owners)
        if len(vectors) > 1:
            self._vectors, self._items = np.concatenate(vectors), np.concatenate(items)
            new = len(self._vectors) - len(self._alive)
            self._alive = np.concatenate([self._alive, np.ones(new, np.bool_)])

    def scored(
        self,
        connection: sqlite3.Connection,
        query: "Vector",
        count: int,
        allowed: "Allowed | None" = None,
        together: Together | None = None,
    ) -> Scored:
        """Items by their best vector's cosine to a query.

        Args:
            connection: In a read transaction; an approximate shard reads the cosines of what it finds from rows.
            query: Unit vector.
            count: How many of the best are needed; an exact shard gives all it has.
            allowed: If given, the only items that are wanted from an approximate shard.
            together: Queries that are asked with this one, if it is one of several.

        Returns:
            Each item once, in no particular order.
        """
        import numpy as np

        if isinstance(self._index, ExactIndex):
            return self._compared(self._index, query, together)
        alive = self._alive if allowed is None else self._alive & allowed.of(self._items)
        found, scores = self._index.nearest(query, count, alive)
        scores = exactly(connection, self._vectors[found], query, scores)
        found, scores = found[best := np.argsort(-scores, kind="stable")], scores[best]
        items, first = np.unique(self._items[found], return_index=True)  # best first, so the first is the best
        return Scored(items, scores[first])

    def scored_whole(self, space: NamespaceRow, query: "Vector") -> Scored | None:
        """All items of a namespace by their cosine, from RAM alone; None if it has not each of this very version."""
        if self._version != space.version or not isinstance(self._index, ExactIndex) or not self.covers(space.items):
            return None
        return self._compared(self._index, query)

    def best_whole(self, space: NamespaceRow, query: "Vector", stop: int) -> list[tuple[int, float | None]] | None:
        """So many items of a namespace, best first, with their cosines, from RAM alone.

        They are those that `scored_whole` would put first: FAISS finds them without a score for each vector. None if
        it cannot say: this is not of the namespace's very version, not each item has one living vector, or several
        vectors are as near as the last one.
        """
        index = self._index if self._loaded else None
        if self._version != space.version or not isinstance(index, ExactIndex) or self._dims <= _SHORT:
            return None
        places, _, starts = self._pooling()
        if places is not None or starts is not None or not 0 < stop < index.count == space.items or stop > _FEW:
            return None
        at, scores = index.nearest(query, stop + 1)
        cosines: list[float] = scores.tolist()
        if cosines[stop - 1] == cosines[stop]:
            return None
        best: list[tuple[int, float | None]] = list(zip(self._items[at[:stop]].tolist(), cosines, strict=False))
        if len(set(cosines)) <= stop:  # of those that are equally near the older comes first
            best.sort(key=lambda one: (-(one[1] or 0.0), one[0]))
        return best

    def _compared(self, index: ExactIndex, query: "Vector", together: Together | None = None) -> Scored:
        import numpy as np

        scores = (together or Together([query])).scores(index, query)
        places, items, starts = self._pooling()
        if places is not None:
            scores = scores[places]
        if starts is not None:
            scores = np.maximum.reduceat(scores, starts)
        return Scored(items, scores)

    def _pooling(self) -> "tuple[NDArray[np.intp] | None, Ids, NDArray[np.intp] | None]":
        """Where the living vectors are, whose they are, and where each item's begin."""
        import numpy as np

        if self._pool is None:
            places = np.flatnonzero(self._alive) if self._dead else None
            owners = self._items if places is None else self._items[places]
            starts: NDArray[np.intp] | None = np.flatnonzero(np.diff(owners, prepend=-1))
            if starts is not None and len(starts) == len(owners):
                starts = None
            self._pool = places, owners if starts is None else owners[starts], starts
        return self._pool

    def covers(self, items: int) -> bool:
        """Whether a namespace with so many items has no item without a vector."""
        if isinstance(self._index, ExactIndex):
            return len(self._pooling()[1]) == items
        return len(self._vectors) - self._dead == items

    def save(self, connection: sqlite3.Connection) -> None:
        """Write a snapshot if reading it will be faster than reading rows, and the last one is old.

        Args:
            connection: In a read transaction.
        """
        count = len(self._vectors) if self._loaded else 0
        if count >= _WORTH_A_SNAPSHOT and count - self._saved > _STALE_SNAPSHOT * count:
            write_snapshot(
                self._snapshot,
                connection,
                self._version,
                self._epoch,
                self._index,
                self._vectors,
                self._items,
                self._alive,
                self._mark,
            )
            self._saved = count


def snapshot_path(database: Path, namespace: int) -> Path:
    """Where the snapshot of a namespace lies: in a directory beside the database."""
    return database.with_name(f"{database.name}.shards") / f"{namespace}.faiss"
