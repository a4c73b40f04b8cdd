"""Groups of facts: all of a campaign, a person or a conversation, for somebody who looks through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langgraph.store.base import BaseStore, SearchItem

from questbook.memory.facts.marks import Namespace
from questbook.memory.facts.validity import keep_valid
from questbook.memory.store.any_store import items_under
from questbook.memory.timeline.timeline import Segment, is_visible, read_heads


class FactGroups(NamedTuple):
    """The facts of a campaign or player, each group the latest first."""

    facts: list[SearchItem]  # facts that hold
    insights: list[SearchItem]  # insights that hold
    ended: list[SearchItem]  # facts and insights that hold no more: superseded, or judged to be contradicted
    elsewhere: list[SearchItem]  # what only other branches know


async def group_facts(store: BaseStore, namespace: Namespace, timeline: Sequence[Segment] | None = None) -> FactGroups:
    """Return all facts of a namespace, grouped by what they are and whether they hold.

    Args:
        store: Any store.
        namespace: Namespace of the facts.
        timeline: The timeline on which they hold or not; None: all branches together.
    """
    items = [item async for item in items_under(store, namespace) if item.namespace == namespace]
    items.sort(key=lambda item: (str(item.value.get("said_at", "")), item.key), reverse=True)
    await read_heads(store, timeline, (item.value for item in items))
    here = [item for item in items if is_visible(timeline, item.value)]
    here_keys = {item.key for item in here}
    valid_keys = {item.key for item in await keep_valid(store, here, timeline=timeline)}
    insight_keys = {item.key for item in here if item.value.get("cites")}
    return FactGroups(
        [item for item in here if item.key in valid_keys - insight_keys],
        [item for item in here if item.key in valid_keys & insight_keys],
        [item for item in here if item.key not in valid_keys],
        [item for item in items if item.key not in here_keys],
    )
