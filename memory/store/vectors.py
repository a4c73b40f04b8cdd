"""The vectors of a namespace in FAISS: compared with a query in RAM, or straight from their rows.

What is in RAM is a cache of the rows that can be dropped at any time. Up to `exact_limit` vectors it is `IndexFlatIP`,
which compares a query with every vector. Above, it is `IndexIVFScalarQuantizer`, which compares it with the vectors of
the lists nearest to it and holds a byte for each dimension, a quarter of the vector. Its cosines are approximate; those
that count are computed again from the rows.
"""

import logging
import math
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np

from questbook.memory.store import rows
from questbook.memory.store.arrays import Ids, Mask, Places, Scores, Vector, find_ids
from questbook.memory.store.filters import FilterMask
from questbook.memory.store.rows import NamespaceRow
from questbook.memory.store.snapshots import IndexContents, Snapshot, read_snapshot, write_snapshot

FEW_DEAD = 256  # so many removed vectors may stay in an index before it is built again
SNAPSHOT_VECTORS = 20_000  # from how many vectors on a snapshot is written; fewer are read from their rows as fast

_log = logging.getLogger(__name__)
_STALE_SNAPSHOT = 0.1  # part of the vectors that may be newer than the snapshot before it is written again
_EMPTY = 4_096  # bytes of a namespace without vectors, about
_OVERHEAD = 17  # bytes beside each vector: its id, its item's id, whether it is alive
_BLOCK_IN_CACHE = 512  # vectors of 384 dimensions that a core's own cache holds
_BLOCK = 64  # vectors read from the database at a time
_SAMPLE_PER_LIST = 40  # training vectors for each list; FAISS asks for 39 or more
_ROUNDS = 8  # of k-means; more changed recall by less than a thousandth
_TRIALS = 100  # vectors whose nearest neighbours say how many lists a search must visit
_WANTED_RECALL = 0.995  # of their ten nearest
_TRIAL_DEPTH = 64  # neighbours that the index returns in a trial
_MARGIN = 2.0  # with it, recall on sentences was 1.000 (docs/figures.md)
_LISTS_FOR_A_PAGE = 2  # times as many vectors as a page asks for must lie in the visited lists
_OUTGROWN = 3  # an index is trained again when it holds this many times what it was trained for


class ItemCosines(NamedTuple):
    """Items of one namespace, each once, with their cosine to a query."""

    items: Ids
    cosines: Vector

    @classmethod
    def none(cls) -> Self:
        """Return no items."""
        return cls(np.empty(0, np.int64), np.empty(0, np.float32))

    def with_others(self, others: Self) -> Self:
        """Add other items; of an item that is in both, this cosine counts."""
        items, first = np.unique(np.concatenate([self.items, others.items]), return_index=True)
        return self._replace(items=items, cosines=np.concatenate([self.cosines, others.cosines])[first])


class QueryBatch:
    """The queries of one batch under one prefix, whose cosines are computed in one pass over the vectors.

    Reading ten thousand vectors from memory takes longer than comparing them, and a recall has several queries.
    """

    def __init__(self, queries: Sequence[Vector]) -> None:
        self._queries = queries
        self._computed: dict[tuple[Any, int], dict[int, Vector]] = {}

    def cosines(self, index: Any, query: Vector) -> Vector:
        """Return the cosines of all vectors of an exact index to one of the queries, in the order of the vectors."""
        state = index, index.ntotal  # an index only ever grows
        if state not in self._computed:
            cosines = compare_exactly(index, self._queries)
            self._computed[state] = {id(vector): row for vector, row in zip(self._queries, cosines, strict=True)}
        return self._computed[state][id(query)]


class NamespaceVectors:
    """One namespace's vectors in RAM, in the order of their ids; from `exact_limit` vectors on approximate."""

    def __init__(self, namespace: int, dims: int, exact_limit: int, snapshot: Snapshot) -> None:
        self._namespace, self._dims = namespace, dims
        self._exact_limit, self._snapshot = exact_limit, snapshot
        self._saved = 0  # vectors in the snapshot on disk
        self._version = self._epoch = -1
        self._contents: IndexContents | None = None
        self._living: tuple[Places | None, Ids, Places | None] | None = None

    @property
    def size(self) -> int:
        """Bytes that it holds: the vectors, what belongs to them, and the centres of the lists."""
        if (contents := self._contents) is None:
            return 0
        count, numbers = len(contents.vectors), len(contents.vectors) * self._dims
        own = numbers + 8 * count + contents.faiss.nlist * self._dims * 4 if contents.trained_for else 4 * numbers
        return int(_EMPTY + own + _OVERHEAD * count)

    @property
    def exact(self) -> bool:
        """Whether it compares a query with every vector."""
        return self._contents is not None and not self._contents.trained_for

    def refresh(self, connection: sqlite3.Connection, space: NamespaceRow) -> None:
        """Take over what this or another process has written since the last time."""
        if space.version <= self._version:
            return
        contents = self._contents
        if contents is not None and self._must_rebuild(contents):
            contents = self._empty(connection, space)
        elif contents is None or space.epoch != self._epoch:
            contents = read_snapshot(self._snapshot, space, connection) or self._empty(connection, space)
            self._saved = len(contents.vectors)
        self._remove(connection, contents)
        self._append(connection, contents)
        self._contents, self._living = contents, None
        self._version, self._epoch = space.version, space.epoch

    def _must_rebuild(self, contents: IndexContents) -> bool:
        too_dead = contents.dead > max(FEW_DEAD, len(contents.vectors) // 4)
        # Twice the limit, because an index that is in use is not rebuilt for a few vectors more.
        return too_dead or len(contents.vectors) > max(2 * self._exact_limit, _OUTGROWN * contents.trained_for)

    def _empty(self, connection: sqlite3.Connection, space: NamespaceRow) -> IndexContents:
        import faiss  # takes a tenth of a second; a program pays it at its first search

        self._saved = 0
        count = rows.count_vectors(connection, space.id)  # an item has none, or several
        large = count > self._exact_limit
        index = train_index(connection, space, self._dims, count) if large else faiss.IndexFlatIP(self._dims)
        none, removal = np.empty(0, np.int64), rows.last_removal(connection)
        return IndexContents(index, count if large else 0, none, none, np.empty(0, np.bool_), removal)

    def _remove(self, connection: sqlite3.Connection, contents: IndexContents) -> None:
        """Mark the vectors as dead that were removed since the last time."""
        contents.removal, removed, _ = rows.removals_after(connection, self._namespace, contents.removal)
        if not removed:
            return
        places, inside = find_ids(contents.vectors, np.array(removed, np.int64))
        alive = contents.alive.copy()  # a search that runs right now keeps the old one
        alive[places[inside]] = False
        contents.alive = alive

    def _append(self, connection: sqlite3.Connection, contents: IndexContents) -> None:
        after = int(contents.vectors[-1]) if len(contents.vectors) else 0
        vectors, items = [contents.vectors], [contents.items]
        for ids, owners, block in _blocks(connection, self._namespace, after, self._dims):
            contents.faiss.add(block)
            vectors.append(ids)
            items.append(owners)
        if len(vectors) > 1:
            contents.vectors, contents.items = np.concatenate(vectors), np.concatenate(items)
            added = len(contents.vectors) - len(contents.alive)
            contents.alive = np.concatenate([contents.alive, np.ones(added, np.bool_)])

    def compare(
        self,
        connection: sqlite3.Connection,
        query: Vector,
        count: int,
        allowed: FilterMask | None = None,
        together: QueryBatch | None = None,
    ) -> ItemCosines:
        """Compare items with a unit query, by their best vector; `refresh` comes first.

        An exact index compares all items. An approximate one returns the `count` best that the filter allows, with
        their cosines computed from the rows. `together` are the queries of the batch, if there are several.
        """
        contents = self._contents
        if contents is None:
            return ItemCosines.none()
        if not contents.trained_for:
            cosines = (together or QueryBatch([query])).cosines(contents.faiss, query)
            living, items, starts = self._living_places(contents)
            if living is not None:
                cosines = cosines[living]
            if starts is not None:
                cosines = np.maximum.reduceat(cosines, starts)
            return ItemCosines(items, cosines)
        alive = contents.alive if allowed is None else contents.alive & allowed.of(contents.items)
        places, cosines = _search_lists(contents.faiss, query, count, alive)
        cosines = _read_cosines(connection, contents.vectors[places], query, cosines)
        order = np.argsort(-cosines, kind="stable")
        items, first = np.unique(contents.items[places[order]], return_index=True)  # the first is the best
        return ItemCosines(items, cosines[order][first])

    def _living_places(self, contents: IndexContents) -> tuple[Places | None, Ids, Places | None]:
        """Return the places of the living vectors, their items, and where the vectors of each item begin.

        None for the places: all are alive. None for the beginnings: each item has one vector.
        """
        if self._living is None:
            places = np.flatnonzero(contents.alive) if contents.dead else None
            owners = contents.items if places is None else contents.items[places]
            starts = np.flatnonzero(np.diff(owners, prepend=-1))
            single = len(starts) == len(owners)
            self._living = places, owners if single else owners[starts], None if single else starts
        return self._living

    def covers(self, items: int) -> bool:
        """Return whether a namespace with so many items has a vector for each of them."""
        contents = self._contents
        if contents is None:
            return items == 0
        if not contents.trained_for:
            return len(self._living_places(contents)[1]) == items
        return len(contents.vectors) - contents.dead == items

    def save(self, connection: sqlite3.Connection) -> None:
        """Write a snapshot if reading it will be faster than reading rows, and the last one is old."""
        contents = self._contents
        count = 0 if contents is None else len(contents.vectors)
        if contents is not None and count >= SNAPSHOT_VECTORS and count - self._saved > _STALE_SNAPSHOT * count:
            write_snapshot(self._snapshot, connection, self._version, self._epoch, contents)
            self._saved = count


def compare_exactly(index: Any, queries: Sequence[Vector]) -> list[Vector]:
    """Return the cosines of all vectors of an exact FAISS index to each of some unit queries, in their order."""
    import faiss

    # The sum with the word scores needs every cosine. One pass of FAISS over its own memory, on one thread, takes
    # less time than a search for the best ten, and less than numpy's product, whose threads wait for each other.
    inner_products: Any = faiss.fvec_inner_products_ny  # type: ignore[attr-defined]  # not in its stubs
    pointer: Any = faiss.swig_ptr
    count, dims, vectors = int(index.ntotal), int(index.d), index.get_xb()
    aligned = [np.ascontiguousarray(query, np.float32) for query in queries]
    cosines = [np.empty(count, np.float32) for _ in aligned]
    numbers = faiss.rev_swig_ptr(vectors, count * dims)
    for first in range(0, count, _BLOCK_IN_CACHE):  # what one query has read is still near for the next
        block = numbers[first * dims : (first + _BLOCK_IN_CACHE) * dims]
        for query, row in zip(aligned, cosines, strict=True):
            part = row[first : first + _BLOCK_IN_CACHE]
            inner_products(pointer(part), pointer(query), pointer(block), dims, len(part))
    return cosines


def train_index(connection: sqlite3.Connection, space: NamespaceRow, dims: int, count: int) -> Any:
    """Train an empty approximate FAISS index on a sample of a namespace's `count` vectors; its `nprobe` is set."""
    import faiss

    lists = max(1, min(round(2 * math.sqrt(count)), count // _SAMPLE_PER_LIST))
    step = max(1, count // (lists * _SAMPLE_PER_LIST))
    sample = [block[::step].copy() for _, _, block in _blocks(connection, space.id, 0, dims)]
    vectors = np.concatenate(sample)
    del sample
    _log.info("training an index of %d lists on %d of %d vectors", lists, len(vectors), count)
    kind, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatIP(dims), dims, lists, kind, metric, False)
    index.cp.niter = _ROUNDS
    index.cp.seed = 1
    index.train(vectors)
    # How many lists must be visited is measured, on the sample: it differs from embedder to embedder.
    index.add(vectors)
    trials = np.ascontiguousarray(vectors[:: max(1, len(vectors) // _TRIALS)][:_TRIALS])
    exact = faiss.knn(trials, vectors, 10, metric=metric)[1]
    index.nprobe = 4
    while index.nprobe < lists:
        nearest = index.search(trials, _TRIAL_DEPTH)[1]  # more than ten, because rows will put them in order
        same = sum(len(np.intersect1d(a, b)) for a, b in zip(nearest, exact, strict=True))
        if same >= _WANTED_RECALL * exact.size:
            break
        index.nprobe = min(lists, max(index.nprobe + 4, round(index.nprobe * 1.25)))
    # More than that, because questions are further from stored texts than stored texts from each other.
    index.nprobe = min(lists, math.ceil(_MARGIN * index.nprobe))
    index.reset()
    return index


def _search_lists(index: Any, query: Vector, count: int, alive: Mask) -> tuple[Ids, Vector]:
    """Find the places and cosines of the `count` nearest living vectors, as far as the visited lists hold them."""
    import faiss

    settings = faiss.SearchParametersIVF()
    living = int(alive.sum())
    # For a long page so many lists that they hold several times what is asked for.
    wide = math.ceil(_LISTS_FOR_A_PAGE * count * index.nlist / max(1, living))
    settings.nprobe = int(min(index.nlist, max(index.nprobe, wide)))
    if living < len(alive):
        selector: Any = faiss.IDSelectorBitmap  # takes an array, whatever its stub says
        settings.sel = selector(np.packbits(alive, bitorder="little"))
        # The fewer vectors count, the further apart they lie.
        settings.nprobe = int(min(index.nlist, settings.nprobe * len(alive) // max(1, living)))
    if not living:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    scores, places = index.search(query[None, :], min(count, living), params=settings)
    filled = places[0] >= 0
    return places[0][filled], scores[0][filled]


def compare_items(connection: sqlite3.Connection, items: Sequence[int], query: Vector) -> ItemCosines:
    """Compare some items with a unit query, by the best of their vectors, read from their rows."""
    best: dict[int, float] = {}
    for item, blob in rows.vectors_of_items(connection, items):
        if _is_sound(blob, len(query)):
            best[item] = max(best.get(item, -2.0), float(np.frombuffer(blob, "<f4") @ query))
    return ItemCosines(np.array(list(best), np.int64), np.array(list(best.values()), np.float32))


def compare_rows(connection: sqlite3.Connection, space: NamespaceRow, query: Vector) -> ItemCosines:
    """Compare all items of a namespace with a unit query, from their rows: for one that does not fit into RAM."""
    owners, scores = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for _, items_of_block, block in _blocks(connection, space.id, 0, len(query)):
        owners.append(items_of_block)
        scores.append(block @ query)
    items, cosines = np.concatenate(owners), np.concatenate(scores)
    starts = np.flatnonzero(np.diff(items, prepend=-1))
    if len(starts) < len(items):
        cosines, items = np.maximum.reduceat(cosines, starts), items[starts]
    return ItemCosines(items, cosines)


def _read_cosines(connection: sqlite3.Connection, vectors: Ids, query: Vector, cosines: Vector) -> Vector:
    """Compute the cosines of some vectors from their rows; where a row is gone or damaged, the given one stays."""
    sound = [row for row in rows.vectors_by_id(connection, vectors.tolist()) if _is_sound(row[1], len(query))]
    if not sound:
        return cosines
    places, _ = find_ids(vectors, np.array([number for number, _ in sound], np.int64), np.argsort(vectors))
    exact = cosines.copy()
    exact[places] = np.frombuffer(b"".join([blob for _, blob in sound]), "<f4").reshape(-1, len(query)) @ query
    return exact


def _is_sound(blob: object, dims: int) -> bool:
    return isinstance(blob, bytes) and len(blob) == 4 * dims


def _blocks(connection: sqlite3.Connection, namespace: int, after: int, dims: int) -> Iterator[tuple[Ids, Ids, Scores]]:
    """Read ids, item ids and numbers of a namespace's vectors with a higher id than `after`, oldest first.

    A damaged vector is left out and logged, so that one bad row stops no search.
    """
    newer = rows.vectors_after(connection, namespace, after)
    while chunk := list(islice(newer, _BLOCK)):
        sound = [row for row in chunk if _is_sound(row[2], dims)]
        if len(sound) < len(chunk):
            damaged = sorted({item for _, item, _ in chunk} - {item for _, item, _ in sound})
            _log.error("the vectors of items %s are damaged and left out: put those items again", damaged)
            if not sound:
                continue
        ids, items, blobs = zip(*sound, strict=True)
        block = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dims)
        yield np.array(ids, np.int64), np.array(items, np.int64), np.ascontiguousarray(block, np.float32)
