"""BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009), and scores divided by their maximum.

The kernel takes counts from anywhere: the store's word index counts the items of a namespace, recall counts words in a
few hundred candidates. All functions work element by element on numpy arrays, and broadcast as numpy does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from questbook.memory.text.stems import count_stems, stem_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    FloatsT = TypeVar("FloatsT", bound=Floats)

K1, B = 1.2, 0.75
"""How soon a repeated word stops adding weight, and how much a long text is discounted; as in FTS5 and Lucene."""

_LEAST = 1e-9  # a maximum below this is rounding


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


def score_texts(
    texts: Sequence[str],
    queries: Sequence[Sequence[str]],
    neighbours: NDArray[np.intp] | None = None,
    shares: Sequence[float] = (),
) -> NDArray[np.float64]:
    """Score texts by the words of queries, among these texts alone; the words of neighbours count less.

    A neighbour's words are counted as if they were in the text, each as a share of a word (BM25F with one length).

    Args:
        texts: The texts.
        queries: The words of each query, as `questbook.memory.text.words.query_words` gives them.
        neighbours: The numbers of each text's neighbours, shape (texts, shares); -1 where there is none.
        shares: What a word is worth in each of the neighbours; in the text itself it is worth 1.

    Returns:
        Scores of 0 or more, shape (queries, texts).
    """
    import numpy as np

    stems = [[stem for stem in dict.fromkeys(stem_words(words)) if stem] for words in queries]
    rows = {stem: row for row, stem in enumerate(dict.fromkeys(stem for of_query in stems for stem in of_query))}
    scores = np.zeros((len(queries), len(texts)))
    if not rows or not texts:
        return scores
    counts, sizes = count_stems(texts, list(rows))
    having = np.count_nonzero(counts, axis=1)[:, None]
    if neighbours is not None:
        padded_counts, padded_sizes = np.pad(counts, ((0, 0), (0, 1))), np.pad(sizes, (0, 1))  # an empty text for -1
        for column, share in enumerate(shares):
            if share:
                counts += share * padded_counts[:, neighbours[:, column]]
                sizes += padded_sizes[neighbours[:, column]]
    weights = word_weight(word_rarity(len(texts), having), counts, sizes, float(sizes.mean()))
    for number, of_query in enumerate(stems):
        scores[number] = weights[[rows[stem] for stem in of_query]].sum(axis=0)
    return scores
