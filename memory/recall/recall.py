"""Recall: what a timeline remembers that fits, over any LangGraph store, with or without a graph.

The store finds candidates (`questbook.memory.recall.candidates`); the order is made here, from nothing but what the
timeline may see: a sum of word scores over each record and its neighbours, of the cosine, and of what fits besides:
who is named, when it was, how much it matters. So what other futures have written weighs nothing, and a store that
only knows vectors finds names and numbers too. A checkpoint recalls the same for ever while it sees no more records
than there are candidates, or the store proposes them by what the timeline sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.store.base import BaseStore

from questbook.memory.embeddings.embedders import embedder_of
from questbook.memory.recall.access import last_accesses
from questbook.memory.recall.aliases import also_called
from questbook.memory.recall.candidates import Scope
from questbook.memory.recall.gather import Gathered, gather
from questbook.memory.recall.names import holds, names_of
from questbook.memory.recall.neighbours import Place, latest_of
from questbook.memory.recall.order import Evidence, Order
from questbook.memory.recall.people import bonus, named_in, without
from questbook.memory.recall.pool import Pool
from questbook.memory.recall.query import Namespace, Query, Recalled, WeightedText, Weights
from questbook.memory.recall.selection import fitting, folded, with_questions
from questbook.memory.recall.time_fit import fit
from questbook.memory.recall.times import When, read_when
from questbook.memory.recall.words import content_words, scored_apart
from questbook.memory.text.words import split_words
from questbook.memory.timeline.privacy import WITHHELD, may_know
from questbook.memory.timeline.records import utc_date

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LATEST = 100  # records that generative_agents looks at for being recent, whatever they say
_MOST_DATES = 8  # days or months, each of which is searched by itself; a longer time needs no search of its own
_WHEN = re.compile(r"\b(?:when|what\s+(?:day|date|month|year|time)|how\s+long\s+ago)\b", re.IGNORECASE)


async def recall(store: BaseStore, namespaces: Namespace | Sequence[Namespace], query: str | Query) -> list[Recalled]:
    """Find the records that fit a question best, best first.

    Args:
        store: Any store.
        namespaces: Where the records of the timeline are, one namespace or several.
        query: What to recall; a text alone is a question to all that is there.
    """
    asked = Query(query) if isinstance(query, str) else query
    spaces = _several(namespaces)
    ranking = await _rank(store, spaces, asked)
    if asked.aliases and (names := also_called(ranking.records, asked.text)):
        ranking = await _rank(store, spaces, replace(asked, text="\n".join([asked.text, *names])))
    chosen = fitting(folded(ranking.records, asked.limit), asked.limit, asked.budget, asked.cost or _tokens)
    return chosen if ranking.evidence is None else with_questions(chosen, ranking.evidence.pool, ranking.evidence.near)


class _Ranking(NamedTuple):
    """Records in their order, and what it is made of."""

    records: Iterable[Recalled]
    evidence: Evidence | None


async def _rank(store: BaseStore, spaces: Sequence[Namespace], query: Query) -> _Ranking:
    """Put in order all that the store proposes and the viewer may know."""
    timeline, before, lasting = query.timeline, query.before, query.lasting
    asked = query.texts
    if not asked or (timeline is not None and not timeline and not lasting):
        return _Ranking([], None)
    question, heaviest = (heavy := max(asked, key=lambda one: one.weight)).text, heavy.weight
    present = query.present
    when = read_when(question, present.now or datetime.now(UTC), day=present.day, session=present.session)
    scopes = [Scope(space, timeline, before, _narrow(when)) for space in spaces]
    scopes += [Scope(space) for space in lasting]
    callers = frozenset(word for words in named_in(question, query.speakers).values() for word in words)
    texts = [WeightedText(without(one.text, callers), one.weight) for one in asked]
    names = names_of(question, callers)
    texts += [WeightedText(name, 0.0) for name in names]  # they bring what has them, and order nothing
    texts += [WeightedText(when.anchor, heaviest)] if when.anchor else []

    def known(value: Mapping[str, Any]) -> bool:
        return not value.get(WITHHELD) and (query.secrets or may_know(value, query.viewer))

    accessed: Mapping[str, str] = {}
    besides: set[Place] = set()
    if query.weights.scoring == "generative_agents" and timeline:
        turn = before or timeline[-1][1] + 1
        accessed = await last_accesses(store, query.accesses, timeline, turn) if query.accesses else {}
        for scope in scopes[: len(scopes) - len(lasting)]:
            besides |= {(scope.namespace, key) for key in accessed} | latest_of(scope, _LATEST)
    gathered = await gather(store, scopes, texts, besides=besides, timeline=timeline, before=before, known=known)
    evidence = await _evidence(gathered, question, texts, names, when, query.weights, query.speakers)
    order = Order(evidence._replace(accessed=accessed, worth=_worth(store)), query.weights)
    records: Iterable[Recalled] = _told(evidence, order, query.max_cosine_distance)
    if query.refine is not None:
        records = await query.refine(list(records))
    elif query.aliases:
        records = list(records)
    return _Ranking(records, evidence)


async def _evidence(
    gathered: Gathered,
    question: str,
    texts: Sequence[WeightedText],
    names: Sequence[str],
    when: When,
    weights: Weights,
    speakers: Sequence[str],
) -> Evidence:
    """Weigh each candidate against the queries; the last of the texts is the anchor, if a time has one."""
    import numpy as np

    pool, near = gathered.pool, gathered.pool.near()
    voices = {str(value["speaker"]) for value in pool.values if value.get("speaker")} | set(speakers)
    speaking = named_in(question, sorted(voices))
    about = named_in(question, sorted({str(value["subject"]) for value in pool.values if value.get("subject")}))
    out = frozenset(word for words in speaking.values() for word in words)
    told = pool.texts()
    words = await scored_apart(told, [content_words(one.text, out) for one in texts], near, weights.neighbours)
    cosines = np.full((len(texts), len(pool)), np.nan)
    for row, found in zip(cosines, gathered.cosines, strict=True):
        row[list(found)] = list(found.values())
    anchor = _anchor(words[-1], pool, when) if when.anchor else None
    count = len(texts) - bool(when.anchor)
    return Evidence(
        pool=pool,
        near=near,
        words=words[:count],
        cosines=cosines[:count],
        queries=[one.weight for one in texts[:count]],
        named=np.array([bonus(value, speaking, about) for value in pool.values]),
        phrases=np.array([float(holds(text, names)) for text in told]) if names else np.zeros(len(pool)),
        times=np.array([fit(when, value, anchor) for value in pool.values]) if when.said else np.zeros(len(pool)),
        asks_when=_WHEN.search(question) is not None,
    )


def _told(evidence: Evidence, order: Order, farthest: float | None) -> Iterator[Recalled]:
    """Tell the candidates in their order, each only when it is asked for."""
    import numpy as np

    pool = evidence.pool
    nearest = np.fmax.reduce(evidence.cosines)  # passes over NaN
    if np.isnan(nearest).all():
        farthest = None  # the store makes no vectors
    for number in order.ranked:
        score = None if np.isnan(nearest[number]) else float(nearest[number])
        if farthest is not None and (score is None or 1 - score > farthest):
            continue
        space, key = pool.places[number]
        yield Recalled(key, dict(pool.values[number]), score, float(order.totals[number]), space, order.reason(number))


def _several(namespaces: Namespace | Sequence[Namespace]) -> list[Namespace]:
    if namespaces and isinstance(namespaces[0], str):
        return [cast("Namespace", tuple(namespaces))]
    return [tuple(one) for one in namespaces]


def _narrow(when: When) -> list[dict[str, Any]]:
    """Return the conditions under which records of the time that is asked for are proposed besides.

    They compare for equality alone: InMemoryStore fails on a range if any record lacks the field.
    """
    found: list[dict[str, Any]] = []
    if when.start is not None and when.end is not None:
        first, last = (utc_date(then) for then in (when.start, when.end))
        months = range(12 * first.year + first.month - 1, 12 * last.year + last.month)
        if (days := (last - first).days + 1) <= _MOST_DATES:
            found += [{"date": f"{first + timedelta(days=n):%Y%m%d}".zfill(8)} for n in range(days)]
        elif len(months) <= _MOST_DATES:
            found += [{"month": f"{month // 12:04}{month % 12 + 1:02}"} for month in months]
    if when.days is not None and when.days[0] == when.days[1]:
        found.append({"day": when.days[0]})
    if when.sessions is not None and when.sessions[0] == when.sessions[1]:
        found.append({"session": when.sessions[0]})
    return found


def _anchor(scores: NDArray[np.float64], pool: Pool, when: When) -> int | None:
    """Return the turn of the record that tells best what a question names; None if none tells half of it.

    None also if a record itself says "before the snow": the question asks for that record, not for what came before it.
    """
    asked = set(content_words(when.anchor, frozenset()))
    best = sorted(range(len(pool)), key=lambda n: (-scores[n], pool.values[n].get("turn") or 0, pool.places[n]))[:8]
    split = [split_words(str(pool.values[number].get("text", ""))) for number in best]
    if any(_says(words, when, asked) for words in split):
        return None
    for number, words in zip(best, split, strict=True):
        told, turn = set(words), pool.values[number].get("turn")
        # Inflected words count by their first letters; the order above has stems.
        known = sum(
            1
            for word in asked
            if any(other[: max(4, len(word) - 2)] == word[: max(4, len(word) - 2)] for other in told)
        )
        if isinstance(turn, int) and asked and 2 * known >= len(asked):
            return turn
    return None


def _says(words: Sequence[str], when: When, asked: set[str]) -> bool:
    """Whether words tell a relation with its event, such as "before the first snow"."""
    reach = len(split_words(when.anchor)) + 2
    return any(word == when.relation and asked <= set(words[n + 1 : n + 1 + reach]) for n, word in enumerate(words))


def _worth(store: BaseStore) -> float:
    """Return what the store's embedder says its cosine is worth beside words; 1 if it does not say."""
    return float(getattr(embedder_of(store), "fusion_weight", 1.0))


def _tokens(one: Recalled) -> int:
    return count_tokens_approximately([str(one.value.get("text", ""))])
