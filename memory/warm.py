"""Warm: searches that are answered from RAM alone, because nobody has written since their namespace was last read.

A transaction, the namespaces under a prefix and ten rows cost several times what comparing a thousand vectors does.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from langgraph.store.base import SearchItem, SearchOp

from memory.postings import word_scores
from memory.ranking import Part
from memory.rows import Namespace, NamespaceRow
from memory.search import Search
from memory.shard_cache import Loaded

if TYPE_CHECKING:
    from memory.embedding_batch import Vector


class _Known(NamedTuple):
    """What the file held when it had a version."""

    version: int
    spaces: Mapping[Namespace, NamespaceRow]  # by the prefixes under which they are alone


class Warm:
    """What may be answered without the file: searches without a filter in one namespace that is whole in RAM.

    Args:
        search: Whose shards are looked into; it makes the same order of the same items.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
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
        space = known.spaces.get(op.namespace_prefix)
        loaded = None if space is None else self._search.shards.touched(space.id)
        if space is None or loaded is None:
            return None
        words = self._search.words(op.query)
        start = max(op.offset, 0)
        with loaded.lock:
            best = self._best(loaded, space, query, words, start + max(op.limit, 0))
            return None if best is None else loaded.rows.search_items(best[start:])

    def _best(
        self, loaded: Loaded, space: NamespaceRow, query: "Vector", words: Sequence[str] | None, stop: int
    ) -> list[tuple[int, float | None]] | None:
        """Rank the items of a namespace; None if some of it is not in RAM, or not of this version."""
        if loaded.shard is None or not loaded.rows.whole(space):
            return None
        worded = None
        if words is not None:
            matches = None if loaded.postings is None else loaded.postings.known(space, words)
            if matches is None:
                return None
            worded = matches.ids, word_scores([(matches, None)])[0]
        scored = loaded.shard.scored_whole(space, query)
        return None if scored is None else self._search.ranking([Part(scored, worded, None)]).best(stop)
