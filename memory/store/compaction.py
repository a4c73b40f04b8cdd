"""Compaction: writing the file anew, so that nothing that was deleted is left in it.

A deleted row leaves its bytes in free pages and in the -wal file, a deleted text its words in the segments of FTS5, a
deleted vector its place in indexes, lists and snapshots. All of that is made anew here from the rows that live.
"""

import shutil
import sqlite3
from pathlib import Path

from questbook.memory.errors import StoreUnavailableError
from questbook.memory.store.database import Database
from questbook.memory.store.shards import snapshot_path
from questbook.memory.store.writing import sweep

# No label may be empty, so no namespace can be called this; its number is never given to another one.
_NOBODYS = "UPDATE namespaces SET path = '.' || id WHERE items = 0"


def compact(database: Database) -> None:
    """Leave in the file, and beside it, nothing but what lives.

    Args:
        database: The file.

    Raises:
        StoreUnavailableError: If another program reads or writes the file meanwhile and does not stop, or the disk is
            full. What lives is as it was; compacting again does the rest.
    """
    with database.writing() as connection:
        sweep(connection)
        connection.execute("DELETE FROM removed")
        # Another epoch: indexes in RAM, of this and of other processes, are read anew from their rows.
        connection.execute("UPDATE namespaces SET epoch = epoch + 1, version = version + 1")
        connection.execute(_NOBODYS)
        if _has(connection, "next_vectors"):
            connection.execute("DELETE FROM next_vectors WHERE item NOT IN (SELECT id FROM items)")
            connection.execute("DELETE FROM next_items WHERE item NOT IN (SELECT id FROM items)")
        if _has(connection, "texts"):
            connection.execute("INSERT INTO texts (texts) VALUES ('rebuild')")
    _remove_snapshots(database.path)
    database.vacuum()


def _has(connection: sqlite3.Connection, table: str) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is not None


def _remove_snapshots(path: Path) -> None:
    directory = snapshot_path(path, 0).parent
    try:
        if directory.exists():
            shutil.rmtree(directory)
    except OSError as error:
        raise StoreUnavailableError(
            f"cannot remove the snapshots in {directory}: {error.strerror or error}; mend that and try again"
        ) from error
