"""FaissStore: a LangGraph store that is durable in SQLite and searched with FAISS."""

import asyncio
import json
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from memory import rows
from memory.database import Database
from memory.embedding_batch import EmbeddingBatch
from memory.embeddings import announced_dims, identify
from memory.errors import EmbedderChangedError
from memory.expiry import Sweeper
from memory.filters import check_filter
from memory.index_config import DEFAULT_INDEX, StoreIndex, read_index
from memory.lexical import Lexical, texts_at
from memory.listing import list_namespaces
from memory.reembedding import Progress, embed_again, index_words_again, meta
from memory.rows import ItemRow, Namespace
from memory.search import Search
from memory.shard_cache import ShardCache
from memory.writing import Write, apply_write, refresh_expiry, sweep

if TYPE_CHECKING:
    from memory.embedding_batch import Vector

_CACHE_BYTES = 1 << 30
_EXACT_LIMIT = 200_000  # vectors; up to here comparing with all of them takes about 10 ms (docs/store.md)


class FaissStore(BaseStore):
    """A persistent semantic store for LangGraph: `builder.compile(store=FaissStore.open(path))`.

    Everything is a row in one SQLite file; the FAISS indexes are a cache of it. A `put` that returned is on
    disk. Any number of threads, event loops and processes may use one file; each sees what the others wrote
    at its next search. docs/store.md has the choices and the figures.
    """

    supports_ttl = True

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
        self._fields = settings.fields if settings else ()
        self._lexical = Lexical(settings.columns) if settings and settings.columns else None
        self._weights = settings.weights if settings else {}
        self._batch: EmbeddingBatch | None = None
        self._reembed, self._progress = reembed, progress
        self._cache_bytes, self._exact_limit = cache_bytes, exact_limit
        self._database = Database(path, synchronous)
        self._stamps: dict[str, str] = {}
        self._search = Search(None, self._lexical, self._weights)
        self._sweeper = Sweeper(self.sweep_ttl, ttl.get("sweep_interval_minutes") if ttl else None)
        self._ready = False
        self._opening = threading.Lock()

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
            cache_bytes: What the vectors in RAM may take between searches, in bytes; default 1 GiB. A
                namespace that is larger than that is read from disk at each search.
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

    def _prepare(self) -> None:
        """Open the file and bring it and the settings together. Idempotent."""
        if self._ready:
            return
        with self._opening:
            if self._ready:
                return
            self._database.create()
            if self.embeddings is not None and self.index_config is not None:
                self._batch = self._measured(self.embeddings, self.index_config.get("dims"))
                self.index_config["dims"] = self._batch.dims
                self._stamps["embedder"] = _stamp(self._batch)
            if self._lexical is not None:
                self._stamps["lexical"] = json.dumps(list(self._lexical.columns))
            owner = self._settle()
            if self._batch is not None:
                cache = ShardCache(
                    self._database.path,
                    f"{owner} {self._stamps['embedder']}",
                    self._batch.dims,
                    self._cache_bytes,
                    self._exact_limit,
                )
                self._search = Search(cache, self._lexical, self._weights)
            self._ready = True

    def _measured(self, embeddings: Embeddings, dims: int | None) -> EmbeddingBatch:
        """The embedder with its dimension, which is measured if it neither says it nor was ever seen here."""
        if dims is not None:
            batch = EmbeddingBatch(embeddings, dims)
            with self._database.reading() as connection:
                seen = meta(connection, "embedder")
            if announced_dims(embeddings) or seen == _stamp(batch):
                return batch
        measured = EmbeddingBatch.probed(embeddings)
        if dims not in (None, measured.dims):
            raise EmbedderChangedError(
                f'index["dims"] is {dims}, but the embedder makes vectors of {measured.dims} dimensions: '
                "give the one that the model has, or leave dims out"
            )
        return measured

    def _settle(self) -> str:
        """Make the indexes in the file what the settings say; return the file's own name."""
        with self._database.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('store', ?)", (uuid.uuid4().hex,))
            known = dict(connection.execute("SELECT key, value FROM meta").fetchall())
            if connection.execute("SELECT 1 FROM items LIMIT 1").fetchone() is None:
                if self._lexical is not None and known.get("lexical") != self._stamps["lexical"]:
                    self._lexical.create(connection)
                connection.executemany("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", self._stamps.items())
                return str(known["store"])
        if self._batch is not None and known.get("embedder") != self._stamps["embedder"]:
            if known.get("embedder") and not self._reembed:
                raise EmbedderChangedError(
                    f"{self._database.path} holds vectors of {known['embedder']}, but was opened with "
                    f"{self._stamps['embedder']}: open it with the former, or allow reembed=True"
                )
            embed_again(self._database, self._batch, self._stamps["embedder"], self._texts, self._progress)
        if self._lexical is not None and known.get("lexical") != self._stamps["lexical"]:
            index_words_again(self._database, self._lexical, self._stamps["lexical"])
        return str(known["store"])

    def _check_stamps(self, connection: sqlite3.Connection) -> None:
        for name, mine in self._stamps.items():
            found = connection.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
            if found is None or found[0] != mine:
                raise EmbedderChangedError(
                    f"another process has changed what {self._database.path} is indexed with "
                    f"from {mine} to {found and found[0]}: open it anew, with the same index in every process"
                )

    def close(self) -> None:
        """Close the file. Using the store afterwards raises StoreClosedError; closing twice is allowed."""
        self._sweeper.stop(timeout=5.0)
        if self._ready and self._search.shards is not None:
            with self._database.reading() as connection:
                self._search.shards.save(connection)
            self._search.shards.clear()
        self._ready = False
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
        work = self._plan(ops)
        if self._batch is not None:
            work.documents, work.queries = self._batch.embed(work.to_embed(), work.to_ask())
        return self._execute(work)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations like `batch`, without holding up the event loop.

        What concurrent calls of one tick of the loop have to embed is embedded in one call.
        """
        if not self._ready:
            await asyncio.to_thread(self._prepare)
        work = self._plan(ops)
        if self._batch is not None:
            work.documents, work.queries = await self._batch.aembed(work.to_embed(), work.to_ask())
        return await asyncio.to_thread(self._execute, work)

    def sweep_ttl(self) -> int:
        """Delete items whose time to live is over.

        Returns:
            How many were deleted.
        """
        self._prepare()
        with self._database.writing() as connection:
            return sweep(connection)

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
        """Bytes of the vectors that are in RAM."""
        return self._search.shards.size if self._search.shards else 0

    def _plan(self, ops: Iterable[Op]) -> "_Work":
        work = _Work(list(ops))
        for op in work.ops:
            if not isinstance(op, GetOp | PutOp | SearchOp | ListNamespacesOp):
                raise ValueError(f"Unknown operation type: {type(op)}")
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                work.puts[(tuple(op.namespace), op.key)] = op
            elif isinstance(op, SearchOp):
                check_filter(op.filter or {})
        for (namespace, key), put in work.puts.items():
            if put.value is not None:
                work.values[namespace, key] = rows.encode_value(put.value, namespace, key)
                work.texts[namespace, key] = self._texts(put.value, put.index) if self._batch else []
        return work

    def _texts(self, value: Mapping[str, Any], index: Any) -> list[str]:
        paths = () if index is False else self._fields if index is None else index
        return [text for path in paths for text in texts_at(value, path)]

    def _execute(self, work: "_Work") -> list[Result]:
        results: list[Result] = [None] * len(work.ops)
        documents = self._batch.units(work.documents) if self._batch else {}
        queries = self._batch.units(work.queries) if self._batch else {}
        writes = [self._write(work, place, put, documents) for place, put in work.puts.items()]
        if sum(isinstance(op, PutOp) for op in work.ops) < len(work.ops):
            self._read(work.ops, queries, results)
        if writes:
            with self._database.writing() as connection:
                self._check_stamps(connection)
                for write in writes:
                    apply_write(connection, write)
                if self._sweeper.due():
                    sweep(connection)
        return results

    def _write(self, work: "_Work", place: tuple[Namespace, str], put: PutOp, vectors: "Mapping[str, Vector]") -> Write:
        if put.value is None:
            return Write(*place, None)
        texts: Sequence[str] = ()
        if self._lexical is not None and put.index is not False:
            texts = self._lexical.texts(put.value, put.index)
        return Write(
            *place,
            work.values[place],
            put.ttl,
            None if put.index is None else json.dumps(put.index),
            [vectors[text].astype("<f4").tobytes() for text in work.texts[place]],
            texts,
        )

    def _read(self, ops: Sequence[Op], queries: "Mapping[str, Vector]", results: list[Result]) -> None:
        refreshed: list[int] = []
        with self._database.reading() as connection:
            self._check_stamps(connection)
            for place, op in enumerate(ops):
                if isinstance(op, GetOp):
                    found = rows.get_item(connection, tuple(op.namespace), op.key)
                    if found is None or not self._visible(found):
                        continue
                    results[place] = _as_item(found)
                    if op.refresh_ttl and found.expires_at is not None:
                        refreshed.append(found.id)
                elif isinstance(op, SearchOp):
                    hits = self._search.run(connection, op, queries.get(op.query or ""), self._visible)
                    results[place] = [_as_search_item(item, score) for item, score in hits]
                    if op.refresh_ttl:
                        refreshed += [item.id for item, _ in hits if item.expires_at is not None]
                elif isinstance(op, ListNamespacesOp):
                    results[place] = list_namespaces(connection, op, omit_expired=self._omit_expired)
        if refreshed:
            with self._database.writing() as connection:
                refresh_expiry(connection, refreshed)

    def _visible(self, item: ItemRow) -> bool:
        return not self._omit_expired or item.expires_at is None or item.expires_at > rows.now()


class _Work:
    """A batch of operations with what must be known before its transaction begins."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = ops
        self.puts: dict[tuple[Namespace, str], PutOp] = {}
        self.values: dict[tuple[Namespace, str], str] = {}
        self.texts: dict[tuple[Namespace, str], list[str]] = {}
        self.documents: Mapping[str, Sequence[float]] = {}
        self.queries: Mapping[str, Sequence[float]] = {}

    def to_embed(self) -> list[str]:
        return [text for texts in self.texts.values() for text in texts]

    def to_ask(self) -> list[str]:
        return [op.query for op in self.ops if isinstance(op, SearchOp) and op.query]


def _stamp(batch: EmbeddingBatch) -> str:
    return f"{identify(batch.embeddings)} with {batch.dims} dimensions"


def _as_item(row: ItemRow) -> Item:
    return Item(
        value=row.value,
        key=row.key,
        namespace=row.namespace,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _as_search_item(row: ItemRow, score: float | None) -> SearchItem:
    return SearchItem(row.namespace, row.key, row.value, row.created_at, row.updated_at, score)
