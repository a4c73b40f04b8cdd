"""Batches: several reads of a store at once, with the types that they have, and writes that every store takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem, SearchOp


async def searched(store: BaseStore, searches: Sequence[SearchOp]) -> list[list[SearchItem]]:
    """Search, all in one batch, so in one embedding; without searches the store is not asked."""
    return cast("list[list[SearchItem]]", await store.abatch(searches)) if searches else []


async def gotten(store: BaseStore, gets: Sequence[GetOp]) -> list[Item | None]:
    """Read by keys, all in one batch; None where nothing is."""
    return cast("list[Item | None]", await store.abatch(gets)) if gets else []


async def fetch(store: BaseStore, places: Sequence[tuple[tuple[str, ...], str]]) -> dict[Any, Mapping[str, Any]]:
    """Read records by namespace and key, all in one batch; those that are not there are left out."""
    items = await gotten(store, [GetOp(*place, refresh_ttl=False) for place in places])
    return {place: item.value for place, item in zip(places, items, strict=True) if item is not None}


async def put(store: BaseStore, puts: Sequence[PutOp]) -> None:
    """Write in this order, all in one batch; where a text comes a second time, another batch begins.

    LangGraph's InMemoryStore refuses a batch that embeds one text twice (1.2: "does not match number of indices").
    `FaissStore` takes it as one.
    """
    batches: list[list[PutOp]] = [[]]
    texts = set[str]()
    for one in puts:
        text = (one.value or {}).get("text")
        if isinstance(text, str) and one.index is not False and not getattr(store, "filters_any", False):
            if text in texts:
                batches.append([])
                texts.clear()
            texts.add(text)
        batches[-1].append(one)
    for batch in batches:
        await store.abatch(batch)
