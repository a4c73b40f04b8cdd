"""One search: which namespaces, cosines and word scores, the fused order, the filter, the page."""

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from langgraph.store.base import SearchOp

from memory import rows
from memory.filters import matches, required_strings
from memory.lexical import Lexical
from memory.ranking import Ranking, merged
from memory.rows import ItemRow, NamespaceRow
from memory.shard_cache import ShardCache
from memory.shards import Scored, StreamedShard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory.embedding_batch import Vector

    Ids = NDArray[np.int64]

Hit = tuple[ItemRow, float | None]
_TRIES = 256  # rows that are read in vain before a filter is applied to the whole namespace
_SOON_READ = 2_000  # items of all namespaces, up to which a filter is applied to all of them at once
_CHUNK = 64  # rows that are read together
_REMEMBERED_FILTERS = 64  # answers of such filters that are kept until their namespace changes
_CANDIDATES = 256  # of an approximate shard, at least
_READ_EXACTLY = 2_000  # items of an approximate shard that a filter may leave to be compared one by one


class Search:
    """Searches the rows of a store with its indexes.

    Args:
        shards: Vectors in RAM; None if there are none.
        lexical: The word index; None if there is none.
        weights: Weights of "dense" and "lexical" in the order of the hits; a weight of 0 turns one off.
    """

    def __init__(self, shards: ShardCache | None, lexical: Lexical | None, weights: Mapping[str, float]) -> None:
        self.shards = shards
        self._lexical = lexical
        self._dense = weights.get("dense", 1.0)
        self._words = weights.get("lexical", 1.0)
        self._answers: OrderedDict[tuple[int, int, str], list[int]] = OrderedDict()
        self._answers_lock = threading.Lock()

    def run(
        self,
        connection: sqlite3.Connection,
        op: SearchOp,
        query: "Vector | None",
        visible: Callable[[ItemRow], bool],
    ) -> list[Hit]:
        """Find items.

        Args:
            connection: In a read transaction.
            op: What is asked for.
            query: The query's vector, if it was embedded.
            visible: Whether an item may be shown at all.

        Returns:
            The page, best first; without a query the oldest first.
        """
        spaces = rows.namespaces_under(connection, tuple(op.namespace_prefix))
        start = max(op.offset, 0)
        stop = start + max(op.limit, 0)
        if start == stop or not spaces:
            return []
        ask = _Ask(connection, spaces, dict(op.filter or {}), stop, visible)
        ranked = self._ranked(ask, op.query, query) if op.query else None
        hits = list(islice(ranked.hits() if ranked else ask.all(), stop))
        if ranked and len(hits) < stop:
            # As in LangGraph's InMemoryStore, items that cannot be ranked follow those that can.
            hits += islice(ask.others(ranked), stop - len(hits))
        return hits[start:]

    def _ranked(self, ask: "_Ask", text: str, query: "Vector | None") -> "_Ranked | None":
        words = self._lexical.scores(ask.connection, ask.spaces, text) if self._lexical and self._words else {}
        if query is None and self._lexical is None:
            return None
        scored: dict[int, Scored] = {}
        covered: set[int] = set()
        if query is not None:
            for space in ask.spaces:
                scored[space.id], whole = self._scored(ask, space, query, words)
                if whole:
                    covered.add(space.id)
        ranking = Ranking(scored, words, self._dense, self._words)
        return _Ranked(self, ask, ranking, covered, by_words_alone=query is None)

    def _scored(
        self, ask: "_Ask", space: NamespaceRow, query: "Vector", words: Mapping[int, float]
    ) -> tuple[Scored, bool]:
        if self.shards is None:
            raise AssertionError("a query was embedded, but there are no vectors")
        if not self.shards.fits(space):
            return StreamedShard(ask.connection, space, self.shards.dims).scored(query), False
        width = _CANDIDATES
        while width < 4 * ask.stop:
            width *= 2  # in steps, so that neighbouring pages are cut from the same order
        with self.shards.shard(ask.connection, space) as shard:
            if shard.exact:
                return shard.scored(ask.connection, query, width), shard.covers(space.items)
            allowed = self.allowed(ask, space) if ask.filter else None
            if allowed is not None and len(allowed) <= _READ_EXACTLY:
                return _compared(ask.connection, allowed.tolist(), query), False
            scored, whole = shard.scored(ask.connection, query, width, allowed), shard.covers(space.items)
        best = sorted((item for item in words if item >> rows.SHIFT == space.id), key=lambda i: -words[i])
        extra = _compared(ask.connection, best[:width], query)
        return merged(scored, extra.items.tolist(), extra.cosines.tolist()), whole

    def knows(self, ask: "_Ask") -> bool:
        """Whether it is as good as known which items meet the filter."""
        if sum(space.items for space in ask.spaces) <= _SOON_READ:
            return True
        with self._answers_lock:
            return all(ask.key(space) in self._answers for space in ask.spaces)

    def allowed(self, ask: "_Ask", space: NamespaceRow) -> "Ids":
        """Ids of the items of a namespace that meet the filter, remembered until the namespace changes."""
        import numpy as np

        known = ask.key(space)
        with self._answers_lock:
            found = self._answers.get(known)
        if found is None:
            found = rows.ids_with(
                ask.connection, space, required_strings(ask.filter), lambda value: matches(value, ask.filter)
            )
            with self._answers_lock:
                self._answers[known] = found
                while len(self._answers) > _REMEMBERED_FILTERS:
                    self._answers.popitem(last=False)
        return np.array(found, np.int64)


class _Ask:
    """What one search asks for."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        spaces: Sequence[NamespaceRow],
        wanted: dict[str, Any],
        stop: int,
        visible: Callable[[ItemRow], bool],
    ) -> None:
        self.connection = connection
        self.spaces = spaces
        self.filter = wanted
        self.stop = stop
        self._visible = visible
        self._written = json.dumps(wanted, sort_keys=True, default=repr)
        self.names = {space.id: space.path for space in spaces}

    def key(self, space: NamespaceRow) -> tuple[int, int, str]:
        """What the filter's answer in a namespace is remembered by, as long as the namespace is unchanged."""
        return space.id, space.version, self._written

    def fits(self, item: ItemRow) -> bool:
        return self._visible(item) and matches(item.value, self.filter)

    def all(self) -> Iterator[Hit]:
        """Everything that fits, oldest first."""
        for space in self.spaces:
            yield from ((item, None) for item in rows.all_items(self.connection, space) if self.fits(item))

    def others(self, ranked: "_Ranked") -> Iterator[Hit]:
        """What fits and was not ranked, oldest first."""
        for space in self.spaces:
            if space.id in ranked.covered:
                continue
            if ranked.by_words_alone:
                left = rows.all_items(self.connection, space)
            else:
                left = rows.items_without_vector(self.connection, space)
            yield from ((item, None) for item in left if item.id not in ranked.seen and self.fits(item))


class _Ranked:
    """The hits of one search, read row by row in their order."""

    def __init__(self, search: Search, ask: _Ask, ranking: Ranking, covered: set[int], *, by_words_alone: bool) -> None:
        self.covered = covered
        self.by_words_alone = by_words_alone
        self.seen: set[int] = set()
        self._search = search
        self._ask = ask
        self._ranking = ranking

    def hits(self) -> Iterator[Hit]:
        size = max(10, min(_CHUNK, self._ask.stop))
        order = self._ranking.ordered(max(_CHUNK, self._ask.stop))
        found = tried = 0
        if self._ask.filter and self._search.knows(self._ask):
            yield from self._sifted(found)
            return
        while chunk := list(islice(order, size)):
            if self._ask.filter and tried - found >= _TRIES:
                yield from self._sifted(found)
                return
            self.seen.update(item for item, _ in chunk)
            hits = self._read(chunk)
            tried, found = tried + len(chunk), found + len(hits)
            yield from hits
            size = _CHUNK

    def _read(self, chunk: Sequence[tuple[int, float | None]]) -> list[Hit]:
        cosines = dict(chunk)
        items = rows.get_items(self._ask.connection, list(cosines), self._ask.names)
        return [(item, cosines[item.id]) for item in items if self._ask.fits(item)]

    def _sifted(self, found: int) -> Iterator[Hit]:
        import numpy as np

        allowed = [self._search.allowed(self._ask, space) for space in self._ask.spaces]
        self._ranking.only(np.concatenate(allowed))
        self.seen.update(self._ranking.items())
        kept = self._ranking.ordered(max(_CHUNK, self._ask.stop))
        chunks = iter(lambda: list(islice(kept, _CHUNK)), [])
        visible = (hit for chunk in chunks for hit in self._read(chunk))
        yield from islice(visible, found, None)


def _compared(connection: sqlite3.Connection, items: Sequence[int], query: "Vector") -> Scored:
    """Cosines of given items, from their rows."""
    import numpy as np

    best: dict[int, float] = {}
    for item, blob in rows.vectors_of(connection, items):
        if isinstance(blob, bytes) and len(blob) == 4 * len(query):  # or it is damaged
            best[item] = max(best.get(item, -2.0), float(np.frombuffer(blob, "<f4") @ query))
    return Scored(np.array(list(best), np.int64), np.array(list(best.values()), np.float32), True)
