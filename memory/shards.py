"""FAISS indexes, one per namespace: a cache of the vectors' rows that can be thrown away at any time."""

import sqlite3
import threading
from typing import TYPE_CHECKING, Any

from memory import rows
from memory.rows import NamespaceRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHUNK = 16_384  # vectors read from the database at a time
_FEW_DEAD = 256  # this many removed vectors stay in an index before it is built anew


class Shard:
    """The vectors of one namespace, in the order of their ids.

    Args:
        namespace: Its id.
        dims: Length of the vectors.
    """

    def __init__(self, namespace: int, dims: int) -> None:
        self.lock = threading.Lock()
        self._namespace = namespace
        self._dims = dims
        self._version = -1
        self._epoch = -1
        self._clear()

    def _clear(self) -> None:
        import faiss  # a tenth of a second that a program should not pay before its first search
        import numpy as np

        self._index: Any = faiss.IndexFlatIP(self._dims)
        self._vectors: NDArray[np.int64] = np.empty(0, np.int64)  # vector id at each place, ascending
        self._items: NDArray[np.int64] = np.empty(0, np.int64)  # item id at each place
        self._alive: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._dead = 0
        self._mark = 0

    def refresh(self, connection: sqlite3.Connection, namespace: NamespaceRow) -> None:
        """Take over what this or another process has written since the last time.

        Args:
            connection: In a read transaction.
            namespace: The namespace as that transaction sees it.
        """
        if namespace.version <= self._version:
            return
        if namespace.epoch != self._epoch or self._dead > max(_FEW_DEAD, self._index.ntotal // 4):
            self._clear()
            self._mark = rows.last_removed(connection)
        else:
            self._bury(connection)
        self._append(connection)
        self._version, self._epoch = namespace.version, namespace.epoch

    def _bury(self, connection: sqlite3.Connection) -> None:
        import numpy as np

        gone = rows.removed_after(connection, self._namespace, self._mark)
        if not gone:
            return
        self._mark = gone[-1][0]
        ids = np.array([vector for _, vector in gone], np.int64)
        places = np.searchsorted(self._vectors, ids)
        known = places < len(self._vectors)
        places, ids = places[known], ids[known]
        places = places[self._vectors[places] == ids]
        self._alive[places] = False
        self._dead = int(len(self._alive) - self._alive.sum())

    def _append(self, connection: sqlite3.Connection) -> None:
        import numpy as np

        after = int(self._vectors[-1]) if len(self._vectors) else 0
        found = rows.vectors_after(connection, self._namespace, after)
        ids: list[int] = []
        items: list[int] = []
        blobs: list[bytes] = []

        def flush() -> None:
            block = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), self._dims)
            self._index.add(np.ascontiguousarray(block, dtype=np.float32))
            blobs.clear()

        for vector, item, blob in found:
            ids.append(vector)
            items.append(item)
            blobs.append(blob)
            if len(blobs) == _CHUNK:
                flush()
        if blobs:
            flush()
        self._vectors = np.concatenate([self._vectors, np.array(ids, np.int64)])
        self._items = np.concatenate([self._items, np.array(items, np.int64)])
        self._alive = np.concatenate([self._alive, np.ones(len(ids), np.bool_)])

    def nearest(self, query: "NDArray[np.float32]", count: int) -> list[tuple[float, int]]:
        """The items closest to a query, each by its best vector.

        Args:
            query: Unit vector.
            count: How many items are wanted.

        Returns:
            (cosine, item id), best first; fewer if the shard holds fewer.
        """
        total = self._index.ntotal
        width = min(total, count + self._dead)
        while width:
            scores, places = self._index.search(query[None, :], width)
            best: dict[int, float] = {}
            for score, place in zip(scores[0].tolist(), places[0].tolist(), strict=True):
                if place >= 0 and self._alive[place]:
                    best.setdefault(int(self._items[place]), score)
            if len(best) >= count or width == total:
                return [(score, item) for item, score in best.items()][:count]
            width = min(total, width * 4)
        return []
