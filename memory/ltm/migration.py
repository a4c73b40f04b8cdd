"""Import what the LTM extension remembered, into any store: its messages, and its vectors where they fit.

A message's key follows from its speaker, words and time: a database and its CSV export import the same memories once.
A store with the extension's embedder can take its vectors over: a zarr array, format 2, with a row for each message,
mostly compressed with Blosc, which `questbook[ltm]` installs a reader for.
"""

import asyncio
import json
import math
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langgraph.store.base import BaseStore, PutOp
from numpy.typing import NDArray

from questbook.memory.errors import ImportFailedError
from questbook.memory.ltm.extension_files import Message, Messages, Source, find_sources, read_csv, read_database
from questbook.memory.ltm.memories import EVERYONE, MEMORIES, SESSIONS, memory_key
from questbook.memory.store.any_store import get_values, put_all
from questbook.memory.timeline.namespaces import character_name, character_namespace
from questbook.types import JSON

MODEL = "all-mpnet-base-v2"  # the embedder of the extension

_WIDTH = 768  # numbers of a vector of that embedder
_MOST_VECTORS = 1_000_000
_CHUNK_BYTES = 1 << 26  # zarr makes no larger chunks by itself
_HEADER_BYTES = 1 << 16
_BLOSC_BYTES = 16  # of Blosc's header
_BATCH = 200  # memories written at once
_SESSION = "imported"  # stands for all sessions in the extension


class Imported(NamedTuple):
    """The outcome of importing one source for a character."""

    path: Path
    character: str
    added: int  # memories that were written
    known: int  # memories that were there already
    skipped: tuple[str, ...]  # what was not imported, each with the reason
    notes: tuple[str, ...]  # remarks on what was imported


async def import_ltm(
    store: BaseStore, directory: str | Path, *, user: str | None, character: str | None = None
) -> list[Imported]:
    """Import databases and CSV exports of the extension, found by `find_sources`; return the outcome of each.

    All users share the characters, as in the extension, unless a user is given. A character who is given gets all
    memories, whatever the folders' names. If the store fails, what was written stays; the next run adds the rest.
    """
    sources = await asyncio.to_thread(find_sources, Path(directory))
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
        batch = [(namespace, key) for key in keys[start : start + _BATCH]]
        known = await get_values(store, batch)
        new = [PutOp(*place, by_key[place[1]].record(), index=["text"]) for place in batch if place not in known]
        await put_all(store, new)
        added += len(new)
    notes = list(messages.notes)
    if character == EVERYONE:
        notes.append("one database for all characters: all of the user's characters have these memories")
    else:
        await _note_sessions(store, character, user, by_key)
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


async def _note_sessions(store: BaseStore, character: str, user: str | None, messages: Mapping[str, Message]) -> None:
    """Note when they last talked, for the first greeting here; the messages are given by their keys."""
    times = {key: message.said_at for key, message in messages.items() if message.said_at}
    if not times:
        return
    namespace = character_namespace(character, SESSIONS, user=user)
    known = await store.aget(namespace, _SESSION)
    latest = max(times, key=lambda key: times[key])
    if known is None or str(known.value["last"]) < times[latest]:
        began = min([*times.values(), *([str(known.value["began"])] if known else [])])
        value = {"began": began, "last": times[latest], "memory": latest}
        await put_all(store, [PutOp(namespace, _SESSION, value, index=False)])


def read_known_vectors(directory: Path) -> tuple[dict[str, list[float]], list[str]]:
    """Return the vectors that the databases have of their messages, by text, and why some could not be read.

    For a store whose embedder is `MODEL`. Messages without a vector, or with a vector of zeros, are left out.
    """
    known, problems = dict[str, list[float]](), list[str]()
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
    """Return how many vectors an array has, by its header; 0 if there is no array."""
    return int(_header(array)["shape"][0]) if array.is_dir() else 0


def read_vectors(array: Path) -> NDArray[np.float32]:
    """Read all vectors, shape (messages, 768); too many or unreadable ones are an ImportFailedError."""
    header = _header(array)
    (count, width), (rows, columns) = header["shape"], header["chunks"]
    kind = np.dtype(header["dtype"])
    vectors = np.zeros((count, width), np.float32)  # as rows of a missing chunk stay; filled ones alone take memory
    for number in range(math.ceil(count / rows)):
        chunk = array / f"{number}{header.get('dimension_separator', '.')}0"
        if not chunk.is_file():
            continue
        try:
            data = _decode(chunk, rows * columns * kind.itemsize, compressed=header.get("compressor") is not None)
            whole = np.frombuffer(data, kind).reshape(rows, columns)
        except (OSError, ValueError, RuntimeError) as error:
            raise ImportFailedError(f"{chunk} cannot be read: {error}.") from error
        part = vectors[number * rows : (number + 1) * rows]
        part[:] = whole[: len(part), :width]
    return vectors


def _header(array: Path) -> JSON:
    """Read what an array says of itself, and check it: a length in a foreign file is a request for memory."""
    try:
        with (array / ".zarray").open("rb") as file:
            header: JSON = json.loads(file.read(_HEADER_BYTES))
        if len(header["shape"]) != 2 or len(header["chunks"]) != 2:
            raise ValueError("it does not have two dimensions")
        if header["zarr_format"] != 2:
            raise ValueError(f"zarr format {header['zarr_format']!r}")
        lengths, kind = [*header["shape"], *header["chunks"]], np.dtype(header["dtype"])
        if not all(type(length) is int and length >= 0 for length in lengths):
            raise ValueError(f"{lengths!r:.80} are no lengths")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ImportFailedError(f"{array} is not a zarr array of format 2: {error!r:.200}.") from error
    count, width, rows, columns = lengths
    if count > _MOST_VECTORS or rows * columns * kind.itemsize > _CHUNK_BYTES:
        size = f"{count:,} vectors in chunks of {rows:,} rows"
        most = f"at most {_MOST_VECTORS:,} vectors and {_CHUNK_BYTES >> 20} MiB a chunk can be read."
        raise ImportFailedError(f"{array} is too large: {size}; {most}")
    sizes = width == _WIDTH and rows and columns >= width and kind.kind == "f"
    plain = header.get("order", "C") == "C" and not header.get("filters") and header.get("fill_value") in (None, 0)
    if not (sizes and plain and header.get("dimension_separator", ".") in (".", "/")):
        raise ImportFailedError(f"{array}: not in the extension's layout ({header!r:.200}).")
    compressor = header.get("compressor")
    # Other codecs are refused, whatever numcodecs has: one of them is pickle, which runs what a file says.
    if compressor is not None and (not isinstance(compressor, Mapping) or compressor.get("id") != "blosc"):
        raise ImportFailedError(f"{array} is compressed with {compressor!r:.80}; only Blosc can be read.")
    return header


def _decode(chunk: Path, size: int, *, compressed: bool) -> bytes:
    """Read a chunk that has so many bytes when it is unpacked; what is wrong with it is an error of some class."""
    if (stored := chunk.stat().st_size) > size + _BLOSC_BYTES:
        raise ValueError(f"it has {stored:,} bytes; expected at most {size + _BLOSC_BYTES:,}")
    data = chunk.read_bytes()
    if compressed:
        try:
            blosc = import_module("numcodecs").Blosc()
        except ImportError as error:
            install = "to take them over: pip install 'questbook[ltm]'. Without it the messages are embedded again."
            raise ImportFailedError(f"The vectors are compressed; {install}") from error
        # Blosc takes as much memory as bytes 4 to 7 say.
        if len(data) < _BLOSC_BYTES or int.from_bytes(data[4:8], "little") != size:
            raise ValueError(f"its header does not say that it has {size:,} bytes")
        data = bytes(blosc.decode(data))
    if len(data) != size:
        raise ValueError(f"it has {len(data):,} bytes; expected {size:,}")
    return data
