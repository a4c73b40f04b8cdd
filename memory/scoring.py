"""Scoring: putting candidates in order, from nothing but the candidates, which the timeline sees.

Each part is divided by its maximum over the candidates and the parts are added up; the sum finds more than reciprocal
rank fusion does (docs/memory.md). The scoring of Generative Agents (Park et al. 2023) is there for who wants it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memory.fit import moment
from memory.neighbours import Place
from memory.recalled import Reason
from memory.weights import Weights
from memory.when import names_time

_DECAY = 0.995  # for each hour, Park et al. 2023
_LEAST = 1e-9
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

Scores = Mapping[Place, float]


class Evidence(NamedTuple):
    """What is known of the candidates; every mapping may leave some out.

    Attributes:
        values: The records.
        near: Where each one's neighbours are kept, by distance in turns.
        words: For each query, word scores.
        cosines: For each query, cosines.
        queries: The weight of each query.
        named: Whether the query names their speaker or subject, from -1 to 1.
        times: How well their time fits, 0 to 1.
        asks_when: Whether the query asks when something was.
        accessed: When each was used last, by key.
        worth: What the embedder's cosine is worth beside words.
    """

    values: Mapping[Place, Mapping[str, Any]]
    near: Mapping[Place, Mapping[int, Place]]
    words: Sequence[Scores]
    cosines: Sequence[Scores]
    queries: Sequence[float]
    named: Scores
    times: Scores
    asks_when: bool = False
    accessed: Mapping[str, str] = {}
    worth: float = 1.0


def order(found: Evidence, weights: Weights) -> list[tuple[Place, float, Reason]]:
    """Return the candidates, best first, with the weighed sum and what it is made of."""
    places = sorted(found.values)
    words = _asked(found.words, found.queries)
    meaning = _asked([_completed(part, places) for part in found.cosines], found.queries)
    spread = _spread(found, meaning, weights.spread)
    by_words, by_meaning = _ranks(words), _ranks(_asked(found.cosines, found.queries))
    recency = _recency(found, {} if weights.scoring == "sum" else found.accessed)
    importance = {place: _importance(value) for place, value in found.values.items()}
    worth = weights.of_meaning(found.worth)
    relevance = {place: weights.words * words.get(place, 0.0) + worth * spread.get(place, 0.0) for place in places}
    relevant = _by_maximum(relevance)
    if weights.scoring == "generative_agents":
        relevance = dict(meaning) if meaning else dict(words)
        parts = [
            _between({place: part.get(place, 0.0) for place in places}) for part in (relevance, recency, importance)
        ]
        total = {place: sum(part[place] for part in parts) for place in places}
        relevant, recency = parts[0], parts[1]
    else:
        total = {
            place: relevance[place]
            + weights.named * found.named.get(place, 0.0)
            + weights.time * found.times.get(place, 0.0)
            + weights.answers * (_answers(found.values[place], asks_when=found.asks_when) if weights.answers else 0.0)
            + weights.importance * importance[place]
            + weights.recency * recency.get(place, 0.0)
            for place in places
        }
    ranked = sorted(places, key=lambda place: (-total[place], place))
    return [
        (
            place,
            total[place],
            Reason(
                relevance=relevant.get(place, 0.0),
                recency=recency.get(place, 0.0),
                importance=importance[place],
                time=found.times.get(place, 0.0),
                named=found.named.get(place, 0.0),
                by_meaning=by_meaning.get(place),
                by_words=by_words.get(place),
            ),
        )
        for place in ranked
    ]


def _asked(parts: Sequence[Scores], queries: Sequence[float]) -> dict[Place, float]:
    """Add up the scores for several queries, each divided by its maximum and weighed."""
    total: dict[Place, float] = {}
    for part, weight in zip(parts, queries, strict=True):
        for place, score in _by_maximum(part).items():
            total[place] = total.get(place, 0.0) + weight * score
    return total


def _completed(cosines: Scores, places: Sequence[Place]) -> Scores:
    """Give what the store did not propose, a neighbour of what it did, the least cosine of what it proposed.

    Unknown is not far: between two texts of one conversation a sentence model's cosine is seldom near 0.
    """
    least = min(cosines.values(), default=0.0)
    return {place: cosines.get(place, least) for place in places} if cosines else cosines


def _spread(found: Evidence, meaning: Scores, shares: tuple[float, float]) -> dict[Place, float]:
    """Give each record a share of its neighbours' cosines."""
    total = {}
    for place in found.values:
        near = found.near.get(place, {})
        others = sum(shares[abs(offset) - 1] * meaning.get(other, 0.0) for offset, other in near.items())
        total[place] = meaning.get(place, 0.0) + others
    return _by_maximum(total)


def _recency(found: Evidence, accessed: Mapping[str, str]) -> dict[Place, float]:
    """Return 0.995 to the hours between each record and the latest: the same whenever it is asked.

    Between any two records the ratio is that of 0.995 to the hours until now; dividing by the maximum takes "now" out.
    """
    times: dict[Place, float] = {}
    for place, value in found.values.items():
        then = moment({"said_at": accessed[place[1]]}) if place[1] in accessed else moment(value)
        if then is not None:
            times[place] = (then - _EPOCH).total_seconds() / 3600
    latest = max(times.values(), default=0.0)
    return {place: _DECAY ** (latest - hours) for place, hours in times.items()}


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


def _ranks(scores: Scores) -> dict[Place, int]:
    hits = [place for place, score in scores.items() if score > 0]
    return {place: rank for rank, place in enumerate(sorted(hits, key=lambda one: (-scores[one], one)), 1)}


def _by_maximum(scores: Scores) -> dict[Place, float]:
    most = max(scores.values(), default=0.0)
    return {place: max(score, 0.0) / most for place, score in scores.items()} if most > _LEAST else {}


def _between(scores: Scores) -> dict[Place, float]:
    """Bring scores between 0 for the least and 1 for the most, as published; all alike: 0.5."""
    least, most = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    span = most - least
    return {place: (score - least) / span if span > _LEAST else 0.5 for place, score in scores.items()}
