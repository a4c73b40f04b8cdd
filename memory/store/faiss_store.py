"""FaissStore: a LangGraph store that is durable in SQLite and searched with FAISS.

What needs numpy is loaded at the first search or put, because loading it takes a tenth of a second.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Self

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig

from questbook.memory.embeddings.batching import RawVectors
from questbook.memory.store.database import Database
from questbook.memory.store.deletion import Sweeper, check_ttl, compact, delete_expired, refresh_expiry
from questbook.memory.store.file_index import FileIndex
from questbook.memory.store.index_config import DEFAULT_INDEX, StoreIndex, read_index
from questbook.memory.store.operations import Operations
from questbook.memory.store.reader import Reader
from questbook.memory.store.reembedding import Progress
from questbook.memory.store.writes import apply_write
from questbook.types import JSON

if TYPE_CHECKING:
    from questbook.memory.embeddings.batching import Vector
    from questbook.memory.store.namespace_cache import NamespaceCache
    from questbook.memory.store.search import SearchBatch

_CACHE_BYTES = 1 << 30
_EXACT_LIMIT = 200_000  # vectors; up to here comparing with all of them takes about 10 ms (docs/figures.md)


class FaissStore(BaseStore):
    """A persistent semantic store for LangGraph: `builder.compile(store=FaissStore.open(path))`.

    Everything is a row in one SQLite file; the FAISS indexes are a cache of the rows. When a `put` returns, it is on
    disk. Any number of threads, event loops and processes may use one file; each sees what the others wrote at its
    next search. docs/store.md has the choices, docs/figures.md the figures.
    """

    supports_ttl = True
    filters_any = True
    """Filters may hold alternatives: `{"$or": [filter, …]}`. Other stores do not know them."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        index: StoreIndex | IndexConfig | None = DEFAULT_INDEX,
        ttl: TTLConfig | None = None,
        reembed: bool = True,
        progress: Progress | None = None,
        cache_bytes: int = _CACHE_BYTES,
        exact_limit: int = _EXACT_LIMIT,
        synchronous: str = "full",
    ) -> None:
        """Read the settings, without touching the disk. `open` says what the arguments mean."""
        super().__init__()
        settings = None if index is None else read_index(index)
        check_ttl(ttl)
        self.ttl_config = ttl
        self._omit_expired = bool(ttl and ttl.get("omit_expired"))
        self.index_config: JSON | None = settings.described if settings else None
        self.embeddings: Embeddings | None = settings.embeddings if settings else None
        """The embedder; None for none, and with "auto" until the file is open."""
        self._database = Database(path, synchronous)
        self._index = FileIndex(self._database, settings, reembed=reembed, progress=progress)
        self._weights = settings.weights if settings else {}
        self.ranks_words = bool(settings and settings.columns and self._weights.get("lexical"))
        """Whether words count in the order of the hits; if so, hits without a score are in an order, too."""
        self._cache_bytes, self._exact_limit = cache_bytes, exact_limit
        self._owner = ""  # a name of file and embedder; known when the file is open
        self._cache: NamespaceCache | None = None  # until the first search
        self._sweeper = Sweeper(self.sweep_ttl, ttl.get("sweep_interval_minutes") if ttl else None)
        self._opening = threading.Lock()
        self._opened_in: int | None = None  # the process, because neither locks nor connections survive a fork

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        index: StoreIndex | IndexConfig | None = DEFAULT_INDEX,
        *,
        ttl: TTLConfig | None = None,
        reembed: bool = True,
        progress: Progress | None = None,
        cache_bytes: int = _CACHE_BYTES,
        exact_limit: int = _EXACT_LIMIT,
        synchronous: str = "full",
    ) -> Self:
        """Open a store, or create it. Use it at once, with `with`, or with `async with`.

        Inside a running event loop, `async with` or the first call opens the file in a worker thread, because opening
        it here would block the loop.

        Args:
            path: The SQLite file, in a directory that exists, or an existing directory in which it is
                `store.sqlite3`. `":memory:"` gives a private temporary file that is gone after `close()`.
            index: What is embedded and indexed, and how (`StoreIndex`). Left out: words of the whole value, and the
                embedder `"auto"`. None: no search by query, as LangGraph's stores without an index.
            ttl: LangGraph's settings for items that expire; times in minutes.
            reembed: If the file was written with another embedder or other fields: True makes all vectors again from
                the texts (and goes on where it stopped, if it is interrupted), False raises EmbedderChangedError.
            progress: Called with (items done, all items) meanwhile; left out, it is logged.
            cache_bytes: How many bytes may stay in RAM between searches (vectors, words, values of filters); default
                1 GiB. A namespace whose vectors are larger is read from disk at each search.
            exact_limit: From how many vectors on a namespace is searched approximately; default 200,000.
            synchronous: `"full"` survives a power cut, `"normal"` a killed process.

        Raises:
            StoreUnavailableError: If the file or its directory cannot be used.
            CorruptStoreError: If the file is no store or is damaged; it stays as it is.
            StoreConfigError: If the settings contradict themselves or the file.
            EmbeddingError: If the embedder cannot be loaded, or fails while vectors are made again.
        """
        store = cls(
            path,
            index=index,
            ttl=ttl,
            reembed=reembed,
            progress=progress,
            cache_bytes=cache_bytes,
            exact_limit=exact_limit,
            synchronous=synchronous,
        )
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            store._prepare()
        return store

    @property
    def _ready(self) -> bool:
        return self._opened_in == os.getpid()

    def _prepare(self) -> None:
        """Open the file and make its indexes what the settings say. Does nothing if that is done."""
        if self._ready:
            return
        if self._opened_in is not None:
            self._opening = threading.Lock()
        with self._opening:
            if self._ready:
                return
            self._database.create()
            self._owner = self._index.update()
            if (embedder := self._index.embedder) is not None and (settings := self._index.settings) is not None:
                self.index_config = {**settings.described, "dims": embedder.dims}
                self.embeddings, self._weights = settings.embeddings, settings.weights
            self._cache = None
            self._opened_in = os.getpid()

    def close(self) -> None:
        """Close the file. Using the store afterwards raises StoreClosedError; closing twice is allowed."""
        self._sweeper.stop(timeout=5.0)
        if self._ready and self._cache is not None:
            with self._database.reading() as connection:
                self._cache.save(connection)
            self._cache.clear()
        self._opened_in = None
        self._database.close()

    async def aclose(self) -> None:
        """Close the file without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        self._prepare()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._prepare)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations: first the reads, which see the store as it was; then the writes, in one transaction.

        Args:
            ops: Gets, searches, puts (a value of None deletes) and listings of namespaces. Of several puts to
                one key, the last counts.

        Returns:
            One result for each operation, in their order.

        Raises:
            InvalidNamespaceError: If a label is empty, no string, or contains "." or NUL.
            EmbeddingError: If embedding failed; nothing was written.
            BadQueryError: If a filter is wrong.
            UnstorableValueError: If a value is not JSON or a time to live no number of minutes; nothing was written.
            EmbedderChangedError: If another process has changed the file's embedder meanwhile.
            StoreUnavailableError: If the file cannot be read or written; nothing was written.
        """
        self._prepare()
        operations = Operations(ops, self._index)
        vectors = RawVectors({}, {})
        if (embedder := self._index.embedder) is not None:
            vectors = embedder.embed(operations.documents(), operations.queries)
        return self._execute(operations, vectors)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations like `batch`, without blocking the event loop.

        The texts of concurrent calls in one tick of the loop are embedded in one call.
        """
        if not self._ready:
            await asyncio.to_thread(self._prepare)
        operations = Operations(ops, self._index)
        vectors = RawVectors({}, {})
        if (embedder := self._index.embedder) is not None:
            vectors = await embedder.aembed(operations.documents(), operations.queries)
        return await asyncio.to_thread(self._execute, operations, vectors)

    def sweep_ttl(self) -> int:
        """Delete the items that have expired, and return how many they were."""
        self._prepare()
        with self._database.writing() as connection:
            return delete_expired(connection)

    def compact(self) -> None:
        """Write the file again, so that nothing deleted is left in it: no text, word, vector or snapshot."""
        self._prepare()
        if self._cache is not None:
            self._cache.clear()
        compact(self._database)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Delete expired items regularly in a daemon thread.

        Without it, they are deleted beside other writes, every few minutes.

        Args:
            sweep_interval_minutes: Minutes between two sweeps; None: the store's `ttl` setting, or 5.

        Returns:
            A future that is done when the thread has ended; cancelling it ends the thread.
        """
        return self._sweeper.start(sweep_interval_minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End the thread that deletes expired items, waiting so many seconds; return whether it has ended."""
        return self._sweeper.stop(timeout)

    @property
    def cached_bytes(self) -> int:
        """Bytes in RAM, about: vectors, words and values of filters."""
        return 0 if self._cache is None else self._cache.size

    def _execute(self, operations: Operations, vectors: RawVectors) -> list[Result]:
        embedder = self._index.embedder
        queries = embedder.units(vectors.queries) if embedder else {}
        writes = operations.writes(embedder.units(vectors.documents) if embedder else {})
        results: list[Result] = [None] * len(operations.ops)
        if operations.has_reads:
            with self._database.reading() as connection:
                if operations.queries:
                    self._index.check(connection)
                searches = self._search_batch(connection, operations, queries) if operations.searches else None
                reader = Reader(connection, searches, omit_expired=self._omit_expired)
                results = reader.read(operations.ops)
            if reader.refreshed:
                with self._database.writing() as connection:
                    refresh_expiry(connection, reader.refreshed)
        if writes:
            with self._database.writing() as connection:
                self._index.check(connection)
                for write in writes:
                    apply_write(connection, write)
                if self._sweeper.due():
                    delete_expired(connection)
        return results

    def _search_batch(
        self, connection: sqlite3.Connection, operations: Operations, queries: Mapping[str, Vector]
    ) -> SearchBatch:
        from questbook.memory.store.search import SearchBatch

        cache, weights = self._namespace_cache(), self._weights
        return SearchBatch(connection, cache, weights, operations.searches, queries, omit_expired=self._omit_expired)

    def _namespace_cache(self) -> NamespaceCache:
        from questbook.memory.store.namespace_cache import NamespaceCache

        with self._opening:
            if self._cache is None:
                dims = self._index.embedder.dims if self._index.embedder else 0
                weights = self._index.word_columns.weights if self._index.word_columns else []
                self._cache = NamespaceCache(
                    self._database.path, self._owner, dims, weights, self._cache_bytes, self._exact_limit
                )
            return self._cache
