"""Watch: whether anybody has written to the file since one last looked."""

import sqlite3
import threading

from questbook.memory.store.database import Database

_VERSION = "PRAGMA data_version"


class Watch:
    """A connection that only ever asks for SQLite's `data_version`, which changes with every commit of another one.

    Args:
        database: The file.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def version(self) -> int:
        """Return a number: as long as it is the same, so is what is in the file.

        Raises:
            StoreUnavailableError: If the file cannot be read.
            CorruptStoreError: If SQLite finds it damaged.
            StoreClosedError: After the database was closed.
        """
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._database.connect()
                version: int = self._connection.execute(_VERSION).fetchone()[0]
            except sqlite3.DatabaseError:  # told apart only here, for this is asked before every search
                with self._database.explained():
                    raise
        return version

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
