"""Shards that are in RAM: loaded when a search first needs them, and evicted by a budget of bytes."""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory.rows import NamespaceRow
from memory.shards import Shard, snapshot_path
from memory.snapshots import Snapshot


class ShardCache:
    """The shards of one store.

    Args:
        database: The store's file.
        owner: Names the database and the embedder; snapshots of another owner are not read.
        dims: Length of the vectors.
        budget: Bytes that the shards may hold together, between searches.
        exact_limit: From how many vectors on a shard is searched approximately.
    """

    def __init__(self, database: Path, owner: str, dims: int, budget: int, exact_limit: int) -> None:
        self.dims = dims
        self.budget = budget
        self._database = database
        self._owner = owner
        self._exact_limit = exact_limit
        self._shards: OrderedDict[int, Shard] = OrderedDict()  # least recently used first
        self._sizes: dict[int, int] = {}
        self._held = 0
        self._lock = threading.Lock()

    def fits(self, space: NamespaceRow) -> bool:
        """Whether a namespace may be loaded at all."""
        # An approximate shard holds a byte for each dimension instead of four.
        return space.items * self.dims * (1 if space.items > self._exact_limit else 4) <= self.budget

    @contextmanager
    def shard(self, connection: sqlite3.Connection, space: NamespaceRow) -> Iterator[Shard]:
        """A namespace's shard, up to date and for this thread alone.

        Args:
            connection: In a read transaction.
            space: The namespace as that transaction sees it.

        Yields:
            The shard.
        """
        with self._lock:
            shard = self._shards.pop(space.id, None)
            if shard is None:
                where = Snapshot(snapshot_path(self._database, space.id), self._owner, self.dims)
                shard = Shard(space.id, self.dims, self._exact_limit, where)
            self._shards[space.id] = shard
        with shard.lock:
            shard.refresh(connection, space)
            yield shard
            size = shard.size
        for evicted in self._account(space.id, shard, size):
            with evicted.lock:
                evicted.save(connection)

    def _account(self, number: int, shard: Shard, size: int) -> list[Shard]:
        with self._lock:
            if self._shards.get(number) is not shard:
                return []  # another thread evicted it meanwhile
            self._held += size - self._sizes.get(number, 0)
            self._sizes[number] = size
            evicted = []
            while self._held > self.budget and len(self._shards) > 1:
                oldest, victim = self._shards.popitem(last=False)
                self._held -= self._sizes.pop(oldest, 0)
                evicted.append(victim)
            return evicted

    @property
    def size(self) -> int:
        """Bytes that the loaded shards hold."""
        with self._lock:
            return self._held

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the snapshots that are worth it.

        Args:
            connection: In a read transaction.
        """
        with self._lock:
            shards = list(self._shards.values())
        for shard in shards:
            with shard.lock:
                shard.save(connection)

    def clear(self) -> None:
        """Drop every shard from RAM."""
        with self._lock:
            self._shards.clear()
            self._sizes.clear()
            self._held = 0
