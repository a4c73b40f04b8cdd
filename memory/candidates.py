"""Candidates: what the store proposes for each query, as far as the timeline may see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from langgraph.store.base import BaseStore, SearchItem, SearchOp

from memory.timeline import Segment, sees, until, visible

WIDTH = 64  # candidates of each query: several times what is shown, so that the order made of them has a choice
_WIDE = 2 * WIDTH  # what is looked through for visible candidates before each of many segments is searched by itself
_UNRANKED = 1000  # items taken of a store that cannot rank, newest last, so that words can be looked for in them


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
            return [{} if self.before is None else until(self.before - 1)]
        return visible(self.timeline, self.before)


async def candidates(store: BaseStore, scope: Scope, queries: Sequence[str]) -> list[list[SearchItem]]:
    """Take the store's best for each query, as far as they may be seen.

    With one segment a filter says it all. With more, one search without a filter, in which what lies elsewhere is left
    out, costs least while most is visible: stores look at each record to apply a filter, and again for each segment.
    Where that finds too little, each segment is searched by itself.
    """
    namespace, segments = scope.namespace, scope.segments
    if not segments:
        return [[] for _ in queries]
    if len(segments) == 1:
        found = await _searched(store, namespace, queries, segments)
    else:
        wide = await _searched(store, namespace, queries, [{}], _WIDE)
        kept = [[item for item in items if _sees(scope, item)] for items in wide]
        found = [items[:WIDTH] for items in kept]
        short = [n for n, items in enumerate(kept) if len(items) < WIDTH and len(wide[n]) >= _WIDE]
        if short:
            narrow = await _searched(store, namespace, [queries[n] for n in short], segments)
            for place, items in zip(short, narrow, strict=True):
                found[place] = items
    if scope.narrow and queries:
        for condition in scope.narrow:
            (fitting,) = await _searched(store, namespace, queries[:1], [{**one, **condition} for one in segments])
            known = {item.key for item in found[0]}
            found[0] += [item for item in fitting if item.key not in known]
    return [await _rankable(store, namespace, segments, items) for items in found]


async def _searched(
    store: BaseStore,
    namespace: tuple[str, ...],
    queries: Sequence[str],
    filters: Sequence[dict[str, Any]],
    limit: int = WIDTH,
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


def _sees(scope: Scope, item: SearchItem) -> bool:
    branch, turn = item.value["branch"], item.value["turn"]
    return (scope.before is None or turn < scope.before) and sees(scope.timeline or (), branch, turn)


async def _rankable(
    store: BaseStore, namespace: tuple[str, ...], segments: list[dict[str, Any]], items: list[SearchItem]
) -> list[SearchItem]:
    """If the store cannot rank (no scores at all), take many items instead of the first few, and let words decide."""
    if not items or any(item.score is not None for item in items):
        return items
    searches = [SearchOp(namespace, filter=segment, limit=_UNRANKED) for segment in segments]
    return [item for hits in cast("list[list[SearchItem]]", await store.abatch(searches)) for item in hits]
