"""Searches: the namespaces under a prefix, the filter, cosines and word scores, the order, the page."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from langgraph.store.base import SearchOp

from questbook.memory.store import rows
from questbook.memory.store.arrays import Vector
from questbook.memory.store.filter_index import FilterMask
from questbook.memory.store.filters import matches
from questbook.memory.store.namespace_cache import CachedNamespace, NamespaceCache
from questbook.memory.store.postings import WordMatches, score_words
from questbook.memory.store.ranking import Candidates, Ranking
from questbook.memory.store.rows import ItemRow, Namespace, NamespaceRow
from questbook.memory.store.vectors import ItemCosines, NamespaceVectors, QueryBatch, compare_items, compare_rows
from questbook.memory.text.words import query_words, stem_words

_CHUNK = 64  # rows that are read together
_CANDIDATES = 256  # of an approximate search, at least
_COMPARE_EACH = 2_000  # if a filter allows at most so many items of an approximate index, each is compared


class Hit(NamedTuple):
    """An item that a search found."""

    item: ItemRow
    cosine: float | None  # of its best vector to the query; None without a query or without a vector


class SearchBatch:
    """The searches of one batch in one transaction. What one of them has read, the others need not read again.

    Args:
        connection: In a read transaction.
        cache: What is in RAM of each namespace.
        weights: Weights of "dense" and "lexical" in the order of the hits; a weight of 0 turns one off.
        ops: The searches.
        queries: Unit vectors of their queries, by text; without those that the store makes no vector of.
        omit_expired: Whether to leave out items that have expired and were not deleted yet.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        cache: NamespaceCache,
        weights: Mapping[str, float],
        ops: Sequence[SearchOp],
        queries: Mapping[str, Vector],
        *,
        omit_expired: bool,
    ) -> None:
        self.connection, self.cache, self.queries = connection, cache, queries
        self.now = rows.now() if omit_expired else 0
        self.dense = weights.get("dense", 1.0)
        self.lexical = weights.get("lexical", 1.0) if cache.indexes_words else 0.0
        self.items: dict[int, ItemRow] = {}
        self.words: dict[tuple[int, str], WordMatches] = {}  # by namespace and text
        self._spaces: dict[Namespace, list[NamespaceRow]] = {}
        vectors: dict[Namespace, dict[str, Vector]] = {}
        for op in ops:
            if op.query is not None and op.query in queries:
                vectors.setdefault(tuple(op.namespace_prefix), {})[op.query] = queries[op.query]
        self.together = {prefix: QueryBatch(list(by_text.values())) for prefix, by_text in vectors.items()}

    def run(self, op: SearchOp) -> list[Hit]:
        """Return the page that a search asks for, best first; without a query the oldest first."""
        prefix = tuple(op.namespace_prefix)
        if prefix not in self._spaces:
            self._spaces[prefix] = rows.namespaces_under(self.connection, prefix)
        spaces = self._spaces[prefix]
        return _Search(self, op, spaces).page() if spaces and op.limit > 0 else []


class _Search:
    """One search: finds candidates, puts them in order, and reads the hits from their rows as far as needed."""

    def __init__(self, batch: SearchBatch, op: SearchOp, spaces: Sequence[NamespaceRow]) -> None:
        self._batch, self._connection, self._spaces = batch, batch.connection, spaces
        self._filter, self._text = op.filter or {}, op.query or ""
        self._vector = batch.queries.get(self._text)
        self._together = batch.together.get(tuple(op.namespace_prefix))
        self._offset = max(op.offset, 0)
        self._stop = self._offset + op.limit
        self._candidates = _CANDIDATES  # how many an approximate search brings
        while self._candidates < 4 * self._stop:
            self._candidates *= 2  # in steps, so that neighbouring pages are cut from the same order
        self._paths = {space.id: space.path for space in spaces}
        self._filter_is_newer = False  # whether the filter was applied to a newer version than this transaction sees

    def page(self) -> list[Hit]:
        if not self._text or (self._vector is None and not self._batch.cache.indexes_words):
            return list(islice(self._unranked(), self._offset, self._stop))
        found = [(space, part) for space in self._spaces if (part := self._find(space)) is not None]
        if not found:
            return []
        ranking = Ranking(self._score([part for _, part in found]), self._batch.dense, self._batch.lexical)
        hits = list(islice(self._ranked(ranking), self._stop))
        if len(hits) < self._stop:
            # As in LangGraph's InMemoryStore, items that cannot be ranked follow those that can.
            uncovered = [space for space, part in found if not part.covers_all]
            hits += islice(self._rest(uncovered, {hit.item.id for hit in hits}), self._stop - len(hits))
        return hits[self._offset :]

    def _find(self, space: NamespaceRow) -> Candidates | None:
        """Find the candidates of one namespace; None if the filter allows nothing."""
        batch, connection = self._batch, self._connection
        with batch.cache.namespace(connection, space) as cached:
            allowed = self._apply_filter(cached, space) if self._filter else None
            if allowed is not None and not allowed.mask.any():
                return None
            words = None
            if cached.postings is not None and batch.lexical:
                if (space.id, self._text) not in batch.words:
                    stems = [stem for stem in dict.fromkeys(stem_words(query_words(self._text))) if stem]
                    batch.words[space.id, self._text] = cached.postings.find(connection, space, stems)
                words = batch.words[space.id, self._text]
            if self._vector is None or cached.vectors is None:
                return Candidates(ItemCosines.none(), words, allowed)
            if not batch.cache.fits(space):
                return Candidates(compare_rows(connection, space, self._vector), words, allowed)
            vectors = cached.vectors
            vectors.refresh(connection, space)
            cosines = self._compare(vectors, self._vector, allowed)
            return Candidates(cosines, words, allowed, vectors.covers(space.items), vectors.exact)

    def _compare(self, vectors: NamespaceVectors, query: Vector, allowed: FilterMask | None) -> ItemCosines:
        if not vectors.exact and allowed is not None and allowed.mask.sum() <= _COMPARE_EACH:
            return compare_items(self._connection, allowed.allowed_ids(), query)
        return vectors.compare(self._connection, query, self._candidates, allowed, self._together)

    def _score(self, candidates: Sequence[Candidates]) -> Sequence[Candidates]:
        """Score the candidates of all namespaces by words, as one collection; nothing where words do not count."""
        matched = [(part.words, part.allowed) for part in candidates if part.words is not None]
        if len(matched) < len(candidates):
            return candidates
        scores = score_words(matched)
        scored = [part._replace(scores=own) for part, own in zip(candidates, scores, strict=True)]
        return [part if part.exact else part._replace(cosines=self._add_best_by_words(part)) for part in scored]

    def _add_best_by_words(self, part: Candidates) -> ItemCosines:
        """Add the best items by words, with their true cosines, to the items of an approximate search."""
        if self._vector is None or part.words is None or part.scores is None:
            return part.cosines
        having = np.flatnonzero(part.scores)
        best = having[np.argsort(-part.scores[having], kind="stable")[: self._candidates]]
        return part.cosines.with_others(compare_items(self._connection, part.words.ids[best].tolist(), self._vector))

    def _apply_filter(self, cached: CachedNamespace, space: NamespaceRow) -> FilterMask:
        allowed = cached.filters.apply(self._connection, space, self._filter)
        self._filter_is_newer |= cached.filters.version > space.version
        return allowed

    def _unranked(self) -> Iterator[Hit]:
        """Yield all items that the filter allows, oldest first."""
        for space in self._spaces:
            if self._filter:
                with self._batch.cache.namespace(self._connection, space) as cached:
                    ids = self._apply_filter(cached, space).allowed_ids()
                for first in range(0, len(ids), _CHUNK):
                    yield from self._read([(item, None) for item in ids[first : first + _CHUNK]])
            else:
                items = rows.all_items(self._connection, space)
                yield from (Hit(item, None) for item in items if item.lives(self._batch.now))

    def _ranked(self, ranking: Ranking) -> Iterator[Hit]:
        """Yield the items of a ranking, best first."""
        size = max(10, min(_CHUNK, self._stop))
        order = ranking.ordered(size)
        while chunk := list(islice(order, size)):
            yield from self._read(chunk)
            size = _CHUNK

    def _rest(self, spaces: Sequence[NamespaceRow], done: set[int]) -> Iterator[Hit]:
        """Yield the items of some namespaces that the filter allows and that are not done, oldest first."""
        read = rows.all_items if self._vector is None else rows.items_without_vector
        for space in spaces:
            for item in read(self._connection, space):
                if item.id not in done and item.lives(self._batch.now) and matches(item.value, self._filter):
                    yield Hit(item, None)

    def _read(self, chunk: Sequence[tuple[int, float | None]]) -> Iterator[Hit]:
        """Read the items of a chunk, in its order; leave out those that are gone or may not be returned."""
        cosines, items = dict(chunk), self._batch.items
        unread = [number for number in cosines if number not in items]
        if unread:
            items.update((item.id, item) for item in rows.get_items(self._connection, unread, self._paths))
        for item in (items[number] for number in cosines if number in items):
            if item.lives(self._batch.now) and not (self._filter_is_newer and not matches(item.value, self._filter)):
                yield Hit(item, cosines[item.id])
