"""Items and vectors as rows: reading and writing them inside a transaction that the caller holds."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.store.base import InvalidNamespaceError

from memory.errors import UnstorableValueError

Namespace = tuple[str, ...]
_SHIFT = 32  # an id is namespace << 32 | counter
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = 60_000_000  # microseconds
# A list of removed vectors longer than this, and than half the live items, is emptied: caches then reload.
_MANY_REMOVED = 1_000


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """A namespace with the marks by which a cache knows whether it is stale."""

    id: int
    path: Namespace
    items: int
    version: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item as it is kept."""

    id: int
    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class Write:
    """One put or delete with everything that it needs, embedded and encoded before the transaction begins."""

    namespace: Namespace
    key: str
    value: str | None  # JSON, or None to delete
    ttl_minutes: float | None = None
    paths: str | None = None
    vectors: Sequence[bytes] = ()


def encode_value(value: Mapping[str, Any], namespace: Namespace, key: str) -> str:
    """Write a value as JSON.

    Args:
        value: What `put` was given.
        namespace: For the message.
        key: For the message.

    Returns:
        JSON text.

    Raises:
        UnstorableValueError: If something in it is not JSON.
    """
    try:
        return json.dumps(dict(value), separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise UnstorableValueError(f"cannot store {key!r} in {namespace}: {error}; values must be JSON") from error


def encode_path(namespace: Namespace) -> str:
    """Join labels for the database.

    Args:
        namespace: Validated labels.

    Returns:
        One string; () becomes "".

    Raises:
        InvalidNamespaceError: If a label is no valid unicode.
    """
    path = ".".join(namespace)
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InvalidNamespaceError(f"Namespace labels must be valid unicode, got {namespace!r}") from error
    return path


def decode_path(path: str) -> Namespace:
    """Undo `encode_path`."""
    return tuple(path.split(".")) if path else ()


def _encode_key(key: str) -> str | bytes:
    try:
        key.encode()
    except UnicodeEncodeError:
        return key.encode("utf-8", "surrogatepass")
    return key


def _decode_key(key: str | bytes) -> str:
    return key.decode("utf-8", "surrogatepass") if isinstance(key, bytes) else key


def now() -> int:
    """Microseconds since 1970, UTC."""
    return (datetime.now(UTC) - _EPOCH) // timedelta(microseconds=1)


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def namespaces_under(connection: sqlite3.Connection, prefix: Namespace) -> list[NamespaceRow]:
    """Namespaces that begin with a prefix and hold items, oldest first.

    Args:
        connection: In a transaction.
        prefix: Whole labels; () for all.

    Returns:
        Rows ordered by id.
    """
    columns = "SELECT id, path, items, version, epoch FROM namespaces WHERE items > 0"
    if not prefix:
        found = connection.execute(f"{columns} ORDER BY id")
    else:
        path = encode_path(prefix)
        # "." separates labels and "/" is the next character, so this range is what lies below the prefix.
        below = (path, f"{path}.", f"{path}/")
        found = connection.execute(f"{columns} AND (path = ? OR (path > ? AND path < ?)) ORDER BY id", below)
    return [
        NamespaceRow(namespace, decode_path(path), items, version, epoch)
        for namespace, path, items, version, epoch in found
    ]


_ITEM_BY_KEY = (
    "SELECT id, key, value, created_at, updated_at, expires_at FROM items "
    "WHERE key = ? AND namespace = (SELECT id FROM namespaces WHERE path = ?)"
)
_ITEM_BY_ID = "SELECT id, key, value, created_at, updated_at, expires_at FROM items WHERE id = ?"
_ITEMS_BETWEEN = (
    "SELECT id, key, value, created_at, updated_at, expires_at FROM items WHERE id >= ? AND id < ? ORDER BY id"
)


def _item(row: tuple[Any, ...], namespace: Namespace) -> ItemRow:
    item, key, value, created, updated, expires = row
    return ItemRow(item, namespace, _decode_key(key), json.loads(value), _moment(created), _moment(updated), expires)


def get_item(connection: sqlite3.Connection, namespace: Namespace, key: str) -> ItemRow | None:
    """Read one item, or None."""
    found = connection.execute(_ITEM_BY_KEY, (_encode_key(key), encode_path(namespace))).fetchone()
    return _item(found, namespace) if found else None


def get_items(connection: sqlite3.Connection, ids: Sequence[int], namespaces: Mapping[int, Namespace]) -> list[ItemRow]:
    """Read items by id, in the order asked for; those that are gone are left out.

    Args:
        connection: In a transaction.
        ids: Item ids.
        namespaces: Labels by namespace id.

    Returns:
        The items that are there.
    """
    found = (connection.execute(_ITEM_BY_ID, (item,)).fetchone() for item in ids)
    return [_item(row, namespaces[row[0] >> _SHIFT]) for row in found if row]


def all_items(connection: sqlite3.Connection, namespace: NamespaceRow) -> Iterator[ItemRow]:
    """Read the items of one namespace, oldest first."""
    low = namespace.id << _SHIFT
    for row in connection.execute(_ITEMS_BETWEEN, (low, low + (1 << _SHIFT))):
        yield _item(row, namespace.path)


def vectors_after(connection: sqlite3.Connection, namespace: int, after: int) -> Iterator[tuple[int, int, bytes]]:
    """Read vectors of one namespace that are newer than a given one.

    Args:
        connection: In a transaction.
        namespace: Its id.
        after: A vector id, or 0 for all.

    Yields:
        (vector id, item id, little-endian float32 bytes), oldest first.
    """
    low, high = namespace << _SHIFT, (namespace + 1) << _SHIFT
    yield from connection.execute(
        "SELECT id, item, vector FROM vectors WHERE id > ? AND id < ? ORDER BY id", (max(after, low), high)
    )


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
        "SELECT id, vector FROM removed WHERE namespace = ? AND id > ? ORDER BY id", (namespace, after)
    ).fetchall()


def last_removed(connection: sqlite3.Connection) -> int:
    """The newest mark in the list of removed vectors."""
    (mark,) = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'removed'").fetchone()
    return int(mark)


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
    key = _encode_key(write.key)
    old = connection.execute(
        "SELECT id, updated_at, first_vector, vectors FROM items WHERE namespace = ? AND key = ?",
        (namespace, key),
    ).fetchone()
    if old is None and write.value is None:
        return
    low, moment = namespace << _SHIFT, now()
    first = low | next_vector if write.vectors else 0
    expires = None if write.ttl_minutes is None else moment + round(write.ttl_minutes * _MINUTE)
    settings = (write.ttl_minutes, expires, write.paths, first, len(write.vectors))
    if old is not None:
        _remove_vectors(connection, namespace, old[2], old[3])
    if write.value is None:
        connection.execute("DELETE FROM items WHERE id = ?", (old[0],))
        item = old[0]
    elif old is not None:
        item = old[0]
        connection.execute(
            "UPDATE items SET value = ?, updated_at = ?, ttl_minutes = ?, expires_at = ?, paths = ?, "
            "first_vector = ?, vectors = ? WHERE id = ?",
            # An update is later than what it updates, even within one tick of the clock.
            (write.value, max(moment, old[1] + 1), *settings, item),
        )
    else:
        item = low | next_item
        connection.execute(
            "INSERT INTO items (id, namespace, key, value, created_at, updated_at, ttl_minutes, expires_at, "
            "paths, first_vector, vectors) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (item, namespace, key, write.value, moment, moment, *settings),
        )
    connection.executemany(
        "INSERT INTO vectors (id, item, vector) VALUES (?, ?, ?)",
        ((first + ordinal, item, vector) for ordinal, vector in enumerate(write.vectors)),
    )
    connection.execute(
        "UPDATE namespaces SET items = items + ?, next_item = next_item + ?, next_vector = next_vector + ?, "
        "version = version + 1 WHERE id = ?",
        ((write.value is not None) - (old is not None), old is None, len(write.vectors), namespace),
    )


def _remove_vectors(connection: sqlite3.Connection, namespace: int, first: int, count: int) -> None:
    if not count:
        return
    gone = range(first, first + count)
    connection.executemany("DELETE FROM vectors WHERE id = ?", ((vector,) for vector in gone))
    connection.executemany(
        "INSERT INTO removed (namespace, vector) VALUES (?, ?)", ((namespace, vector) for vector in gone)
    )


def forget_removed(connection: sqlite3.Connection, namespace: Namespace) -> None:
    """Empty a long list of removed vectors; caches then reload at their next search.

    Args:
        connection: In a write transaction.
        namespace: Whose list.
    """
    space = connection.execute("SELECT id, items FROM namespaces WHERE path = ?", (encode_path(namespace),)).fetchone()
    if space is None:
        return
    (count,) = connection.execute("SELECT count(*) FROM removed WHERE namespace = ?", (space[0],)).fetchone()
    if count > max(_MANY_REMOVED, space[1] // 2):
        connection.execute("DELETE FROM removed WHERE namespace = ?", (space[0],))
        connection.execute("UPDATE namespaces SET epoch = epoch + 1 WHERE id = ?", (space[0],))


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
        apply_write(connection, Write(decode_path(path), _decode_key(key), None))
    return len(expired)
