"""FAISS indexes: an exact one, and an approximate one for large namespaces.

Why an inverted file and not a graph: it reaches the recall that is promised, is built several times faster,
and takes new vectors without becoming slower (docs/figures.md).
"""

from __future__ import annotations

import logging
import math
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from questbook.memory.store.arrays import Ids, Mask, Scores, Vector
from questbook.memory.store.rows import vectors_after

_log = logging.getLogger(__name__)
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


class ExactIndex:
    """`IndexFlatIP`: compares a query with every vector. A new one, unless a FAISS index is given."""

    def __init__(self, dims: int, index: Any = None) -> None:
        import faiss  # takes a tenth of a second; a program pays it at its first search

        self.dims = dims
        self.faiss = index if index is not None else faiss.IndexFlatIP(dims)

    @property
    def count(self) -> int:
        """How many vectors it holds."""
        return int(self.faiss.ntotal)

    @property
    def bytes(self) -> int:
        """Bytes of the vectors."""
        return self.count * self.dims * 4

    def outgrown(self, limit: int) -> bool:
        """Whether it holds more than `limit`."""
        return bool(self.faiss.ntotal > limit)

    def add(self, block: Scores) -> None:
        """Append vectors, shape (n, dims)."""
        self.faiss.add(block)

    def cosines(self, queries: Sequence[Vector]) -> list[Vector]:
        """Return the cosines of all vectors to each of some unit queries, in the order of the vectors."""
        import faiss

        # The sum with the word scores needs every cosine. One pass of FAISS over its own memory, on one thread, takes
        # less time than a search for the best ten, and less than numpy's product, whose threads wait for each other.
        inner_products: Any = faiss.fvec_inner_products_ny  # type: ignore[attr-defined]  # not in its stubs
        pointer: Any = faiss.swig_ptr
        count, vectors = self.count, self.faiss.get_xb()
        aligned = [np.ascontiguousarray(query, np.float32) for query in queries]
        cosines = [np.empty(count, np.float32) for _ in aligned]
        if len(aligned) == 1 and count:
            inner_products(pointer(cosines[0]), pointer(aligned[0]), vectors, self.dims, count)
        elif count:
            numbers = faiss.rev_swig_ptr(vectors, count * self.dims)
            for first in range(0, count, _BLOCK_IN_CACHE):  # what one query has read is still near for the next
                block = numbers[first * self.dims : (first + _BLOCK_IN_CACHE) * self.dims]
                for query, row in zip(aligned, cosines, strict=True):
                    part = row[first : first + _BLOCK_IN_CACHE]
                    inner_products(pointer(part), pointer(query), pointer(block), self.dims, len(part))
        return cosines


class InvertedIndex:
    """`IndexIVFScalarQuantizer`: compares a query with the vectors of the lists nearest to it.

    It holds a byte for each dimension, a quarter of the vector, which makes it several times faster. Its cosines are
    approximate; the caller computes those that count again from the rows.

    Args:
        index: A trained FAISS index whose `nprobe` has been set.
        trained_for: How many vectors its number of lists was chosen for.
    """

    def __init__(self, index: Any, trained_for: int) -> None:
        self.dims = int(index.d)
        self.faiss = index
        self.trained_for = trained_for

    @classmethod
    def trained(cls, connection: sqlite3.Connection, namespace: int, count: int, dims: int) -> Self:
        """Train an empty index on a sample of a namespace's vectors, of which there are about `count`."""
        import faiss

        lists = max(1, min(round(2 * math.sqrt(count)), count // _SAMPLE_PER_LIST))
        step = max(1, count // (lists * _SAMPLE_PER_LIST))
        sample = [block[::step].copy() for _, _, block in vectors_in_blocks(connection, namespace, 0, dims)]
        vectors = np.concatenate(sample)
        del sample
        _log.info("training an index of %d lists on %d of %d vectors", lists, len(vectors), count)
        quantizer = faiss.IndexFlatIP(dims)
        kind = faiss.ScalarQuantizer.QT_8bit
        index = faiss.IndexIVFScalarQuantizer(quantizer, dims, lists, kind, faiss.METRIC_INNER_PRODUCT, False)
        index.cp.niter = _ROUNDS
        index.cp.seed = 1
        index.train(vectors)
        # How many lists must be visited is measured, on the sample: it differs from embedder to embedder.
        index.add(vectors)
        trials = np.ascontiguousarray(vectors[:: max(1, len(vectors) // _TRIALS)][:_TRIALS])
        exact = faiss.knn(trials, vectors, 10, metric=faiss.METRIC_INNER_PRODUCT)[1]
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
        return cls(index, count)

    @property
    def bytes(self) -> int:
        """Bytes of the vectors, their ids and the lists' centres."""
        return int(self.faiss.ntotal) * (self.dims + 8) + int(self.faiss.nlist) * self.dims * 4

    def outgrown(self, limit: int) -> bool:
        """Whether it holds many times the vectors that it was trained for."""
        return bool(self.faiss.ntotal > max(limit, _OUTGROWN * self.trained_for))

    def add(self, block: Scores) -> None:
        """Append vectors, shape (n, dims)."""
        self.faiss.add(block)

    def nearest(self, query: Vector, count: int, alive: Mask) -> tuple[Ids, Vector]:
        """Find the `count` nearest of the living vectors, as far as the visited lists hold them, best first.

        Returns:
            Places and approximate cosines.
        """
        import faiss

        settings = faiss.SearchParametersIVF()
        living = int(alive.sum())
        # For a long page so many lists that they hold several times what is asked for.
        wide = math.ceil(_LISTS_FOR_A_PAGE * count * self.faiss.nlist / max(1, living))
        settings.nprobe = int(min(self.faiss.nlist, max(self.faiss.nprobe, wide)))
        if living < len(alive):
            selector: Any = faiss.IDSelectorBitmap  # takes an array, whatever its stub says
            settings.sel = selector(np.packbits(alive, bitorder="little"))
            # The fewer vectors count, the further apart they lie.
            wider = settings.nprobe * len(alive) // max(1, living)
            settings.nprobe = int(min(self.faiss.nlist, wider))
        if not living:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        scores, places = self.faiss.search(query[None, :], min(count, living), params=settings)
        filled = places[0] >= 0
        return places[0][filled], scores[0][filled]


def vectors_in_blocks(
    connection: sqlite3.Connection, namespace: int, after: int, dims: int
) -> Iterator[tuple[Ids, Ids, NDArray[np.float32]]]:
    """Read a namespace's vectors with a higher id than `after` from their rows, oldest first.

    Yields:
        Vector ids, item ids and vectors of shape (n, dims). A damaged vector is left out and logged, so that one bad
        row stops no search.
    """
    rows = vectors_after(connection, namespace, after)
    while chunk := list(islice(rows, _BLOCK)):
        sound = [row for row in chunk if isinstance(row[2], bytes) and len(row[2]) == 4 * dims]
        if len(sound) < len(chunk):
            damaged = sorted({item for _, item, _ in chunk} - {item for _, item, _ in sound})
            _log.error("the vectors of items %s are damaged and left out: put those items again", damaged)
            if not sound:
                continue
        ids, items, blobs = zip(*sound, strict=True)
        block = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dims)
        yield np.array(ids, np.int64), np.array(items, np.int64), np.ascontiguousarray(block, np.float32)
