"""The latest facts that a timeline sees, of however many: what was noted last is searched first, in spans that grow."""

from __future__ import annotations

import time
from collections.abc import Sequence

from langgraph.store.base import BaseStore, SearchItem, SearchOp

from questbook.memory.facts.marks import Namespace, lasting_position, position_of, turn_position
from questbook.memory.store.any_store import search_all
from questbook.memory.timeline.timeline import Segment, UserTimeline, is_visible, read_heads, visible_filters
from questbook.types import JSON

_FEW = 128  # facts of a branch that are read at first; with fewer, these are all
_FIRST_TURNS = 64  # back from now
_FIRST_SECONDS = 86_400.0  # the same for facts that threads share, which are ordered by time
_GROWTH = 8
_MOST = 10_000  # facts of a branch that are read in one span


async def latest_facts(
    store: BaseStore, namespace: Namespace, only: JSON, *, timeline: Sequence[Segment], count: int
) -> list[SearchItem]:
    """Return the latest facts that meet a filter, the oldest of them first, whether or not they still hold.

    Costs one batch of searches; a few more where there are hundreds of facts. What is read does not grow with them.

    Args:
        store: Any store.
        namespace: Namespace of the facts.
        only: A store filter.
        timeline: The timeline that asks.
        count: How many facts, at most.
    """
    of_user = isinstance(timeline, UserTimeline)
    filters = [only] if of_user else [segment | only for segment in visible_filters(timeline)]
    now = time.time() if of_user else float(timeline[-1][1] if timeline else 0)
    span, limit, since = 0.0, _FEW, dict[str, JSON]()
    while True:
        results = await search_all(store, [SearchOp(namespace, filter=one | since, limit=limit) for one in filters])
        items = [item for result in results for item in result]
        await read_heads(store, timeline, (item.value for item in items))
        visible = [item for item in items if is_visible(timeline, item.value)]
        # A search that is full may have left out any fact.
        complete = limit == _MOST or all(len(result) < limit for result in results)
        if complete and (not since or len(visible) >= count):
            visible.sort(key=lambda item: (position_of(item.value), item.key))
            return visible[-count:]
        span, limit = span * _GROWTH or (_FIRST_SECONDS if of_user else _FIRST_TURNS), _MOST
        earliest = lasting_position(now - span) if of_user else turn_position(max(0, int(now - span)), 0)
        since = {"at": {"$gt": earliest}} if span < now else {}
