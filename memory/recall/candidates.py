"""Candidates: what the store proposes for each query, as far as the timeline may see it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, SearchItem, SearchOp

from questbook.memory.store.any_store import newest_items, search_all
from questbook.memory.timeline.timeline import Segment, filter_through, visible_filters

WIDTH = 64  # candidates of a query: several times what is shown, so that the order made of them has a choice
_NARROW = 32  # candidates more, of the time that the question names


class Scope(NamedTuple):
    """A namespace and what of it may be seen.

    Attributes:
        namespace: Where the records are.
        timeline: Only what it sees; None: everything.
        before: Only what was written before this turn.
        narrow: Further conditions; what meets them is proposed besides, so that it is not crowded out.
    """

    namespace: tuple[str, ...]
    timeline: Sequence[Segment] | None = None
    before: int | None = None
    narrow: Sequence[dict[str, Any]] = ()

    @property
    def segments(self) -> list[dict[str, Any]]:
        """The store filters that together match what may be seen; none if nothing may be."""
        if self.timeline is None:
            return [{} if self.before is None else filter_through(self.before - 1)]
        return visible_filters(self.timeline, self.before)


async def candidates(
    store: BaseStore, scopes: Sequence[Scope], queries: Sequence[str], widths: Sequence[int]
) -> list[list[list[SearchItem]]]:
    """Take the store's best for each scope and query, as far as they may be seen: in one batch, so in one embedding.

    Args:
        store: Any store.
        scopes: What may be seen.
        queries: What is looked for; the conditions of a scope narrow the first.
        widths: How many candidates each query brings.

    Returns:
        For each scope and each query what was found, best first.

    A store that takes "$or" (its attribute `filters_any`) is asked for all segments at once. With others, what lies
    elsewhere is left out of one search afterwards, which costs least while most is visible: they look at each record
    to apply a filter, and again for each condition. With one segment its branch is the filter, with more there is none.
    Where that finds too little, each segment is searched by itself.
    """
    either = bool(getattr(store, "filters_any", False))
    asked = [_searches(scope, queries, widths, either=either) for scope in scopes]
    results = await search_all(store, [op for ops in asked for op in ops])
    found: list[list[list[SearchItem]]] = []
    again: list[tuple[int, int]] = []
    for number, (scope, ops) in enumerate(zip(scopes, asked, strict=True)):
        hits, results = results[: len(ops)], results[len(ops) :]
        kept = hits if either or scope.timeline is None else [_seen(scope, items) for items in hits]
        for query, width in enumerate(widths if ops else ()):
            if ops[query].limit > width and len(kept[query]) < width and len(hits[query]) >= ops[query].limit:
                again.append((number, query))
        best = [items[:width] for items, width in zip(kept, widths, strict=False)] or [[] for _ in queries]
        for items in kept[len(queries) :]:
            known = {item.key for item in best[0]}
            best[0] += [item for item in items if item.key not in known]
        found.append(best)
    await _search_again(store, scopes, queries, widths, again, found)
    return [await _rankable(store, scope, best) for scope, best in zip(scopes, found, strict=True)]


def _searches(scope: Scope, queries: Sequence[str], widths: Sequence[int], *, either: bool) -> list[SearchOp]:
    """Make a scope's searches: one for each query, then those that its narrower conditions add to the first query."""
    segments, space = scope.segments, scope.namespace
    if not segments:
        return []
    said = either or scope.timeline is None  # whether a filter says all
    if said:
        whole = segments[0] if len(segments) == 1 else {"$or": segments}
    else:
        whole = {"branch": segments[0]["branch"]} if len(segments) == 1 else {}
    searches = [
        SearchOp(space, filter=whole or None, limit=width if said else 2 * width, query=query)
        for query, width in zip(queries, widths, strict=True)
    ]
    for condition in scope.narrow:
        parts = [whole] if said else segments
        searches += [SearchOp(space, filter={**one, **condition}, limit=_NARROW, query=queries[0]) for one in parts]
    return searches


async def _search_again(
    store: BaseStore,
    scopes: Sequence[Scope],
    queries: Sequence[str],
    widths: Sequence[int],
    again: Sequence[tuple[int, int]],
    found: list[list[list[SearchItem]]],
) -> None:
    """Search each segment by itself where abandoned futures crowded the visible one out."""
    searches = [
        SearchOp(scopes[scope].namespace, filter=segment, limit=widths[query], query=queries[query])
        for scope, query in again
        for segment in scopes[scope].segments
    ]
    results = await search_all(store, searches)
    for scope, query in again:
        count = len(scopes[scope].segments)
        items = [item for hits in results[:count] for item in hits]
        results = results[count:]
        items.sort(key=lambda item: -(item.score if item.score is not None else -1.0))
        found[scope][query] = items[: widths[query]]


def _seen(scope: Scope, items: Sequence[SearchItem]) -> list[SearchItem]:
    """Return those that may be seen of what no filter has gone through."""
    through = dict(scope.timeline or ())
    last = math.inf if scope.before is None else scope.before - 1
    return [item for item in items if item.value["turn"] <= min(through.get(item.value["branch"], -1), last)]


async def _rankable(store: BaseStore, scope: Scope, best: list[list[SearchItem]]) -> list[list[SearchItem]]:
    """If the store cannot rank (no scores, and not by words), take many items instead of the first few."""
    scored = any(item.score is not None for items in best for item in items)
    if scored or getattr(store, "ranks_words", False) or not any(best):
        return best
    every = await newest_items(store, scope.namespace, scope.segments)
    return [every if items else items for items in best]
