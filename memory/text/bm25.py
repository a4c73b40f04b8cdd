"""BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009), and scores divided by their maximum.

The kernel takes counts from anywhere: the store's word index counts the items of a namespace, recall counts words in a
few hundred candidates. All functions work element by element on numpy arrays, and broadcast as numpy does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from questbook.memory.text.stems import TextWords, stem_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    FloatsT = TypeVar("FloatsT", bound=Floats)

K1, B = 1.2, 0.75
"""How soon a repeated word stops adding weight, and how much a long text is discounted; as in FTS5 and Lucene."""

_LEAST = 1e-9  # a maximum below this is rounding
# In what a query asks for, no word counts less than one that two texts of nine have: texts that were found by a query's
# words have them more often than others.
_LEAST_RARITY = 1.5
_MOST_ASKED = 5  # words that a long query asks for: of a message of forty words no text has a share worth naming


def word_rarity(total: int, having: Floats) -> Floats:
    """Return the inverse document frequency of words, always above 0.

    Args:
        total: How many texts there are.
        having: How many of them have each word.
    """
    import numpy as np

    rarity: Floats = np.log(1 + (total - having + 0.5) / (having + 0.5))
    return rarity


def word_weight(rarity: Floats, often: Floats, sizes: Floats, average: float) -> Floats:
    """Return what words add to the scores of texts.

    Args:
        rarity: Of the words, as `word_rarity` gives it.
        often: How often the texts have them.
        sizes: How many words the texts have.
        average: How many words a text has on average; less than 1 counts as 1.
    """
    return rarity * often * (K1 + 1) / (often + K1 * (1 - B + B * sizes / max(average, 1.0)))


def divide_by_maximum(scores: FloatsT) -> FloatsT:
    """Divide scores by the highest of them, so that different kinds can be added; NaN stays, and is passed over.

    Where none is above 0 they stay as they are.
    """
    import numpy as np

    highest = np.fmax.reduce(scores, initial=0.0)
    return scores / highest if highest > _LEAST else scores.copy()


class WordTable:
    """How often texts have the words of queries; the words of neighbours count less.

    A neighbour's words are counted as if they were in the text, each as a share of a word (BM25F with one length).

    Args:
        texts: The texts, or their words.
        queries: The words of each query, as `questbook.memory.text.words.query_words` gives them.
        neighbours: The numbers of each text's neighbours, shape (texts, shares); -1 where there is none.
        shares: What a word is worth in each of the neighbours; in the text itself it is worth 1.
    """

    def __init__(
        self,
        texts: Sequence[str] | TextWords,
        queries: Sequence[Sequence[str]],
        neighbours: NDArray[np.intp] | None = None,
        shares: Sequence[float] = (),
    ) -> None:
        import numpy as np

        self._stems = [[stem for stem in dict.fromkeys(stem_words(words)) if stem] for words in queries]
        self._rows = {stem: n for n, stem in enumerate(dict.fromkeys(stem for stems in self._stems for stem in stems))}
        words = texts if isinstance(texts, TextWords) else TextWords(texts)
        self._counts, self._sizes = words.count(list(self._rows)), words.sizes.copy()
        self._having = np.count_nonzero(self._counts, axis=1)
        if neighbours is not None and len(self._sizes):
            counts, sizes = np.pad(self._counts, ((0, 0), (0, 1))), np.pad(self._sizes, (0, 1))  # an empty text for -1
            for column, share in enumerate(shares):
                if share:
                    self._counts += share * counts[:, neighbours[:, column]]
                    self._sizes += sizes[neighbours[:, column]]

    def scores(self) -> NDArray[np.float64]:
        """Return the scores of the texts by each query, 0 or more, shape (queries, texts)."""
        import numpy as np

        scores = np.zeros((len(self._stems), len(self._sizes)))
        if not self._counts.size:
            return scores
        rarity = word_rarity(len(self._sizes), self._having[:, None])
        weights = word_weight(rarity, self._counts, self._sizes, float(self._sizes.mean()))
        for number, stems in enumerate(self._stems):
            scores[number] = weights[[self._rows[stem] for stem in stems]].sum(axis=0)
        return scores

    def coverage(self, query: int, ignored: Iterable[str] = ()) -> NDArray[np.float64]:
        """Return which share of a query's words each text has, from 0 to 1, shape (texts).

        Rare words count more, and a word that no text has the most.

        Args:
            query: Number of the query.
            ignored: Words that do not count, unless the query has no others.
        """
        import numpy as np

        stems, passed_over = self._stems[query], set(stem_words(list(ignored)))
        rows = [self._rows[stem] for stem in stems if stem not in passed_over] or [self._rows[stem] for stem in stems]
        if not rows:
            return np.zeros(len(self._sizes))
        rarity = np.maximum(word_rarity(len(self._sizes), self._having[rows]), _LEAST_RARITY)
        asked = float(np.sort(rarity)[-_MOST_ASKED:].sum())
        covered: NDArray[np.float64] = rarity @ np.minimum(self._counts[rows], 1.0)
        return np.minimum(covered / asked, 1.0)

    def has(self, word: str) -> bool:
        """Return whether any text has a word of the queries."""
        return any(self._having[self._rows[stem]] for stem in stem_words([word]) if stem in self._rows)
