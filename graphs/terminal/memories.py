"""`questbook memories`: memories listed, searched, added, corrected, deleted and moved by hand."""

import argparse
import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore

from questbook.graphs.companion.context import own_campaign
from questbook.graphs.errors import SettingsError
from questbook.graphs.forgetting.backends import compact
from questbook.graphs.interface.forgetting import HIDDEN
from questbook.graphs.interface.text import number_of, one_line, plain
from questbook.graphs.local.homes import find_home
from questbook.graphs.memories.memories import Memories
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.screen import ask, say
from questbook.memory.archive.archive import add_entry
from questbook.memory.facts.fact import is_secret_record
from questbook.memory.ltm import memories as ltm
from questbook.memory.recall.times import phrase_age
from questbook.memory.store.any_store import AnyItem
from questbook.memory.timeline.namespaces import campaign_namespace, character_namespace
from questbook.memory.timeline.timeline import read_timeline, shown_key

_OF_FACT = ("subject", "attribute", "secret")
_MOST, _SHOWN = 200, 10  # memories that are searched in a namespace, and shown
_WIDTH = 200


async def memories(context: Settings, flags: argparse.Namespace) -> bool:
    """Do what `questbook memories` asks for; return whether it was done."""
    home, user = await asyncio.to_thread(find_home), None if flags.shared else context.user
    async with home.open_store(context.embeddings) as store:
        if flags.character is not None:
            return await _of_character(store, flags, context.user, user)
        if (view := _view(store, context.user, flags)) is None:
            if not (characters := await ltm.list_characters(store, user)):
                how = "questbook import ltm DIR, or memories add TEXT --character NAME"
                say(f"No character remembers anything yet. {how}.")
            for name, count in characters.items():
                say(f"{name!r}: {number_of(count, 'memory', 'memories')}", _WIDTH)
            return True
        return await _ACTIONS[flags.action](view, flags)


def _view(store: BaseStore, user: str, flags: argparse.Namespace) -> Memories | None:
    """Return the memories that the flags name; None to list the characters."""
    campaign = flags.campaign if flags.assistant is None else own_campaign(flags.assistant)
    owner: dict[str, Any] = {"campaign": campaign, "agent": flags.agent, "team": flags.team, "player": flags.player}
    if any(named not in (None, False) for named in owner.values()):
        return Memories(store, user if flags.team is None else "", **owner)
    if flags.action == "list":
        return None
    owners = "Give --character, --assistant, --campaign, --agent or --team with a name, or --player"
    raise SettingsError(f"Whose memories? {owners}; `questbook memories list` shows the characters.")


async def _list(view: Memories, flags: argparse.Namespace) -> bool:
    found, said = await view.list(**_filters(flags)), flags.agent is not None or flags.kind == "exchange"
    groups = {"": [one for one in found if one.kind == "archive" and one.status != "elsewhere"]}
    groups["Said"] = [one for one in found if one.kind == "exchange" and one.status != "elsewhere" and said]
    noted = [one for one in found if one.kind not in ("archive", "exchange")]
    groups["Facts"] = [one for one in noted if one.status == "holds" and not one.value.get("cites")]
    groups["Insights"] = [one for one in noted if one.status == "holds" and one.value.get("cites")]
    groups["No longer true"] = [one for one in noted if one.status in ("ended", "expired")]
    left = [one for one in found if one.status == "elsewhere" and (said or one.kind != "exchange")]
    for heading, items in (groups | {"On other branches": left}).items():
        if items:
            if heading:
                say(f"{heading}: {len(items):,}", _WIDTH)
            _show(items)
    return any([*groups.values(), left]) or _show([])


async def _search(view: Memories, flags: argparse.Namespace) -> bool:
    """Show what is nearest; a secret is not even counted, or the number of lines would tell that one matches."""
    known = {(one.namespace, one.key): one for one in await view.list() if one.kind != "secret"}
    spaces = {one.namespace for one in known.values() if one.kind != "exchange" or flags.agent is not None}
    search = partial(view.store.asearch, query=flags.words, limit=_MOST)
    found = [item for space in sorted(spaces) for item in await search(space) if (item.namespace, item.key) in known]
    found.sort(key=lambda item: item.score or 0, reverse=True)
    return _show([known[item.namespace, item.key] for item in found[:_SHOWN]], {item.key: item.score for item in found})


async def _get(view: Memories, flags: argparse.Namespace) -> bool:
    memory = await view.get(flags.key)
    _show([memory])
    about = {name: memory.value.get(name) for name in ("subject", "attribute", "metadata", "expires")}
    rows = {"status": memory.status, "since": memory.since, "thread": memory.thread, "turn": memory.turn}
    for name, part in (rows | {"said": memory.said, "messages": ", ".join(memory.messages)} | about).items():
        if part:
            say(f"  {name}: {one_line(str(part))}", _WIDTH)
    return True


async def _delete(view: Memories, flags: argparse.Namespace) -> bool:
    _check_delete(flags)
    if flags.all:
        raise SettingsError("--all is for characters. For a campaign, assistant or player there is `questbook forget`.")
    return _show(await view.delete(*flags.keys), prefix="deleted: ")


async def _edit(view: Memories, flags: argparse.Namespace) -> bool:
    memory = await view.get(flags.key)
    if memory.kind == "archive":
        key = await ltm.edit_memory(view.store, memory.namespace, memory.key, flags.text)
        say(f"Changed: {shown_key(key)}", _WIDTH)
    else:
        new = await view.correct(memory.key, flags.text)
        say(f"Changed: {shown_key(new.key)} takes the place of {shown_key(memory.key)}.", _WIDTH)
    await compact(view.store, None, None, "It is corrected", cut=False)
    return True


async def _add(view: Memories, flags: argparse.Namespace) -> bool:
    _check_add(flags, ("tag",) if flags.assistant else ("speaker", *_OF_FACT))
    if flags.assistant is not None:
        place = campaign_namespace(view.user, own_campaign(flags.assistant))
        if (head := await view.store.aget((*place, "head"), "head")) is None:
            problem = f"No turn of {flags.assistant!r} is finished yet"
            raise SettingsError(f"{problem}, so there is nothing to add to: begin it first.")
        timeline = read_timeline(head.value)
        key = await add_entry(view.store, (*place, "archive"), flags.text, flags.tag or (), timeline=timeline)
        say(f"Added: {shown_key(key)}", _WIDTH)
        return True
    kind = "secret" if flags.secret else "trait" if flags.attribute else "event"
    names = {"text": flags.text, "subject": flags.subject, "attribute": flags.attribute, "claimed_by": flags.speaker}
    before = {one.key for one in await view.list(holding=True)}
    new = await view.add({"kind": kind} | {field: name or "" for field, name in names.items()})
    ended = before - {one.key for one in await view.list(holding=True)}
    if new.key in before:
        say(f"That is known already: {shown_key(new.key)}.", _WIDTH)
    else:
        place_of = f" It takes the place of {', '.join(map(shown_key, sorted(ended)))}." if ended else ""
        say(f"Added: {shown_key(new.key)}.{place_of}", _WIDTH)
    return True


async def _export(view: Memories, flags: argparse.Namespace) -> bool:
    lines = await view.export_lines(**_filters(flags))
    await asyncio.to_thread(_write, Path(flags.file), "".join(f"{line}\n" for line in lines))
    say(f"{flags.file}: {number_of(len(lines), 'line', 'lines')}", _WIDTH)
    return True


def _write(file: Path, text: str) -> None:
    file.touch(0o600)  # it says what a person said
    file.write_text(text, "utf-8")


async def _import(view: Memories, flags: argparse.Namespace) -> bool:
    try:
        text = await asyncio.to_thread(Path(flags.file).read_text, "utf-8")
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{flags.file!r} cannot be read: {error}") from error
    say(f"Imported: {number_of(await view.import_lines(text.splitlines()), 'memory', 'memories')}", _WIDTH)
    return True


_ACTIONS = {
    "list": _list, "search": _search, "get": _get, "add": _add, "edit": _edit, "delete": _delete, "export": _export,
    "import": _import,
}  # fmt: skip


def _filters(flags: argparse.Namespace) -> dict[str, Any]:
    days = dict[str, datetime]()
    for name in ("since", "until"):
        if text := getattr(flags, name):
            try:
                days[name] = datetime.fromisoformat(text).astimezone()
            except ValueError as error:
                raise SettingsError(f"--{name}: got {text!r:.40}; expected a day as 2027-01-31.") from error
    return {"kind": flags.kind, "thread": flags.thread, **days}


def _check_delete(flags: argparse.Namespace) -> None:
    if bool(flags.keys) == flags.all:
        raise SettingsError("Delete which? Give keys, as `questbook memories list` shows them, or --all: one of them.")


def _check_add(flags: argparse.Namespace, takes: Sequence[str]) -> None:
    if wrong := [name for name in ("speaker", *_OF_FACT, "tag") if getattr(flags, name) and name not in takes]:
        raise SettingsError(f"--{wrong[0]} does not go with it: here you may add {', '.join(f'--{n}' for n in takes)}.")


async def _of_character(store: BaseStore, flags: argparse.Namespace, speaker: str, user: str | None) -> bool:
    """Do what is asked for with the memories of a character; `user` is None for one that all users share."""
    namespace = character_namespace(flags.character, ltm.MEMORIES, user=user)
    if flags.action == "list":
        return _show(await ltm.list_memories(store, namespace))
    if flags.action == "search":
        found = await store.asearch(namespace, query=flags.words)
        return _show(found, {item.key: item.score for item in found})
    if flags.action == "add":
        _check_add(flags, ("speaker",))
        key = await ltm.add_memory(store, flags.character, flags.text, speaker=flags.speaker or speaker, user=user)
        say(f"Added: {key}", _WIDTH)
        return True
    if flags.action == "edit":
        say(f"Changed: {await ltm.edit_memory(store, namespace, flags.key, flags.text)}", _WIDTH)
    elif flags.action == "get":
        return _show([await ltm.find_memory(store, namespace, flags.key)])
    elif flags.action != "delete":
        raise SettingsError("The memories of characters go as CSV: questbook export csv, questbook import ltm.")
    else:
        _check_delete(flags)
        if flags.all:
            count = f"{len(await ltm.list_memories(store, namespace)):,} memories"
            if not flags.yes and not await ask([f"Everything that {flags.character!r} remembers: {count}."]):
                say("Nothing was deleted.", _WIDTH)
                return False
            await ltm.delete_character(store, flags.character, user)
            say(f"Deleted: {count} of {flags.character!r}.", _WIDTH)
        else:
            _show(await ltm.delete_memories(store, namespace, flags.keys), prefix="deleted: ")
    await compact(store, None, None, "It is done", cut=False)
    return True


def _show(items: Iterable[AnyItem], scores: Mapping[str, float | None] | None = None, prefix: str = "") -> bool:
    items, now = list(items), datetime.now(UTC).astimezone()
    if not items:
        say("Nothing is remembered there.", _WIDTH)
    for item in items:
        value, score = item.value, (scores or {}).get(item.key)
        notes = [] if score is None else [f"distance {1 - score:.2f}"]
        notes += [one for one in (getattr(item, "status", "holds"),) if scores and one != "holds"]
        found = f" ({', '.join(notes)})" if notes else ""
        who = value.get("speaker") or value.get("subject") or value.get("kind") or ""
        who, text = one_line(str(who), 40), plain(str(value.get("text", "")))
        if is_secret_record(value):
            who, text = "secret", HIDDEN
        age = phrase_age(str(value.get("said_at") or value.get("real_time") or ""), now)
        say(f"{prefix}{shown_key(item.key)} {age}, {who}{found}: {text}", _WIDTH)
    return True
