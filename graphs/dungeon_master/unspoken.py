"""Unspoken: secrets of the turns that the prompt holds word for word.

What such a turn told need not be recalled, since it stands there; but nobody said its secrets, and the dungeon master
must not forget them for as long as the turn takes to leave the buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langgraph.store.base import BaseStore

from questbook.memory.facts.validity import keep_valid
from questbook.memory.recall.query import Recalled
from questbook.memory.store.any_store import newest_items
from questbook.memory.timeline.timeline import Segment, visible_filters

JSON = dict[str, Any]

_MOST = 64  # secrets of the buffer's turns that are looked at, the latest


async def unspoken(
    store: BaseStore,
    facts: tuple[str, ...],
    timeline: Sequence[Segment],
    since: int,
    told: Callable[[Recalled], JSON],
    cost: Callable[[JSON], int],
    budget: int,
) -> list[JSON]:
    """Return the secrets noted since a turn that still hold, the latest as far as the budget goes; oldest first.

    Args:
        store: Any store. No query is embedded.
        facts: Where the campaign's facts are.
        timeline: What can be seen: no further than what is written, since another's record may lie beyond.
        since: First turn that the prompt holds word for word.
        told: Tells a record as a memory.
        cost: Tokens of a memory.
        budget: Tokens that all may cost.
    """
    first = f"{max(since, 0):08}"
    filters = [
        {**only, "kind": "secret", "order": {**only["order"], "$gte": first}}
        for only in visible_filters(timeline)
        if only["order"]["$lte"] >= first
    ]
    items = await newest_items(store, facts, filters, _MOST)
    found = [Recalled(item.key, item.value, None, 0.0, tuple(item.namespace)) for item in items]
    kept: list[JSON] = []
    for one in reversed(await keep_valid(store, found, timeline=timeline)):
        memory = told(one)
        if (tokens := cost(memory)) > budget:
            break
        budget -= tokens
        kept.append(memory)
    return kept[::-1]
