"""Paging: everything that lies under a namespace, a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator

from langgraph.store.base import BaseStore, SearchItem

_PAGE = 500


async def items_under(store: BaseStore, namespace: tuple[str, ...]) -> AsyncIterator[SearchItem]:
    """Go through everything that a store has under a namespace, whatever is deeper in it too.

    What is deleted meanwhile moves the rest up: whoever deletes collects first.
    """
    offset = 0
    while items := await store.asearch(namespace, limit=_PAGE, offset=offset):
        for item in items:
            yield item
        offset += len(items)
