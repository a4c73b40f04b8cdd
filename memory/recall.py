"""Recall: what a timeline remembers that fits, over any LangGraph store, with or without a graph.

The store finds candidates (`memory.candidates`); the order is made here, from nothing but what the timeline may see: a
sum of word scores over each record and its neighbours, of the cosine, and of what fits besides: who is named, when it
was, how much it matters. So what other futures have written weighs nothing, and a store that only knows vectors finds
names and numbers too. A checkpoint recalls the same for ever while it sees no more records than there are candidates,
or the store proposes them by what the timeline sees.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.store.base import BaseStore

from memory.access import last_accesses
from memory.candidates import Scope, candidates
from memory.fit import fit, utc_date
from memory.lexical import split_words
from memory.named import bonus, named_in, without
from memory.neighbours import OFFSETS, Place, fetch, latest_of, neighbours_of
from memory.recalled import Reason, Recalled
from memory.scoring import Evidence, order
from memory.secrets import may_know
from memory.timeline import Segment
from memory.weights import DEFAULT_WEIGHTS, Weights
from memory.when import When, read_when
from memory.words import Near, content_words, scored_apart

__all__ = ["Present", "Reason", "Recalled", "recall"]

Namespace = tuple[str, ...]
Queries = str | Sequence[str | tuple[str, float]]
_EXPANDED = 16  # candidates of each query whose neighbours are looked up, and so become candidates too
_LATEST = 100  # records that generative_agents looks at for being recent, whatever they say
_MOST_DATES = 8  # days or months, each of which is searched by itself; a longer time needs no search of its own
_SAME = 0.9  # share of the words of two texts that both have, from which they say the same
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
            `memory.timeline.stamp`, `kind`, `speaker`, `subject`, `importance`, `said_at`, `real_time`, `day`,
            `session`.
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
    if not asked:
        return []
    question = max(asked, key=lambda one: one[1])[0]
    when = read_when(question, present.now or datetime.now(UTC), day=present.day, session=present.session)
    if timeline is not None and not timeline and not lasting:
        return []
    scopes = [Scope(space, timeline, before, _narrow(when)) for space in _several(namespaces)]
    scopes += [Scope(space) for space in lasting]
    callers = frozenset(word for words in named_in(question, speakers).values() for word in words)
    texts = [without(text, callers) for text, _ in asked] + ([when.anchor] if when.anchor else [])

    pool: dict[Place, Mapping[str, Any]] = {}
    cosines: list[dict[Place, float]] = [{} for _ in texts]
    first: set[Place] = set()
    for scope, hits in zip(scopes, await candidates(store, scopes, texts), strict=True):
        for number, items in enumerate(hits):
            for rank, item in enumerate(items):
                if secrets or may_know(item.value, viewer):
                    pool[scope.namespace, item.key] = item.value
                    first |= {(scope.namespace, item.key)} if rank < _EXPANDED else set()
                    if item.score is not None:
                        cosines[number][scope.namespace, item.key] = item.score
    near = {place: neighbours_of(place, value, timeline, before) for place, value in pool.items()}
    wanted = {other for place in first for other in near[place].values()}
    accessed: Mapping[str, str] = {}
    if weights.scoring == "generative_agents" and timeline:
        accessed = await last_accesses(store, accesses, timeline, before or timeline[-1][1] + 1) if accesses else {}
        for scope in scopes[: len(scopes) - len(lasting)]:
            wanted |= {(scope.namespace, key) for key in accessed} | latest_of(scope, _LATEST)
    for place, value in (await fetch(store, sorted(wanted - pool.keys()))).items():
        if _visible(value, timeline, before) and (secrets or may_know(value, viewer)):
            pool[place] = value
            near[place] = neighbours_of(place, value, timeline, before)

    names = {str(value["speaker"]) for value in pool.values() if value.get("speaker")} | set(speakers)
    speaking = named_in(question, sorted(names))
    about = named_in(question, sorted({str(value["subject"]) for value in pool.values() if value.get("subject")}))
    out = frozenset(word for words in speaking.values() for word in words)
    words = await scored_apart(
        {place: str(value.get("text", "")) for place, value in pool.items()},
        [content_words(text, out) for text in texts],
        _weighed(near, pool, weights),
    )
    anchor = _anchor(words[-1], pool, when.anchor) if when.anchor else None
    evidence = Evidence(
        values=pool,
        near=near,
        words=words[: len(asked)],
        cosines=cosines[: len(asked)],
        queries=[weight for _, weight in asked],
        named={place: bonus(value, speaking, about) for place, value in pool.items()},
        times={place: fit(when, value, anchor) for place, value in pool.items()} if when.said else {},
        asks_when=_WHEN.search(question) is not None,
        accessed=accessed,
        worth=_worth(store),
    )
    ranked = order(evidence, weights)
    best: dict[Place, float] = {}
    for part in evidence.cosines:
        for place, cosine in part.items():
            best[place] = max(best.get(place, -1.0), cosine)
    found = [Recalled(p[1], dict(pool[p]), best.get(p), weight, p[0], reason) for p, weight, reason in ranked]
    if max_cosine_distance is not None and best:
        found = [one for one in found if one.score is not None and 1 - one.score <= max_cosine_distance]
    if valid is not None:
        found = await valid(found)
    return _with_questions(_fitting(_folded(found, limit), limit, budget, cost or _tokens), near, pool)


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


def _visible(value: Mapping[str, Any], timeline: Sequence[Segment] | None, before: int | None) -> bool:
    """Whether a record that was fetched by its key may be seen: keys of accesses may lie later than `before`."""
    turn = value.get("turn")
    return timeline is None or (isinstance(turn, int) and (before is None or turn < before))


def _weighed(near: Mapping[Place, Mapping[int, Place]], pool: Mapping[Place, Any], weights: Weights) -> Near[Place]:
    """Return each record's own text with weight 1 and its neighbours' with theirs."""
    share = dict(zip(OFFSETS, weights.neighbours, strict=True))
    return {
        place: [(place, 1.0), *((at, share[n]) for n, at in near[place].items() if share[n] and at in pool)]
        for place in pool
    }


def _anchor(scores: Mapping[Place, float], pool: Mapping[Place, Mapping[str, Any]], said: str) -> int | None:
    """Return the turn of the record that tells best what a question names; None if none tells half of it."""
    asked = set(content_words(said, frozenset()))
    for place in sorted(scores, key=lambda one: (-scores[one], pool[one].get("turn") or 0, one))[:8]:
        told = set(split_words(str(pool[place].get("text", ""))))
        turn = pool[place].get("turn")
        # Inflected words count by their first letters; the order above has stems.
        known = sum(
            1
            for word in asked
            if any(other[: max(4, len(word) - 2)] == word[: max(4, len(word) - 2)] for other in told)
        )
        if isinstance(turn, int) and asked and 2 * known >= len(asked):
            return turn
    return None


def _worth(store: BaseStore) -> float:
    """Return what the store's embedder says its cosine is worth beside words; 1 if it does not say."""
    index = getattr(store, "index_config", None)
    embed = index.get("embed") if isinstance(index, Mapping) else None
    return float(getattr(embed, "fusion_weight", 1.0))


def _folded(found: Sequence[Recalled], limit: int) -> list[Recalled]:
    """Fold records that say the same into the best of them; only as far down as is asked for, and a little more."""
    kept: list[Recalled] = []
    said: list[tuple[frozenset[str], object]] = []
    for one in found:
        words = frozenset(str(one.value.get("text", "")).casefold().split())
        who = one.value.get("speaker")
        same = next((n for n, (other, by) in enumerate(said) if by == who and _alike(words, other)), None)
        if same is not None:
            kept[same] = kept[same]._replace(folded=(*kept[same].folded, one.key))
        elif len(kept) >= 2 * limit:
            break
        else:
            kept.append(one)
            said.append((words, who))
    return kept


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    least, most = sorted((len(one), len(other)))
    return bool(least) and least >= _SAME * most and len(one & other) >= _SAME * len(one | other)


def _fitting(
    found: Sequence[Recalled], limit: int, budget: int | None, cost: Callable[[Recalled], int]
) -> list[Recalled]:
    if budget is None:
        return list(found[:limit])
    kept: list[Recalled] = []
    for one in found:
        if len(kept) < limit and (tokens := cost(one)) <= budget:
            kept.append(one)
            budget -= tokens
    return kept


def _with_questions(
    found: Sequence[Recalled], near: Mapping[Place, Mapping[int, Place]], pool: Mapping[Place, Mapping[str, Any]]
) -> list[Recalled]:
    """Give each answer the question that it belongs to, unless that is recalled itself."""
    shown = {(one.namespace, one.key) for one in found}
    kept = []
    for one in found:
        place = near.get((one.namespace, one.key), {}).get(-1)
        asked = pool.get(place) if place is not None and place not in shown else None
        asks = asked is not None and str(asked.get("text", "")).rstrip().endswith("?")
        kept.append(one._replace(question=dict(asked)) if asks and asked is not None else one)
    return kept


def _tokens(one: Recalled) -> int:
    return count_tokens_approximately([str(one.value.get("text", ""))])
