"""BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009), and scores divided by their maximum.

The kernel takes counts from anywhere: the store's word index counts the items of a namespace, recall counts words in a
few hundred candidates. All functions work element by element on numpy arrays, and broadcast as numpy does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from questbook.memory.store.scored import Allowed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    FloatsT = TypeVar("FloatsT", bound=Floats)
    Ids = NDArray[np.int64]
    Scores = NDArray[np.float32]

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


# What follows is the store's own, and goes to `questbook.memory.store`.
_K1, _B = K1, B


class Having(NamedTuple):
    """The items that have a word."""

    places: NDArray[np.int32]
    often: Scores  # how often, each column with its weight


class Matches(NamedTuple):
    """The items of one namespace that have some words.

    Attributes:
        ids: Ids of all its items that are in the word index, ascending.
        sizes: How many words each has.
        found: For each word who has it; None if it is too common to tell anything.
    """

    ids: Ids
    sizes: Scores
    found: list[Having | None]


@cache
def nobody() -> Having:
    """Return what is known of a word that no item has."""
    import numpy as np

    return Having(np.empty(0, np.int32), np.empty(0, np.float32))


def word_scores(among: Sequence[tuple[Matches, Allowed | None]]) -> list[Scores]:
    """BM25 of the items of several namespaces as one collection.

    Args:
        among: The matches of the same words in each, and what a filter allows of it.

    Returns:
        For each namespace an array aligned to `Matches.ids`: 0 where no word occurs, and where nothing is allowed.
    """
    import numpy as np

    masks = [None if allowed is None else allowed.of(matches.ids) for matches, allowed in among]
    sizes = [m.sizes if mask is None else m.sizes[mask] for (m, _), mask in zip(among, masks, strict=True)]
    total = sum(map(len, sizes))
    length = max(sum(float(part.sum(dtype=np.float64)) for part in sizes) / max(total, 1), 1.0)
    telling = [list(found) for found in zip(*(matches.found for matches, _ in among), strict=True) if None not in found]
    parts = [_among(telling, number, mask) for number, mask in enumerate(masks)]
    common = np.zeros(len(telling))
    for words, _, _ in parts:
        common += np.bincount(words, minlength=len(telling))
    rarity = np.log(1 + (total - common + 0.5) / (common + 0.5)) * (_K1 + 1)
    scores = []
    for (matches, _), (words, places, often) in zip(among, parts, strict=True):
        long = _K1 * (1 - _B) + _K1 * _B / length * matches.sizes[places]
        weights = rarity[words] * often / (often + long)
        scores.append(np.bincount(places, weights, len(matches.ids)).astype(np.float32))
    return scores


def _among(
    telling: Sequence[Sequence[Having | None]], number: int, mask: NDArray[np.bool_] | None
) -> tuple[NDArray[np.intp], NDArray[np.int32], Scores]:
    """Which words the allowed items of one of the namespaces have, with their places and how often each has it."""
    import numpy as np

    found = [having for words in telling if (having := words[number]) is not None]
    words = np.arange(len(found)).repeat([len(having.places) for having in found])
    places = np.concatenate([np.empty(0, np.int32), *(having.places for having in found)])
    often = np.concatenate([np.empty(0, np.float32), *(having.often for having in found)])
    if mask is None:
        return words, places, often
    inside = mask[places]
    return words[inside], places[inside], often[inside]
