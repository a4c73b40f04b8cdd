"""One search: which namespaces, the filter, cosines and word scores, the fused order, the page."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.store.base import SearchOp

from questbook.memory.store import rows
from questbook.memory.store.cosines import Together
from questbook.memory.store.filters import matches
from questbook.memory.store.ranking import Part, Ranking, added
from questbook.memory.store.row_vectors import StreamedShard, compared
from questbook.memory.store.rows import ItemRow, NamespaceRow
from questbook.memory.store.scored import Allowed, Scored
from questbook.memory.store.shard_cache import Loaded, ShardCache
from questbook.memory.store.shards import Shard
from questbook.memory.text.bm25 import Matches, word_scores
from questbook.memory.text.stems import stem_words
from questbook.memory.text.words import query_words

if TYPE_CHECKING:
    from questbook.memory.embeddings.embedding_batch import Vector

Hit = tuple[ItemRow, float | None]
_CHUNK = 64  # rows that are read together
_CANDIDATES = 256  # of an approximate shard, at least
_READ_EXACTLY = 2_000  # items of an approximate shard that a filter may leave to be compared one by one


class Search:
    """Searches the rows of a store with its indexes.

    Args:
        shards: What is in RAM of each namespace.
        weights: Weights of "dense" and "lexical" in the order of the hits; a weight of 0 turns one off.
    """

    def __init__(self, shards: ShardCache, weights: Mapping[str, float]) -> None:
        self.shards = shards
        self._dense = weights.get("dense", 1.0)
        self._words = weights.get("lexical", 1.0) if shards.indexes_words else 0.0

    def run(
        self,
        connection: sqlite3.Connection,
        spaces: Sequence[NamespaceRow],
        op: SearchOp,
        query: "Vector | None",
        visible: Callable[[ItemRow], bool],
        together: Together | None = None,
    ) -> list[Hit]:
        """Find items.

        Args:
            connection: In a read transaction.
            spaces: The namespaces under the prefix, as that transaction sees them.
            op: What is asked for.
            query: The query's vector, if it was embedded.
            visible: Whether an item may be shown at all.
            together: Queries that are asked with this one, if it is one of several.

        Returns:
            The page, best first; without a query the oldest first.
        """
        start = max(op.offset, 0)
        stop = start + max(op.limit, 0)
        if not spaces or start == stop:
            return []
        ask = _Ask(connection, self.shards, spaces, op.filter or {}, stop, visible, together)
        if not op.query or (query is None and not self.shards.indexes_words):
            return list(islice(self._unranked(ask), start, stop))
        ranked = self._ranked(ask, op.query, query)
        hits = list(islice(ranked.hits(), stop))
        if len(hits) < stop:
            # As in LangGraph's InMemoryStore, items that cannot be ranked follow those that can.
            hits += islice(ranked.others(), stop - len(hits))
        return hits[start:]

    def _unranked(self, ask: "_Ask") -> Iterator[Hit]:
        """Everything that fits, oldest first."""
        for space in ask.spaces:
            if ask.filter:
                with self.shards.loaded(ask.connection, space) as loaded:
                    allowed = ask.allowed(loaded, space).chosen().tolist()
                for first in range(0, len(allowed), _CHUNK):
                    yield from ask.read([(item, None) for item in allowed[first : first + _CHUNK]])
            else:
                yield from ((item, None) for item in rows.all_items(ask.connection, space) if ask.visible(item))

    def words(self, text: str) -> list[str] | None:
        """The stems that a query's words are looked up by; None if words do not count."""
        return [stem for stem in dict.fromkeys(stem_words(query_words(text))) if stem] if self._words else None

    @property
    def by_meaning(self) -> bool:
        """Whether cosines count."""
        return bool(self._dense)

    def ranking(self, parts: Sequence[Part]) -> Ranking:
        """Put what was found in order, as the store's weights say."""
        return Ranking(parts, self._dense, self._words)

    def _ranked(self, ask: "_Ask", text: str, query: "Vector | None") -> "_Ranked":
        words = self.words(text) or []
        found = [self._found(ask, space, query, words) for space in ask.spaces]
        worded: Sequence[tuple[Any, Any] | None] = [None] * len(found)
        if self._words:
            scores = word_scores([(one.matches, one.allowed) for one in found if one.matches is not None])
            worded = [(one.matches.ids, score) for one, score in zip(found, scores, strict=True) if one.matches]
        parts = [
            Part(self._widened(ask, one, words_, query), words_, one.allowed)
            for one, words_ in zip(found, worded, strict=True)
        ]
        covered = {space.id for space, one in zip(ask.spaces, found, strict=True) if one.whole}
        return _Ranked(ask, self.ranking(parts), covered, by_words_alone=query is None)

    def _found(self, ask: "_Ask", space: NamespaceRow, query: "Vector | None", words: Sequence[str]) -> "_Found":
        with self.shards.loaded(ask.connection, space) as loaded:
            allowed = ask.allowed(loaded, space) if ask.filter else None
            found = loaded.postings.matches(ask.connection, space, words) if loaded.postings and self._words else None
            if query is None or loaded.shard is None:
                return _Found(Scored.nothing(), found, allowed, whole=False, exact=True)
            if not self.shards.fits(space):
                scored = StreamedShard(ask.connection, space, self.shards.dims).scored(query)
                return _Found(scored, found, allowed, whole=False, exact=True)
            shard = loaded.shard
            shard.refresh(ask.connection, space)
            scored = self._scored(ask, shard, allowed, query)
            return _Found(scored, found, allowed, whole=shard.covers(space.items), exact=shard.exact)

    @staticmethod
    def _scored(ask: "_Ask", shard: Shard, allowed: Allowed | None, query: "Vector") -> Scored:
        if not shard.exact and allowed is not None and allowed.mask.sum() <= _READ_EXACTLY:
            return compared(ask.connection, allowed.chosen().tolist(), query)
        return shard.scored(ask.connection, query, ask.width, allowed, ask.together)

    @staticmethod
    def _widened(ask: "_Ask", found: "_Found", worded: "tuple[Any, Any] | None", query: "Vector | None") -> Scored:
        """Add the best by words, with their true cosines, to what an approximate search came across."""
        import numpy as np

        if found.exact or worded is None or query is None:
            return found.scored
        ids, scores = worded
        having = np.flatnonzero(scores)
        best = having[np.argsort(-scores[having], kind="stable")[: ask.width]]
        return added(found.scored, compared(ask.connection, ids[best].tolist(), query))


class _Found(NamedTuple):
    """What was found in one namespace."""

    scored: Scored
    matches: Matches | None
    allowed: Allowed | None
    whole: bool  # whether every item has a vector
    exact: bool  # whether every vector was compared


class _Ask:
    """What one search asks for."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        shards: ShardCache,
        spaces: Sequence[NamespaceRow],
        wanted: Mapping[str, Any],
        stop: int,
        visible: Callable[[ItemRow], bool],
        together: Together | None,
    ) -> None:
        self.connection = connection
        self.shards = shards
        self.spaces = spaces
        self.filter = wanted
        self.stop = stop
        self.visible = visible
        self.together = together
        self._newer = False  # whether what is in RAM of a namespace is newer than what this transaction sees

    @property
    def width(self) -> int:
        """How many candidates an approximate search brings."""
        width = _CANDIDATES
        while width < 4 * self.stop:
            width *= 2  # in steps, so that neighbouring pages are cut from the same order
        return width

    def allowed(self, loaded: Loaded, space: NamespaceRow) -> Allowed:
        """What the filter allows of a namespace."""
        mask = loaded.columns.mask(self.connection, space, self.filter)
        self._newer |= loaded.columns.version > space.version
        return Allowed(loaded.columns.ids, mask)

    def read(self, chunk: Sequence[tuple[int, float | None]]) -> Iterator[Hit]:
        """Read the items of a chunk, in its order, as far as they are there and may be shown."""
        cosines = dict(chunk)
        for item in self._items(list(cosines)):
            if self.visible(item) and not (self._newer and not matches(item.value, self.filter)):
                yield item, cosines[item.id]

    def _items(self, ids: Sequence[int]) -> list[ItemRow]:
        if len(self.spaces) > 1:
            return rows.get_items(self.connection, ids, {space.id: space.path for space in self.spaces})
        (space,) = self.spaces
        with self.shards.loaded(self.connection, space) as loaded:
            return loaded.rows.items(self.connection, space, ids)


class _Ranked:
    """The hits of one search, read row by row in their order."""

    def __init__(self, ask: _Ask, ranking: Ranking, covered: set[int], *, by_words_alone: bool) -> None:
        self._ask = ask
        self._ranking = ranking
        self._covered = covered
        self._by_words_alone = by_words_alone
        self._seen: set[int] = set()

    def hits(self) -> Iterator[Hit]:
        """What was ranked, best first."""
        size = max(10, min(_CHUNK, self._ask.stop))
        order = self._ranking.ordered(size)
        while chunk := list(islice(order, size)):
            self._seen.update(item for item, _ in chunk)
            yield from self._ask.read(chunk)
            size = _CHUNK

    def others(self) -> Iterator[Hit]:
        """What fits and was not ranked, oldest first."""
        ask = self._ask
        for space in ask.spaces:
            if space.id in self._covered:
                continue
            every = rows.all_items if self._by_words_alone else rows.items_without_vector
            for item in every(ask.connection, space):
                if item.id not in self._seen and ask.visible(item) and matches(item.value, ask.filter):
                    yield item, None
