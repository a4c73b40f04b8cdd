"""Scoring: putting candidates in order, from nothing but the candidates, which the timeline sees.

Each part is divided by its maximum over the candidates and the parts are added up; the sum finds more than reciprocal
rank fusion does (docs/memory.md). The scoring of Generative Agents (Park et al. 2023) is there for who wants it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from questbook.memory.recall.pool import Pool
from questbook.memory.recall.query import Reason, Weights
from questbook.memory.recall.time_fit import moment
from questbook.memory.recall.times import names_time
from questbook.memory.text.bm25 import divide_by_maximum

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

_DECAY = 0.995  # for each hour, Park et al. 2023
_LEAST = 1e-9
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class Evidence(NamedTuple):
    """What is known of the candidates; arrays are in the order of the pool's numbers.

    Attributes:
        pool: The candidates.
        near: The numbers of each one's neighbours, as `Pool.near` gives them.
        words: Word scores, shape (queries, candidates).
        cosines: Cosines, shape (queries, candidates); NaN where the store gave none.
        queries: The weight of each query.
        named: Whether the query names their speaker or subject, from -1 to 1.
        phrases: Whether they have a name of the query's word for word, 0 or 1.
        times: How well their time fits, 0 to 1.
        asks_when: Whether the query asks when something was.
        accessed: When each was used last, by key.
        worth: What the embedder's cosine is worth beside words.
    """

    pool: Pool
    near: NDArray[np.intp]
    words: Scores
    cosines: Scores
    queries: Sequence[float]
    named: Scores
    phrases: Scores
    times: Scores
    asks_when: bool = False
    accessed: Mapping[str, str] = {}
    worth: float = 1.0


class Order:
    """The candidates in their order.

    Args:
        found: What is known of them.
        weights: What each part counts.
    """

    def __init__(self, found: Evidence, weights: Weights) -> None:
        import numpy as np

        pool = found.pool
        self._found = found
        self._ties = pool.alphabetical()
        words = _summed(found.words, found.queries)
        meaning = _summed(_completed(found.cosines), found.queries)
        self._recency = _recency(pool, {} if weights.scoring == "sum" else found.accessed)
        self._importance = np.array([_importance(value) for value in pool.values])
        relevance = weights.words * words + weights.of_meaning(found.worth) * _spread(meaning, found.near, weights)
        self._relevance = _by_maximum(relevance)
        if weights.scoring == "generative_agents":
            self._relevance = _between(meaning if meaning.any() else words)
            self._recency = _between(self._recency)
            self.totals = self._relevance + self._recency + _between(self._importance)
        else:
            self.totals = (
                relevance
                + weights.named * found.named
                + weights.phrase * found.phrases
                + weights.time * found.times
                + weights.importance * self._importance
                + weights.recency * self._recency
            )
            if weights.answers:
                self.totals += weights.answers * np.array(
                    [_answers(value, asks_when=found.asks_when) for value in pool.values]
                )
        self.ranked: list[int] = np.lexsort((self._ties, -self.totals)).tolist()
        """Their numbers, best first."""
        self._by_words = _ranks(words, self._ties)
        self._by_meaning = _ranks(_summed(np.nan_to_num(found.cosines), found.queries), self._ties)

    def reason(self, number: int) -> Reason:
        """Say what the weight of a candidate is made of."""
        return Reason(
            relevance=float(self._relevance[number]),
            recency=float(self._recency[number]),
            importance=float(self._importance[number]),
            time=float(self._found.times[number]),
            named=float(self._found.named[number]),
            phrase=bool(self._found.phrases[number]),
            by_meaning=self._by_meaning.get(number),
            by_words=self._by_words.get(number),
        )


def _summed(parts: Scores, queries: Sequence[float]) -> Scores:
    """Add up the scores for several queries, each divided by its maximum and weighed."""
    import numpy as np

    total = np.zeros(parts.shape[1])
    for part, weight in zip(parts, queries, strict=True):
        total += weight * _by_maximum(part)
    return total


def _completed(cosines: Scores) -> Scores:
    """Give what the store did not propose, a neighbour of what it did, the least cosine of what it proposed.

    Unknown is not far: between two texts of one conversation a sentence model's cosine is seldom near 0.
    """
    import numpy as np

    known = ~np.isnan(cosines)
    least = np.min(cosines, axis=1, initial=np.inf, where=known)
    return np.where(known, cosines, np.where(np.isinf(least), 0.0, least)[:, None])


def _spread(meaning: Scores, near: NDArray[np.intp], weights: Weights) -> Scores:
    """Give each record a share of its neighbours' cosines."""
    import numpy as np

    padded = np.append(meaning, 0.0)  # -1, no neighbour, is the last
    one, two = weights.spread
    return _by_maximum(meaning + padded[near] @ np.array([one, one, two, two]))


def _recency(pool: Pool, accessed: Mapping[str, str]) -> Scores:
    """Return 0.995 to the hours between each record and the latest: the same whenever it is asked; 0 without a time.

    Between any two records the ratio is that of 0.995 to the hours until now; dividing by the maximum takes "now" out.
    """
    import numpy as np

    hours = np.full(len(pool), -np.inf)
    for number, (place, value) in enumerate(zip(pool.places, pool.values, strict=True)):
        then = moment({"said_at": accessed[place[1]]}) if place[1] in accessed else moment(value)
        if then is not None:
            hours[number] = (then - _EPOCH).total_seconds() / 3600
    latest = hours.max(initial=-np.inf)
    return np.zeros(len(pool)) if np.isinf(latest) else _DECAY ** (latest - hours)


def _importance(value: Mapping[str, Any]) -> float:
    given = value.get("importance")
    if not isinstance(given, int | float) or isinstance(given, bool):
        return 0.0
    return min(max(float(given), 0.0), 10.0) / 10.0 if given == given else 0.0  # NaN is no importance


def _answers(value: Mapping[str, Any], *, asks_when: bool) -> float:
    """Return -1 for an utterance that is a question, and 1 for a record that names a time if one is asked for."""
    text = str(value.get("text") or "").rstrip()
    asks = "speaker" in value and text.endswith("?")
    return float(asks_when and names_time(text)) - float(asks)


def _ranks(scores: Scores, ties: NDArray[np.intp]) -> dict[int, int]:
    """Return the ranks, from 1, of those that score at all."""
    import numpy as np

    order: list[int] = np.lexsort((ties, -scores)).tolist()
    return {number: rank for rank, number in enumerate(order, 1) if scores[number] > 0}


def _by_maximum(scores: Scores) -> Scores:
    import numpy as np

    return np.maximum(divide_by_maximum(scores), 0.0)


def _between(scores: Scores) -> Scores:
    """Bring scores between 0 for the least and 1 for the most, as published; all alike: 0.5."""
    import numpy as np

    if not len(scores):
        return scores
    least, span = float(scores.min()), float(np.ptp(scores))
    return (scores - least) / span if span > _LEAST else np.full(len(scores), 0.5)
