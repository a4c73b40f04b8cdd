"""BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009), and scores divided by their maximum.

The kernel takes counts from anywhere: the store's word index counts the items of a namespace, recall counts words in a
few hundred candidates. All functions work element by element on numpy arrays, and broadcast as numpy does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

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
