"""`questbook memories list|search|add|edit|delete`: what is remembered, looked through and changed by hand."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import Item

from questbook.graphs.companion.context import own_campaign
from questbook.graphs.embedded.databases import open_store
from questbook.graphs.embedded.home import Home
from questbook.graphs.errors import SettingsError
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.forget import UNSAID, ask
from questbook.graphs.terminal.text import one_line
from questbook.memory.facts.fact import is_secret_record
from questbook.memory.facts.validity import FactGroups, group_facts
from questbook.memory.ltm import curation
from questbook.memory.ltm.memories import MEMORIES
from questbook.memory.recall.age import phrase_age
from questbook.memory.store.faiss_store import FaissStore
from questbook.memory.timeline.namespaces import campaign_namespace, character_namespace, player_namespace
from questbook.memory.timeline.timeline import Segment

_FACTS, _ARCHIVE = "facts", "archive"
_WIDTH = 200


async def memories(context: Settings, asked: argparse.Namespace) -> bool:
    """Do what `questbook memories` asks for; return whether it was done.

    Args:
        context: The settings: user and embedder.
        asked: The action and its flags, as `memory_flags` names them.

    Raises:
        SettingsError: It is not clear whose memories, or they cannot be changed in this way.
        HomeError: The data directory cannot be used.
        StoreError: There is no such memory, or the store failed.
    """
    home, user = await asyncio.to_thread(Home.find), None if asked.shared else context.user
    campaign, player = getattr(asked, "campaign", None), getattr(asked, "player", False)
    assistant = getattr(asked, "assistant", None)
    async with open_store(home.memory, context.embeddings) as store:
        if asked.character is not None:
            place = character_namespace(asked.character, MEMORIES, user=user)
        elif campaign is not None:
            place = campaign_namespace(context.user, campaign, _FACTS)
        elif assistant is not None:
            place = campaign_namespace(context.user, own_campaign(assistant), _ARCHIVE)
        elif player:
            place = player_namespace(context.user, _FACTS)
        elif asked.action == "list":
            return _characters(await curation.list_characters(store, user))
        else:
            raise SettingsError(
                "Whose memories? Give --character NAME or --assistant NAME; `questbook memories list` tells which."
            )
        if asked.action == "list" and place[-1] == _FACTS:
            return _facts(await group_facts(store, place, await _timeline(store, context.user, campaign)))
        if asked.action == "list":
            return _list(await curation.list_memories(store, place))
        if asked.action == "search":
            found = [
                one
                for one in await curation.search_memories(store, place, asked.words)
                if not is_secret_record(one.value)
            ]
            return _list(found, {item.key: item.score for item in found})
        if asked.action == "delete":
            return await _delete(store, place, asked, user)
        if asked.action == "edit":
            key = await curation.edit_memory(store, place, asked.key, asked.text)
            await asyncio.to_thread(store.compact)
            _say(f"Changed: {key}")
            return True
        key = await curation.add_memory(
            store, asked.character, asked.text, speaker=asked.speaker or context.user, user=user
        )
        _say(f"Added: {key}")
        return True


async def _delete(store: FaissStore, place: tuple[str, ...], asked: argparse.Namespace, user: str | None) -> bool:
    if bool(asked.keys) == asked.all:
        raise SettingsError("Delete which? Give keys, as `questbook memories list` shows them, or --all: one of them.")
    if not asked.all:
        gone = await curation.delete_memories(store, place, asked.keys)
        await asyncio.to_thread(store.compact)
        _list(gone, deleted=True)
        return True
    if asked.character is None:
        raise SettingsError("--all is for characters. For a campaign, assistant or player there is `questbook forget`.")
    count = len(await curation.list_memories(store, place))
    if not asked.yes and not await ask([f"Everything that {asked.character!r} remembers: {count:,} memories."]):
        _say("Nothing was deleted.")
        return False
    await curation.delete_character(store, asked.character, user)
    await asyncio.to_thread(store.compact)
    _say(f"Deleted: {count:,} memories of {asked.character!r}.")
    return True


def _characters(counts: dict[str, int]) -> bool:
    if not counts:
        _say("No character remembers anything yet. questbook import ltm DIR, or questbook memories add TEXT.")
    for name, count in counts.items():
        _say(f"{name!r}: {count:,} {'memory' if count == 1 else 'memories'}")
    return True


async def _timeline(store: FaissStore, user: str, campaign: str | None) -> list[Segment] | None:
    """Return the timeline of where a campaign stands; None if there is no such place."""
    head = await store.aget(campaign_namespace(user, campaign, "head"), "head") if campaign is not None else None
    return [(branch, turn) for branch, turn in head.value["timeline"]] if head is not None else None


def _facts(found: FactGroups) -> bool:
    for heading, items in zip(("Facts", "Insights", "Hold no more", "On other branches"), found, strict=True):
        if items:
            _say(f"{heading}: {len(items):,}")
            _list(items)
    return any(found) or _list([])


def _list(items: Iterable[Item], scores: dict[str, Any] | None = None, *, deleted: bool = False) -> bool:
    found, now = list(items), datetime.now(UTC).astimezone()
    if not found:
        _say("Nothing is remembered there.")
    for item in found:
        score = (scores or {}).get(item.key)
        distance = f" (distance {1 - score:.2f})" if score is not None else ""
        secret = is_secret_record(item.value)
        who = item.value.get("speaker") or item.value.get("subject") or item.value.get("kind") or ""
        age = phrase_age(str(item.value.get("said_at") or item.value.get("real_time") or ""), now)
        text = UNSAID if secret else one_line(str(item.value.get("text", "")))
        told = "secret" if secret else one_line(str(who), 40)
        _say(f"{'deleted: ' if deleted else ''}{item.key} {age}, {told}{distance}: {text}")
    return True


def _say(text: str) -> None:
    print(one_line(text, _WIDTH))  # noqa: T201
