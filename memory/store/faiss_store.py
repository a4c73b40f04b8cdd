"""FaissStore: a LangGraph store that is durable in SQLite and searched with FAISS."""

import asyncio
import os
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, IndexConfig, Op, Result, SearchOp, TTLConfig

from questbook.memory.store.compaction import compact
from questbook.memory.store.database import Database
from questbook.memory.store.expiry import Sweeper
from questbook.memory.store.file_index import FileIndex
from questbook.memory.store.index_config import DEFAULT_INDEX, StoreIndex, read_index
from questbook.memory.store.reading import Reading
from questbook.memory.store.reembedding import Progress
from questbook.memory.store.search import Search
from questbook.memory.store.shard_cache import ShardCache
from questbook.memory.store.warm import Warm
from questbook.memory.store.watch import Watch
from questbook.memory.store.work import Work
from questbook.memory.store.writing import apply_write, refresh_expiry, sweep

if TYPE_CHECKING:
    from questbook.memory.embeddings.embedding_batch import Embedded

_CACHE_BYTES = 1 << 30
_EXACT_LIMIT = 200_000  # vectors; up to here comparing with all of them takes about 10 ms (docs/store.md)


class FaissStore(BaseStore):
    """A persistent semantic store for LangGraph: `builder.compile(store=FaissStore.open(path))`.

    Everything is a row in one SQLite file; the FAISS indexes are a cache of it. A `put` that returned is on
    disk. Any number of threads, event loops and processes may use one file; each sees what the others wrote
    at its next search. docs/store.md has the choices and the figures.
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
        self.ttl_config = ttl
        self._omit_expired = bool(ttl and ttl.get("omit_expired"))
        self.index_config: dict[str, Any] | None = settings.described if settings else None
        self.embeddings: Embeddings | None = settings.embeddings if settings else None
        self._database = Database(path, synchronous)
        self._index = FileIndex(self._database, settings, reembed=reembed, progress=progress)
        self._weights = settings.weights if settings else {}
        self.ranks_words = bool(settings and settings.columns and self._weights.get("lexical"))
        """Whether a search with a query ranks by words, so that hits without a score are in an order, too."""
        self._cache_bytes, self._exact_limit = cache_bytes, exact_limit
        self._watch = Watch(self._database)
        self._search = Search(ShardCache(self._database.path, "", 0, (), 0, 0), {})  # until the file is open
        self._warm = Warm(self._search, self._watch, self._database.reading)
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

        Inside a running event loop the file is opened by `async with` or by the first call, in a worker
        thread, because opening a file would hold up the loop.

        Args:
            path: The SQLite file, or an existing directory in which it is `store.sqlite3`. `":memory:"` gives
                a private temporary file that is gone after `close()`.
            index: What is embedded and indexed, and how (`StoreIndex`). Left out: `HashEmbeddings` and words
                of the field `text`. None: no search by query, as LangGraph's stores without an index.
            ttl: LangGraph's settings for items that expire; times in minutes.
            reembed: What to do if the file was written with another embedder: make all vectors anew from the
                texts (interrupted, it goes on where it stopped), or raise EmbedderChangedError.
            progress: Called with (items done, items in all) while that lasts; left out, it is logged.
            cache_bytes: What may stay in RAM between searches, in bytes: vectors, words, items that were found,
                values of filters; default 1 GiB. A namespace whose vectors are larger is read from disk at each
                search.
            exact_limit: From how many vectors on a namespace is searched approximately; default 200,000.
            synchronous: `"full"` survives a power cut, `"normal"` a killed process.

        Returns:
            The store.

        Raises:
            StoreUnavailableError: If the file or its directory cannot be used.
            CorruptStoreError: If the file is no store or is damaged; it is left untouched.
            StoreConfigError: If the settings contradict themselves or the file.
            EmbeddingError: If the embedder cannot be loaded, or fails while vectors are made anew.
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
        """Open the file and bring it and the settings together. Idempotent."""
        if self._ready:
            return
        if self._opened_in is not None:
            self._opening = threading.Lock()
        with self._opening:
            if self._ready:
                return
            self._database.create()
            owner = self._index.settle()
            dims = 0
            if (batch := self._index.batch) is not None and self.index_config is not None:
                dims = self.index_config["dims"] = batch.dims
            weights = self._index.lexical.weights if self._index.lexical else []
            shards = ShardCache(self._database.path, owner, dims, weights, self._cache_bytes, self._exact_limit)
            self._search = Search(shards, self._weights)
            self._watch = Watch(self._database)
            self._warm = Warm(self._search, self._watch, self._database.reading)
            self._opened_in = os.getpid()

    def close(self) -> None:
        """Close the file. Using the store afterwards raises StoreClosedError; closing twice is allowed."""
        self._sweeper.stop(timeout=5.0)
        if self._ready:
            with self._database.reading() as connection:
                self._search.shards.save(connection)
            self._search.shards.clear()
            self._watch.close()
        self._opened_in = None
        self._database.close()

    async def aclose(self) -> None:
        """Close the file without holding up the event loop."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        self._prepare()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._prepare)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations: reads first, all as the store was before; then the writes, as one transaction.

        Args:
            ops: Gets, searches, puts (a value of None deletes) and listings of namespaces. Of several puts to
                one key, the last counts.

        Returns:
            One result for each operation, in their order.

        Raises:
            InvalidNamespaceError: If a label is empty, no string, or contains "." or NUL.
            EmbeddingError: If embedding failed; nothing was written.
            UnstorableValueError: If a value is not JSON; nothing was written.
            EmbedderChangedError: If another process has re-embedded the file with another embedder meanwhile.
            StoreUnavailableError: If the file cannot be read or written; nothing was written.
        """
        self._prepare()
        work = Work(ops, self._index)
        embedded: tuple[Embedded, Embedded] = ({}, {})
        if self._index.batch is not None:
            embedded = self._index.batch.embed(work.documents(), work.queries)
        return self._execute(work, *embedded)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations like `batch`, without holding up the event loop.

        What concurrent calls of one tick of the loop have to embed is embedded in one call.
        """
        if not self._ready:
            await asyncio.to_thread(self._prepare)
        work = Work(ops, self._index)
        embedded: tuple[Embedded, Embedded] = ({}, {})
        if self._index.batch is not None:
            embedded = await self._index.batch.aembed(work.documents(), work.queries)
        return await asyncio.to_thread(self._execute, work, *embedded)

    def sweep_ttl(self) -> int:
        """Delete items whose time to live is over.

        Returns:
            How many were deleted.
        """
        self._prepare()
        with self._database.writing() as connection:
            return sweep(connection)

    def compact(self) -> None:
        """Write the file anew, so that nothing deleted is left: no text, word, vector or snapshot (`compaction`)."""
        self._prepare()
        self._search.shards.clear()
        compact(self._database)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> "Future[None]":
        """Sweep steadily in a daemon thread.

        Without it, items are swept beside other writes, every few minutes.

        Args:
            sweep_interval_minutes: Minutes between two sweeps; left out, the store's `ttl` setting, or 5.

        Returns:
            A future that is done when the thread has ended; cancelling it ends the thread.
        """
        return self._sweeper.start(sweep_interval_minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End the thread that sweeps.

        Args:
            timeout: Seconds to wait for it; None for as long as it takes.

        Returns:
            Whether it has ended.
        """
        return self._sweeper.stop(timeout)

    @property
    def cached_bytes(self) -> int:
        """Bytes of what is in RAM, about: vectors, words, items and values of filters."""
        return self._search.shards.size

    def _execute(self, work: Work, documents: "Embedded", queries: "Embedded") -> list[Result]:
        batch = self._index.batch
        asked = batch.units(queries) if batch else {}
        version = self._watch.version() if work.asks else 0
        if len(work.ops) == 1 and isinstance(op := work.ops[0], SearchOp):
            warm = self._warm.find(version, op, asked.get(op.query or ""))
            if warm is not None:
                return [warm]
        results: list[Result] = [None] * len(work.ops)
        writes = work.writes(batch.units(documents) if batch else {})
        if work.reads:
            reading = Reading(self._search, omit_expired=self._omit_expired)
            with self._database.reading() as connection:
                if work.asks:
                    self._index.check(connection)
                for place, found in reading.results(connection, work, asked).items():
                    results[place] = found
            if work.asks:
                self._warm.learn(version, reading.spaces)
            if reading.refreshed:
                with self._database.writing() as connection:
                    refresh_expiry(connection, reading.refreshed)
        if writes:
            with self._database.writing() as connection:
                self._index.check(connection)
                for write in writes:
                    apply_write(connection, write)
                if self._sweeper.due():
                    sweep(connection)
        return results
