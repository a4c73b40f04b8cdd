"""One search: the namespaces under a prefix, the filter, cosines and word scores, the order, the page."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from questbook.memory.store import rows
from questbook.memory.store.filters import FilterMask, matches
from questbook.memory.store.namespace_cache import CachedNamespace, NamespaceCache
from questbook.memory.store.postings import WordMatches, score_words
from questbook.memory.store.ranking import NamespaceScores, Ranking, WordScores
from questbook.memory.store.rows import ItemRow, NamespaceRow
from questbook.memory.store.vectors import ItemCosines, NamespaceVectors, QueryBatch, compare_items, compare_rows
from questbook.memory.text.stems import stem_words
from questbook.memory.text.words import query_words

if TYPE_CHECKING:
    from questbook.memory.embeddings.batching import Vector

_CHUNK = 64  # rows that are read together
_CANDIDATES = 256  # of an approximate search, at least
_COMPARE_EACH = 2_000  # if a filter allows at most so many items of an approximate index, each is compared


class Hit(NamedTuple):
    """An item that a search found.

    Attributes:
        item: The item.
        cosine: Of its best vector to the query; None without a query or without a vector.
    """

    item: ItemRow
    cosine: float | None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What one search asks for.

    Attributes:
        filter: Conditions on the value, as they passed `check_filter`; {} for none.
        text: What is sought; "" for no order.
        vector: The text as a unit vector, if the store makes vectors.
        offset: Hits that are left out at the beginning.
        limit: The most hits.
        batch: Queries that are asked together with this one, if it is one of several.
        items: Items that searches of the same batch have read, by id. They find many of the same items, and each is
            read once.
        words: What they have found by words, by namespace and text: they ask for the same with other filters.
    """

    filter: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    vector: "Vector | None" = None
    offset: int = 0
    limit: int = 10
    batch: QueryBatch | None = None
    items: dict[int, ItemRow] = field(default_factory=dict)
    words: dict[tuple[int, str], WordMatches] = field(default_factory=dict)

    @property
    def stop(self) -> int:
        """How many hits are found, with those that are left out."""
        return self.offset + self.limit

    @property
    def candidates(self) -> int:
        """How many candidates an approximate search brings."""
        count = _CANDIDATES
        while count < 4 * self.stop:
            count *= 2  # in steps, so that neighbouring pages are cut from the same order
        return count


class Search:
    """Searches the rows of a store with its indexes.

    Args:
        cache: What is in RAM of each namespace.
        weights: Weights of "dense" and "lexical" in the order of the hits; a weight of 0 turns one off.
    """

    def __init__(self, cache: NamespaceCache, weights: Mapping[str, float]) -> None:
        self.cache = cache
        self._dense = weights.get("dense", 1.0)
        self._lexical = weights.get("lexical", 1.0) if cache.indexes_words else 0.0

    def run(
        self,
        connection: sqlite3.Connection,
        spaces: Sequence[NamespaceRow],
        request: SearchRequest,
        visible: Callable[[ItemRow], bool],
    ) -> list[Hit]:
        """Find items.

        Args:
            connection: In a read transaction.
            spaces: The namespaces under the prefix, as that transaction sees them.
            request: What is asked for.
            visible: Whether an item may be returned at all.

        Returns:
            The page, best first; without a text the oldest first.
        """
        if not spaces or not request.limit:
            return []
        reader = _Reader(connection, self.cache, spaces, request, visible)
        if not request.text or (request.vector is None and not self.cache.indexes_words):
            return list(islice(reader.unranked(), request.offset, request.stop))
        found = [(space, part) for space in spaces if (part := self._find(reader, space)) is not None]
        if not found:
            return []
        spaces, candidates = map(list, zip(*found, strict=True))
        ranking = Ranking(self._score(reader, candidates), self._dense, self._lexical)
        hits = list(islice(reader.ranked(ranking), request.stop))
        if len(hits) < request.stop:
            # As in LangGraph's InMemoryStore, items that cannot be ranked follow those that can.
            covered = {space.id for space, part in zip(spaces, candidates, strict=True) if part.covers_all}
            hits += islice(reader.rest(hits, covered), request.stop - len(hits))
        return hits[request.offset :]

    def _find(self, reader: "_Reader", space: NamespaceRow) -> "_Candidates | None":
        """Find the candidates of one namespace; None if the filter allows nothing."""
        connection, request = reader.connection, reader.request
        with self.cache.namespace(connection, space) as cached:
            allowed = reader.apply_filter(cached, space) if request.filter else None
            if allowed is not None and not allowed.mask.any():
                return None
            words = None
            if cached.postings is not None and self._lexical:
                if (space.id, request.text) not in request.words:
                    stems = [stem for stem in dict.fromkeys(stem_words(query_words(request.text))) if stem]
                    request.words[space.id, request.text] = cached.postings.find(connection, space, stems)
                words = request.words[space.id, request.text]
            if request.vector is None or cached.vectors is None:
                return _Candidates(ItemCosines.none(), words, allowed)
            if not self.cache.fits(space):
                return _Candidates(compare_rows(connection, space, request.vector), words, allowed)
            vectors = cached.vectors
            vectors.refresh(connection, space)
            cosines = self._compare(connection, request, request.vector, vectors, allowed)
            return _Candidates(cosines, words, allowed, covers_all=vectors.covers(space.items), exact=vectors.exact)

    @staticmethod
    def _compare(
        connection: sqlite3.Connection,
        request: SearchRequest,
        vector: "Vector",
        vectors: NamespaceVectors,
        allowed: FilterMask | None,
    ) -> ItemCosines:
        if not vectors.exact and allowed is not None and allowed.mask.sum() <= _COMPARE_EACH:
            return compare_items(connection, allowed.allowed_ids(), vector)
        return vectors.compare(connection, vector, request.candidates, allowed, request.batch)

    @staticmethod
    def _score(reader: "_Reader", candidates: "Sequence[_Candidates]") -> list[NamespaceScores]:
        """Score the candidates of all namespaces, by words as one collection."""
        matched = [(part.words, part.allowed) for part in candidates if part.words is not None]
        if len(matched) < len(candidates):
            return [NamespaceScores(part.cosines, None, part.allowed) for part in candidates]
        scored = []
        for part, (words, _), scores in zip(candidates, matched, score_words(matched), strict=True):
            by_words = WordScores(words.ids, scores)
            cosines = part.cosines if part.exact else _add_best_by_words(reader, part.cosines, by_words)
            scored.append(NamespaceScores(cosines, by_words, part.allowed))
        return scored


def _add_best_by_words(reader: "_Reader", cosines: ItemCosines, words: WordScores) -> ItemCosines:
    """Add the best items by words, with their true cosines, to the items of an approximate search."""
    import numpy as np

    if reader.request.vector is None:
        return cosines
    having = np.flatnonzero(words.scores)
    best = having[np.argsort(-words.scores[having], kind="stable")[: reader.request.candidates]]
    return cosines.with_others(compare_items(reader.connection, words.items[best].tolist(), reader.request.vector))


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The items of one namespace that may be hits.

    Attributes:
        cosines: Items with their cosines.
        words: Items with the query's words; None if words do not count.
        allowed: What the filter allows; None: everything.
        covers_all: Whether every item of the namespace has a vector.
        exact: Whether every vector was compared.
    """

    cosines: ItemCosines
    words: WordMatches | None
    allowed: FilterMask | None
    covers_all: bool = False
    exact: bool = True


class _Reader:
    """Reads the hits of one search from their rows, in their order, as far as they are needed."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        cache: NamespaceCache,
        spaces: Sequence[NamespaceRow],
        request: SearchRequest,
        visible: Callable[[ItemRow], bool],
    ) -> None:
        self.connection = connection
        self.request = request
        self._cache = cache
        self._spaces = spaces
        self._paths = {space.id: space.path for space in spaces}
        self._visible = visible
        self._filter_is_newer = False  # whether the filter was applied to a newer version than this transaction sees

    def apply_filter(self, cached: CachedNamespace, space: NamespaceRow) -> FilterMask:
        """Find the items of a namespace that the filter allows."""
        allowed = cached.filters.apply(self.connection, space, self.request.filter)
        self._filter_is_newer |= cached.filters.version > space.version
        return allowed

    def unranked(self) -> Iterator[Hit]:
        """Yield all items that the filter allows, oldest first."""
        for space in self._spaces:
            if self.request.filter:
                with self._cache.namespace(self.connection, space) as cached:
                    ids = self.apply_filter(cached, space).allowed_ids()
                for first in range(0, len(ids), _CHUNK):
                    yield from self._read([(item, None) for item in ids[first : first + _CHUNK]])
            else:
                items = rows.all_items(self.connection, space)
                yield from (Hit(item, None) for item in items if self._visible(item))

    def ranked(self, ranking: Ranking) -> Iterator[Hit]:
        """Yield the items of a ranking, best first."""
        size = max(10, min(_CHUNK, self.request.stop))
        order = ranking.ordered(size)
        while chunk := list(islice(order, size)):
            yield from self._read(chunk)
            size = _CHUNK

    def rest(self, ranked: Sequence[Hit], covered: set[int]) -> Iterator[Hit]:
        """Yield the items that the filter allows and that were not ranked, oldest first.

        Args:
            ranked: All hits of the ranking.
            covered: Ids of the namespaces in which every item was ranked.
        """
        done = {hit.item.id for hit in ranked}
        read = rows.all_items if self.request.vector is None else rows.items_without_vector
        for space in self._spaces:
            if space.id in covered:
                continue
            for item in read(self.connection, space):
                if item.id not in done and self._visible(item) and matches(item.value, self.request.filter):
                    yield Hit(item, None)

    def _read(self, chunk: Sequence[tuple[int, float | None]]) -> Iterator[Hit]:
        """Read the items of a chunk, in its order; leave out those that are gone or may not be returned."""
        cosines, items = dict(chunk), self.request.items
        unread = [number for number in cosines if number not in items]
        if unread:
            items.update((item.id, item) for item in rows.get_items(self.connection, unread, self._paths))
        for item in (items[number] for number in cosines if number in items):
            if self._visible(item) and not (self._filter_is_newer and not matches(item.value, self.request.filter)):
                yield Hit(item, cosines[item.id])
