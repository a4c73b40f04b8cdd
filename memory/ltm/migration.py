"""Import what the LTM extension remembered, into any store: its messages, and its vectors where they fit.

Each message gets the key that follows from its speaker, words and time. So a database, a copy of it and its CSV export
import the same memories once, an import can be repeated, and what was edited here by hand stays as it is.

The vectors come from all-mpnet-base-v2: a zarr array, format 2, with one row of 768 numbers for each message, mostly
compressed with Blosc, which `questbook[ltm]` installs a reader for. A store with that embedder can take them over; for
any other store only their number is of interest.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, GetOp, PutOp

from questbook.memory.embeddings.embedders import identify
from questbook.memory.errors import ImportFailedError
from questbook.memory.ltm.extension_files import Message, Messages, Source, find_sources, read_csv, read_database
from questbook.memory.ltm.greeting import SESSIONS
from questbook.memory.ltm.memories import EVERYONE, MEMORIES, CharacterMemory, memory_key
from questbook.memory.store.any_store import get_all, put_all
from questbook.memory.timeline.namespaces import character_name, character_namespace
from questbook.memory.timeline.records import Stamp
from questbook.types import JSON

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL = "all-mpnet-base-v2"
"""The embedder of the extension."""

_BATCH = 200  # memories written at once
_SESSION = "imported"  # stands for all sessions in the extension


class Imported(NamedTuple):
    """The outcome of importing one source.

    Attributes:
        path: The database or file.
        character: The character whose memories it holds; `EVERYONE` for a legacy database.
        added: How many memories were written.
        known: How many the store had already.
        skipped: What was not imported, each with the reason.
        notes: Remarks on what was imported.
    """

    path: Path
    character: str
    added: int
    known: int
    skipped: tuple[str, ...]
    notes: tuple[str, ...]


async def import_ltm(
    store: BaseStore, directory: Path, *, user: str | None, character: str | None = None
) -> list[Imported]:
    """Import databases and CSV exports of the extension.

    A source that cannot be read is skipped with its reason; the others are imported.

    Args:
        store: Any store.
        directory: A directory or file, as `find_sources` takes it.
        user: The user who gets the characters; None: all users share them, as in the extension.
        character: The character who gets all memories, whatever the folders' names; useful for a legacy database.

    Returns:
        The outcome of each source.

    Raises:
        ImportFailedError: There is nothing to import.
        StoreError: The store failed. What was written stays; the next run adds the rest.
    """
    sources = await asyncio.to_thread(find_sources, directory)
    return [await _import(store, source, user, character or source.character) for source in sources]


async def _import(store: BaseStore, source: Source, user: str | None, character: str) -> Imported:
    try:
        messages = await asyncio.to_thread(_read, source)
    except ImportFailedError as error:
        return Imported(source.path, character, 0, 0, (str(error),), ())
    namespace = character_namespace(character, MEMORIES, user=user)
    by_key = {memory_key(message.speaker, message.text, message.said_at): message for message in messages.read}
    keys, added = list(by_key), 0
    for start in range(0, len(keys), _BATCH):
        batch = keys[start : start + _BATCH]
        items = await get_all(store, [GetOp(namespace, key) for key in batch])
        new = [key for key, item in zip(batch, items, strict=True) if item is None]
        if new:
            await put_all(store, [PutOp(namespace, key, _record(by_key[key]), index=["text"]) for key in new])
        added += len(new)
    if character != EVERYONE:
        await _note_sessions(store, character, user, by_key)
    notes = list(messages.notes)
    if character == EVERYONE:
        notes.append("one database for all characters: all of the user's characters have these memories")
    if character_name(character) in (".", "..", "") or "/" in character:
        notes.append(f"{character!r} is an ordinary name here, and no path")
    return Imported(source.path, character, added, len(keys) - added, tuple(messages.skipped), tuple(notes))


def _read(source: Source) -> Messages:
    if source.kind == "vectors":
        raise ImportFailedError(f"{source.path} has vectors, but there is no database with their messages beside it.")
    if source.kind == "csv":
        messages = read_csv(source.path)
        if not messages.read and not messages.skipped:
            messages.notes.append("the file is empty")
        return messages
    messages = read_database(source.path)
    try:
        vectors = count_vectors(source.vectors)
    except ImportFailedError as error:
        messages.notes.append(f"{error} The messages do not need it")
        return messages
    without = sum(message.number >= vectors for message in messages.read)
    if vectors and without:
        messages.notes.append(f"{without} had no vector there, and have one now")
    if (lost := vectors - sum(0 <= message.number < vectors for message in messages.read)) > 0:
        messages.skipped.append(f"{lost} of {vectors} vectors have no message, so there is nothing to remember")
    return messages


def _record(message: Message) -> JSON:
    stamp = Stamp(said_at=message.said_at)
    return CharacterMemory(text=message.text, speaker=message.speaker, stamp=stamp, by="ltm").to_json()


async def _note_sessions(store: BaseStore, character: str, user: str | None, messages: Mapping[str, Message]) -> None:
    """Note when they last talked, for the first greeting here; the messages are given by their keys."""
    times = {key: message.said_at for key, message in messages.items() if message.said_at}
    if not times:
        return
    namespace = character_namespace(character, SESSIONS, user=user)
    known = await store.aget(namespace, _SESSION)
    latest = max(times, key=lambda key: times[key])
    if known is None or str(known.value["last"]) < times[latest]:
        began = min(*times.values(), str(known.value["began"]) if known else times[latest])
        value = {"began": began, "last": times[latest], "memory": latest}
        await store.aput(namespace, _SESSION, value, index=False)


def read_known_vectors(directory: Path) -> tuple[dict[str, list[float]], list[str]]:
    """Return the vectors that the databases have of their messages, by text, and why some could not be read.

    For a store whose embedder is `MODEL`. Messages without a vector, or with a vector of zeros, are left out.

    Raises:
        ImportFailedError: There is nothing to import.
    """
    known: dict[str, list[float]] = {}
    problems: list[str] = []
    for source in find_sources(directory):
        if source.kind != "database" or not source.vectors.is_dir():
            continue
        try:
            messages = read_database(source.path).read
            vectors = read_vectors(source.vectors)
        except ImportFailedError as error:
            problems.append(str(error))
            continue
        for message in messages:
            if 0 <= message.number < len(vectors) and vectors[message.number].any():
                known[message.text] = vectors[message.number].tolist()
    return known, problems


def count_vectors(array: Path) -> int:
    """Return how many vectors an array has, 0 if there is no array. Reads no vector.

    Raises:
        ImportFailedError: It is not a zarr array of format 2.
    """
    return int(_header(array)["shape"][0]) if array.is_dir() else 0


def read_vectors(array: Path) -> NDArray[np.float32]:
    """Read all vectors, shape (messages, 768). Rows of a missing chunk have the fill value, as in zarr.

    Raises:
        ImportFailedError: They cannot be read; the message says why.
    """
    import numpy as np

    header = _header(array)
    (count, width), (rows, columns) = header["shape"], header["chunks"]
    if header.get("order", "C") != "C" or header.get("filters") or columns < width:
        raise ImportFailedError(f"{array}: not in the extension's layout ({header!r:.200}).")
    kind = np.dtype(header["dtype"])
    vectors = np.full((count, width), header.get("fill_value") or 0.0, np.float32)
    for number in range(math.ceil(count / rows)):
        chunk = array / f"{number}{header.get('dimension_separator', '.')}0"
        if not chunk.is_file():
            continue
        try:
            whole = np.frombuffer(_decoded(chunk.read_bytes(), header.get("compressor")), kind).reshape(rows, columns)
        except (OSError, ValueError, RuntimeError) as error:
            raise ImportFailedError(f"{chunk} cannot be read: {error}.") from error
        part = vectors[number * rows : (number + 1) * rows]
        part[:] = whole[: len(part), :width]
    return vectors


class KnownVectors(Embeddings):
    """An embedder that knows the vectors of some texts, and asks the real embedder for the others.

    Args:
        embedder: The real embedder; this one has its identity.
        known: Vectors by text.
    """

    def __init__(self, embedder: Embeddings, known: Mapping[str, list[float]]) -> None:
        self._embedder, self._known = embedder, known

    @property
    def identity(self) -> str:
        """Identity of the real embedder."""
        return identify(self._embedder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts; use the known vectors."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        new = dict(zip(missing, self._embedder.embed_documents(missing), strict=True)) if missing else {}
        return [self._known[text] if text in self._known else new[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Embed a query with the real embedder."""
        return self._embedder.embed_query(text)


def _header(array: Path) -> JSON:
    try:
        header: JSON = json.loads((array / ".zarray").read_text("utf-8"))
        if len(header["shape"]) != 2 or len(header["chunks"]) != 2 or min(*header["shape"], *header["chunks"]) < 0:
            raise ValueError("it does not have two dimensions")
        if header["zarr_format"] != 2 or not header["chunks"][0]:
            raise ValueError(f"zarr format {header['zarr_format']!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImportFailedError(f"{array} is not a zarr array of format 2: {error!r}.") from error
    return header


def _decoded(data: bytes, compressor: JSON | None) -> bytes:
    if compressor is None:
        return data
    try:
        codecs = import_module("numcodecs")
    except ImportError as error:
        raise ImportFailedError(
            "The vectors are compressed; to take them over, install questbook[ltm]. Without it the messages are "
            "embedded again."
        ) from error
    return bytes(codecs.get_codec(compressor).decode(data))
