"""Watch: whether anybody has written to the file since one last looked."""

import sqlite3
import threading
from collections.abc import Callable


class Watch:
    """A connection that only ever asks for SQLite's `data_version`, which changes with every commit of another one.

    Args:
        connect: Opens a connection to the file.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def version(self) -> int:
        """Return a number: as long as it is the same, so is what is in the file."""
        with self._lock:
            if self._connection is None:
                self._connection = self._connect()
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
