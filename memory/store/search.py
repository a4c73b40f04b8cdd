"""Searches: the namespaces under a prefix, the filter, cosines and word scores, their order, the page.

The order is by the sum of cosine and word score, each divided by its maximum among the items that the filter allows:
that found 3 to 4 points more than reciprocal rank fusion (docs/figures.md). Of two items with the same score the older
comes first, so that pages neither repeat nor lose one.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from langgraph.store.base import SearchOp

from questbook.memory.store import rows
from questbook.memory.store.arrays import Ids, Scores, Vector, find_ids
from questbook.memory.store.filters import FilterMask, check_filter, matches
from questbook.memory.store.namespace_cache import CachedNamespace, NamespaceCache
from questbook.memory.store.rows import ItemRow, Namespace, NamespaceRow
from questbook.memory.store.vectors import ItemCosines, QueryBatch, compare_items, compare_rows
from questbook.memory.store.word_index import WordMatches, score_words
from questbook.memory.text.bm25 import divide_by_maximum
from questbook.memory.text.words import query_words, stem_words

_CHUNK = 64  # rows that are read together
_CANDIDATES = 256  # of an approximate search, at least
_COMPARE_EACH = 2_000  # if a filter allows at most so many items of an approximate index, each is compared
_BLOCK = 128  # scores that are represented by their highest, where a few are sought among many


class Hit(NamedTuple):
    """An item that a search found."""

    item: ItemRow
    cosine: float | None  # of its best vector to the query; None without a query or without a vector


class _Candidates(NamedTuple):
    """The items of one namespace that may be hits."""

    cosines: ItemCosines  # of its items that have a vector
    words: WordMatches | None  # its items that have the query's words; None if words do not count
    allowed: FilterMask | None  # what a filter allows; None: everything
    covers_all: bool = False  # whether every item of the namespace has a vector
    exact: bool = True  # whether every vector was compared
    scores: Scores | None = None  # by words, at the places of `words.ids`; see `score_words`


class SearchBatch:
    """The searches of one batch in one transaction. What one of them has read, the others need not read again.

    `weights` are those of `StoreIndex`, `queries` the unit vectors of the searches' queries, by text. Items that have
    expired at `moment` are left out; 0: none. A wrong filter is a BadQueryError.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        cache: NamespaceCache,
        weights: Mapping[str, float],
        ops: Sequence[SearchOp],
        queries: Mapping[str, Vector],
        moment: int,
    ) -> None:
        for wanted in {id(op.filter): op.filter for op in ops if op.filter is not None}.values():
            check_filter(wanted)  # once: the searches of one batch often share one, and it may be long
        self.connection, self.cache, self.queries, self.moment = connection, cache, queries, moment
        self.dense = weights.get("dense", 1.0)
        self.lexical = weights.get("lexical", 1.0) if cache.indexes_words else 0.0
        self.items: dict[int, ItemRow] = {}
        self.words: dict[tuple[int, str], WordMatches] = {}  # by namespace and text
        # By namespace and filter; with whether it was applied to a newer version than this transaction sees.
        self.masks: dict[tuple[int, int], tuple[FilterMask, bool]] = {}
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
        self._filter_is_newer = False  # see `SearchBatch.masks`

    def page(self) -> list[Hit]:
        if not self._text or (self._vector is None and not self._batch.cache.indexes_words):
            return list(islice(self._unranked(), self._offset, self._stop))
        found = [(space, part) for space in self._spaces if (part := self._find(space)) is not None]
        if not found:
            return []
        ranking = _Ranking(self._score([part for _, part in found]), self._batch.dense, self._batch.lexical)
        hits = list(islice(self._ranked(ranking), self._stop))
        if len(hits) < self._stop:
            # As in LangGraph's InMemoryStore, items that cannot be ranked follow those that can.
            uncovered = [space for space, part in found if not part.covers_all]
            hits += islice(self._rest(uncovered, {hit.item.id for hit in hits}), self._stop - len(hits))
        return hits[self._offset :]

    def _find(self, space: NamespaceRow) -> _Candidates | None:
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
                return _Candidates(ItemCosines.none(), words, allowed)
            if not batch.cache.fits(space):
                return _Candidates(compare_rows(connection, space, self._vector), words, allowed)
            vectors = cached.vectors
            vectors.refresh(connection, space)
            if not vectors.exact and allowed is not None and allowed.mask.sum() <= _COMPARE_EACH:
                cosines = compare_items(connection, allowed.allowed_ids(), self._vector)
            else:
                cosines = vectors.compare(connection, self._vector, self._candidates, allowed, self._together)
            return _Candidates(cosines, words, allowed, vectors.covers(space.items), vectors.exact)

    def _score(self, candidates: Sequence[_Candidates]) -> Sequence[_Candidates]:
        """Score the candidates of all namespaces by words, as one collection; nothing where words do not count."""
        matched = [(part.words, part.allowed) for part in candidates if part.words is not None]
        if len(matched) < len(candidates):
            return candidates
        scored = [part._replace(scores=own) for part, own in zip(candidates, score_words(matched), strict=True)]
        return [part if part.exact else part._replace(cosines=self._add_best_by_words(part)) for part in scored]

    def _add_best_by_words(self, part: _Candidates) -> ItemCosines:
        """Add the best items by words, with their true cosines, to the items of an approximate search."""
        if self._vector is None or part.words is None or part.scores is None:
            return part.cosines
        having = np.flatnonzero(part.scores)
        best = having[np.argsort(-part.scores[having], kind="stable")[: self._candidates]]
        return part.cosines.with_others(compare_items(self._connection, part.words.ids[best].tolist(), self._vector))

    def _apply_filter(self, cached: CachedNamespace, space: NamespaceRow) -> FilterMask:
        masks, place = self._batch.masks, (space.id, id(self._filter))  # the operations keep their filters alive
        if place not in masks:
            allowed = cached.filters.apply(self._connection, space, self._filter)
            masks[place] = allowed, cached.filters.version > space.version
        allowed, is_newer = masks[place]
        self._filter_is_newer |= is_newer
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
                yield from self._rest([space], set())

    def _ranked(self, ranking: "_Ranking") -> Iterator[Hit]:
        size = max(10, min(_CHUNK, self._stop))
        order = ranking.ordered(size)
        while chunk := list(islice(order, size)):
            yield from self._read(chunk)
            size = _CHUNK

    def _rest(self, spaces: Sequence[NamespaceRow], done: set[int]) -> Iterator[Hit]:
        """Yield the items of some namespaces that the filter allows and that are not done, oldest first."""
        for space in spaces:
            for item in rows.items_of(self._connection, space, without_vector=self._vector is not None):
                if item.id not in done and item.lives(self._batch.moment) and matches(item.value, self._filter):
                    yield Hit(item, None)

    def _read(self, chunk: Sequence[tuple[int, float | None]]) -> Iterator[Hit]:
        """Read the items of a chunk, in its order; leave out those that are gone or may not be returned."""
        cosines, items = dict(chunk), self._batch.items
        unread = [number for number in cosines if number not in items]
        if unread:
            items.update((item.id, item) for item in rows.get_items(self._connection, unread, self._paths))
        for item in (items[number] for number in cosines if number in items):
            if item.lives(self._batch.moment) and not (self._filter_is_newer and not matches(item.value, self._filter)):
                yield Hit(item, cosines[item.id])


class _Ranking:
    """Items of one or several namespaces in their order; `dense` and `lexical` are weights."""

    def __init__(self, parts: Sequence[_Candidates], dense: float, lexical: float) -> None:
        merged = [_merge(part) for part in parts]
        items, cosines, words = merged[0] if len(merged) == 1 else map(np.concatenate, zip(*merged, strict=True))
        self._items: Ids = items
        self._cosines: Scores = cosines
        self._all_have_cosines = not np.isnan(cosines).any()
        if lexical and any(part.scores is not None for part in parts):
            meaning = np.float32(dense) * divide_by_maximum(cosines)
            if not self._all_have_cosines:
                np.nan_to_num(meaning, copy=False)
            self._scores: Scores = meaning + np.float32(lexical) * divide_by_maximum(words)
        else:
            self._scores = cosines if dense else np.zeros_like(cosines)

    def ordered(self, first: int) -> Iterator[tuple[int, float | None]]:
        """Yield item ids and cosines (None: no vector), best first; the caller will probably read the `first` ones."""
        done, width, total = 0, max(1, first), len(self._items)
        while done < total:
            best = self._best(min(width, total))
            yield from best[done:]
            done, width = len(best), width * 8

    def _best(self, width: int) -> list[tuple[int, float | None]]:
        """Return the first `width` items and all that have the last one's score, or pages would differ."""
        few = width < len(self._items)
        chosen = (self._scores >= self._limit(width)).nonzero()[0] if few else np.arange(len(self._items))
        items = self._items[chosen]
        order = np.lexsort((items, -self._scores[chosen]))
        cosines = self._cosines[chosen[order]].tolist()
        if not self._all_have_cosines:
            cosines = [None if cosine != cosine else cosine for cosine in cosines]  # NaN: no vector
        return list(zip(items[order].tolist(), cosines, strict=True))

    def _limit(self, width: int) -> float:
        """Return a score that at least `width` items reach, and not many more."""
        scores = self._scores
        if len(scores) >= 4 * _BLOCK * width:
            whole = len(scores) - len(scores) % _BLOCK
            scores = scores[:whole].reshape(-1, _BLOCK).max(axis=1)  # at least as many items as blocks reach a score
        return float(np.partition(scores, len(scores) - width)[len(scores) - width])


def _merge(part: _Candidates) -> tuple[Ids, Scores, Scores]:
    """Return the allowed items of one namespace, their cosines (NaN: none) and their word scores (empty: none)."""
    items, cosines = part.cosines
    if part.words is None or part.scores is None:
        words = np.empty(0, np.float32)
    elif len(items) == len(part.words.ids) and (items == part.words.ids).all():
        words = part.scores
    else:
        words = np.zeros(len(items), np.float32)
        having = np.flatnonzero(part.scores)
        ids, scores = part.words.ids[having], part.scores[having]
        # Ids ascend, except those of updated items; numpy sorts what is nearly sorted in nearly linear time.
        places, inside = find_ids(items, ids, np.argsort(items, kind="stable"))
        words[places[inside]] = scores[inside]
        items = np.concatenate([items, ids[~inside]])
        cosines = np.concatenate([cosines, np.full(int((~inside).sum()), np.nan, np.float32)])
        words = np.concatenate([words, scores[~inside]])
    if part.allowed is not None:
        mask = part.allowed.of(items)
        items, cosines, words = items[mask], cosines[mask], words[mask] if len(words) else words
    return items, cosines, words
