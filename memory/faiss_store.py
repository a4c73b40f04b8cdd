"""FaissStore: a LangGraph store that is durable in SQLite and searched with FAISS."""

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import merge
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from memory import rows
from memory.database import Database
from memory.embedding_batch import EmbeddingBatch
from memory.embeddings import HashEmbeddings, announced_dims, identify, load_embeddings
from memory.errors import EmbedderChangedError, StoreConfigError
from memory.filters import check_filter, matches
from memory.rows import ItemRow, Namespace, NamespaceRow, Write
from memory.shards import Shard

if TYPE_CHECKING:
    from sqlite3 import Connection

    from langgraph.store.base.embed import AEmbeddingsFunc, EmbeddingsFunc

    from memory.embedding_batch import Vector

_DEFAULT_FIELDS = ["text"]
_WHOLE_ITEM = ["$"]  # what LangGraph's stores embed if an index names no fields


class StoreIndex(TypedDict, total=False):
    """How values are made findable. LangGraph's `IndexConfig`, in which everything may be left out."""

    embed: "Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str | None"
    """An embedder, a function, or a name for `load_embeddings`; None for no vectors."""
    dims: int
    """Length of the vectors; asked of the embedder if left out."""
    fields: list[str] | None
    """Paths in the value whose texts are embedded, each as a vector of its own; default `["$"]`, the whole
    value."""


DEFAULT_INDEX: StoreIndex = {"embed": HashEmbeddings(), "fields": _DEFAULT_FIELDS}


class FaissStore(BaseStore):
    """A persistent semantic store for LangGraph: `builder.compile(store=FaissStore.open(path))`.

    Everything is a row in one SQLite file; the FAISS indexes are a cache of it. A `put` that returned is on
    disk. Any number of threads, event loops and processes may use one file; each sees what the others wrote
    at its next search.
    """

    supports_ttl = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        index: StoreIndex | IndexConfig | None = DEFAULT_INDEX,
        ttl: TTLConfig | None = None,
        synchronous: str = "full",
    ) -> None:
        """Remember the settings; nothing is read or written yet. `open` says what the arguments mean."""
        super().__init__()
        self.ttl_config = ttl
        self.index_config: dict[str, Any] | None = None
        self.embeddings: Embeddings | None = None
        self._fields: list[tuple[str, list[str] | str]] = []
        self._batch: EmbeddingBatch | None = None
        self._configure(cast("StoreIndex | None", index))
        self._database = Database(path, synchronous)
        self._ready = False
        self._opening = threading.Lock()
        self._shards: dict[int, Shard] = {}
        self._shards_lock = threading.Lock()

    def _configure(self, index: StoreIndex | None) -> None:
        if index is None:
            return
        fields = index.get("fields") or _WHOLE_ITEM
        if isinstance(fields, str) or not all(isinstance(field, str) for field in fields):
            raise StoreConfigError(f'index["fields"] must be a list of paths, for example ["text"]; got {fields!r}')
        self._fields = [_tokenized(field) for field in fields]
        embed = index.get("embed")
        if isinstance(embed, str):
            self.embeddings = load_embeddings(embed)
        elif embed is not None:
            self.embeddings = ensure_embeddings(embed)
        self.index_config = {**index, "fields": list(fields)}
        dims, announced = index.get("dims"), announced_dims(embed)
        if dims is not None and (not isinstance(dims, int) or dims < 1):
            raise StoreConfigError(f'index["dims"] must be a positive number, got {dims!r}')
        if dims and announced and dims != announced:
            raise EmbedderChangedError(
                f'index["dims"] is {dims}, but the embedder makes vectors of {announced} dimensions: '
                "give the one that the model has, or leave dims out"
            )
        if self.embeddings is not None and (size := dims or announced):
            self.index_config["dims"] = size
            self._batch = EmbeddingBatch(self.embeddings, size)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        index: StoreIndex | IndexConfig | None = DEFAULT_INDEX,
        *,
        ttl: TTLConfig | None = None,
        synchronous: str = "full",
    ) -> Self:
        """Open a store, or create it. Use it at once, with `with`, or with `async with`.

        Inside a running event loop the file is opened by `async with` or by the first call, in a worker
        thread, because opening a file would hold up the loop.

        Args:
            path: The SQLite file, or an existing directory in which it is `store.sqlite3`. `":memory:"` gives
                a private temporary file that is gone after `close()`.
            index: What is embedded, and how (`StoreIndex`). Left out: `HashEmbeddings` over the field `text`.
                None: no search by meaning.
            ttl: LangGraph's settings for items that expire; times in minutes.
            synchronous: `"full"` survives a power cut, `"normal"` a killed process.

        Returns:
            The store.

        Raises:
            StoreUnavailableError: If the file or its directory cannot be used.
            CorruptStoreError: If the file is no store or is damaged; it is left untouched.
            StoreConfigError: If the settings contradict themselves or the file.
            EmbeddingError: If the embedder cannot be loaded.
        """
        store = cls(path, index=index, ttl=ttl, synchronous=synchronous)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            store._prepare()
        return store

    def _prepare(self) -> None:
        """Open the file and hold the settings against what it was written with. Idempotent."""
        if self._ready:
            return
        with self._opening:
            if self._ready:
                return
            self._database.create()
            if self.embeddings is not None and self._batch is None:
                self._batch = EmbeddingBatch(self.embeddings, len(self.embeddings.embed_query("dimension")))
                if self.index_config is not None:
                    self.index_config["dims"] = self._batch.dims
            if self._batch is not None:
                self._check_embedder(self._batch)
            self._ready = True

    def _check_embedder(self, batch: EmbeddingBatch) -> None:
        mine = {"embedder": identify(batch.embeddings), "dims": str(batch.dims)}
        with self._database.writing() as connection:
            for name, value in mine.items():
                connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)", (name, value))
            theirs = dict(
                connection.execute("SELECT key, value FROM meta WHERE key IN ('embedder', 'dims')").fetchall()
            )
        if theirs != mine:
            raise EmbedderChangedError(
                f"{self._database.path} holds vectors of {theirs['embedder']} with {theirs['dims']} "
                f"dimensions, but was opened with {mine['embedder']} and {mine['dims']}: "
                "open it with the former"
            )

    def close(self) -> None:
        """Close the file. Using the store afterwards raises StoreClosedError; closing twice is allowed."""
        self._database.close()
        self._ready = False
        with self._shards_lock:
            self._shards.clear()

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
            StoreError: If the file cannot be read or written; nothing was written.
        """
        self._prepare()
        work = self._plan(ops)
        texts, queries = work.to_embed(self._batch)
        if self._batch is not None:
            work.documents, work.queries = self._batch.embed(texts, queries)
        return self._execute(work)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations like `batch`, without holding up the event loop."""
        if not self._ready:
            await asyncio.to_thread(self._prepare)
        work = self._plan(ops)
        texts, queries = work.to_embed(self._batch)
        if self._batch is not None:
            work.documents, work.queries = await self._batch.aembed(texts, queries)
        return await asyncio.to_thread(self._execute, work)

    def sweep_ttl(self) -> int:
        """Delete items whose time to live is over.

        Returns:
            How many were deleted.
        """
        self._prepare()
        with self._database.writing() as connection:
            return rows.sweep(connection)

    def _plan(self, ops: Iterable[Op]) -> "_Work":
        work = _Work(list(ops))
        for op in work.ops:
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                work.puts[(tuple(op.namespace), op.key)] = op
            elif isinstance(op, SearchOp):
                check_filter(op.filter or {})
            elif not isinstance(op, GetOp | ListNamespacesOp):
                raise ValueError(f"Unknown operation type: {type(op)}")
        for (namespace, key), put in work.puts.items():
            if put.value is not None:
                work.values[namespace, key] = rows.encode_value(put.value, namespace, key)
                work.texts[namespace, key] = self._texts(put)
        return work

    def _texts(self, put: PutOp) -> list[str]:
        if put.index is False or self.index_config is None or put.value is None:
            return []
        fields = self._fields if put.index is None else [_tokenized(path) for path in put.index]
        return [text for _, steps in fields for text in get_text_at_path(put.value, steps)]

    def _execute(self, work: "_Work") -> list[Result]:
        vectors = self._batch.units(work.documents) if self._batch else {}
        asked = self._batch.units(work.queries) if self._batch else {}
        results: list[Result] = [None] * len(work.ops)
        if len(work.puts) < len(work.ops):
            self._read(work.ops, asked, results)
        if work.puts:
            writes = [
                Write(
                    namespace,
                    key,
                    work.values.get((namespace, key)),
                    put.ttl,
                    None if put.index is None else json.dumps(put.index),
                    [vectors[text].astype("<f4").tobytes() for text in work.texts.get((namespace, key), ()) if vectors],
                )
                for (namespace, key), put in work.puts.items()
            ]
            with self._database.writing() as connection:
                for write in writes:
                    rows.apply_write(connection, write)
                for namespace in {write.namespace for write in writes}:
                    rows.forget_removed(connection, namespace)
        return results

    def _read(self, ops: Sequence[Op], asked: "dict[str, Vector]", results: list[Result]) -> None:
        refreshed: list[int] = []
        with self._database.reading() as connection:
            for place, op in enumerate(ops):
                if isinstance(op, GetOp):
                    found = rows.get_item(connection, tuple(op.namespace), op.key)
                    if found is None or self._hidden(found):
                        continue
                    results[place] = _as_item(found)
                    if op.refresh_ttl and found.expires_at is not None:
                        refreshed.append(found.id)
                elif isinstance(op, SearchOp):
                    hits = self._search(connection, op, asked.get(op.query or ""))
                    results[place] = [_as_search_item(item, score) for item, score in hits]
                    if op.refresh_ttl:
                        refreshed += [item.id for item, _ in hits if item.expires_at is not None]
                elif isinstance(op, ListNamespacesOp):
                    results[place] = _list_namespaces(connection, op)
        if refreshed:
            with self._database.writing() as connection:
                rows.refresh_expiry(connection, refreshed)

    def _hidden(self, item: ItemRow) -> bool:
        omit = self.ttl_config is not None and self.ttl_config.get("omit_expired", False)
        return omit and item.expires_at is not None and item.expires_at <= rows.now()

    def _search(
        self, connection: "Connection", op: SearchOp, query: "Vector | None"
    ) -> list[tuple[ItemRow, float | None]]:
        spaces = rows.namespaces_under(connection, tuple(op.namespace_prefix))
        start, stop = max(op.offset, 0), max(op.offset, 0) + max(op.limit, 0)

        def wanted(item: ItemRow) -> bool:
            return not self._hidden(item) and matches(item.value, op.filter or {})

        ranked: list[tuple[ItemRow, float | None]] = []
        if query is not None:
            ranked += self._nearest(connection, spaces, query, stop, wanted)
        if len(ranked) < stop:
            # As in LangGraph's InMemoryStore, items without a vector follow those that have one.
            seen = {item.id for item, _ in ranked}
            rest = (item for space in spaces for item in rows.all_items(connection, space))
            unranked = (item for item in rest if item.id not in seen and wanted(item))
            ranked += [(item, None) for item in islice(unranked, stop - len(ranked))]
        return ranked[start:stop]

    def _nearest(
        self,
        connection: "Connection",
        spaces: Sequence[NamespaceRow],
        query: "Vector",
        count: int,
        wanted: Callable[[ItemRow], bool],
    ) -> list[tuple[ItemRow, float | None]]:
        names = {space.id: space.path for space in spaces}
        everything = sum(space.items for space in spaces)
        width = count
        while True:
            found = [self._shard_nearest(connection, space, query, width) for space in spaces]
            best = list(islice(merge(*found, key=lambda hit: hit[0], reverse=True), width))
            scores = {item: score for score, item in best}
            items = rows.get_items(connection, list(scores), names)
            kept = [(item, scores[item.id]) for item in items if wanted(item)]
            if len(kept) >= count or width >= everything:
                return list(kept[:count])
            width *= 4

    def _shard_nearest(
        self, connection: "Connection", space: NamespaceRow, query: "Vector", count: int
    ) -> list[tuple[float, int]]:
        with self._shards_lock:
            shard = self._shards.setdefault(space.id, Shard(space.id, len(query)))
        with shard.lock:
            shard.refresh(connection, space)
            return shard.nearest(query, count)


class _Work:
    """A batch of operations with what must be known before its transaction begins."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = ops
        self.puts: dict[tuple[Namespace, str], PutOp] = {}
        self.values: dict[tuple[Namespace, str], str] = {}
        self.texts: dict[tuple[Namespace, str], list[str]] = {}
        self.documents: Mapping[str, Sequence[float]] = {}
        self.queries: Mapping[str, Sequence[float]] = {}

    def to_embed(self, batch: EmbeddingBatch | None) -> tuple[list[str], list[str]]:
        if batch is None:
            return [], []
        queries = [op.query for op in self.ops if isinstance(op, SearchOp) and op.query]
        return [text for texts in self.texts.values() for text in texts], queries


def _tokenized(path: str) -> tuple[str, list[str] | str]:
    return path, path if path == "$" else tokenize_path(path)


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


def _list_namespaces(connection: "Connection", op: ListNamespacesOp) -> list[Namespace]:
    conditions = op.match_conditions or ()
    paths = {space.path for space in rows.namespaces_under(connection, _fixed_prefix(conditions))}
    paths = {path for path in paths if all(_fits(path, condition) for condition in conditions)}
    if op.max_depth is not None:
        paths = {path[: op.max_depth] for path in paths}
    start = max(op.offset, 0)
    return sorted(paths)[start : start + max(op.limit, 0)]


def _fixed_prefix(conditions: Iterable[MatchCondition]) -> Namespace:
    for condition in conditions:
        if condition.match_type == "prefix" and "*" not in condition.path:
            return _labels(condition)
    return ()


def _labels(condition: MatchCondition) -> Namespace:
    return (condition.path,) if isinstance(condition.path, str) else tuple(condition.path)


def _fits(path: Namespace, condition: MatchCondition) -> bool:
    labels = _labels(condition)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(path) < len(labels):
        return False
    part = path[: len(labels)] if condition.match_type == "prefix" else path[len(path) - len(labels) :]
    return all(want in ("*", have) for have, want in zip(part, labels, strict=True))
