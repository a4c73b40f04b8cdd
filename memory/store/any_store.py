"""Typed reads and writes that work on every LangGraph store, ours or another.

`BaseStore.abatch` answers with a union of types. These functions say what each kind of read gives, send everything
in one batch, and hide what the stores do differently.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem, SearchOp

from questbook.types import JSON, storable

NEWEST_LIMIT = 1_000
"""How many records `newest_items` returns if the caller names no number."""

_PAGE = 500  # items of one read


class AnyItem(Protocol):
    """An `Item`, a `SearchItem`, a `Recalled`, or anything else with these three attributes."""

    @property
    def key(self) -> str:
        """Its key in the store."""

    @property
    def value(self) -> JSON:
        """The record."""

    @property
    def namespace(self) -> tuple[str, ...]:
        """Its namespace."""


AnyItemT = TypeVar("AnyItemT", bound=AnyItem)


async def search_all(store: BaseStore, searches: Sequence[SearchOp]) -> list[list[SearchItem]]:
    """Run searches in one batch, so that their queries are embedded in one call; return the items of each."""
    return cast("list[list[SearchItem]]", await store.abatch(searches)) if searches else []


async def get_all(store: BaseStore, gets: Sequence[GetOp]) -> list[Item | None]:
    """Read items by their keys in one batch; None for a key that the store does not have."""
    return cast("list[Item | None]", await store.abatch(gets)) if gets else []


async def get_values(
    store: BaseStore, places: Sequence[tuple[tuple[str, ...], str]]
) -> dict[tuple[tuple[str, ...], str], Mapping[str, Any]]:
    """Read records by namespace and key in one batch; leave out those that the store does not have."""
    items = await get_all(store, [GetOp(*place, refresh_ttl=False) for place in places])
    return {place: item.value for place, item in zip(places, items, strict=True) if item is not None}


async def put_all(store: BaseStore, puts: Sequence[PutOp]) -> None:
    """Write in this order and in one batch; begin another batch where a text comes a second time.

    Where the store indexes whole values, as LangGraph's do by default, only the text of a record with one is indexed:
    its ids and places would hide what it says.
    LangGraph's InMemoryStore refuses a batch that embeds one text twice (1.2: "does not match number of indices").
    `FaissStore` accepts it. What PostgreSQL refuses, NUL and lone surrogates, is left out of the values for all stores.
    """
    batches: list[list[PutOp]] = [[]]
    texts, whole = set[str](), _indexes_whole_values(store)
    for op in (put._replace(value=storable(put.value)) for put in puts):
        if whole and op.index is None and isinstance((op.value or {}).get("text"), str):
            op = op._replace(index=["text"])
        text = (op.value or {}).get("text")
        if isinstance(text, str) and op.index is not False and not getattr(store, "filters_any", False):
            if text in texts:
                batches.append([])
                texts.clear()
            texts.add(text)
        batches[-1].append(op)
    for batch in filter(None, batches):
        await store.abatch(batch)


def _indexes_whole_values(store: BaseStore) -> bool:
    fields = (getattr(store, "index_config", None) or {}).get("fields") or ["$"]
    # LangGraph's SqliteStore 3.1 does whatever its `fields` say (langgraph#8808).
    return "$" in fields or (list(fields) == ["text"] and not getattr(store, "filters_any", False))


async def items_under(
    store: BaseStore,
    namespace: tuple[str, ...],
    only: Mapping[str, Any] | None = None,
    *,
    refresh_ttl: bool | None = None,
) -> AsyncIterator[SearchItem]:
    """Read what meets a filter (None: everything) under a namespace, page by page, deeper namespaces included.

    Deleting an item moves the later ones up: a caller that deletes collects all items first. `refresh_ttl` says whether
    reading starts the items' time to live again; None: as the store is set.
    """
    offset, wanted = 0, dict(only) if only else None
    # Until a page is empty, not until one is short: a store may return fewer items than it has.
    while items := await store.asearch(namespace, filter=wanted, limit=_PAGE, offset=offset, refresh_ttl=refresh_ttl):
        for item in items:
            yield item
        offset += len(items)


async def newest_items(
    store: BaseStore,
    namespace: tuple[str, ...],
    filters: Sequence[Mapping[str, Any]],
    limit: int = NEWEST_LIMIT,
) -> list[SearchItem]:
    """Return the newest records that meet one of some filters, oldest first, without embedding a query.

    All records are read, because stores list them in different orders. A record may meet at most one of the filters.
    """
    items = [item for only in filters async for item in items_under(store, namespace, only, refresh_ttl=False)]
    items.sort(key=_age)
    return items[-limit:]


def _age(item: SearchItem) -> tuple[str, str, str, str]:
    """Sort key: the older record first."""
    order, at = (str(item.value.get(name) or "") for name in ("order", "at"))
    return order, at, item.created_at.isoformat(), item.key
