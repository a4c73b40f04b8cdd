"""Together: the queries of one batch under one prefix, whose cosines are reckoned in one pass over the vectors.

Reading ten thousand vectors from memory takes longer than comparing them, and a recall has several queries.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from questbook.memory.store.indexes import ExactIndex

if TYPE_CHECKING:
    from questbook.memory.embeddings.embedding_batch import Vector


class Together:
    """Queries that are asked one after another.

    Args:
        queries: Their vectors.
    """

    def __init__(self, queries: "Sequence[Vector]") -> None:
        self._queries = queries
        self._found: dict[tuple[ExactIndex, int], dict[int, Vector]] = {}

    def scores(self, index: ExactIndex, query: "Vector") -> "Vector":
        """Cosines of all vectors of an index to one of the queries, in the order in which they were added."""
        place = index, index.count  # it only ever grows
        if place not in self._found:
            every = index.scores(self._queries)
            self._found[place] = {id(one): scores for one, scores in zip(self._queries, every, strict=True)}
        return self._found[place][id(query)]
