"""Recall: find the records that help with a question, over any LangGraph store, with or without a graph.

The store proposes candidates (`candidates`). The order is made here (`order`), from nothing but what the timeline may
see: word scores of each record and its neighbours, the cosine, who is named, when it was, how much it matters. So what
other futures have written weighs nothing, and a store that only knows vectors finds names and numbers too.

For the scoring of Generative Agents each turn leaves one record with the last accesses of what was used lately.
"""

import asyncio
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, Self, cast

import numpy as np
from langgraph.store.base import BaseStore, PutOp
from numpy.typing import NDArray

from questbook.memory.embeddings.embedders import embedder_of
from questbook.memory.recall.candidates import Candidates, RecordId, Scope, gather_candidates
from questbook.memory.recall.choice import choose
from questbook.memory.recall.intents import asks_for_advice, prefers, standing_span
from questbook.memory.recall.names import (
    content_words,
    find_aliases,
    find_names,
    has_name,
    name_words,
    named_in,
    names_of,
    remove_words,
    score_named,
)
from questbook.memory.recall.order import Evidence, Named, Order, Passages, compare_meanings, count_words, covers
from questbook.memory.recall.query import Namespace, Passage, Query, Recalled, WeightedText
from questbook.memory.recall.times import AskedTime, read_asked_time, score_time, time_filters
from questbook.memory.store.any_store import get_values, sync_twin
from questbook.memory.store.rows import remark
from questbook.memory.text.passages import Span
from questbook.memory.text.words import is_latin, query_words, split_words
from questbook.memory.timeline.namespaces import check_namespace
from questbook.memory.timeline.records import STANDING, Stamp, has_metadata, is_hidden, may_know
from questbook.memory.timeline.timeline import Timeline, UserTimeline, branch_of, record_key
from questbook.memory.tracing import traced

_log = logging.getLogger(__name__)
_LATEST = 100  # records that generative_agents looks at for being recent, whatever they say
_ANCHORS = 8  # records that may tell of the event that a question names
_OF_THAT_TIME = 0.5  # a record's time from which on it fits the time asked for, whatever it says
# Hashed spelling reaches this cosine for one or two of a hundred questions about what nobody said.
_SPELT_ALIKE = 0.5
_LONGEST_QUESTION = 2000  # characters at the end of a text in which a time is looked for
_LONG = 32  # words of a question; none answers a longer one as a whole
_ASKING = 4  # words of a sentence that may ask without a question mark
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s++|\n++")
_KEPT = 256  # accesses; older ones have faded like their records
_LOOK_BACK = 8  # turns in which the latest accesses are looked for: a turn that used nothing leaves none
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
    with traced("recall", namespaces=len(spaces), limit=query.limit, budget=query.budget or 0) as seen:
        records = await _rank(store, spaces, query)
        if query.aliases and (names := find_aliases(records, query.text)):
            records = await _rank(store, spaces, replace(query, text="\n".join([query.text, *names])))
        recalled = choose(records, query)
        seen["recalled"] = len(recalled)
        return recalled


class _Question(NamedTuple):
    """What a query asks for: the question, the time and the names of several words that it has.

    What is searched for is the question and its hints without names of speakers; then the names, which bring what has
    them and order nothing; last the anchor, if the time has one.
    """

    text: str
    time: AskedTime
    names: list[str]
    texts: list[WeightedText]

    @classmethod
    def of(cls, query: Query) -> Self | None:
        """Read a query; None if it asks for nothing."""
        if not query.texts:
            return None
        heaviest = max(query.texts, key=lambda text: text.weight)
        text, present = heaviest.text, query.present
        plain = " ".join(text.split())[-_LONGEST_QUESTION:]  # a question stands at the end; blanks take time
        time = read_asked_time(plain, present.now or datetime.now(UTC), day=present.day, session=present.session)
        speakers = frozenset(word for words in named_in(text, query.speakers).values() for word in words)
        names = find_names(text, speakers)
        texts = [WeightedText(remove_words(one.text, speakers), one.weight) for one in query.texts]
        texts += [WeightedText(name, 0.0) for name in names]
        texts += [WeightedText(time.anchor, heaviest.weight)] if time.anchor else []
        return cls(text, time, names, texts)

    @property
    def ends(self) -> list[str]:
        """The first and the last sentence of a long text: what is asked stands before or after what was pasted."""
        sentences = _SENTENCE_END.split(self.text.strip())
        ends = [sentences[0], sentences[-1]] if len(query_words(self.text)) > _LONG else []
        return [end for end in ends if end.endswith("?") or len(query_words(end)) >= _ASKING]  # a greeting asks nothing


async def _rank(store: BaseStore, spaces: Sequence[Namespace], query: Query) -> Iterable[Recalled]:
    """Put in order all that the store proposes and the viewer may know."""
    question = _Question.of(query)
    timeline, before = query.timeline, query.before
    sees_nothing = timeline is not None and not timeline and not isinstance(timeline, UserTimeline)
    if question is None or (sees_nothing and not query.lasting):
        return []
    narrow = time_filters(question.time) + ([] if query.budget is None else [{STANDING: True}])
    rewinding = [Scope(space, timeline, before, narrow) for space in spaces]

    def may_show(value: Mapping[str, Any]) -> bool:
        known = query.visibility == "all" or may_know(value, query.viewer)
        return known and not is_hidden(value) and has_metadata(value, query.metadata)

    accessed: Mapping[str, str] = {}
    wanted: set[RecordId] = set()
    if query.weights.scoring == "generative_agents" and timeline:
        turn = before or timeline[-1][1] + 1
        accessed = await last_accesses(store, query.accesses, timeline, turn) if query.accesses else {}
        for scope in rewinding:
            wanted |= {(scope.namespace, key) for key in accessed} | scope.latest(_LATEST)
    scopes, texts = [*rewinding, *map(Scope, query.lasting)], question.texts
    candidates = await gather_candidates(
        store, scopes, texts, wanted=wanted, timeline=timeline, before=before, may_show=may_show
    )
    # In a thread: words are stemmed by SQLite, and LangGraph's server lets nothing block its event loop.
    order = await asyncio.to_thread(_weigh, candidates, question, query, accessed, embedder_of(store))
    records: Iterable[Recalled] = _in_order(order, query)
    if query.refine is not None:
        # What it puts in is shown to nobody who may not see it.
        records = [record for record in await query.refine(list(records)) if may_show(record.value)]
    elif query.aliases:
        records = list(records)
    if query.rerank is not None:
        records = list(records)
        try:
            first = [*await query.rerank(query.text, records[: query.reranked])]
            if not all(isinstance(record, Recalled) for record in first):
                raise TypeError("it returned something else than records")
            records = [*first, *records[query.reranked :]]
        except Exception:  # noqa: BLE001 (it is the application's; the records have an order of their own)
            _log.warning("rerank failed", exc_info=True)
            remark("The memories are in their usual order: they could not be put in the one that was set up.")
    return records


def _weigh(
    candidates: Candidates, question: _Question, query: Query, accessed: Mapping[str, str], embedder: object
) -> Order:
    """Compare each candidate with the question; where the embedder is unknown (None), none is too far in meaning."""
    cosine_worth = float(getattr(embedder, "fusion_weight", 1.0))
    knows_meaning = None if embedder is None else cosine_worth >= 1.0  # a store in a wrapper may not say what embeds
    records, passages = candidates.records, Passages.of_candidates(candidates)
    speakers = named_in(question.text, sorted({record.speaker for record in records} - {""} | {*query.speakers}))
    subjects = named_in(question.text, sorted({name for record in records for name in names_of(record)}))
    naming = frozenset(word for words in speakers.values() for word in words)
    searched = [content_words(text, naming) for text in [*(each.text for each in question.texts), *question.ends]]
    names = name_words(question.text)
    table, spellings = count_words(passages.texts, searched, names, passages.rows, query.weights.nearby)
    words = table.scores()[: len(question.texts)]
    time, count = question.time, len(question.texts)
    cosines = np.full((count, len(records)), np.nan)  # where the store gave none
    for row, known in zip(cosines, candidates.cosines, strict=True):
        row[list(known)] = list(known.values())
    anchor = None
    if time.anchor:
        anchor, count = _anchor(passages.best_of_each(words[-1]), candidates, time), count - 1
    phrases = times = np.zeros(len(records))
    if question.names:
        phrases = np.array([float(has_name(record.text, question.names)) for record in records])
    if time.is_named:
        # Another thread counts its own turns.
        turn, thread = (None, "") if anchor is None else (records[anchor].stamp.turn, candidates.thread(anchor))
        turns = [turn if candidates.thread(number) == thread else None for number in range(len(records))]
        times = np.array(list(map(partial(score_time, time), records, turns)))
    names = [spellings.get(name, name) for name in names]
    named = Named(names, bool(speakers or subjects), time.is_named, is_latin(question.text))
    alike = np.fmax.reduce(np.nan_to_num(cosines), initial=0.0) >= _SPELT_ALIKE
    exempt = (alike & (cosine_worth < 1.0)) | (phrases > 0) | (times >= _OF_THAT_TIME)
    exempt |= np.array([not subjects.keys().isdisjoint(names_of(record)) for record in records], np.bool_)
    weights = [text.weight for text in question.texts]
    closeness = None
    if knows_meaning is not False and not np.isnan(cosines).all():
        close, far = compare_meanings(cosines, weights)
        if knows_meaning is None:
            close, far = np.ones_like(close), np.zeros_like(far)
        closeness = close[passages.records], far[passages.records]
    fits = covers(table, weights + [max(weights)] * (len(searched) - len(weights)), named, closeness)
    advises, persons = asks_for_advice(question.text), zip(passages.texts, passages.persons, strict=True)
    wishes = np.array([advises and is_person and prefers(text) for text, is_person in persons], np.bool_)
    evidence = Evidence(
        candidates=candidates,
        passages=passages,
        words=words[:count],
        cosines=cosines[:count],
        text_weights=weights[:count],
        named=np.array([score_named(record, speakers, subjects) for record in records]),
        phrases=phrases,
        times=times,
        fits=fits | exempt[passages.records],
        says=table.has_words(0) | (closeness is not None),
        prefers=wishes,
        asks_when=_ASKS_WHEN.search(question.text) is not None,
        cosine_worth=cosine_worth,
    )
    return Order(evidence, query.weights, accessed)


def _in_order(order: Order, query: Query) -> Iterator[Recalled]:
    """Yield the candidates in their order, but those that do not fit and those that are too far away."""
    candidates, farthest = order.evidence.candidates, query.max_cosine_distance
    nearest = np.fmax.reduce(order.evidence.cosines)  # passes over NaN
    unknown = np.isnan(nearest)
    if unknown.all():
        farthest = None  # the store makes no vectors
    # As lists: to take single numbers out of arrays is slow.
    scores = [None if no else score for score, no in zip(nearest.tolist(), unknown.tolist(), strict=True)]
    totals, reasons, fitting = order.totals.tolist(), order.reasons, _fitting_passages(order, query)
    ranked = [number for number in order.ranked if fitting[number]]
    if farthest is not None:
        ranked = [number for number in ranked if (score := scores[number]) is not None and 1 - score <= farthest]
    standing: list[Span | None] = [None] * len(totals)
    if query.budget is not None:
        stored = [record.stored for record in candidates.records]
        standing = [standing_span(str(one.get("player") or "")) if one.get(STANDING) else None for one in stored]
        chosen = set(ranked)
        ranked += [number for number in order.ranked if standing[number] and number not in chosen]
    for number in ranked:
        namespace, key = candidates.ids[number]
        value, weighed = candidates.records[number].stored, (scores[number], totals[number], namespace, reasons[number])
        yield Recalled(key, value, *weighed, passages=tuple(fitting[number]), standing=standing[number])


def _fitting_passages(order: Order, query: Query) -> list[list[Passage]]:
    """Return the passages of each candidate that have enough to do with the question, best first.

    One that only stands near words of the question changes places with the next best that has some.
    """
    fitting = query.fitting and query.weights.scoring != "generative_agents"  # which recalls what is recent, too
    passages, weights, fits = order.evidence.passages, order.passages.tolist(), order.evidence.fits.tolist()
    says = order.evidence.says.tolist()
    found: list[list[tuple[float, Span, bool]]] = [[] for _ in order.totals]
    for record, fit, *passage in zip(passages.records.tolist(), fits, weights, passages.spans, says, strict=True):
        if fit or not fitting:
            found[record].append((-passage[0], passage[1], passage[2]))
    ordered: list[list[Passage]] = []
    for several in found:
        several.sort()
        spans = [span for _, span, _ in several]
        first = next((n for n, (_, _, saying) in enumerate(several) if saying), 0)
        if first:
            spans[0], spans[first] = spans[first], spans[0]
        ordered.append([Passage(span, -weight) for span, (weight, _, _) in zip(spans, several, strict=True)])
    return ordered


def _several(namespaces: Namespace | Sequence[Namespace]) -> list[Namespace]:
    check_namespace(cast("Namespace", namespaces))
    several = [namespaces] if namespaces and isinstance(namespaces[0], str) else namespaces
    return [tuple(cast("Namespace", namespace)) for namespace in several]


def _anchor(scores: NDArray[np.float64], candidates: Candidates, time: AskedTime) -> int | None:
    """Return the number of the candidate that best tells of the event that a question names, by the event's words.

    None if no record tells half of it, or if one itself says "before the snow": then the question asks for that record,
    not for what came before it.
    """
    asked = set(query_words(time.anchor))
    records, ids = candidates.records, candidates.ids
    best = sorted(range(len(records)), key=lambda n: (-scores[n], records[n].stamp.turn, ids[n]))[:_ANCHORS]
    split = {number: split_words(records[number].text) for number in best}
    reach = len(split_words(time.anchor)) + 2
    for words in split.values():
        if any(word == time.relation and asked <= set(words[n + 1 :][:reach]) for n, word in enumerate(words)):
            return None
    # Inflected words are compared by their first letters; of "war" all: "warm" is no form of it.
    heads = [(word, max(4, len(word) - 2)) for word in asked]
    for number, words in split.items():
        shared = sum(any(other[:length] == word[:length] for other in words) for word, length in heads)
        if records[number].stamp.turn and asked and 2 * shared >= len(asked):
            return number
    return None


# When a timeline last used what it recalled, for the scoring of Generative Agents


async def last_accesses(store: BaseStore, namespace: tuple[str, ...], timeline: Timeline, turn: int) -> dict[str, str]:
    """Return when the records that earlier turns used last were used, ISO 8601, by their key; the 256 latest."""
    if not timeline:
        return {}
    turns = [past for past in range(turn - 1, max(turn - 1 - _LOOK_BACK, 0), -1) if past <= timeline[-1][1]]
    places = [(namespace, record_key(branch_of(timeline, past), past, "access")) for past in turns]
    values = await get_values(store, places)
    latest = next((values[place] for place in places if place in values), None)
    return dict(latest["accessed"]) if latest else {}


def access_op(
    namespace: tuple[str, ...], timeline: Timeline, turn: int, known: Mapping[str, str], used: Iterable[str], at: str
) -> PutOp:
    """Make the write that notes, beside the `known` last accesses, that a turn of the timeline has used records."""
    accessed = {**known, **dict.fromkeys(sorted(set(used)), at)}
    kept = dict(sorted(accessed.items(), key=itemgetter(1))[-_KEPT:])
    branch = branch_of(timeline, turn)
    value = {"kind": "access", "accessed": kept} | Stamp(branch, turn).to_json()
    return PutOp(namespace, record_key(branch, turn, "access"), value, index=False)


recall_sync = sync_twin(recall)
"""Return the records that fit a question best, best first; see `recall`."""
