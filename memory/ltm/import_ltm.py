"""Bringing over what the LTM extension remembered, into any store. Twice is once.

The messages are the truth; each gets the key that follows from its speaker, words and time, so that a database, a copy
of it and its CSV export bring the same memories once, and what was changed here by hand stays as it was changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from langgraph.store.base import BaseStore, GetOp, PutOp

from questbook.memory.errors import ImportFailedError
from questbook.memory.ltm.characters import EVERYONE, MEMORIES, memory_key, memory_record
from questbook.memory.ltm.csv_files import read_csv
from questbook.memory.ltm.database import Row, Rows, read_database
from questbook.memory.ltm.greeting import SESSIONS
from questbook.memory.ltm.layout import Source, sources
from questbook.memory.ltm.vectors import count_vectors, read_vectors
from questbook.memory.store.any_store import put_all
from questbook.memory.timeline.namespaces import character_name, character_namespace

_BATCH = 200  # memories written at once
_SESSION = "imported"


class Brought(NamedTuple):
    """What came of one source.

    Attributes:
        path: The database or file.
        character: Whose memories it holds; `EVERYONE` for a legacy database.
        added: Memories that were written.
        known: Memories that were there already.
        skipped: What was not brought over, each with the reason.
        notes: What is to be known of what was.
    """

    path: Path
    character: str
    added: int
    known: int
    skipped: tuple[str, ...]
    notes: tuple[str, ...]


async def import_ltm(
    store: BaseStore, directory: Path, *, user: str | None, character: str | None = None
) -> list[Brought]:
    """Bring over databases and CSV exports of the extension.

    A source that cannot be read is skipped with its reason; the others go in.

    Args:
        store: Any store.
        directory: What `questbook.memory.ltm.layout.sources` takes.
        user: Whose characters they become; None: all users share them, as they did in the extension.
        character: Whose memories they are, whatever the folders are called; for a legacy database above all.

    Returns:
        What came of each source.

    Raises:
        ImportFailedError: There is nothing to bring over.
        StoreError: The store failed. What was written stands; the next run adds the rest.
    """
    found = await asyncio.to_thread(sources, directory)
    return [await _bring(store, source, user, character or source.character) for source in found]


async def _bring(store: BaseStore, source: Source, user: str | None, character: str) -> Brought:
    try:
        read = await asyncio.to_thread(_read, source)
    except ImportFailedError as error:
        return Brought(source.path, character, 0, 0, (str(error),), ())
    place = character_namespace(character, MEMORIES, user=user)
    records = {memory_key(row.name, row.message, row.said_at): row for row in read.rows}
    keys, added = list(records), 0
    for start in range(0, len(keys), _BATCH):
        batch = keys[start : start + _BATCH]
        there = await store.abatch([GetOp(place, key) for key in batch])
        new = [key for key, item in zip(batch, there, strict=True) if item is None]
        if new:
            await put_all(store, [PutOp(place, key, _record(records[key]), index=["text"]) for key in new])
        added += len(new)
    if character != EVERYONE:
        await _note_talks(store, character, user, records)
    notes = list(read.notes)
    if character == EVERYONE:
        notes.append("one database for all characters: all of the user's characters have these memories")
    if character_name(character) in (".", "..", "") or "/" in character:
        notes.append(f"{character!r} is an ordinary name here, and no path")
    return Brought(source.path, character, added, len(keys) - added, tuple(read.skipped), tuple(notes))


def _read(source: Source) -> Rows:
    if source.kind == "vectors":
        raise ImportFailedError(f"{source.path} has vectors, but there is no database with their messages beside it.")
    if source.kind == "csv":
        read = read_csv(source.path)
        if not read.rows and not read.skipped:
            read.notes.append("the file is empty")
        return read
    read = read_database(source.path)
    try:
        vectors = count_vectors(source.vectors)
    except ImportFailedError as error:
        read.notes.append(f"{error} The messages do not need it")
        return read
    without = sum(row.id >= vectors for row in read.rows)
    if vectors and without:
        read.notes.append(f"{without} had no vector there, and have one now")
    if (lost := vectors - sum(0 <= row.id < vectors for row in read.rows)) > 0:
        read.skipped.append(f"{lost} of {vectors} vectors have no message, so there is nothing to remember")
    return read


def _record(row: Row) -> dict[str, object]:
    return memory_record(row.name, row.message, row.said_at, by="ltm")


async def _note_talks(store: BaseStore, character: str, user: str | None, records: dict[str, Row]) -> None:
    """Note when they last talked, so that the first greeting here knows."""
    times = {key: row.said_at for key, row in records.items() if row.said_at}
    if not times:
        return
    place = character_namespace(character, SESSIONS, user=user)
    known = await store.aget(place, _SESSION)
    latest = max(times, key=lambda key: times[key])
    if known is None or str(known.value["last"]) < times[latest]:
        began = min(*times.values(), str(known.value["began"]) if known else times[latest])
        value = {"began": began, "last": times[latest], "memory": latest}
        await store.aput(place, _SESSION, value, index=False)


def known_vectors(directory: Path) -> tuple[dict[str, list[float]], list[str]]:
    """Return the vectors that the databases have of their messages, and why some could not be read.

    For a store whose embedder is `questbook.memory.ltm.vectors.MODEL`; rows without a vector, or with a vector of
    zeros, are left out.

    Raises:
        ImportFailedError: There is nothing to bring over.
    """
    known: dict[str, list[float]] = {}
    problems: list[str] = []
    for source in sources(directory):
        if source.kind != "database" or not source.vectors.is_dir():
            continue
        try:
            rows: Sequence[Row] = read_database(source.path).rows
            vectors = read_vectors(source.vectors)
        except ImportFailedError as error:
            problems.append(str(error))
            continue
        for row in rows:
            if 0 <= row.id < len(vectors) and vectors[row.id].any():
                known[row.message] = vectors[row.id].tolist()
    return known, problems
