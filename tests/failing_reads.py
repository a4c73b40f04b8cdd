"""SQLite connections that fail at the n-th read: each SELECT, its first row, and one in the middle."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_connect = sqlite3.connect
_MIDDLE = 7


class Reads:
    """Counts the reads of all connections; `failing` lets one of them fail."""

    def __init__(self) -> None:
        self.count = 0
        self._fails_at = 0

    def __call__(self) -> None:
        self.count += 1
        if self.count == self._fails_at:
            raise sqlite3.OperationalError("disk I/O error")

    @contextmanager
    def failing(self, number: int) -> Iterator[None]:
        """Let the read of this number fail, counted from 1 from here on."""
        self.count, self._fails_at = 0, number
        try:
            yield
        finally:
            self._fails_at = 0

    def connect(self, *args: Any, **options: Any) -> sqlite3.Connection:
        """Take the place of `sqlite3.connect`."""
        return _connect(*args, **options, factory=self._connections())

    def _connections(self) -> type[sqlite3.Connection]:
        reads = self

        class Cursor(sqlite3.Cursor):
            def execute(self, statement: str, *given: Any) -> Any:
                if statement.startswith("SELECT"):
                    reads()
                return super().execute(statement, *given)

            rows = 0

            def __next__(self) -> Any:
                self.rows += 1
                if self.rows in (1, _MIDDLE):
                    reads()
                return super().__next__()

            def fetchone(self) -> Any:
                reads()
                return super().fetchone()

            def fetchall(self) -> Any:
                reads()
                return super().fetchall()

        class Connection(sqlite3.Connection):
            def execute(self, *given: Any) -> Any:
                return self.cursor(Cursor).execute(*given)

        return Connection
