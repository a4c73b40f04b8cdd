"""FaissStore: a LangGraph store that is durable in SQLite and searched with FAISS.

What needs numpy is loaded at the first search or put, because loading it takes a tenth of a second.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Self

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)
from langgraph.store.memory import _does_match

from questbook.memory.embeddings.embedders import RawVectors, embed_here, is_only_asynchronous
from questbook.memory.errors import EmbeddingError, StoreConfigError, UnstorableValueError
from questbook.memory.store import deletion, rows
from questbook.memory.store.database import Database
from questbook.memory.store.index_config import DEFAULT_INDEX, FileIndex, StoreIndex, read_index
from questbook.memory.store.reembedding import Progress
from questbook.memory.store.rows import ItemRow, Namespace, Write
from questbook.types import JSON

if TYPE_CHECKING:
    from questbook.memory.embeddings.embedders import Vector
    from questbook.memory.store.namespace_cache import NamespaceCache
    from questbook.memory.store.search import SearchBatch

_CACHE_BYTES = 1 << 30
_EXACT_LIMIT = 200_000  # vectors; up to here comparing with all of them takes about 10 ms (docs/figures.md)
_MANY, _LONG = 200, 20_000  # operations, and characters of a text: encoding more takes milliseconds
_OPERATIONS = (GetOp, PutOp, SearchOp, ListNamespacesOp)


class FaissStore(BaseStore):
    """A persistent semantic store for LangGraph: `builder.compile(store=FaissStore.open(path))`.

    Everything is a row in one SQLite file; the FAISS indexes are a cache of the rows. When a `put` returns, it is on
    disk. Any number of threads, event loops and processes may use one file; each sees what the others wrote at its
    next search. docs/store.md has the choices, docs/figures.md the figures.
    """

    supports_ttl = True
    filters_any = True
    """Filters may hold others: `{"$or": [filter, …]}`, `"$and"`, and `"$through"`. LangGraph's do not know them."""

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
        settings = read_index(index)
        deletion.check_ttl(ttl)
        for name, limit in (("cache_bytes", cache_bytes), ("exact_limit", exact_limit)):
            if not isinstance(limit, int) or limit < 0:
                raise StoreConfigError(f"{name}: got {limit!r:.80}; expected a whole number from 0.")
        self.ttl_config = ttl
        self._omit_expired = bool(ttl and ttl.get("omit_expired"))
        self.index_config: JSON | None = settings.described or None
        self.embeddings: Embeddings | None = settings.embeddings
        """The embedder; None for none, and with "auto" until the file is open."""
        self._database = Database(path, synchronous)
        self._index = FileIndex(self._database, settings, reembed=reembed, progress=progress)
        self.ranks_words = bool(settings.columns and settings.weights.get("lexical"))
        """Whether words count in the order of the hits; if so, hits without a score are in an order, too."""
        self._cache_bytes, self._exact_limit = cache_bytes, exact_limit
        self._owner = ""  # a name of file and embedder; known when the file is open
        self._cache: NamespaceCache | None = None  # until the first search
        self._sweeper = deletion.Sweeper(self.sweep_ttl, ttl.get("sweep_interval_minutes") if ttl else None)
        self._swept = -math.inf  # the first write sweeps: a process may live for less than an interval
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
        it here would block the loop. So it is with an asynchronous embedding function, whose client works in one loop.

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
        limits = {"cache_bytes": cache_bytes, "exact_limit": exact_limit}
        store = cls(path, index=index, ttl=ttl, reembed=reembed, progress=progress, synchronous=synchronous, **limits)
        if asyncio._get_running_loop() is None and not is_only_asynchronous(store.embeddings):
            store._prepare()
        return store

    @property
    def _ready(self) -> bool:
        return self._opened_in == os.getpid()

    def _prepare(self) -> None:
        """Open the file and make its indexes what the settings say. Does nothing if that is done."""
        if self._ready:
            return
        if self._opened_in is not None:  # in another process, one of whose threads may hold the lock
            self._opening = threading.Lock()
        # Who opens it for an asynchronous embedding function waits for the event loop, which must not wait here.
        waits = asyncio._get_running_loop() is None or not is_only_asynchronous(self.embeddings)
        if not self._opening.acquire(blocking=waits):
            raise EmbeddingError("the store is being opened: wait with `async with`, or by its asynchronous methods")
        try:
            if self._ready:
                return
            self._database.create()
            self._owner = self._index.update()
            if (embedder := self._index.embedder) is not None:
                self.index_config = {**self._index.settings.described, "dims": embedder.dims}
                self.embeddings = self._index.settings.embeddings
            self._cache = None
            self._opened_in = os.getpid()
        finally:
            self._opening.release()

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
        await embed_here(self._prepare)
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
        batch, vectors = _Batch(ops, self._index), RawVectors({}, {})
        if (embedder := self._index.embedder) is not None:
            vectors = embedder.embed(batch.documents, batch.queries)
        return self._execute(batch, vectors)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations like `batch`, without blocking the event loop.

        The texts of concurrent calls in one tick of the loop are embedded in one call.
        """
        if not self._ready:
            await embed_here(self._prepare)
        several, vectors = list(ops), RawVectors({}, {})
        values = [op.value.values() for op in several if isinstance(op, PutOp) and isinstance(op.value, dict)]
        is_large = any(isinstance(part, str | list) and len(part) > _LONG for value in values for part in value)
        if is_large or len(several) > _MANY:
            batch = await asyncio.to_thread(_Batch, several, self._index)
        else:
            batch = _Batch(several, self._index)
        if (embedder := self._index.embedder) is not None:
            vectors = await embedder.aembed(batch.documents, batch.queries)
        return await asyncio.to_thread(self._execute, batch, vectors)

    def sweep_ttl(self) -> int:
        """Delete the items that have expired, and return how many they were."""
        self._prepare()
        with self._database.writing() as connection:
            return deletion.delete_expired(connection)

    def compact(self) -> None:
        """Write the file again, so that nothing deleted is left in it: no text, word, vector or snapshot."""
        self._prepare()
        if self._cache is not None:
            self._cache.clear()
        deletion.compact(self._database)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Delete expired items regularly in a daemon thread; without it, they are deleted beside other writes.

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

    def _execute(self, batch: _Batch, vectors: RawVectors) -> list[Result]:
        embedder = self._index.embedder
        # Of its own texts alone: others that asked in the same tick have theirs in there, too.
        queries = embedder.units({text: vectors.queries[text] for text in batch.queries}) if embedder else {}
        documents = embedder.units({text: vectors.documents[text] for text in batch.documents}) if embedder else {}
        writes = batch.writes(documents)
        results: list[Result] = [None] * len(batch.ops)
        if not all(isinstance(op, PutOp) for op in batch.ops):
            with self._database.reading() as connection:
                if batch.queries:
                    self._index.check(connection)
                results, refreshed = self._read(connection, batch, queries)
            if refreshed:
                with self._database.writing() as connection:
                    deletion.refresh_expiry(connection, refreshed)
        if writes:
            with self._database.writing() as connection:
                self._index.check(connection)
                if time.monotonic() - self._swept >= self._sweeper.seconds:
                    self._swept = time.monotonic()
                    deletion.delete_expired(connection)
                for write in writes:
                    rows.apply_write(connection, write)
        return results

    def _read(
        self, connection: sqlite3.Connection, batch: _Batch, queries: Mapping[str, Vector]
    ) -> tuple[list[Result], list[int]]:
        """Return the results (None for puts), and the ids of the items whose time to live starts again."""
        moment = rows.now() if self._omit_expired else 0
        keys: dict[Namespace, dict[str, None]] = {}
        for op in batch.ops:
            if isinstance(op, GetOp):
                keys.setdefault(tuple(op.namespace), {})[op.key] = None
        items = {place: rows.get_by_keys(connection, place, list(wanted)) for place, wanted in keys.items()}
        searches = self._search_batch(connection, batch.searches, queries, moment) if batch.searches else None
        results, refreshed = list[Result](), list[int]()
        for op in batch.ops:
            found: list[ItemRow] = []
            if isinstance(op, GetOp):
                item = items[tuple(op.namespace)].get(op.key)
                found = [item] if item is not None and item.lives(moment) else []
                results.append(found[0].as_item() if found else None)
            elif isinstance(op, SearchOp) and searches is not None:
                hits = searches.run(op)
                found = [hit.item for hit in hits]
                results.append([hit.item.as_search_item(hit.cosine) for hit in hits])
            else:
                results.append(_list_namespaces(connection, op, moment) if isinstance(op, ListNamespacesOp) else None)
            if isinstance(op, GetOp | SearchOp) and op.refresh_ttl:
                refreshed += [item.id for item in found if item.expires_at is not None]
        return results, refreshed

    def _search_batch(
        self, connection: sqlite3.Connection, searches: Sequence[SearchOp], queries: Mapping[str, Vector], moment: int
    ) -> SearchBatch:
        from questbook.memory.store.namespace_cache import NamespaceCache
        from questbook.memory.store.search import SearchBatch

        settings = self._index.settings
        with self._opening:
            if (cache := self._cache) is None:
                dims = self._index.embedder.dims if self._index.embedder else 0
                path, weights = self._database.path, settings.column_weights
                limits = self._cache_bytes, self._exact_limit
                cache = self._cache = NamespaceCache(path, self._owner, dims, weights, *limits)
        return SearchBatch(connection, cache, settings.weights, searches, queries, moment)


class _Batch:
    """A batch of operations, checked and encoded as far as possible before a transaction begins."""

    def __init__(self, ops: Iterable[Op], index: FileIndex) -> None:
        self.ops = list(ops)
        self._index = index
        self._puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in self.ops:
            if not isinstance(op, _OPERATIONS):
                raise ValueError(f"Unknown operation type: {type(op)}")
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                if op.ttl is not None and not deletion.is_time_to_live(op.ttl):
                    allowed = f"a number of minutes, at most {deletion.LONGEST_TTL:,.0f}, or None for ever"
                    problem = f"its time to live must be {allowed}; got {op.ttl!r:.80}"
                    raise UnstorableValueError(f"cannot store {op.key!r} in {tuple(op.namespace)}: {problem}")
                self._puts[tuple(op.namespace), op.key] = op
        self.searches = [op for op in self.ops if isinstance(op, SearchOp)]
        self.queries = [op.query for op in self.searches if op.query]  # texts that are searched for
        kept = {place: put for place, put in self._puts.items() if put.value is not None}
        self._values = {place: rows.encode_value(put.value or {}, *place) for place, put in kept.items()}
        self._texts = {place: index.settings.texts(put.value or {}, put.index) for place, put in kept.items()}
        self.documents = [text for texts in self._texts.values() for text in texts]  # that are put and embedded

    def writes(self, vectors: Mapping[str, Vector]) -> list[Write]:
        """Return what is written, for each key its last put, given the unit vectors of the documents by text."""
        return [self._write(place, put, vectors) for place, put in self._puts.items()]

    def _write(self, place: tuple[Namespace, str], put: PutOp, vectors: Mapping[str, Vector]) -> Write:
        if put.value is None:
            return Write(*place, None)
        paths = None if put.index is None else json.dumps(put.index)
        blobs = [vectors[text].astype("<f4").tobytes() for text in self._texts[place]]
        words = self._index.settings.words(put.value, put.index)
        if not blobs and not words and put.index is not False:
            self._index.warn_unindexed(*place, put.value, put.index)
        return Write(*place, self._values[place], put.ttl, paths, blobs, words)


def _list_namespaces(connection: sqlite3.Connection, op: ListNamespacesOp, moment: int) -> list[Namespace]:
    """List the namespaces that hold items which live at a moment (0: any items), in order, cut to the depth, each once.

    A condition that is neither a prefix nor a suffix is a ValueError.
    """
    asked = op.match_conditions or ()
    conditions = [one._replace(path=(one.path,)) if isinstance(one.path, str) else one for one in asked]
    fixed = [tuple(one.path) for one in conditions if one.match_type == "prefix" and "*" not in one.path]
    spaces = rows.namespaces_under(connection, fixed[0] if fixed else ())
    paths = {space.path for space in spaces if not moment or rows.has_living(connection, space, moment)}
    paths = {path[: op.max_depth] for path in paths if all(_does_match(condition, path) for condition in conditions)}
    start = max(op.offset, 0)
    return sorted(paths)[start : start + max(op.limit, 0)]
