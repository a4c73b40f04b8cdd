"""Word table: who has which word, of all words of a small namespace, in a few arrays.

A dictionary with two arrays for each word would take several times the bytes of the namespace's vectors.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from questbook.memory.text.bm25 import Having, nobody

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class WordTable:
    """Words by their hash: of 64 bits, so that two words of one namespace never share one in practice.

    Args:
        instances: Term, item and column of each word in the texts, in this order, as FTS5 lists them.
        sign: Letters of a term that come before the word.
        ids: Ids of all items, ascending.
        weights: What a word counts, by its column.
    """

    def __init__(
        self,
        instances: Sequence[tuple[str, int, str]],
        sign: int,
        ids: "NDArray[np.int64]",
        weights: Mapping[str, float],
    ) -> None:
        import numpy as np

        words = np.fromiter((hash(term[sign:]) for term, _, _ in instances), np.int64, len(instances))
        items = np.fromiter((item for _, item, _ in instances), np.int64, len(instances))
        counts = np.fromiter((weights[column] for _, _, column in instances), np.float32, len(instances))
        firsts = np.ones(len(words), np.bool_)  # of a word in an item
        firsts[1:] = (words[1:] != words[:-1]) | (items[1:] != items[:-1])
        starts = np.flatnonzero(firsts)
        self._often = np.add.reduceat(counts, starts) if len(starts) else counts
        self._places = np.searchsorted(ids, items[starts]).astype(np.int32)
        words = words[starts]
        begins = np.flatnonzero(np.append(True, words[1:] != words[:-1])) if len(words) else starts
        order = np.argsort(words[begins], kind="stable")
        self._words = words[begins][order]
        self._begins = begins[order].astype(np.int32)
        self._ends = np.append(begins[1:], len(words))[order].astype(np.int32)

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return sum(one.nbytes for one in (self._often, self._places, self._words, self._begins, self._ends))

    def having(self, word: str) -> Having:
        """Return the items that have a word."""
        code = hash(word)
        place = int(self._words.searchsorted(code))
        if place == len(self._words) or self._words[place] != code:
            return nobody()
        chosen = slice(self._begins[place], self._ends[place])
        return Having(self._places[chosen], self._often[chosen])
