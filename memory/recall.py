"""Recall: what a timeline remembers that fits, over any LangGraph store.

The store finds candidates; the order is made here, from nothing but what the timeline may see: a sum of the cosine and
of BM25 over the candidates, each divided by its maximum. So what other futures have written weighs nothing, and a
store that only knows vectors finds names and numbers too. A checkpoint recalls the same for ever while it sees no more
records than there are candidates, or the store proposes them by cosine; FaissStore also weighs words, by namespace.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from langgraph.store.base import BaseStore, SearchItem, SearchOp

from memory.lexical import query_words
from memory.timeline import Segment, sees, until, visible

_WIDTH = 64  # candidates of each query: several times what is shown, so that the order made here has a choice
_WIDE = 2 * _WIDTH  # what is looked through for visible candidates before each of many segments is searched by itself
_UNRANKED = 1000  # items taken of a store that cannot rank, newest last, so that words can be looked for in them


class Recalled(NamedTuple):
    """One record that was recalled.

    Attributes:
        key: Its key in the store.
        value: The record.
        score: Its cosine to the best fitting query; None if the store made no vectors.
        weight: What the order goes by: the sum of the normalised scores, by query and its weight.
    """

    key: str
    value: dict[str, Any]
    score: float | None
    weight: float


async def recall(
    store: BaseStore,
    namespace: tuple[str, ...],
    queries: Sequence[tuple[str, float]],
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
    limit: int = 12,
) -> list[Recalled]:
    """Find the records that fit the queries best, best first.

    Args:
        store: Any store; its items carry `text` and the fields of `memory.timeline.stamp`.
        namespace: Where the records are.
        queries: Texts, each with its weight; blank ones are passed over.
        timeline: Recall only what it may see; None: everything.
        before: Recall only what was written before this turn.
        limit: Records to return at the most.
    """
    asked = [(text, weight) for text, weight in queries if text.strip() and weight > 0]
    if not asked or (timeline is not None and not visible(timeline, before)):
        return []
    candidates = await _candidates(store, namespace, [text for text, _ in asked], timeline, before)
    found = {item.key: item for items in candidates for item in items}
    texts = {key: str(item.value.get("text", "")) for key, item in sorted(found.items())}
    weights = dict.fromkeys(texts, 0.0)
    for (query, weight), items in zip(asked, candidates, strict=True):
        words = await asyncio.to_thread(word_scores, texts, query)
        cosines = {item.key: max(item.score or 0.0, 0.0) for item in items}
        for part in (_normalised(words), _normalised(cosines)):
            for key, score in part.items():
                weights[key] += weight * score
    cosine: dict[str, float] = {}
    for item in (item for items in candidates for item in items if item.score is not None):
        cosine[item.key] = max(cosine.get(item.key, -1.0), cast("float", item.score))
    best = sorted(weights, key=lambda key: (-weights[key], key))[:limit]
    return [Recalled(key, found[key].value, cosine.get(key), weights[key]) for key in best]


def word_scores(texts: Mapping[str, str], query: str) -> dict[str, float]:
    """Score texts by a query's words: BM25 over these texts alone (Robertson and Zaragoza 2009; k1 = 1.2, b = 0.75).

    SQLite's FTS5 does the splitting, the porter stems and the frequency part; its measure of rarity turns to nothing
    for words that most texts hold, so it is replaced by the one that stays positive.
    """
    keys, scores = list(texts), dict.fromkeys(texts, 0.0)
    with sqlite3.connect(":memory:") as index:
        index.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2')")
        index.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(texts.values()))
        for word in query_words(query):
            hits = index.execute("SELECT rowid, bm25(t) FROM t WHERE t MATCH ?", (f'"{word}"',)).fetchall()
            rarity = (len(keys) - len(hits) + 0.5) / (len(hits) + 0.5)
            theirs, ours = max(math.log(rarity), 1e-6), math.log(1 + rarity)
            for row, score in hits:
                scores[keys[row]] += -score / theirs * ours
    index.close()
    return scores


async def _candidates(
    store: BaseStore,
    namespace: tuple[str, ...],
    queries: Sequence[str],
    timeline: Sequence[Segment] | None,
    before: int | None,
) -> list[list[SearchItem]]:
    """Take the store's best for each query, as far as the timeline may see them.

    With one segment a filter says it all. With more, one search without a filter, in which what lies elsewhere is left
    out, costs least while most is visible: stores look at each record to apply a filter, and again for each segment.
    Where that finds too little, each segment is searched by itself.
    """
    everything = [{} if before is None else until(before - 1)]
    segments = everything if timeline is None else visible(timeline, before)
    if timeline is None or len(segments) == 1:
        found = await _searched(store, namespace, queries, segments)
        return [await _rankable(store, namespace, segments, items) for items in found]
    wide = await _searched(store, namespace, queries, [{}], _WIDE)
    kept = [[item for item in items if _sees(timeline, before, item)] for items in wide]
    short = [
        place
        for place, (items, seen) in enumerate(zip(wide, kept, strict=True))
        if len(seen) < _WIDTH and len(items) >= _WIDE
    ]
    found = [items[:_WIDTH] for items in kept]
    if short:
        narrow = await _searched(store, namespace, [queries[place] for place in short], segments)
        for place, items in zip(short, narrow, strict=True):
            found[place] = items
    return [await _rankable(store, namespace, segments, items) for items in found]


async def _searched(
    store: BaseStore,
    namespace: tuple[str, ...],
    queries: Sequence[str],
    filters: Sequence[dict[str, Any]],
    limit: int = _WIDTH,
) -> list[list[SearchItem]]:
    """Search each query with each filter, all in one batch; return the best of each query."""
    searches = [
        SearchOp(namespace, filter=only or None, limit=limit, query=query) for query in queries for only in filters
    ]
    results = cast("list[list[SearchItem]]", await store.abatch(searches))
    found: list[list[SearchItem]] = []
    for first in range(0, len(results), len(filters)):
        items = [item for hits in results[first : first + len(filters)] for item in hits]
        if len(filters) > 1:
            items.sort(key=lambda item: -(item.score if item.score is not None else -1.0))
        found.append(items[:limit])
    return found


def _sees(timeline: Sequence[Segment], before: int | None, item: SearchItem) -> bool:
    branch, turn = item.value["branch"], item.value["turn"]
    return (before is None or turn < before) and sees(timeline, branch, turn)


async def _rankable(
    store: BaseStore, namespace: tuple[str, ...], segments: list[dict[str, Any]], items: list[SearchItem]
) -> list[SearchItem]:
    """If the store cannot rank (no scores at all), take many items instead of the first few, and let words decide."""
    if not items or any(item.score is not None for item in items):
        return items
    searches = [SearchOp(namespace, filter=segment, limit=_UNRANKED) for segment in segments]
    return [item for hits in cast("list[list[SearchItem]]", await store.abatch(searches)) for item in hits]


def _normalised(scores: Mapping[str, float]) -> dict[str, float]:
    most = max(scores.values(), default=0.0)
    return {key: score / most for key, score in scores.items()} if most > 0 else {}
