"""Newest: the latest records of a store that need no order, or cannot give one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, SearchItem

from questbook.memory.store.paging import items_under

MOST = 1_000
"""Records of a store that cannot rank that are looked at besides."""


async def newest(
    store: BaseStore, namespace: tuple[str, ...], filters: Sequence[Mapping[str, Any]], most: int = MOST
) -> list[SearchItem]:
    """Return the newest records that meet one of some filters, oldest first; no query is embedded.

    All of them are read: stores list them in orders of their own.

    Args:
        store: Any store.
        namespace: Where the records are.
        filters: Store filters, of which no record meets two.
        most: How many are returned.
    """
    found = [item for only in filters async for item in items_under(store, namespace, only, refresh_ttl=False)]
    found.sort(key=_when)
    return found[-most:]


def _when(item: SearchItem) -> tuple[str, str, str, str]:
    order, at = (str(item.value.get(name) or "") for name in ("order", "at"))
    return order, at, item.created_at.isoformat(), item.key
