"""Curation: a person looks through memories, and adds, edits and deletes them, on every branch at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from langgraph.store.base import BaseStore, Item, PutOp, SearchItem

from questbook.memory.errors import NoSuchMemoryError, StoreConfigError
from questbook.memory.ltm.greeting import SESSIONS
from questbook.memory.ltm.memories import MEMORIES, CharacterMemory, memory_key
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import character_namespace, characters_namespace, unescape_label
from questbook.memory.timeline.records import Stamp

_MIN_PREFIX = 4  # characters of a key that are enough to name it


async def list_characters(store: BaseStore, user: str | None = None) -> dict[str, int]:
    """Return the characters of a user, or those that all users share, that have memories, and how many each has."""
    counts: dict[str, int] = {}
    place = characters_namespace(user)
    async for item in items_under(store, place):
        if item.namespace[len(place) + 1 :] == (MEMORIES,):
            name = unescape_label(item.namespace[len(place)])
            counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))


async def list_memories(store: BaseStore, namespace: tuple[str, ...]) -> list[SearchItem]:
    """Return all memories of a namespace, the latest first."""
    items = [item async for item in items_under(store, namespace) if item.namespace == namespace]
    return sorted(items, key=lambda item: (str(item.value.get("said_at", "")), item.key), reverse=True)


async def search_memories(
    store: BaseStore, namespace: tuple[str, ...], query: str, limit: int = 10
) -> list[SearchItem]:
    """Return the memories that fit a query best, in the store's own order; their score is the cosine, if it has one."""
    return await store.asearch(namespace, query=query, limit=limit)


async def add_memory(
    store: BaseStore,
    character: str,
    text: str,
    *,
    speaker: str,
    user: str | None = None,
    said_at: datetime | None = None,
) -> str:
    """Add a memory to a character, or to `EVERYONE`, of any length; it is seen on every branch. Return its key.

    Raises:
        StoreConfigError: The text is empty.
    """
    at = (said_at or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")
    key = memory_key(speaker, _require_text(text), at)
    memory = CharacterMemory(text=text.strip(), speaker=speaker, stamp=Stamp(said_at=at), by="hand")
    namespace = character_namespace(character, MEMORIES, user=user)
    await put_all(store, [PutOp(namespace, key, memory.to_json(), index=["text"])])
    return key


async def edit_memory(store: BaseStore, namespace: tuple[str, ...], key: str, text: str) -> str:
    """Change what a memory says, on every branch; who said it and when stays. Return its whole key.

    An import does not bring the old words back: they would have the same key.

    Raises:
        NoSuchMemoryError: There is none with this key, or several.
        StoreConfigError: The text is empty.
    """
    item = await find_memory(store, namespace, key)
    changed = {"text": _require_text(text).strip(), "edited_at": datetime.now(UTC).isoformat(timespec="seconds")}
    await put_all(store, [PutOp(namespace, item.key, {**item.value, **changed}, index=["text"])])
    return item.key


async def delete_memories(store: BaseStore, namespace: tuple[str, ...], keys: Sequence[str]) -> list[Item]:
    """Delete memories on every branch; return them. Either all of the keys are found, or nothing is changed.

    Raises:
        NoSuchMemoryError: There is none with one of these keys, or several.
    """
    items = [await find_memory(store, namespace, key) for key in dict.fromkeys(keys)]
    await put_all(store, [PutOp(namespace, item.key, None) for item in items])
    return items


async def delete_character(store: BaseStore, character: str, user: str | None = None) -> int:
    """Delete everything that a character remembers, with when it was talked to; return how many memories."""
    count = 0
    deletes = []
    for kind in (MEMORIES, SESSIONS):
        items = [item async for item in items_under(store, character_namespace(character, kind, user=user))]
        deletes += [PutOp(item.namespace, item.key, None) for item in items]
        count += len(items) if kind == MEMORIES else 0
    if deletes:
        await put_all(store, deletes)
    return count


async def find_memory(store: BaseStore, namespace: tuple[str, ...], key: str) -> Item:
    """Return the memory with this key, or the only one whose key begins so.

    Raises:
        NoSuchMemoryError: There is none, or there are several.
    """
    if (item := await store.aget(namespace, key)) is not None:
        return item
    items = [item async for item in items_under(store, namespace) if item.namespace == namespace]
    matches = [item for item in items if item.key.startswith(key)] if len(key) >= _MIN_PREFIX else []
    if len(matches) == 1:
        return matches[0]
    several = f"{len(matches)} memories have keys that begin with {key!r}"
    raise NoSuchMemoryError(
        f"{several if matches else f'No memory has the key {key!r}'}; give a whole key, or at least {_MIN_PREFIX} "
        "characters of its beginning, as a list or search shows them."
    )


def _require_text(text: str) -> str:
    if not text.strip():
        raise StoreConfigError("A memory needs words: the text is empty.")
    return text
