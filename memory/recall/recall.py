"""Recall: what a timeline remembers that fits, over any LangGraph store, with or without a graph.

The store finds candidates (`questbook.memory.recall.candidates`); the order is made here, from nothing but what the
timeline may see: a sum of word scores over each record and its neighbours, of the cosine, and of what fits besides:
who is named, when it was, how much it matters. So what other futures have written weighs nothing, and a store that
only knows vectors finds names and numbers too. A checkpoint recalls the same for ever while it sees no more records
than there are candidates, or the store proposes them by what the timeline sees.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.store.base import BaseStore

from questbook.memory.embeddings.embedders import embedder_of
from questbook.memory.recall.access import last_accesses
from questbook.memory.recall.candidates import Scope
from questbook.memory.recall.gather import Gathered, gather
from questbook.memory.recall.names import holds, names_of
from questbook.memory.recall.neighbours import Place, latest_of
from questbook.memory.recall.order import Evidence, Order
from questbook.memory.recall.people import bonus, named_in, without
from questbook.memory.recall.pool import Pool
from questbook.memory.recall.result import Reason, Recalled
from questbook.memory.recall.selection import fitting, folded, with_questions
from questbook.memory.recall.time_fit import fit, utc_date
from questbook.memory.recall.times import When, read_when
from questbook.memory.recall.weights import DEFAULT_WEIGHTS, Weights
from questbook.memory.recall.words import content_words, scored_apart
from questbook.memory.text.words import split_words
from questbook.memory.timeline.off_the_record import WITHHELD
from questbook.memory.timeline.secrets import may_know
from questbook.memory.timeline.timeline import Segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Present", "Reason", "Recalled", "recall"]

Namespace = tuple[str, ...]
Queries = str | Sequence[str | tuple[str, float]]
_LATEST = 100  # records that generative_agents looks at for being recent, whatever they say
_MOST_DATES = 8  # days or months, each of which is searched by itself; a longer time needs no search of its own
_WHEN = re.compile(r"\b(?:when|what\s+(?:day|date|month|year|time)|how\s+long\s+ago)\b", re.IGNORECASE)


class Present(NamedTuple):
    """What time it is, for questions that name one.

    Attributes:
        now: Real time with an offset, whose midnight changes the day; None: now, in UTC.
        day: Day of the story.
        session: Number of the session.
    """

    now: datetime | None = None
    day: int | None = None
    session: int | None = None


async def recall(
    store: BaseStore,
    namespaces: Namespace | Sequence[Namespace],
    query: Queries,
    *,
    lasting: Sequence[Namespace] = (),
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
    limit: int = 12,
    budget: int | None = None,
    cost: Callable[[Recalled], int] | None = None,
    weights: Weights = DEFAULT_WEIGHTS,
    present: Present = Present(),  # noqa: B008 (immutable)
    speakers: Sequence[str] = (),
    max_cosine_distance: float | None = None,
    secrets: bool = False,
    viewer: Sequence[str] = (),
    valid: Callable[[list[Recalled]], Awaitable[list[Recalled]]] | None = None,
    accesses: Namespace | None = None,
) -> list[Recalled]:
    """Find the records that fit best, best first.

    Args:
        store: Any store; the records carry `text`, and what else they carry is made use of: the fields of
            `questbook.memory.timeline.records.Stamp`, `kind`, `speaker`, `subject`, `importance`, `said_at`,
            `real_time`, `day`, `session`. One that has `withheld` stands for words that are not kept, and is passed
            over.
        namespaces: Where the records of the timeline are, one namespace or several.
        query: One text or several, each alone or with its weight; blank ones are passed over. The heaviest one is the
            question: the time and the names in it count.
        lasting: Namespaces whose records belong to no timeline, such as lore and what is known of the player.
        timeline: Recall only what it may see; None: everything.
        before: Recall only what was written before this turn; what was known as of turn n is recalled with n + 1.
        limit: Records to return at the most.
        budget: Tokens that they may cost; what does not fit is passed over, and less that does fit follows.
        cost: Tokens of a record; default: its text, four characters each.
        weights: What the order is made of.
        present: What time it is.
        speakers: Names of those who speak in the records, as far as known: in a query they say who, not what.
        max_cosine_distance: Leave out what is farther from all queries (0 to 2), if the store makes vectors.
        secrets: Whether to recall what only the dungeon master knows. False is a player's view: records of kind
            "secret", and those that name who knows them without the viewer, are left out before anything is ordered.
        viewer: Names of the viewer; "player" and "you" always are.
        valid: Is given the records in their order and returns those that hold, such as the latest of each slot.
        accesses: Where the campaign keeps last accesses; for the scoring "generative_agents".

    Raises:
        ValueError: `max_cosine_distance` is not between 0 and 2.
    """
    if max_cosine_distance is not None and not 0 <= max_cosine_distance <= 2:
        raise ValueError(f"max_cosine_distance is {max_cosine_distance!r}; a cosine distance lies between 0 and 2.")
    asked = _asked(query)
    if not asked or (timeline is not None and not timeline and not lasting):
        return []
    question, heaviest = max(asked, key=lambda one: one[1])
    when = read_when(question, present.now or datetime.now(UTC), day=present.day, session=present.session)
    scopes = [Scope(space, timeline, before, _narrow(when)) for space in _several(namespaces)]
    scopes += [Scope(space) for space in lasting]
    callers = frozenset(word for words in named_in(question, speakers).values() for word in words)
    texts = [(without(text, callers), weight) for text, weight in asked]
    names = names_of(question, callers)
    texts += [(name, 0.0) for name in names]  # they bring what has them, and order nothing
    texts += [(when.anchor, heaviest)] if when.anchor else []

    def known(value: Mapping[str, Any]) -> bool:
        return not value.get(WITHHELD) and (secrets or may_know(value, viewer))

    accessed: Mapping[str, str] = {}
    besides: set[Place] = set()
    if weights.scoring == "generative_agents" and timeline:
        accessed = await last_accesses(store, accesses, timeline, before or timeline[-1][1] + 1) if accesses else {}
        for scope in scopes[: len(scopes) - len(lasting)]:
            besides |= {(scope.namespace, key) for key in accessed} | latest_of(scope, _LATEST)
    gathered = await gather(store, scopes, texts, besides=besides, timeline=timeline, before=before, known=known)
    evidence = await _evidence(gathered, question, texts, names, when, weights, speakers)
    order = Order(evidence._replace(accessed=accessed, worth=_worth(store)), weights)
    found: Iterable[Recalled] = _told(evidence, order, max_cosine_distance)
    if valid is not None:
        found = await valid(list(found))
    chosen = fitting(folded(found, limit), limit, budget, cost or _tokens)
    return with_questions(chosen, evidence.pool, evidence.near)


async def _evidence(
    gathered: Gathered,
    question: str,
    texts: Sequence[tuple[str, float]],
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
    words = await scored_apart(told, [content_words(text, out) for text, _ in texts], near, weights.neighbours)
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
        queries=[weight for _, weight in texts[:count]],
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


def _asked(query: Queries) -> list[tuple[str, float]]:
    given = [query] if isinstance(query, str) else query
    pairs = [(one, 1.0) if isinstance(one, str) else one for one in given]
    return [(text, weight) for text, weight in pairs if text.strip() and weight > 0]


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
