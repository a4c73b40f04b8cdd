"""Recall: find the records that help with a question, over any LangGraph store, with or without a graph.

The store proposes candidates (`questbook.memory.recall.candidates`). The order is made here (`order`), from nothing but
what the timeline may see: word scores of each record and its neighbours, the cosine, who is named, when it was, how
much it matters. So what other futures have written weighs nothing, and a store that only knows vectors finds names and
numbers too. A checkpoint always recalls the same, as long as it sees no more records than there are candidates, or the
store proposes them by what the timeline sees.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langgraph.store.base import BaseStore

from questbook.memory.embeddings.embedders import embedder_of
from questbook.memory.recall.access import last_accesses
from questbook.memory.recall.candidates import (
    NO_NEIGHBOUR,
    OFFSETS,
    Candidates,
    RecordId,
    Scope,
    gather_candidates,
)
from questbook.memory.recall.coverage import Named, count_words, covers
from questbook.memory.recall.names import (
    content_words,
    find_aliases,
    find_names,
    has_name,
    name_words,
    named_in,
    remove_words,
    score_named,
)
from questbook.memory.recall.order import Evidence, Order
from questbook.memory.recall.query import Namespace, Query, Recalled, WeightedText
from questbook.memory.recall.times import AskedTime, read_asked_time, score_time
from questbook.memory.text.words import count_tokens, is_latin, query_words, split_words
from questbook.memory.timeline.namespaces import check_namespace
from questbook.memory.timeline.privacy import WITHHELD, may_know
from questbook.memory.timeline.records import utc_date
from questbook.memory.timeline.timeline import UserTimeline
from questbook.types import JSON

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LATEST = 100  # records that generative_agents looks at for being recent, whatever they say
_MOST_DATES = 8  # days or months, each of which is searched by itself; a longer time needs no search of its own
_ANCHORS = 8  # records that may tell of the event that a question names
_SAME = 0.9  # share of the words of two texts that both have, from which on they say the same
_OF_THAT_TIME = 0.5  # a record's time from which on it fits the time asked for, whatever it says
# Hashed spelling reaches this cosine for one or two of a hundred questions about what nobody said.
_SPELT_ALIKE = 0.5
_ASKS_WHEN = re.compile(r"\b(?:when|what\s+(?:day|date|month|year|time)|how\s+long\s+ago)\b", re.IGNORECASE)


async def recall(store: BaseStore, namespaces: Namespace | Sequence[Namespace], query: str | Query) -> list[Recalled]:
    """Return the records that fit a question best, best first.

    Args:
        store: Any store.
        namespaces: Where the records of the timeline are, one namespace or several.
        query: What to recall. A text alone is a question to all records of the namespaces.

    Raises:
        ValueError: A namespace is a text; expected is a tuple.
    """
    query = Query(query) if isinstance(query, str) else query
    spaces = _several(namespaces)
    ranking = await _rank(store, spaces, query)
    if query.aliases and (names := find_aliases(ranking.records, query.text)):
        ranking = await _rank(store, spaces, replace(query, text="\n".join([query.text, *names])))
    different = _fold_duplicates(ranking.records, query.limit)
    chosen = _fit_budget(different, query.limit, query.budget, query.cost or _count_tokens)
    return chosen if ranking.evidence is None else _add_questions(chosen, ranking.evidence)


class _Ranking(NamedTuple):
    """Records in their order, and what it is made of."""

    records: Iterable[Recalled]
    evidence: Evidence | None


class _Question(NamedTuple):
    """What a query asks for.

    Attributes:
        text: The question.
        time: The time that it names.
        names: The names of several words that it has.
        texts: What is searched for: the question and its hints without names of speakers; then the names, which bring
            what has them and order nothing; last the anchor, if the time has one.
    """

    text: str
    time: AskedTime
    names: list[str]
    texts: list[WeightedText]

    @classmethod
    def of(cls, query: Query) -> _Question | None:
        """Read a query; None if it asks for nothing."""
        if not query.texts:
            return None
        heaviest = max(query.texts, key=lambda text: text.weight)
        text, present = heaviest.text, query.present
        now = present.now or datetime.now(UTC)
        time = read_asked_time(text, now, day=present.day, session=present.session)
        speakers = frozenset(word for words in named_in(text, query.speakers).values() for word in words)
        names = find_names(text, speakers)
        texts = [WeightedText(remove_words(one.text, speakers), one.weight) for one in query.texts]
        texts += [WeightedText(name, 0.0) for name in names]
        texts += [WeightedText(time.anchor, heaviest.weight)] if time.anchor else []
        return cls(text, time, names, texts)


async def _rank(store: BaseStore, spaces: Sequence[Namespace], query: Query) -> _Ranking:
    """Put in order all that the store proposes and the viewer may know."""
    question = _Question.of(query)
    timeline, before = query.timeline, query.before
    sees_nothing = timeline is not None and not timeline and not isinstance(timeline, UserTimeline)
    if question is None or (sees_nothing and not query.lasting):
        return _Ranking([], None)
    rewinding = [Scope(space, timeline, before, _narrow_filters(question.time)) for space in spaces]

    def may_show(value: Mapping[str, Any]) -> bool:
        return not value.get(WITHHELD) and (query.secrets or may_know(value, query.viewer))

    accessed: Mapping[str, str] = {}
    wanted: set[RecordId] = set()
    if query.weights.scoring == "generative_agents" and timeline:
        turn = before or timeline[-1][1] + 1
        accessed = await last_accesses(store, query.accesses, timeline, turn) if query.accesses else {}
        for scope in rewinding:
            wanted |= {(scope.namespace, key) for key in accessed} | scope.latest(_LATEST)
    candidates = await gather_candidates(
        store,
        [*rewinding, *map(Scope, query.lasting)],
        question.texts,
        wanted=wanted,
        timeline=timeline,
        before=before,
        may_show=may_show,
    )
    worth = float(getattr(embedder_of(store), "fusion_weight", 1.0))

    def put_in_order() -> tuple[Evidence, Order]:
        evidence = _weigh(candidates, question, query, worth)._replace(accessed=accessed)
        return evidence, Order(evidence, query.weights)

    # In a thread: words are stemmed by SQLite, and LangGraph's server lets nothing block its event loop.
    evidence, order = await asyncio.to_thread(put_in_order)
    records: Iterable[Recalled] = _in_order(evidence, order, query)
    if query.refine is not None:
        records = await query.refine(list(records))
    elif query.aliases:
        records = list(records)
    if query.rerank is not None:
        records = list(records)
        best = await query.rerank(query.text, records[: query.reranked])
        records = [*best, *records[query.reranked :]]
    return _Ranking(records, evidence)


def _weigh(candidates: Candidates, question: _Question, query: Query, cosine_worth: float) -> Evidence:
    """Compare each candidate with the question."""
    import numpy as np

    records, near = candidates.records, candidates.near()
    texts = [record.text for record in records]
    voices = {record.speaker for record in records if record.speaker} | set(query.speakers)
    speakers = named_in(question.text, sorted(voices))
    subjects = named_in(question.text, sorted({record.subject for record in records if record.subject}))
    naming = frozenset(word for words in speakers.values() for word in words)
    searched = [content_words(text.text, naming) for text in question.texts]
    names, shares = name_words(question.text), query.weights.neighbours
    table, spellings = count_words(texts, searched, names, near, shares)
    words = table.scores()
    time, count = question.time, len(question.texts)
    anchor = None
    if time.anchor:
        anchor, count = _anchor(words[-1], candidates, time), count - 1
    nothing = np.zeros(len(records))
    cosines = candidates.cosine_matrix()
    phrases = np.array([float(has_name(text, question.names)) for text in texts]) if question.names else nothing
    times = nothing
    if time.is_named:
        turns = [_anchor_turn(candidates, number, anchor) for number in range(len(records))]
        times = np.array(list(map(partial(score_time, time), records, turns)))
    names = [spellings.get(name, name) for name in names]
    named = Named(names, bool(speakers or subjects), time.is_named, is_latin(question.text))
    knows_meaning = cosine_worth >= 1.0 and not np.isnan(cosines).all()
    alike = np.fmax.reduce(np.nan_to_num(cosines), initial=0.0) >= _SPELT_ALIKE
    weights = [text.weight for text in question.texts]
    fits = covers(table, weights, texts, named, knows_meaning=knows_meaning)
    fits |= (alike & (cosine_worth < 1.0)) | (phrases > 0) | (times >= _OF_THAT_TIME)
    fits |= np.array([record.subject in subjects for record in records], np.bool_)
    return Evidence(
        candidates=candidates,
        near=near,
        words=words[:count],
        cosines=cosines[:count],
        text_weights=[text.weight for text in question.texts[:count]],
        named=np.array([score_named(record, speakers, subjects) for record in records]),
        phrases=phrases,
        times=times,
        fits=fits,
        asks_when=_ASKS_WHEN.search(question.text) is not None,
        cosine_worth=cosine_worth,
    )


def _in_order(evidence: Evidence, order: Order, query: Query) -> Iterator[Recalled]:
    """Yield the candidates in their order, but those that do not fit and those that are too far away."""
    import numpy as np

    candidates, farthest = evidence.candidates, query.max_cosine_distance
    fitting = query.fitting and query.weights.scoring != "generative_agents"  # which recalls what is recent, too
    nearest = np.fmax.reduce(evidence.cosines)  # passes over NaN
    unknown = np.isnan(nearest)
    if unknown.all():
        farthest = None  # the store makes no vectors
    # As lists: to take single numbers out of arrays is slow.
    scores = [None if no else score for score, no in zip(nearest.tolist(), unknown.tolist(), strict=True)]
    totals, fits = order.totals.tolist(), evidence.fits.tolist()
    ranked = [number for number in order.ranked if fits[number] or not fitting]
    if farthest is not None:
        ranked = [number for number in ranked if (score := scores[number]) is not None and 1 - score <= farthest]
    if query.weights.scoring == "sum":
        ranked = order.with_places_for_notes(ranked)
    reasons = order.reasons
    for number in ranked:
        namespace, key = candidates.ids[number]
        yield Recalled(
            key, candidates.records[number].stored, scores[number], totals[number], namespace, reasons[number]
        )


def _several(namespaces: Namespace | Sequence[Namespace]) -> list[Namespace]:
    check_namespace(cast("Namespace", namespaces))
    if namespaces and isinstance(namespaces[0], str):
        return [cast("Namespace", tuple(namespaces))]
    return [tuple(namespace) for namespace in namespaces]


# Times


def _narrow_filters(time: AskedTime) -> list[JSON]:
    """Return store filters for records of the time that is asked for, which are proposed as well.

    They compare for equality alone: InMemoryStore fails on a range if any record lacks the field.
    """
    filters: list[JSON] = []
    if time.start is not None and time.end is not None:
        first, last = utc_date(time.start), utc_date(time.end)
        months = range(12 * first.year + first.month - 1, 12 * last.year + last.month)
        if (days := (last - first).days + 1) <= _MOST_DATES:
            filters += [{"date": f"{first + timedelta(days=n):%Y%m%d}".zfill(8)} for n in range(days)]
        elif len(months) <= _MOST_DATES:
            filters += [{"month": f"{month // 12:04}{month % 12 + 1:02}"} for month in months]
    if time.days is not None and time.days[0] == time.days[1]:
        filters.append({"day": time.days[0]})
    if time.sessions is not None and time.sessions[0] == time.sessions[1]:
        filters.append({"session": time.sessions[0]})
    return filters


def _anchor_turn(candidates: Candidates, number: int, anchor: int | None) -> int | None:
    """Return the anchor's turn, if a candidate's turn can be compared with it: another thread counts its own turns."""
    if anchor is None or candidates.thread(anchor) != candidates.thread(number):
        return None
    return candidates.records[anchor].stamp.turn


def _anchor(scores: NDArray[np.float64], candidates: Candidates, time: AskedTime) -> int | None:
    """Return the number of the record that best tells of the event that a question names.

    None if no record tells half of it, or if one itself says "before the snow": then the question asks for that record,
    not for what came before it.

    Args:
        scores: Of the candidates, by the words of the event.
        candidates: The candidates.
        time: The time that the question names.
    """
    asked = set(query_words(time.anchor))
    records, ids = candidates.records, candidates.ids
    best = sorted(range(len(records)), key=lambda n: (-scores[n], records[n].stamp.turn, ids[n]))[:_ANCHORS]
    split = [split_words(records[number].text) for number in best]
    if any(_says_relation(words, time, asked) for words in split):
        return None
    for number, words in zip(best, split, strict=True):
        turn = records[number].stamp.turn
        if turn and asked and 2 * _count_shared(asked, words) >= len(asked):
            return number
    return None


def _says_relation(words: Sequence[str], time: AskedTime, asked: set[str]) -> bool:
    """Return whether words name the relation and its event, such as "before the first snow"."""
    reach = len(split_words(time.anchor)) + 2
    return any(word == time.relation and asked <= set(words[n + 1 : n + 1 + reach]) for n, word in enumerate(words))


def _count_shared(asked: Iterable[str], words: Sequence[str]) -> int:
    """Count the words asked for that a text has; inflected words are compared by their first letters."""
    heads = [(word, max(4, len(word) - 2)) for word in asked]
    return sum(any(other[:length] == word[:length] for other in words) for word, length in heads)


# What of the order is chosen: nothing twice, no more than fits, no answer without its question


def _fold_duplicates(records: Iterable[Recalled], limit: int) -> list[Recalled]:
    """Fold records of one speaker that say the same into the best of them; return at most twice `limit` records."""
    kept: list[Recalled] = []
    compared: list[tuple[list[str], object]] = []
    vocabulary = set[str]()
    different = cache(lambda number: set(compared[number][0]))  # words of a text that was kept
    for record in records:
        words, before = str(record.value.get("text", "")).casefold().split(), len(vocabulary)
        vocabulary.update(words)
        speaker, same = record.value.get("speaker"), None
        # Most texts have words that none before them has, too many of them to say the same as any.
        if len(vocabulary) - before <= (1 - _SAME) * len(words) + 1:
            own = set(words)
            same = next(
                (n for n, (_, by) in enumerate(compared) if by == speaker and _say_the_same(own, different(n))), None
            )
        if same is not None:
            kept[same] = kept[same]._replace(folded=(*kept[same].folded, record.key))
        elif len(kept) >= 2 * limit:
            break
        else:
            kept.append(record)
            compared.append((words, speaker))
    return kept


def _say_the_same(words: set[str], other: set[str]) -> bool:
    both = len(words & other)
    return both > 0 and both >= _SAME * (len(words) + len(other) - both)


def _fit_budget(
    records: Sequence[Recalled], limit: int, budget: int | None, cost: Callable[[Recalled], int]
) -> list[Recalled]:
    """Take the first few, or those that fit into a budget: one that does not is passed over for smaller ones."""
    if budget is None:
        return list(records[:limit])
    kept: list[Recalled] = []
    for record in records:
        if len(kept) < limit and (tokens := cost(record)) <= budget:
            kept.append(record)
            budget -= tokens
    return kept


def _add_questions(records: Sequence[Recalled], evidence: Evidence) -> list[Recalled]:
    """Give each answer the question that it belongs to, unless that is recalled itself."""
    candidates = evidence.candidates
    numbers = [candidates.number((record.namespace, record.key)) for record in records]
    with_questions = []
    for record, number in zip(records, numbers, strict=True):
        before = NO_NEIGHBOUR if number is None else int(evidence.near[number, OFFSETS.index(-1)])
        if before != NO_NEIGHBOUR and before not in numbers:
            question = candidates.records[before]
            if question.text.rstrip().endswith("?"):
                record = record._replace(question=question.stored)
        with_questions.append(record)
    return with_questions


def _count_tokens(record: Recalled) -> int:
    return count_tokens(record.text)
