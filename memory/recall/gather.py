"""Gathered: the records from which a recall is chosen: what the store proposes, and what belongs to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore

from questbook.memory.recall.candidates import WIDTH, Scope, candidates
from questbook.memory.recall.names import holds
from questbook.memory.recall.neighbours import Place, neighbours_of
from questbook.memory.recall.pool import Pool
from questbook.memory.recall.query import WeightedText
from questbook.memory.store.any_store import get_values
from questbook.memory.timeline.timeline import Segment

_EXPANDED = 16  # candidates of a query whose neighbours are looked up, and so become candidates too
_LEAST_SHARE = 0.25  # of both, for a query that weighs little


class Gathered(NamedTuple):
    """What a recall is chosen from.

    Attributes:
        pool: The records.
        cosines: For each query, cosines by the records' numbers, as far as the store gave some.
    """

    pool: Pool
    cosines: list[dict[int, float]]


async def gather(
    store: BaseStore,
    scopes: Sequence[Scope],
    queries: Sequence[WeightedText],
    *,
    besides: set[Place],
    timeline: Sequence[Segment] | None,
    before: int | None,
    known: Callable[[Mapping[str, Any]], bool],
) -> Gathered:
    """Ask the store, and look up the neighbours of the best.

    Args:
        store: Any store.
        scopes: What may be seen.
        queries: What is looked for, with weights; the less a query weighs, the fewer records it brings. One of
            weight 0 is a name (`questbook.memory.recall.names`), and brings only what has it word for word.
        besides: Where records are kept that are wanted whatever they say.
        timeline: As in `recall`.
        before: As in `recall`.
        known: Whether the viewer may know a record.
    """
    heaviest = max(one.weight for one in queries)
    shares = [max(one.weight / heaviest, _LEAST_SHARE) for one in queries]
    widths = [math.ceil(WIDTH * share) for share in shares]
    found = Gathered(Pool(one_line=timeline is not None), [{} for _ in queries])
    wanted = set(besides)
    for scope, hits in zip(scopes, await candidates(store, scopes, [one.text for one in queries], widths), strict=True):
        for query, cosines, share, items in zip(queries, found.cosines, shares, hits, strict=True):
            for rank, item in enumerate(items):
                if not known(item.value) or not (query.weight or holds(str(item.value.get("text", "")), [query.text])):
                    continue
                place = (scope.namespace, item.key)
                number = found.pool.add(place, item.value)
                if item.score is not None:
                    cosines[number] = item.score
                if rank < _EXPANDED * share:
                    wanted.update(neighbours_of(place, item.value, timeline, before).values())
    missing = sorted(place for place in wanted if place not in found.pool)
    for place, value in (await get_values(store, missing)).items():
        if _visible(value, timeline, before) and known(value):
            found.pool.add(place, value)
    return found


def _visible(value: Mapping[str, Any], timeline: Sequence[Segment] | None, before: int | None) -> bool:
    """Whether a record that was fetched by its key may be seen: keys of accesses may lie later than `before`."""
    turn = value.get("turn")
    return timeline is None or (isinstance(turn, int) and (before is None or turn < before))
