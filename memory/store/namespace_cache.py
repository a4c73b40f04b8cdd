"""What is in RAM of each namespace: read when a search first needs it, and dropped when a budget of bytes is full."""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from questbook.memory.store.filters import FilterIndex
from questbook.memory.store.rows import NamespaceRow
from questbook.memory.store.snapshots import Snapshot, snapshot_path
from questbook.memory.store.vectors import NamespaceVectors
from questbook.memory.store.word_index import Postings


@dataclass
class CachedNamespace:
    """What is in RAM of one namespace, for one thread at a time. A part that the store does not have is None."""

    vectors: NamespaceVectors | None
    postings: Postings | None
    filters: FilterIndex
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return sum(part.size for part in (self.vectors, self.postings, self.filters) if part is not None)


class NamespaceCache:
    """The namespaces of one store, which together hold at most `budget` bytes between searches.

    `owner` is a name of the database and the embedder; snapshots of another owner are not read. `dims` is 0 if the
    store makes no vectors, `weights` (of the word index's columns) are empty if it has no word index. From
    `limit` vectors on a namespace is searched approximately.
    """

    def __init__(self, file: Path, owner: str, dims: int, weights: Sequence[float], budget: int, limit: int) -> None:
        self.dims, self.budget, self.indexes_words = dims, budget, bool(weights)
        self._database, self._owner, self._weights, self._exact_limit = file, owner, weights, limit
        self._namespaces: OrderedDict[int, CachedNamespace] = OrderedDict()  # least recently used first
        self._sizes: dict[int, int] = {}
        self._total = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes that all namespaces hold."""
        with self._lock:
            return self._total

    def fits(self, space: NamespaceRow) -> bool:
        """Return whether the vectors of a namespace fit into the budget."""
        # An approximate index holds a byte for each dimension instead of four.
        return space.items * self.dims * (1 if space.items > self._exact_limit else 4) <= self.budget

    @contextmanager
    def namespace(self, connection: sqlite3.Connection, space: NamespaceRow) -> Iterator[CachedNamespace]:
        """Lock what is in RAM of a namespace for this thread; the caller refreshes the parts that it uses.

        If the caller raises, they are dropped, and read again at the next search.
        """
        with self._lock:
            cached = self._namespaces.pop(space.id, None) or self._empty(space.id)
            self._namespaces[space.id] = cached
        with cached.lock:
            try:
                yield cached
            except BaseException:
                # What a failed read leaves is neither old nor new. Emptied in place: other threads may wait for it.
                fresh = self._empty(space.id)
                cached.vectors, cached.postings, cached.filters = fresh.vectors, fresh.postings, fresh.filters
                self._account(space.id, cached, cached.size)
                raise
            if (size := cached.size) > self.budget:
                # Words and values cost less to read again than vectors.
                fresh = self._empty(space.id)
                cached.postings, cached.filters = fresh.postings, fresh.filters
                size = cached.size
        _save(connection, self._account(space.id, cached, size))

    def _empty(self, namespace: int) -> CachedNamespace:
        vectors = None
        if self.dims:
            snapshot = Snapshot(snapshot_path(self._database, namespace), self._owner, self.dims)
            vectors = NamespaceVectors(namespace, self.dims, self._exact_limit, snapshot)
        postings = Postings(namespace, self._weights) if self._weights else None
        return CachedNamespace(vectors, postings, FilterIndex(namespace))

    def _account(self, number: int, cached: CachedNamespace, size: int) -> list[CachedNamespace]:
        """Take note of a namespace's size, and drop others until the budget is kept; return those."""
        with self._lock:
            if self._namespaces.get(number) is not cached:
                return []  # another thread has dropped it meanwhile
            self._total += size - self._sizes.get(number, 0)
            self._sizes[number] = size
            evicted = []
            while self._total > self.budget and len(self._namespaces) > 1:
                oldest, victim = self._namespaces.popitem(last=False)
                self._total -= self._sizes.pop(oldest, 0)
                evicted.append(victim)
            return evicted

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the snapshots that are worth it."""
        with self._lock:
            namespaces = list(self._namespaces.values())
        _save(connection, namespaces)

    def clear(self) -> None:
        """Drop everything from RAM."""
        with self._lock:
            self._namespaces.clear()
            self._sizes.clear()
            self._total = 0


def _save(connection: sqlite3.Connection, namespaces: Sequence[CachedNamespace]) -> None:
    for cached in namespaces:
        with cached.lock:
            if cached.vectors is not None:
                cached.vectors.save(connection)
