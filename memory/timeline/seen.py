"""Everything that a timeline sees of a namespace, in the order in which it was written."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.store.base import BaseStore, Item

from questbook.memory.store.any_store import items_under
from questbook.memory.timeline.timeline import Segment, visible


async def all_seen(
    store: BaseStore, namespace: tuple[str, ...], timeline: Sequence[Segment], before: int | None = None
) -> list[Item]:
    """List the records that a timeline sees, by turn and place in it.

    Args:
        store: Any store; its items carry the fields of `questbook.memory.timeline.records.Stamp`.
        namespace: Where the records are.
        timeline: The checkpoint's timeline.
        before: Leave out records of this turn and later ones.
    """
    every = [item for only in visible(timeline, before) async for item in items_under(store, namespace, only)]
    found: dict[str, Item] = {item.key: item for item in every}
    return sorted(found.values(), key=lambda item: (item.value["turn"], _ordinal(item.key), item.key))


def _ordinal(key: str) -> int:
    last = key.rpartition("-")[2]
    return int(last) if last.isdecimal() else 0
