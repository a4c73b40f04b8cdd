"""Paging: everything that lies under a namespace, a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from langgraph.store.base import BaseStore, SearchItem

_PAGE = 500


async def items_under(
    store: BaseStore,
    namespace: tuple[str, ...],
    only: Mapping[str, Any] | None = None,
    *,
    refresh_ttl: bool | None = None,
) -> AsyncIterator[SearchItem]:
    """Go through everything that a store has under a namespace, whatever is deeper in it too.

    What is deleted meanwhile moves the rest up: whoever deletes collects first.

    Args:
        store: Any store.
        namespace: Where the items are.
        only: A store filter; None: all of them.
        refresh_ttl: Whether items live longer for it; None: as the store is set.
    """
    offset, wanted = 0, dict(only) if only else None
    # Until a page is empty, not until one is short: a store may give fewer at once.
    while items := await store.asearch(namespace, filter=wanted, limit=_PAGE, offset=offset, refresh_ttl=refresh_ttl):
        for item in items:
            yield item
        offset += len(items)
