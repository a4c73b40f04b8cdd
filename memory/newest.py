"""Newest: the latest records of a store that need no order, or cannot give one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, SearchItem, SearchOp

from memory.batches import searched

_PAGE = 1_000


async def newest(
    store: BaseStore, namespace: tuple[str, ...], filters: Sequence[Mapping[str, Any]], most: int
) -> list[SearchItem]:
    """Return the newest records that meet one of some filters, oldest first; no query is embedded.

    All of them are read: stores list them in orders of their own.

    Args:
        store: Any store.
        namespace: Where the records are.
        filters: Store filters, of which no record meets two.
        most: How many are returned.
    """
    found: list[SearchItem] = []
    for only in filters:
        offset = 0
        while True:
            search = SearchOp(namespace, filter=dict(only) or None, limit=_PAGE, offset=offset, refresh_ttl=False)
            (items,) = await searched(store, [search])
            found += items
            offset += len(items)
            if len(items) < _PAGE:
                break
    found.sort(key=_when)
    return found[-most:]


def _when(item: SearchItem) -> tuple[str, str, str, str]:
    order, at = (str(item.value.get(name) or "") for name in ("order", "at"))
    return order, at, item.created_at.isoformat(), item.key
