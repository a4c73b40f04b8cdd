"""The two databases of a data directory: `open_checkpointer` (SQLite) and `open_store` (SQLite and FAISS).

Also which embedder the memories have, and what a person may do to have MiniLM.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import aiosqlite
from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, TTLConfig

from questbook.graphs.local.checkpoint_tables import compressing_serializer
from questbook.graphs.local.checkpointer import Checkpointer
from questbook.graphs.local.home import Home, HomeError
from questbook.graphs.local.sharing import shared
from questbook.graphs.settings import Settings
from questbook.memory.embeddings.minilm import steps_to_minilm
from questbook.memory.store.database_file import create_file, read_header

if TYPE_CHECKING:
    from questbook.memory.store.faiss_store import FaissStore
    from questbook.memory.store.index_config import StoreIndex

AUTO: Final = "auto"  # the setting `embeddings` if nobody names one: the file decides
_WORDS_ONLY = "hash"  # how the names of the embedder begin that knows spelling alone
_LOCK_SECONDS = 30.0


@asynccontextmanager
async def open_checkpointer(file: Path, *, alone: bool = False) -> AsyncIterator[Checkpointer]:
    """Open a checkpointer of a database file.

    All of an event loop have one connection, whose thread does one thing after the other: open it `alone` for what
    takes long. A file that cannot be used is a HomeError; it is not changed.
    """
    name = await asyncio.to_thread(_name_of, file)
    with _explain_errors(file):
        connect = partial(aiosqlite.connect, file, timeout=_LOCK_SECONDS)
        async with connect() if alone else shared(name, connect) as connection:
            saver = Checkpointer(connection, serde=compressing_serializer())
            await saver.setup()
            yield saver


@asynccontextmanager
async def open_store(
    file: Path,
    embeddings: str | None = None,
    *,
    known: Mapping[str, list[float]] | None = None,
    index: "StoreIndex | IndexConfig | None" = None,
    ttl: TTLConfig | None = None,
) -> AsyncIterator["FaissStore"]:
    """Open the semantic store. With an embedder's name alone, all of an event loop have the same one.

    Args:
        file: The database file.
        embeddings: The embedder's name; None: the one of the settings. If the file was written with another embedder,
            its texts are embedded again. "auto": the file's own; in a new file MiniLM if it is ready here, else hash.
        known: Vectors by text that this embedder has made before, so that it need not make them again.
        index: What is embedded and indexed; None: `text`, with that embedder.
        ttl: LangGraph's settings for items that expire; times in minutes.
    """
    # numpy and FAISS take a while to import: not before they are needed, and not in the event loop.
    module = await asyncio.to_thread(import_module, "questbook.memory.store.faiss_store")
    name = await asyncio.to_thread(_name_of, file)
    is_plain = not known and index is None and ttl is None
    if index is None:
        index = {"embed": await asyncio.to_thread(load_embedder, embeddings), "fields": ["text"]}
        if known:
            vectors = await asyncio.to_thread(import_module, "questbook.memory.embeddings.embedders")
            if index["embed"] == AUTO:
                async with module.FaissStore.open(file, index) as store:
                    index["embed"] = store.embeddings
            index["embed"] = vectors.KnownVectors(index["embed"], known)
    opens = partial(module.FaissStore.open, file, index, ttl=ttl)
    named = Settings.of().embeddings if embeddings is None else embeddings
    async with shared((name, named), opens) if is_plain else opens() as store:
        if ttl and ttl.get("sweep_interval_minutes"):
            store.start_ttl_sweeper()
        yield store


def _name_of(file: Path) -> Hashable:
    """Create a database file if it is not there; return what tells it from another one that was at its place."""
    create_database(file)
    status = file.stat()
    return file, status.st_dev, status.st_ino


def load_embedder(name: str | None) -> Embeddings | str:
    """Load the embedder of that name; None: the one of the settings. "auto" stays a name, for the store."""
    name = Settings.of().embeddings if name is None else name
    if name == AUTO:
        return name
    from questbook.memory.embeddings.loading import load_embeddings

    return load_embeddings(name)


def create_database(path: Path) -> None:
    """Create a database file that only its owner may read; refuse one that is not SQLite's, with a HomeError."""
    try:
        create_file(path)
    except OSError as error:
        problem = f"Cannot use {path}: {error.strerror or error}."
        raise HomeError(f"{problem} Correct its permissions, or move it.") from error
    with _explain_errors(path):
        if read_header(path) is None:
            raise _corrupt(path, "it is no SQLite database")


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:  # locked, full, read-only: the file itself is sound
        raise HomeError(f"Cannot use {path}: {error}. What was played so far is kept.") from error
    except sqlite3.DatabaseError as error:
        raise _corrupt(path, str(error)) from error


def _corrupt(path: Path, reason: str) -> HomeError:
    hint = "It was not changed: put back a copy, or move it away to start new."
    return HomeError(f"Cannot read {path}: {reason}. {hint}")


async def knows_meaning(home: Home, name: str) -> bool:
    """Whether the embedder that the memories have, or will have by the setting, knows more than spelling."""
    if name != AUTO:
        return not name.startswith(_WORDS_ONLY)
    if made_with := await home.read_embedder():
        return not made_with.startswith(_WORDS_ONLY)
    return not steps_to_minilm()


async def minilm_hint(home: Home, name: str, *, only_first: bool = False) -> str:
    """Return in one line what MiniLM would bring and how to get it; "" if it is in use, or an embedder was named.

    With `only_first`, it is said only while there are no memories, so not at every start.
    """
    if name != AUTO or (only_first and await home.has_begun()) or await knows_meaning(home, name):
        return ""
    steps = steps_to_minilm()
    if hasattr(home, "migrate"):
        steps.append("`questbook migrate` a new database with QUESTBOOK_EMBEDDINGS=minilm, then `questbook copy` to it")
    elif await home.read_embedder():
        steps.append("start once with QUESTBOOK_EMBEDDINGS=minilm, which embeds the memories that are here again")
    found = "Memories are found by their words."
    minilm = "MiniLM, a small model (91 MB) that runs on this computer, also finds what was said in other words"
    return f"{found} {minilm}: {', then '.join(steps)}."
