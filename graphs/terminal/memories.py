"""`questbook memories`: memories listed, searched, added, edited and deleted by hand."""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from langgraph.store.base import Item
from pydantic import ValidationError

from questbook.graphs.companion.context import own_campaign
from questbook.graphs.errors import SettingsError
from questbook.graphs.interface.forgetting import HIDDEN
from questbook.graphs.interface.text import number_of, one_line
from questbook.graphs.local.databases import open_store
from questbook.graphs.local.home import Home
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.screen import ask, say
from questbook.memory.archive.archive import add_entry
from questbook.memory.facts.fact import Fact, is_secret_record
from questbook.memory.facts.lookup import FactGroups, group_facts
from questbook.memory.facts.writing import add_fact
from questbook.memory.ltm.memories import (
    MEMORIES,
    add_memory,
    delete_character,
    delete_memories,
    edit_memory,
    list_characters,
    list_memories,
)  # fmt: skip
from questbook.memory.recall.times import phrase_age
from questbook.memory.store.faiss_store import FaissStore
from questbook.memory.timeline.namespaces import (
    campaign_namespace,
    character_namespace,
    player_namespace,
)
from questbook.memory.timeline.timeline import Segment, read_timeline

_FACTS, _ARCHIVE = "facts", "archive"
_OF_FACTS = re.compile(r"-(?:fact|insight)-")  # in a key
_WIDTH = 200


async def memories(context: Settings, flags: argparse.Namespace) -> bool:
    """Do what `questbook memories` asks for; return whether it was done.

    Raises:
        SettingsError: It is not clear whose memories, or they cannot be changed in this way.
        HomeError: The data directory cannot be used.
        StoreError: There is no such memory, or the store failed.
    """
    home, user = await asyncio.to_thread(Home.find), None if flags.shared else context.user
    async with open_store(home.memory, context.embeddings) as store:
        namespace = _namespace_of(context, flags)
        if namespace is None:
            return _show_characters(await list_characters(store, user))
        # What an assistant remembers is what it archived, and the facts that it noted.
        facts = [(*namespace[:-1], _FACTS)] if namespace[-1] == _ARCHIVE else []
        if flags.action == "list":
            return await _list(store, namespace, facts, await _timeline(store, context.user, _campaign_of(flags)))
        if flags.action == "search":
            matches = [
                item
                for place in (namespace, *facts)
                for item in await store.asearch(place, query=flags.words)
                if not is_secret_record(item.value)
            ]
            return _show(matches, {item.key: item.score for item in matches})
        if flags.action == "delete":
            of_facts = facts and any(_OF_FACTS.search(key) for key in flags.keys)
            return await _delete(store, facts[0] if of_facts else namespace, flags, user)
        if flags.action == "edit":
            key = await edit_memory(store, namespace, flags.key, flags.text)
            await asyncio.to_thread(store.compact)
            say(f"Changed: {key}", _WIDTH)
        else:
            say(await _add(store, namespace, flags, context.user), _WIDTH)
        return True


def _namespace_of(context: Settings, flags: argparse.Namespace) -> tuple[str, ...] | None:
    """Return the namespace that the flags name; None to list the characters.

    Raises:
        SettingsError: They name none.
    """
    if flags.character is not None:
        return character_namespace(flags.character, MEMORIES, user=None if flags.shared else context.user)
    if (campaign := _campaign_of(flags)) is not None:
        return campaign_namespace(context.user, campaign, _FACTS if flags.assistant is None else _ARCHIVE)
    if getattr(flags, "player", False):
        return player_namespace(context.user, _FACTS)
    if flags.action == "list":
        return None
    raise SettingsError(
        "Whose memories? Give --character, --assistant or --campaign with a name, or --player; `questbook memories "
        "list` shows the characters."
    )


def _campaign_of(flags: argparse.Namespace) -> str | None:
    """Return the campaign, or the assistant's, that the flags name; None if they name neither."""
    return getattr(flags, "campaign", None) if flags.assistant is None else own_campaign(flags.assistant)


async def _list(
    store: FaissStore, namespace: tuple[str, ...], facts: Sequence[tuple[str, ...]], timeline: list[Segment] | None
) -> bool:
    if namespace[-1] == _FACTS:
        return _show_facts(await group_facts(store, namespace, timeline))
    items = await list_memories(store, namespace)
    groups = [group for place in facts if any(group := await group_facts(store, place, timeline))]
    if items or not groups:
        _show(items)
    for group in groups:
        _show_facts(group)
    return True


async def _delete(store: FaissStore, namespace: tuple[str, ...], flags: argparse.Namespace, user: str | None) -> bool:
    if bool(flags.keys) == flags.all:
        raise SettingsError("Delete which? Give keys, as `questbook memories list` shows them, or --all: one of them.")
    if not flags.all:
        deleted = await delete_memories(store, namespace, flags.keys)
        await asyncio.to_thread(store.compact)
        return _show(deleted, prefix="deleted: ")
    if flags.character is None:
        raise SettingsError("--all is for characters. For a campaign, assistant or player there is `questbook forget`.")
    count = len(await list_memories(store, namespace))
    if not flags.yes and not await ask([f"Everything that {flags.character!r} remembers: {count:,} memories."]):
        say("Nothing was deleted.", _WIDTH)
        return False
    await delete_character(store, flags.character, user)
    await asyncio.to_thread(store.compact)
    say(f"Deleted: {count:,} memories of {flags.character!r}.", _WIDTH)
    return True


async def _add(store: FaissStore, namespace: tuple[str, ...], flags: argparse.Namespace, user: str) -> str:
    """Add a memory; return what was done, in words."""
    of_fact, of_archive = ("subject", "attribute", "secret"), ("tag",)
    takes = ("speaker",) if flags.character is not None else of_archive if flags.assistant else ("speaker", *of_fact)
    if wrong := [name for name in ("speaker", *of_fact, *of_archive) if getattr(flags, name) and name not in takes]:
        raise SettingsError(f"--{wrong[0]} does not go with it: here you may add {', '.join(f'--{n}' for n in takes)}.")
    if flags.character is not None:
        owner = None if flags.shared else user
        speaker = flags.speaker or user
        return f"Added: {await add_memory(store, flags.character, flags.text, speaker=speaker, user=owner)}"
    campaign = _campaign_of(flags)
    timeline = await _timeline(store, user, campaign)
    if campaign is not None and not timeline:
        raise SettingsError(
            f"No turn of {flags.campaign or flags.assistant!r} is finished yet, so there is nothing to add to: "
            "begin it first."
        )
    if flags.assistant is not None:
        return f"Added: {await add_entry(store, namespace, flags.text, flags.tag or (), timeline=timeline or ())}"
    kind = "secret" if flags.secret else "trait" if flags.attribute else "event"
    try:
        names = {"subject": flags.subject, "attribute": flags.attribute, "claimed_by": flags.speaker}
        fact = Fact(text=flags.text.strip(), kind=kind, **{field: name or "" for field, name in names.items()})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise SettingsError(f"{problem['loc'][0]}: got {problem['input']!r:.60}; {problem['msg']}.") from error
    changes = await add_fact(store, namespace, fact, timeline=timeline)
    ended = f" It takes the place of {', '.join(changes.superseded)}." if changes.superseded else ""
    if changes.new:
        return f"Added: {changes.new[0]}.{ended}"
    return f"That is known already: {', '.join(changes.repetitions.values()) or 'nothing was written'}."


async def _timeline(store: FaissStore, user: str, campaign: str | None) -> list[Segment] | None:
    """Return the timeline of a campaign's head; None if it has none."""
    head = await store.aget(campaign_namespace(user, campaign, "head"), "head") if campaign is not None else None
    return read_timeline(head.value) if head is not None else None


def _show_characters(counts: dict[str, int]) -> bool:
    if not counts:
        say("No character remembers anything yet. questbook import ltm DIR, or memories add TEXT --character NAME.")
    for name, count in counts.items():
        say(f"{name!r}: {number_of(count, 'memory', 'memories')}", _WIDTH)
    return True


def _show_facts(groups: FactGroups) -> bool:
    for heading, items in zip(("Facts", "Insights", "No longer true", "On other branches"), groups, strict=True):
        if items:
            say(f"{heading}: {len(items):,}", _WIDTH)
            _show(items)
    return any(groups) or _show([])


def _show(items: Iterable[Item], scores: Mapping[str, float | None] | None = None, prefix: str = "") -> bool:
    items, now = list(items), datetime.now(UTC).astimezone()
    if not items:
        say("Nothing is remembered there.", _WIDTH)
    for item in items:
        value, score = item.value, (scores or {}).get(item.key)
        distance = f" (distance {1 - score:.2f})" if score is not None else ""
        who = value.get("speaker") or value.get("subject") or value.get("kind") or ""
        who, text = one_line(str(who), 40), one_line(str(value.get("text", "")))
        if is_secret_record(value):
            who, text = "secret", HIDDEN
        age = phrase_age(str(value.get("said_at") or value.get("real_time") or ""), now)
        say(f"{prefix}{item.key} {age}, {who}{distance}: {text}", _WIDTH)
    return True
