"""The order of the candidates, and which of them have enough to do with the question, from nothing but the candidates.

- Each part of a score is divided by its maximum over the candidates, and the parts are added up (docs/figures.md).
- Coverage is how much of a question's words a record has. How much is enough depends on whom the question names: a name
  that nobody ever said is the best sign that nothing is known (docs/figures.md, "What was never told").
- A long record is ranked and shown by its passages.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from questbook.memory.recall.candidates import Candidates
from questbook.memory.recall.names import name_words
from questbook.memory.recall.query import Reason, Weights, said_in
from questbook.memory.recall.times import TIME_WORDS, names_time
from questbook.memory.text.bm25 import TextWords, WordTable, divide_by_maximum
from questbook.memory.text.passages import Span, cut_messages
from questbook.memory.text.words import fold_case, is_latin, query_words
from questbook.memory.timeline.records import Record, read_time

Scores = NDArray[np.float64]

_DECAY = 0.995  # for each hour, Park et al. 2023
_LEAST = 1e-9
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

OF_KNOWN, OF_NOBODY, OF_STRANGERS = 1 / 10, 1 / 5, 1 / 3
"""Coverage that a record needs: if the question names someone whom a record names, if it names nobody, and if it names
only those whom no record names."""

_CLOSE, _FAR = 0.5, 0.2  # shares of the best cosine (docs/figures.md, "What changed")
_ASKING_WORDS = re.findall(r"\w+", "know knew known tell told say said hear heard think mean mention remember recall")
_ALIKE = 0.85  # of two spellings of one word, such as Gretta and Greta; difflib's ratio
_LONGER, _OTHER = 2, 3  # letters that one of two spellings may have more, and that only one of them may have
_CAPITALISED = re.compile(r"(?<![^\W_])[^\W\d_a-z][^\W\d_]*")
_SHORT = 3  # letters: Tim is no misspelling of "time"


class Passages(NamedTuple):
    """Passages of all candidates, those of one candidate together, in the order in which they were said."""

    texts: list[str]
    spans: list[Span]  # in what their records say (`said_in`)
    records: NDArray[np.intp]  # the numbers of their candidates
    of: NDArray[np.float64]  # how many passages their message has
    persons: NDArray[np.bool_]  # whether they are the person's
    rows: NDArray[np.intp]  # the numbers of the rows of turns that they are in, as `WordTable` takes them
    starts: NDArray[np.intp]  # the first passage of each candidate, by its number

    @classmethod
    def of_candidates(cls, candidates: Candidates) -> Self:
        """Cut the candidates into passages."""
        places = [(number, row) for row, members in enumerate(candidates.rows()) for number in members]
        cut = [cut_messages(*said_in(candidates.records[number].stored)) for number, _ in places]
        counts = [len(passages.spans) for passages in cut]
        numbers, rows = np.array(places, np.intp).reshape(-1, 2).T
        starts = np.zeros(len(candidates), np.intp)
        starts[numbers] = np.cumsum([0, *counts])[:-1]
        texts = [text for passages in cut for text in passages.texts]
        spans = [span for passages in cut for span in passages.spans]
        of = np.array([share for passages in cut for share in passages.of], np.float64)
        persons = np.array([is_person for passages in cut for is_person in passages.persons], np.bool_)
        return cls(texts, spans, np.repeat(numbers, counts), of, persons, np.repeat(rows, counts), starts)

    def best_of_each(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the best score of each candidate's passages, by the candidates' numbers."""
        if not len(self.starts):
            return scores
        order, best = np.argsort(self.starts), np.empty(len(self.starts))
        best[order] = np.maximum.reduceat(scores, self.starts[order])
        return best


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
    says: NDArray[np.bool_]  # whether they have a word of the question themselves, (passages)
    prefers: NDArray[np.bool_]  # whether they say what a person prefers and the question asks for advice, (passages)
    asks_when: bool
    cosine_worth: float  # of the embedder, beside words


class Order:
    """The candidates in their order: a record weighs what its best passage weighs.

    `totals` are the weights of the candidates, `passages` those of the passages, `ranked` the candidates' numbers, best
    first. `accessed` says when each was used last, ISO 8601, by its key; for the scoring "generative_agents".
    """

    def __init__(self, evidence: Evidence, weights: Weights, accessed: Mapping[str, str]) -> None:
        records, passages = evidence.candidates.records, evidence.passages
        self.evidence = evidence
        ids = evidence.candidates.ids
        # Ids decide between equals, and so always in the same way.
        self._ties = np.argsort(sorted(range(len(ids)), key=ids.__getitem__))
        words = _weighted_sum(evidence.words, evidence.text_weights)
        meaning = _by_maximum(_weighted_sum(_fill_cosines(evidence.cosines), evidence.text_weights))
        published = weights.scoring == "generative_agents"
        self._recency = _recency(evidence.candidates, accessed if published else {})
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
            totals = best + weights.named * evidence.named + weights.phrase * evidence.phrases
            totals = totals + weights.time * evidence.times + weights.importance * self._importance
            self.totals = totals + weights.recency * self._recency
            if weights.answers:
                answers = [_answers(record, asks_when=evidence.asks_when) for record in records]
                self.totals += weights.answers * np.array(answers)
        self.passages = scores + (self.totals - best)[passages.records]
        self.ranked: list[int] = np.lexsort((self._ties, -self.totals)).tolist()
        self._by_words = _ranks(self._words, self._ties)
        self._by_meaning = _ranks(_weighted_sum(np.nan_to_num(evidence.cosines), evidence.text_weights), self._ties)

    @cached_property
    def reasons(self) -> list[Reason]:
        """What the weight of each candidate is made of."""
        evidence = self.evidence
        parts = (self._relevance, self._recency, self._importance, evidence.times, evidence.named)
        ranks = (list(map(way.get, range(len(self.ranked)))) for way in (self._by_meaning, self._by_words))
        columns = (*(part.tolist() for part in parts), *ranks, (evidence.phrases > 0).tolist(), [""] * len(self.ranked))
        return list(map(Reason._make, zip(*columns, strict=True)))


def _weighted_sum(parts: Scores, weights: Sequence[float]) -> Scores:
    """Add up the scores for several texts, each divided by its maximum and weighed."""
    total = np.zeros(parts.shape[1])
    for part, weight in zip(parts, weights, strict=True):
        total += weight * _by_maximum(part)
    return total


def _fill_cosines(cosines: Scores) -> Scores:
    """Give neighbours, whose cosine is not known, the least one of what the store proposed: unknown is not far."""
    known = ~np.isnan(cosines)
    least = np.min(cosines, axis=1, initial=np.inf, where=known)
    return np.where(known, cosines, np.where(np.isinf(least), 0.0, least)[:, None])


def _recency(candidates: Candidates, accessed: Mapping[str, str]) -> Scores:
    """Return 0.995 to the hours between each record and the latest, so that "now" does not count; 0 without a time."""
    of_keys = zip(candidates.ids, candidates.records, strict=True)
    last = [read_time(accessed.get(key, record.stamp.said_at)) for (_, key), record in of_keys]
    hours = np.array([-np.inf if then is None else (then - _EPOCH).total_seconds() / 3600 for then in last])
    latest = hours.max(initial=-np.inf)
    return np.zeros(len(candidates)) if np.isinf(latest) else _DECAY ** (latest - hours)


def _answers(record: Record, *, asks_when: bool) -> float:
    """Return -1 for an utterance that is a question, and 1 for a record that names a time if one is asked for."""
    asks = "speaker" in record.stored and record.text.rstrip().endswith("?")
    return float(asks_when and names_time(record.text)) - float(asks)


def _ranks(scores: Scores, ties: NDArray[np.intp]) -> dict[int, int]:
    """Return the ranks, from 1, of those that score at all."""
    order: list[int] = np.lexsort((ties, -scores)).tolist()
    return {number: rank for rank, number in enumerate(order, 1) if scores[number] > 0}


def _by_maximum(scores: Scores) -> Scores:
    return divide_by_maximum(scores).clip(0.0)


def _from_zero_to_one(scores: Scores) -> Scores:
    """Scale scores so that the least is 0 and the most 1, as published; 0.5 for all if they are equal."""
    if not len(scores):
        return scores
    least, span = float(scores.min()), float(np.ptp(scores))
    return (scores - least) / span if span > _LEAST else np.full(len(scores), 0.5)


# Coverage


class Named(NamedTuple):
    """What a question names."""

    words: Sequence[str]  # by which it names a person, as the records spell them (`names.name_words`)
    known: bool  # whether it names the speaker or subject of a record
    time: bool  # whether it names a time
    latin: bool  # whether it is written in Latin letters; of others no stop words and stems are known


Closeness = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Which texts are close in meaning to a question, and which are far from it."""


def covers(
    table: WordTable, weights: Sequence[float], named: Named, closeness: Closeness | None = None
) -> NDArray[np.bool_]:
    """Return which records cover enough of a question, or of a hint: by its weight, less of it counts.

    `table` has the words of the question and its hints in the records, `weights` are theirs; the question is heaviest.
    With `closeness`, of an embedder that knows more than spelling, a record that is close needs no words, and one that
    is far does not come for its words alone, unless the question names only those whom no record names.
    """
    is_known = named.known or any(table.has(name) for name in named.words)
    required = OF_KNOWN if is_known else OF_STRANGERS if named.words else OF_NOBODY if named.latin else OF_KNOWN
    ignored = (*_ASKING_WORDS, *(TIME_WORDS if named.time else ()))
    shares = [table.coverage(number, ignored) * (weight / max(weights)) for number, weight in enumerate(weights)]
    enough: NDArray[np.bool_] = np.max(shares, axis=0) >= required
    if closeness is None or required == OF_STRANGERS:
        return enough
    close, far = closeness
    return (enough & ~far) | close


def compare_meanings(cosines: NDArray[np.float64], weights: Sequence[float]) -> Closeness:
    """Compare each candidate's cosine with the best one; NaN, where the store gave none, is neither close nor far.

    `cosines` have the shape (texts, candidates); a text whose weight is 0 only proposes candidates.
    """
    nearest = np.fmax.reduce(cosines[np.asarray(weights) > 0])  # passes over NaN
    best = np.nanmax(nearest, initial=0.0)
    return nearest >= _CLOSE * best, nearest < _FAR * best


def find_spellings(
    words: Iterable[str], names: Sequence[str], texts: Sequence[str], text_words: TextWords
) -> dict[str, str]:
    """Return how texts spell words, in small letters, that none of them has: "greta" for "gretta", "книгу" for "книга".

    A text must write as a name what spells one of `names` otherwise. `text_words` are the words of the texts.
    """
    missing = [word for word in words if len(word) > _SHORT]
    if not missing:
        return {}
    capitalised = set(_CAPITALISED.findall("\n".join(texts))) if set(missing) & set(names) else set[str]()
    written_as_names = {fold_case(word) for word in capitalised if word[0].isupper()}
    spellings: dict[str, str] = {}
    for word in missing:
        candidates = written_as_names if word in names else text_words.spelled_like(word, _LONGER)
        others = [each for each in candidates if each[0] == word[0] and abs(len(each) - len(word)) <= _LONGER]
        letters = set(word)
        near = [each for each in others if len(letters.symmetric_difference(each)) <= _OTHER]
        alike = get_close_matches(word, near, 1, _ALIKE)
        if not alike and not is_latin(word):
            alike = sorted(other for other in others if _are_alike(word, other))
        spellings |= {word: alike[0]} if alike else {}
    return spellings


def fits(question: str, texts: Sequence[str]) -> list[bool]:
    """Return which texts cover enough of a question, by their words alone."""
    if not texts:
        return []
    words, names = query_words(question), name_words(question)
    table, spellings = count_words(texts, [words], names)
    named = Named([spellings.get(name, name) for name in names], known=False, time=False, latin=is_latin(question))
    enough: list[bool] = covers(table, [1.0], named).tolist()
    return enough


def count_words(
    texts: Sequence[str],
    searched: Sequence[Sequence[str]],
    names: Sequence[str],
    rows: NDArray[np.intp] | None = None,
    nearby: float = 0.0,
) -> tuple[WordTable, dict[str, str]]:
    """Count words in texts, those that none of them has as the texts spell them; return the spellings.

    `searched` are the words of each query, `names` those that are written as names, all in small letters; `rows` and
    `nearby` are as for `WordTable`.
    """
    text_words = TextWords(texts)
    table = WordTable(text_words, searched, rows, nearby)
    missing = {word: None for words in searched for word in words if not table.has(word)}
    spellings = find_spellings(missing, names, texts, text_words)
    if not spellings:
        return table, {}
    respelt = [[spellings.get(word, word) for word in words] for words in searched]
    return WordTable(text_words, respelt, rows, nearby), spellings


def _are_alike(word: str, other: str) -> bool:
    """Return whether a word of another script than Latin has another's beginning: no stems of such words are known."""
    reach = max(min(_SHORT + 1, len(word) - 1), len(word) - 2)
    return word[:reach] == other[:reach]
