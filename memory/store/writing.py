"""Changing rows: what one put, delete or sweep does, inside a write transaction that the caller holds."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from questbook.memory.store.lexical import write_texts
from questbook.memory.store.rows import SHIFT, Namespace, decode_key, decode_path, encode_key, encode_path, now

_MINUTE = 60_000_000  # microseconds
# A list of removed vectors longer than this, and than half the live items, is emptied, so that it does not
# grow for ever; caches then reload at their next search.
_MANY_REMOVED = 1_000
_COUNT_REMOVED_EVERY = 128  # counting costs time, so it is not done at each removal


@dataclass(frozen=True, slots=True)
class Write:
    """One put or delete with everything that it needs, embedded and encoded before the transaction begins."""

    namespace: Namespace
    key: str
    value: str | None  # JSON, or None to delete
    ttl_minutes: float | None = None
    paths: str | None = None
    vectors: Sequence[bytes] = ()
    texts: Sequence[str] = ()


def apply_write(connection: sqlite3.Connection, write: Write) -> None:
    """Put or delete one item with its vectors.

    Args:
        connection: In a write transaction.
        write: What to do. An update keeps the item's id and `created_at`.
    """
    path = encode_path(write.namespace)
    space = connection.execute("SELECT id, next_item, next_vector FROM namespaces WHERE path = ?", (path,)).fetchone()
    if space is None:
        if write.value is None:
            return
        space = (connection.execute("INSERT INTO namespaces (path) VALUES (?)", (path,)).lastrowid, 1, 1)
    namespace, next_item, next_vector = space
    key = encode_key(write.key)
    old = connection.execute(
        "SELECT id, updated_at, first_vector, vectors, texts FROM items WHERE namespace = ? AND key = ?",
        (namespace, key),
    ).fetchone()
    if old is None and write.value is None:
        return
    low, moment = namespace << SHIFT, now()
    first = low | next_vector if write.vectors else 0
    expires = None if write.ttl_minutes is None else moment + round(write.ttl_minutes * _MINUTE)
    settings = (
        write.ttl_minutes,
        expires,
        write.paths,
        first,
        len(write.vectors),
        bool(write.texts),
    )
    if old is not None:
        _note_change(connection, namespace, old[0], range(old[2], old[2] + old[3]))
    if write.value is None:
        connection.execute("DELETE FROM items WHERE id = ?", (old[0],))
        item = old[0]
    elif old is not None:
        item = old[0]
        connection.execute(
            "UPDATE items SET value = ?, updated_at = ?, ttl_minutes = ?, expires_at = ?, paths = ?, "
            "first_vector = ?, vectors = ?, texts = ? WHERE id = ?",
            # An update is later than what it updates, even within one tick of the clock.
            (write.value, max(moment, old[1] + 1), *settings, item),
        )
    else:
        item = low | next_item
        connection.execute(
            "INSERT INTO items (id, namespace, key, value, created_at, updated_at, ttl_minutes, expires_at, "
            "paths, first_vector, vectors, texts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (item, namespace, key, write.value, moment, moment, *settings),
        )
    connection.executemany(
        "INSERT INTO vectors (id, item, vector) VALUES (?, ?, ?)",
        ((first + ordinal, item, vector) for ordinal, vector in enumerate(write.vectors)),
    )
    write_texts(connection, namespace, item, bool(old and old[4]), write.texts)
    connection.execute(
        "UPDATE namespaces SET items = items + ?, next_item = next_item + ?, next_vector = next_vector + ?, "
        "version = version + 1 WHERE id = ?",
        ((write.value is not None) - (old is not None), old is None, len(write.vectors), namespace),
    )


def _note_change(connection: sqlite3.Connection, namespace: int, item: int, vectors: Sequence[int]) -> None:
    """Remove an item's vectors, and note for the caches that it is no longer what it was."""
    connection.executemany("DELETE FROM vectors WHERE id = ?", ((vector,) for vector in vectors))
    for gone in (*vectors, -item):
        mark = connection.execute("INSERT INTO removed (namespace, vector) VALUES (?, ?)", (namespace, gone)).lastrowid
        if mark is not None and mark % _COUNT_REMOVED_EVERY == 0:
            _forget_removed(connection, namespace)


def _forget_removed(connection: sqlite3.Connection, namespace: int) -> None:
    (count,) = connection.execute("SELECT count(*) FROM removed WHERE namespace = ?", (namespace,)).fetchone()
    (items,) = connection.execute("SELECT items FROM namespaces WHERE id = ?", (namespace,)).fetchone()
    if count > max(_MANY_REMOVED, items // 2):
        connection.execute("DELETE FROM removed WHERE namespace = ?", (namespace,))
        connection.execute("UPDATE namespaces SET epoch = epoch + 1 WHERE id = ?", (namespace,))


def refresh_expiry(connection: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Start the time to live of items anew, for those that have one."""
    moment = now()
    connection.executemany(
        "UPDATE items SET expires_at = CAST(? + ttl_minutes * ? AS INTEGER) WHERE id = ? AND ttl_minutes IS NOT NULL",
        ((moment, _MINUTE, item) for item in ids),
    )


def sweep(connection: sqlite3.Connection) -> int:
    """Delete what has expired.

    Args:
        connection: In a write transaction.

    Returns:
        How many items were deleted.
    """
    expired = connection.execute(
        "SELECT namespaces.path, items.key FROM items JOIN namespaces ON namespaces.id = items.namespace "
        "WHERE items.expires_at <= ?",
        (now(),),
    ).fetchall()
    for path, key in expired:
        apply_write(connection, Write(decode_path(path), decode_key(key), None))
    return len(expired)
