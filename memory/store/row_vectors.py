"""Vectors that are compared straight from their rows: a few, or those of a namespace that does not fit into RAM."""

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from questbook.memory.store import rows
from questbook.memory.store.indexes import vectors_in_blocks
from questbook.memory.store.rows import SHIFT, NamespaceRow
from questbook.memory.store.scored import Scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from questbook.memory.embeddings.embedding_batch import Vector

    Ids = NDArray[np.int64]


def exactly(connection: sqlite3.Connection, vectors: "Ids", query: "Vector", scores: "Vector") -> "Vector":
    """Cosines from the rows; for a row that is gone or damaged, what the index said."""
    import numpy as np

    known = rows.vectors_by_id(connection, vectors.tolist())
    read = [(number, blob) for number, blob in known if isinstance(blob, bytes) and len(blob) == 4 * len(query)]
    if not read:
        return scores
    order = np.argsort(vectors)
    places = order[np.searchsorted(vectors, [number for number, _ in read], sorter=order)]
    exact = scores.copy()
    exact[places] = np.frombuffer(b"".join([blob for _, blob in read]), "<f4").reshape(-1, len(query)) @ query
    return exact


def compared(connection: sqlite3.Connection, items: Sequence[int], query: "Vector") -> Scored:
    """Cosines of given items, from their rows.

    Args:
        connection: In a read transaction.
        items: Their ids.
        query: Unit vector.
    """
    import numpy as np

    best: dict[int, float] = {}
    for item, blob in rows.vectors_of(connection, items):
        if isinstance(blob, bytes) and len(blob) == 4 * len(query):  # or it is damaged
            best[item] = max(best.get(item, -2.0), float(np.frombuffer(blob, "<f4") @ query))
    return Scored(np.array(list(best), np.int64), np.array(list(best.values()), np.float32))


class StreamedShard:
    """A namespace that does not fit into the byte budget: its rows are read at each search.

    Args:
        connection: In a read transaction.
        space: The namespace.
        dims: Length of the vectors.
    """

    def __init__(self, connection: sqlite3.Connection, space: NamespaceRow, dims: int) -> None:
        self._connection = connection
        self._space = space
        self._dims = dims

    def scored(self, query: "Vector") -> Scored:
        """All items by their best vector's cosine to a query."""
        import numpy as np

        owners, scores = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
        low = self._space.id << SHIFT
        for _, items, block in vectors_in_blocks(self._connection, self._space.id, low, self._dims):
            owners.append(items)
            scores.append(block @ query)
        items, cosines = np.concatenate(owners), np.concatenate(scores)
        starts = np.flatnonzero(np.diff(items, prepend=-1))
        if len(starts) < len(items):
            cosines, items = np.maximum.reduceat(cosines, starts), items[starts]
        return Scored(items, cosines)
