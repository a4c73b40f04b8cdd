"""What has changed in a namespace since a cache last looked: read inside a transaction that the caller holds."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from questbook.memory.store.rows import SHIFT


def removed_after(connection: sqlite3.Connection, namespace: int, after: int) -> list[tuple[int, int]]:
    """Vectors of a namespace that were removed since a mark.

    Args:
        connection: In a transaction.
        namespace: Its id.
        after: The mark, or 0.

    Returns:
        (mark, vector id), oldest first.
    """
    return connection.execute(
        "SELECT id, vector FROM removed WHERE namespace = ? AND id > ? AND vector > 0 ORDER BY id", (namespace, after)
    ).fetchall()


def last_removed(connection: sqlite3.Connection) -> int:
    """The newest mark in the list of removed vectors."""
    (mark,) = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'removed'").fetchone()
    return int(mark)


def changed_after(connection: sqlite3.Connection, namespace: int, after: int, last: int) -> tuple[int, list[int]]:
    """Items that a cache knows and that were updated or deleted since a mark.

    Args:
        connection: In a transaction.
        namespace: Its id.
        after: The mark.
        last: The highest id that the cache may know; later ones it will read anyway.

    Returns:
        The new mark, and item ids, each once.
    """
    found = connection.execute(
        "SELECT id, -vector FROM removed WHERE namespace = ? AND id > ? AND vector < 0 ORDER BY id", (namespace, after)
    ).fetchall()
    return found[-1][0] if found else after, list({item: None for _, item in found if item <= last})


def values_after(connection: sqlite3.Connection, namespace: int, after: int) -> list[tuple[int, Any]]:
    """Item ids and values of a namespace's items that are newer than a given one, oldest first."""
    found = connection.execute(
        "SELECT id, value FROM items WHERE id > ? AND id < ? ORDER BY id", (after, (namespace + 1) << SHIFT)
    )
    return [(item, _value_or_nothing(value)) for item, value in found]


def values_of(connection: sqlite3.Connection, items: Sequence[int]) -> list[tuple[int, Any]]:
    """Item ids and values of those of some items that are there."""
    found = connection.execute(
        "SELECT id, value FROM items WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(items)),)
    )
    return [(item, _value_or_nothing(value)) for item, value in found]


def _value_or_nothing(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, TypeError):
        return {}  # a damaged item is logged when it is read itself
