"""`questbook import ltm DIR` and `questbook export csv DIR`: coming over from the LTM extension, and going back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from questbook.graphs.embedded.databases import open_store
from questbook.graphs.embedded.home import Home, HomeError
from questbook.graphs.errors import SettingsError
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.text import one_line
from questbook.memory.ltm.curation import list_characters, list_memories
from questbook.memory.ltm.extension_files import write_csv
from questbook.memory.ltm.memories import EVERYONE, MEMORIES
from questbook.memory.ltm.migration import MODEL, Imported, import_ltm, read_known_vectors
from questbook.memory.timeline.namespaces import character_name, character_namespace

_SHOWN = 10  # reasons of one source that are shown; of more, their number
_WIDTH = 300


async def bring_ltm(context: Settings, directory: str, *, character: str | None, shared: bool) -> bool:
    """Bring over what the LTM extension remembered; say what came of each source. Return whether any could be read.

    Args:
        context: The settings: user and embedder.
        directory: The extension's directory, or one of its memories.
        character: Whose memories they are; None: as the folders are called.
        shared: For all users, as in the extension.

    Raises:
        HomeError: The data directory cannot be used.
        StoreError: There is nothing to bring over, or the store failed.
    """
    home, source = await asyncio.to_thread(Home.find), Path(directory)
    vectors: Mapping[str, list[float]] = {}
    problems: list[str] = []
    if MODEL in context.embeddings:
        vectors, problems = await asyncio.to_thread(read_known_vectors, source)
    async with open_store(home.memory, context.embeddings, known=vectors) as store:
        user = None if shared else context.user
        brought = await import_ltm(store, source, user=user, character=character)
    for one in brought:
        _tell(one)
    for problem in problems:
        _say(f"Vectors were made anew: {problem}")
    if vectors:
        _say(f"{len(vectors):,} vectors of {MODEL} were taken over.")
    added, known = sum(one.added for one in brought), sum(one.known for one in brought)
    skipped = sum(len(one.skipped) for one in brought)
    _say(f"Imported: {added:,} memories; there already: {known:,}; skipped (see above): {skipped:,}.")
    return any(one.added or one.known or not one.skipped for one in brought)


async def export_csv(context: Settings, directory: str, *, character: str | None, shared: bool) -> bool:
    """Write what characters remember to CSV files, as the extension does; say which. Return whether there was any.

    Raises:
        SettingsError: The character remembers nothing.
        HomeError: The data directory or the export's cannot be used.
        StoreError: The store failed.
    """
    home, user = await asyncio.to_thread(Home.find), None if shared else context.user
    async with open_store(home.memory, context.embeddings) as store:
        there = await list_characters(store, user)
        names = list(there) if character is None else [character_name(character)]
        if missing := [name for name in names if name not in there]:
            known = ", ".join(there) or "nobody"
            raise SettingsError(f"Character {missing[0]!r} remembers nothing. There are memories of: {known}.")
        memories = {
            name: [item.value for item in await list_memories(store, character_namespace(name, MEMORIES, user=user))]
            for name in names
        }
    if not memories:
        _say("No character remembers anything: nothing was written.")
    now = datetime.now(UTC)
    for name, values in memories.items():
        try:
            path = await asyncio.to_thread(write_csv, Path(directory), name, values, now)
        except OSError as error:
            raise HomeError(f"Cannot write to {directory}: {error.strerror or error}.") from error
        _say(f"{path}: {len(values):,} memories of {_name(name)}")
    return bool(memories)


def _tell(one: Imported) -> None:
    _say(f"{one.path}, {_name(one.character)}: {one.added:,} brought over, {one.known:,} there already")
    for what, reasons in (("skipped", one.skipped), ("note", one.notes)):
        for reason in reasons[:_SHOWN]:
            _say(f"  {what}: {reason}")
        if len(reasons) > _SHOWN:
            _say(f"  {what}: … and {len(reasons) - _SHOWN:,} more")


def _name(character: str) -> str:
    return "all characters" if character == EVERYONE else f"character {character!r}"


def _say(text: str) -> None:
    indent = text[: len(text) - len(text.lstrip())]
    print(indent + one_line(text, _WIDTH))  # noqa: T201
