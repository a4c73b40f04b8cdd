"""The order of the candidates, made from nothing but the candidates, which the timeline sees.

Each part is divided by its maximum over the candidates and the parts are added up; the sum finds more than reciprocal
rank fusion does (docs/figures.md). The scoring of Generative Agents (Park et al. 2023) is an option.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from questbook.memory.recall.candidates import Candidates
from questbook.memory.recall.passages import Passages
from questbook.memory.recall.query import Reason
from questbook.memory.recall.times import names_time
from questbook.memory.recall.weights import Weights
from questbook.memory.text.bm25 import divide_by_maximum
from questbook.memory.timeline.records import Record, read_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

_DECAY = 0.995  # for each hour, Park et al. 2023
_LEAST = 1e-9
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class Evidence(NamedTuple):
    """What is known of the candidates and their passages; arrays are in the order of their numbers."""

    candidates: Candidates
    passages: Passages
    words: Scores  # of the passages, shape (texts, passages)
    cosines: Scores  # of the candidates, shape (texts, candidates); NaN where the store gave none
    text_weights: Sequence[float]
    named: Scores  # whether the question names their speaker or subject, from -1 to 1, shape (candidates)
    phrases: Scores  # whether they have a name of the question word for word, 0 or 1, shape (candidates)
    times: Scores  # how well their time fits, from 0 to 1, shape (candidates)
    fits: NDArray[np.bool_]  # whether the passages have enough to do with the question, shape (passages)
    prefers: NDArray[np.bool_]  # whether they say what a person prefers and the question asks for advice, (passages)
    asks_when: bool = False
    accessed: Mapping[str, str] = {}  # when each candidate was used last, ISO 8601, by its key
    cosine_worth: float = 1.0  # of the embedder, beside words


class Order:
    """The candidates in their order: a record weighs what its best passage weighs.

    Attributes:
        totals: What each candidate weighs.
        passages: What each passage weighs.
        ranked: The candidates' numbers, best first.
    """

    def __init__(self, evidence: Evidence, weights: Weights) -> None:
        import numpy as np

        records, passages = evidence.candidates.records, evidence.passages
        self._evidence = evidence
        self._ties = evidence.candidates.alphabetical()
        words = _weighted_sum(evidence.words, evidence.text_weights)
        meaning = _by_maximum(_weighted_sum(_fill_cosines(evidence.cosines), evidence.text_weights))
        published = weights.scoring == "generative_agents"
        self._recency = _recency(evidence.candidates, evidence.accessed if published else {})
        self._importance = np.clip([record.importance for record in records], 0.0, 10.0) / 10.0
        relevance = weights.words * words + weights.of_meaning(evidence.cosine_worth) * meaning[passages.records]
        self._relevance = _by_maximum(passages.best_of_each(relevance))
        self._words = passages.best_of_each(words)
        scores = relevance - weights.chances * (1 - 1 / passages.of) + weights.prefers * evidence.prefers
        best = passages.best_of_each(scores)
        if published:
            self._relevance = _from_zero_to_one(meaning if meaning.any() else self._words)
            self._recency = _from_zero_to_one(self._recency)
            self.totals = self._relevance + self._recency + _from_zero_to_one(self._importance)
        else:
            self.totals = (
                best
                + weights.named * evidence.named
                + weights.phrase * evidence.phrases
                + weights.time * evidence.times
                + weights.importance * self._importance
                + weights.recency * self._recency
            )
            if weights.answers:
                answers = [_answers(record, asks_when=evidence.asks_when) for record in records]
                self.totals += weights.answers * np.array(answers)
        self.passages = scores + (self.totals - best)[passages.records]
        self.ranked: list[int] = np.lexsort((self._ties, -self.totals)).tolist()
        self._by_words = _ranks(self._words, self._ties)
        cosines = _weighted_sum(np.nan_to_num(evidence.cosines), evidence.text_weights)
        self._by_meaning = _ranks(cosines, self._ties)

    @cached_property
    def reasons(self) -> list[Reason]:
        """What the weight of each candidate is made of."""
        evidence = self._evidence
        parts = (self._relevance, self._recency, self._importance, evidence.times, evidence.named)
        ranks = (
            [ranks.get(number) for number in range(len(self.ranked))] for ranks in (self._by_meaning, self._by_words)
        )
        return list(map(Reason, *(part.tolist() for part in parts), *ranks, (evidence.phrases > 0).tolist()))


def _weighted_sum(parts: Scores, weights: Sequence[float]) -> Scores:
    """Add up the scores for several texts, each divided by its maximum and weighed."""
    import numpy as np

    total = np.zeros(parts.shape[1])
    for part, weight in zip(parts, weights, strict=True):
        total += weight * _by_maximum(part)
    return total


def _fill_cosines(cosines: Scores) -> Scores:
    """Give neighbours, which the store did not propose, the least cosine of what it proposed.

    Unknown is not far: between two texts of one conversation a sentence model's cosine is seldom near 0.
    """
    import numpy as np

    known = ~np.isnan(cosines)
    least = np.min(cosines, axis=1, initial=np.inf, where=known)
    return np.where(known, cosines, np.where(np.isinf(least), 0.0, least)[:, None])


def _recency(candidates: Candidates, accessed: Mapping[str, str]) -> Scores:
    """Return 0.995 to the hours between each record and the latest: the same whenever it is asked; 0 without a time.

    The ratio of any two records is 0.995 to the hours between them; dividing by the maximum takes "now" out.
    """
    import numpy as np

    last = [
        read_time(accessed.get(key, record.stamp.said_at))
        for (_, key), record in zip(candidates.ids, candidates.records, strict=True)
    ]
    hours = np.array([-np.inf if then is None else (then - _EPOCH).total_seconds() / 3600 for then in last])
    latest = hours.max(initial=-np.inf)
    return np.zeros(len(candidates)) if np.isinf(latest) else _DECAY ** (latest - hours)


def _answers(record: Record, *, asks_when: bool) -> float:
    """Return -1 for an utterance that is a question, and 1 for a record that names a time if one is asked for."""
    asks = "speaker" in record.stored and record.text.rstrip().endswith("?")
    return float(asks_when and names_time(record.text)) - float(asks)


def _ranks(scores: Scores, ties: NDArray[np.intp]) -> dict[int, int]:
    """Return the ranks, from 1, of those that score at all."""
    import numpy as np

    order: list[int] = np.lexsort((ties, -scores)).tolist()
    return {number: rank for rank, number in enumerate(order, 1) if scores[number] > 0}


def _by_maximum(scores: Scores) -> Scores:
    import numpy as np

    return np.maximum(divide_by_maximum(scores), 0.0)


def _from_zero_to_one(scores: Scores) -> Scores:
    """Scale scores so that the least is 0 and the most 1, as published; 0.5 for all if they are equal."""
    import numpy as np

    if not len(scores):
        return scores
    least, span = float(scores.min()), float(np.ptp(scores))
    return (scores - least) / span if span > _LEAST else np.full(len(scores), 0.5)
