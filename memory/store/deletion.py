"""Deletion: items whose time to live is over, and every trace of what was deleted.

`delete_expired` runs beside other writes or in the thread of a `Sweeper`. `compact` writes the file again: a deleted
row leaves its bytes in free pages and in the -wal file, a deleted text its words in the segments of FTS5, a deleted
vector its place in indexes, lists and snapshots.
"""

import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeGuard

from langgraph.store.base import TTLConfig

from questbook.memory.errors import StoreConfigError, StoreError, StoreUnavailableError
from questbook.memory.store.database import Database, snapshot_directory
from questbook.memory.store.rows import MINUTE, Write, apply_write, decode_key, decode_path, now

LONGEST_TTL = 1e10  # minutes, about 19,000 years: the longest time to live

_log = logging.getLogger(__name__)
_DEFAULT_MINUTES = 5.0  # between two sweeps, as in LangGraph's stores


def refresh_expiry(connection: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Start the time to live of items again, for those that have one."""
    moment = now()
    connection.executemany(
        "UPDATE items SET expires_at = CAST(? + ttl_minutes * ? AS INTEGER) WHERE id = ? AND ttl_minutes IS NOT NULL",
        ((moment, MINUTE, item) for item in ids),
    )


def delete_expired(connection: sqlite3.Connection) -> int:
    """Delete the items that have expired; return how many they were."""
    items = "items JOIN namespaces ON namespaces.id = items.namespace"
    select = f"SELECT namespaces.path, items.key FROM {items} WHERE items.expires_at <= ?"  # noqa: S608 (constants)
    expired = connection.execute(select, (now(),)).fetchall()
    for path, key in expired:
        apply_write(connection, Write(decode_path(path), decode_key(key), None))
    return len(expired)


def compact(database: Database) -> None:
    """Leave in the file, and beside it, nothing but the living items.

    If another program uses the file all the time, or the disk is full, it is a StoreUnavailableError: living items are
    as they were, and compacting again does the rest.
    """
    with database.writing() as connection:
        delete_expired(connection)
        connection.execute("DELETE FROM removed")
        # Another epoch: indexes in RAM, in this and in other processes, are read again from their rows.
        connection.execute("UPDATE namespaces SET epoch = epoch + 1, version = version + 1")
        # No label may be empty, so no namespace can have such a path; its number is never given to another one.
        connection.execute("UPDATE namespaces SET path = '.' || id WHERE items = 0")
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "next_vectors" in tables:
            connection.execute("DELETE FROM next_vectors WHERE item NOT IN (SELECT id FROM items)")
            connection.execute("DELETE FROM next_items WHERE item NOT IN (SELECT id FROM items)")
        if "texts" in tables:
            connection.execute("INSERT INTO texts (texts) VALUES ('rebuild')")
    directory = snapshot_directory(database.path)
    try:
        if directory.is_symlink():
            directory.unlink()  # nothing was written through it
        elif directory.exists():
            shutil.rmtree(directory)
    except OSError as error:
        problem = f"cannot remove the snapshots in {directory}: {error.strerror or error}; mend that and try again"
        raise StoreUnavailableError(problem) from error
    database.vacuum()


def is_time_to_live(minutes: object) -> TypeGuard[float]:
    """Return whether something is a number of minutes after which an item can expire."""
    return isinstance(minutes, int | float) and not isinstance(minutes, bool) and abs(minutes) <= LONGEST_TTL


def check_ttl(ttl: object) -> None:
    """Refuse wrong settings (LangGraph's `TTLConfig`) for items that expire, with a StoreConfigError."""
    if ttl is None:
        return
    if not isinstance(ttl, Mapping):
        raise StoreConfigError(f'ttl must be settings such as {{"default_ttl": 60}}, got {ttl!r:.80}')
    if unknown := [name for name in ttl if name not in TTLConfig.__annotations__]:
        raise StoreConfigError(f"ttl[{unknown[0]!r:.80}]: expected {', '.join(TTLConfig.__annotations__)}")
    default = ttl.get("default_ttl")
    if default is not None and not is_time_to_live(default):
        allowed = f"a number of minutes, at most {LONGEST_TTL:,.0f}"
        raise StoreConfigError(f'ttl["default_ttl"] must be {allowed}; got {default!r:.80}')
    if ttl.get("sweep_interval_minutes") is not None:
        _check_interval(ttl["sweep_interval_minutes"])


def _check_interval(minutes: object) -> None:
    longest = threading.TIMEOUT_MAX / 60
    if not is_time_to_live(minutes) or not 0 < minutes <= longest:
        expected = f"a number above 0, at most {longest:,.0f}"
        raise StoreConfigError(f"the minutes between two sweeps must be {expected}; got {minutes!r:.80}")


class Sweeper:
    """A thread that deletes expired items now and then: `sweep` does so and returns how many; None for minutes: 5."""

    def __init__(self, sweep: Callable[[], int], minutes: float | None) -> None:
        self._sweep = sweep
        self.seconds = 60.0 * (minutes or _DEFAULT_MINUTES)
        self._stop, self._future = threading.Event(), Future[None]()
        self._thread: threading.Thread | None = None

    def start(self, minutes: float | None) -> "Future[None]":
        """Sweep in a daemon thread, which never keeps a process from ending, as `FaissStore.start_ttl_sweeper` says."""
        if minutes is not None:
            _check_interval(minutes)
        if self._thread is not None and self._thread.is_alive() and not self._stop.is_set():
            return self._future
        self._stop, self._future = stop, future = threading.Event(), Future[None]()
        future.add_done_callback(lambda done: stop.set() if done.cancelled() else None)
        seconds = self.seconds if minutes is None else 60.0 * minutes
        given = (seconds, future, stop)
        self._thread = threading.Thread(target=self._run, args=given, name="questbook-sweeper", daemon=True)
        self._thread.start()
        return future

    def _run(self, seconds: float, future: "Future[None]", stop: threading.Event) -> None:
        while not stop.wait(seconds):
            try:
                if count := self._sweep():
                    _log.info("deleted %d expired items", count)
            except StoreError as error:
                _log.warning("expired items were not deleted: %s", error)
        if not future.done():
            future.set_result(None)

    def stop(self, timeout: float | None) -> bool:
        """End the thread, waiting for it so many seconds (None: as long as it takes); return whether it has ended."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
            if self._thread.is_alive():
                return False
        self._thread = None
        return True
