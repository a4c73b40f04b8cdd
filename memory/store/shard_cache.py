"""What is in RAM of each namespace: loaded when a search first needs it, and evicted by a budget of bytes."""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from questbook.memory.store.columns import Columns
from questbook.memory.store.postings import Postings
from questbook.memory.store.row_cache import RowCache
from questbook.memory.store.rows import NamespaceRow
from questbook.memory.store.shards import Shard, snapshot_path
from questbook.memory.store.snapshots import Snapshot


class Loaded:
    """What is in RAM of one namespace, each part only once it is needed. One thread at a time.

    Args:
        shard: Its vectors; None if the store makes none.
        postings: Its words; None if the store indexes none.
        columns: Its values by the keys of filters.
        rows: Its items that were read lately.
    """

    def __init__(self, shard: Shard | None, postings: Postings | None, columns: Columns, rows: RowCache) -> None:
        self.lock = threading.Lock()
        self.shard = shard
        self.postings = postings
        self.columns = columns
        self.rows = rows

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return sum(part.size for part in (self.shard, self.postings, self.columns, self.rows) if part is not None)


class ShardCache:
    """The namespaces of one store.

    Args:
        database: The store's file.
        owner: Names the database and the embedder; snapshots of another owner are not read.
        dims: Length of the vectors; 0: none are made.
        weights: Of the word index's columns; none: there is no such index.
        budget: Bytes that all may hold together, between searches.
        exact_limit: From how many vectors on a shard is searched approximately.
    """

    def __init__(
        self, database: Path, owner: str, dims: int, weights: Sequence[float], budget: int, exact_limit: int
    ) -> None:
        self.dims = dims
        self.budget = budget
        self._database = database
        self._owner = owner
        self._weights = weights
        self._exact_limit = exact_limit
        self._loaded: OrderedDict[int, Loaded] = OrderedDict()  # least recently used first
        self._sizes: dict[int, int] = {}
        self._held = 0
        self._lock = threading.Lock()

    @property
    def indexes_words(self) -> bool:
        """Whether there is a word index."""
        return bool(self._weights)

    def fits(self, space: NamespaceRow) -> bool:
        """Whether a namespace may be loaded at all."""
        # An approximate shard holds a byte for each dimension instead of four.
        return space.items * self.dims * (1 if space.items > self._exact_limit else 4) <= self.budget

    @contextmanager
    def loaded(self, connection: sqlite3.Connection, space: NamespaceRow) -> Iterator[Loaded]:
        """What is in RAM of a namespace, for this thread alone; the caller brings up to date what it uses.

        Args:
            connection: In a read transaction.
            space: The namespace as that transaction sees it.

        Yields:
            Vectors, words and values.
        """
        with self._lock:
            loaded = self._loaded.pop(space.id, None) or self._empty(space.id)
            self._loaded[space.id] = loaded
        with loaded.lock:
            yield loaded
            if (size := loaded.size) > self.budget:
                # Words and values cost less to read again than vectors, if only what is found is read.
                fresh = self._empty(space.id, whole=False)
                loaded.postings, loaded.columns, loaded.rows = fresh.postings, fresh.columns, fresh.rows
                size = loaded.size
        for evicted in self._account(space.id, loaded, size):
            with evicted.lock:
                if evicted.shard is not None:
                    evicted.shard.save(connection)

    def touched(self, number: int) -> Loaded | None:
        """What is in RAM of a namespace, by its id, if anything is; it counts as used."""
        with self._lock:
            if number not in self._loaded:
                return None
            self._loaded.move_to_end(number)
            return self._loaded[number]

    def _empty(self, namespace: int, *, whole: bool = True) -> Loaded:
        shard = None
        if self.dims:
            where = Snapshot(snapshot_path(self._database, namespace), self._owner, self.dims)
            shard = Shard(namespace, self.dims, self._exact_limit, where)
        postings = Postings(namespace, self._weights) if self._weights else None
        return Loaded(shard, postings, Columns(namespace), RowCache(namespace, whole=whole))

    def _account(self, number: int, loaded: Loaded, size: int) -> list[Loaded]:
        with self._lock:
            if self._loaded.get(number) is not loaded:
                return []  # another thread evicted it meanwhile
            self._held += size - self._sizes.get(number, 0)
            self._sizes[number] = size
            evicted = []
            while self._held > self.budget and len(self._loaded) > 1:
                oldest, victim = self._loaded.popitem(last=False)
                self._held -= self._sizes.pop(oldest, 0)
                evicted.append(victim)
            return evicted

    @property
    def size(self) -> int:
        """Bytes that is held of all namespaces."""
        with self._lock:
            return self._held

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the snapshots that are worth it.

        Args:
            connection: In a read transaction.
        """
        with self._lock:
            everything = list(self._loaded.values())
        for loaded in everything:
            with loaded.lock:
                if loaded.shard is not None:
                    loaded.shard.save(connection)

    def clear(self) -> None:
        """Drop everything from RAM."""
        with self._lock:
            self._loaded.clear()
            self._sizes.clear()
            self._held = 0
