"""Warm: searches that are answered from RAM, because nobody has written since their namespace was last read.

A transaction, the namespaces under a prefix and ten rows cost several times what comparing a thousand vectors does.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from langgraph.store.base import SearchItem, SearchOp

from questbook.memory.store.ranking import Part
from questbook.memory.store.row_cache import as_search_item
from questbook.memory.store.rows import Namespace, NamespaceRow
from questbook.memory.store.search import Search
from questbook.memory.store.shard_cache import Loaded
from questbook.memory.store.watch import Watch
from questbook.memory.text.bm25 import Matches, word_scores

if TYPE_CHECKING:
    from questbook.memory.embeddings.embedding_batch import Vector


_LOOK = "SELECT 1 FROM meta LIMIT 1"


class _Known(NamedTuple):
    """What the file held when it had a version."""

    version: int
    spaces: Mapping[Namespace, NamespaceRow]  # by the prefixes under which they are alone


class Warm:
    """What may be answered from RAM: searches without a filter in one namespace whose vectors and words are there.

    Args:
        search: Whose shards are looked into; it makes the same order of the same items.
        watch: Says which version the file has.
        reading: Begins a read transaction, for items that were not read lately.
    """

    def __init__(
        self, search: Search, watch: Watch, reading: Callable[[], AbstractContextManager[sqlite3.Connection]]
    ) -> None:
        self._search = search
        self._watch = watch
        self._reading = reading
        self._known = _Known(-1, {})

    def learn(self, version: int, spaces: Mapping[Namespace, Sequence[NamespaceRow]]) -> None:
        """Take note of what a transaction saw.

        Args:
            version: Of the file, asked for before the transaction began.
            spaces: The namespaces under each prefix.
        """
        known = self._known
        older = known.spaces if known.version == version else {}
        alone = {prefix: found[0] for prefix, found in spaces.items() if len(found) == 1}
        if alone.keys() - older.keys():
            self._known = _Known(version, {**older, **alone})  # replaced at once: other threads read it meanwhile

    def find(self, version: int, op: SearchOp, query: "Vector | None") -> list[SearchItem] | None:
        """Search.

        Args:
            version: Of the file, now.
            op: What is asked for.
            query: The query's vector, if it was embedded.

        Returns:
            The page, best first; None if the file must be asked.
        """
        known = self._known
        if known.version != version or op.filter or query is None or not op.query:
            return None
        space = known.spaces.get(tuple(op.namespace_prefix))
        loaded = None if space is None else self._search.shards.touched(space.id)
        if space is None or loaded is None:
            return None
        words = self._search.words(op.query)
        matches = None
        if words is not None:
            matches = self._matches(version, loaded, space, words)
            if matches is None:
                return None
        start = max(op.offset, 0)
        with loaded.lock:
            best = self._best(loaded, space, query, matches, start + max(op.limit, 0))
            if best is None:
                return None
            found = loaded.rows.search_items(space, best[start:])
        return self._read(version, space, best[start:]) if found is None else found

    def _matches(self, version: int, loaded: Loaded, space: NamespaceRow, words: Sequence[str]) -> Matches | None:
        """Look up words; only those that are not in RAM are read. None if somebody has written meanwhile."""
        with loaded.lock:
            if loaded.postings is None or not loaded.postings.current(space):
                return None
            known = loaded.postings.known(words)
        if known is not None:
            return known
        with self._reading_at(version) as connection:
            if connection is None:
                return None
            with self._search.shards.loaded(connection, space) as again:
                return None if again.postings is None else again.postings.matches(connection, space, words)

    def _best(
        self, loaded: Loaded, space: NamespaceRow, query: "Vector", matches: Matches | None, stop: int
    ) -> list[tuple[int, float | None]] | None:
        """Rank the items of a namespace; None if its vectors are not in RAM, or not of this version."""
        if loaded.shard is None:
            return None
        if matches is None and self._search.by_meaning:
            near = loaded.shard.best_whole(space, query, stop)
            if near is not None:
                return near
        worded = None if matches is None else (matches.ids, word_scores([(matches, None)])[0])
        scored = loaded.shard.scored_whole(space, query)
        return None if scored is None else self._search.ranking([Part(scored, worded, None)]).best(stop)

    def _read(
        self, version: int, space: NamespaceRow, page: Sequence[tuple[int, float | None]]
    ) -> list[SearchItem] | None:
        """Read the items of a page; None if somebody has written meanwhile, or one of them may have expired."""
        with self._reading_at(version) as connection:
            if connection is None:
                return None
            with self._search.shards.loaded(connection, space) as loaded:
                found = loaded.rows.items(connection, space, [item for item, _ in page])
        if len(found) < len(page) or any(row.expires_at is not None for row in found):
            return None
        return [as_search_item(row, row.value, score) for row, (_, score) in zip(found, page, strict=True)]

    @contextmanager
    def _reading_at(self, version: int) -> Iterator[sqlite3.Connection | None]:
        """Begin a transaction that sees the file as it was at a version; None if somebody has written meanwhile.

        Nothing may be kept as of a version that was read from another one.
        """
        with self._reading() as connection:
            connection.execute(_LOOK).fetchone()  # what a transaction sees is settled by its first look
            yield connection if self._watch.version() == version else None
