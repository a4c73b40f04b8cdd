"""Items, vectors and namespaces as rows, read inside a transaction that the caller holds."""

import json
import logging
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from langgraph.store.base import InvalidNamespaceError

from questbook.memory.errors import CorruptStoreError, UnstorableValueError

_log = logging.getLogger(__name__)
Namespace = tuple[str, ...]
SHIFT = 32  # an id is namespace << 32 | counter
_decode = json.JSONDecoder().raw_decode  # looks for no blanks around a value, since none is written
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_VECTORS_BY_ID = "SELECT id, vector FROM vectors WHERE id IN (SELECT value FROM json_each(?))"
_VECTORS_OF_ITEMS = (
    "SELECT items.id, vectors.vector FROM json_each(?) AS wanted CROSS JOIN items ON items.id = wanted.value "
    "CROSS JOIN vectors ON vectors.id >= items.first_vector AND vectors.id < items.first_vector + items.vectors"
)
_WITHOUT_VECTOR = (
    "SELECT id, key, value, created_at, updated_at, expires_at FROM items "
    "WHERE id >= ? AND id < ? AND vectors = 0 ORDER BY id"
)


class NamespaceRow(NamedTuple):
    """A namespace with the marks by which a cache knows whether it is stale."""

    id: int
    path: Namespace
    items: int
    texts: int
    version: int
    epoch: int


class ItemRow(NamedTuple):
    """One item as it is kept."""

    id: int
    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    expires_at: int | None
    size: int  # characters of its value as JSON


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


def encode_key(key: str) -> str | bytes:
    """A key as the database takes it: as bytes if it is no valid unicode."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return key.encode("utf-8", "surrogatepass")
    return key


def decode_key(key: str | bytes | bytearray) -> str:
    """Undo `encode_key`."""
    return key if isinstance(key, str) else key.decode("utf-8", "surrogatepass")


def now() -> int:
    """Microseconds since 1970, UTC."""
    return (datetime.now(UTC) - _EPOCH) // timedelta(microseconds=1)


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def namespaces_with_living(connection: sqlite3.Connection, prefix: Namespace) -> list[NamespaceRow]:
    """Like `namespaces_under`, without those in which everything has expired."""
    living = "SELECT 1 FROM items WHERE namespace = ? AND (expires_at IS NULL OR expires_at > ?) LIMIT 1"
    moment = now()
    return [
        space
        for space in namespaces_under(connection, prefix)
        if connection.execute(living, (space.id, moment)).fetchone()
    ]


def namespaces_under(connection: sqlite3.Connection, prefix: Namespace) -> list[NamespaceRow]:
    """Namespaces that begin with a prefix and hold items, oldest first.

    Args:
        connection: In a transaction.
        prefix: Whole labels; () for all.

    Returns:
        Rows ordered by id.
    """
    columns = "SELECT id, path, items, texts, version, epoch FROM namespaces WHERE items > 0"
    if not prefix:
        found = connection.execute(f"{columns} ORDER BY id")
    else:
        path = encode_path(prefix)
        # "." separates labels and "/" is the next character, so this range is what lies below the prefix.
        below = (path, f"{path}.", f"{path}/")
        found = connection.execute(f"{columns} AND (path = ? OR (path > ? AND path < ?)) ORDER BY id", below)
    return [NamespaceRow(number, decode_path(path), *marks) for number, path, *marks in found]


_FEW_ITEMS = 64  # that are named one by one in a statement


@lru_cache(maxsize=_FEW_ITEMS + 1)
def _items_by_id(count: int) -> str:
    wanted = "SELECT value FROM json_each(?)" if count > _FEW_ITEMS else ", ".join("?" * count)
    return f"SELECT id, key, value, created_at, updated_at, expires_at FROM items WHERE id IN ({wanted})"  # noqa: S608


@lru_cache(maxsize=_FEW_ITEMS + 1)
def _items_by_key(count: int) -> str:
    return (
        "SELECT id, key, value, created_at, updated_at, expires_at FROM items "  # noqa: S608
        f"WHERE namespace = (SELECT id FROM namespaces WHERE path = ?) AND key IN ({', '.join('?' * count)})"
    )


_ITEMS_BETWEEN = (
    "SELECT id, key, value, created_at, updated_at, expires_at FROM items WHERE id >= ? AND id < ? ORDER BY id"
)


RawItem = tuple[int, Any, Any, int, int, int | None]
"""An item as SQLite gives it: id, key, value, when it was created, updated, and expires."""


def _item(row: RawItem, namespace: Namespace) -> ItemRow:
    item, key, value, created_at, updated_at, expires = row
    try:
        content, end = _decode(value)
        if end < len(value) or not isinstance(content, dict):
            raise ValueError(f"{value[:20]!r} … {value[-20:]!r} is no object, or not it alone")
    except (ValueError, TypeError) as error:
        raise CorruptStoreError(
            f"the item {key!r} in {namespace} is damaged: expected a JSON object, but {error}; put or delete it"
        ) from error
    created = _moment(created_at)
    updated = created if updated_at == created_at else _moment(updated_at)
    return ItemRow(item, namespace, decode_key(key), content, created, updated, expires, len(value))


def read_item(row: RawItem, namespace: Namespace) -> ItemRow | None:
    """Read the item of a row, unless it is damaged: one bad row must not stop every search beside it."""
    try:
        return _item(row, namespace)
    except CorruptStoreError:
        _log.exception("left out of a search")
        return None


def get_by_keys(connection: sqlite3.Connection, namespace: Namespace, keys: Sequence[str]) -> dict[str, ItemRow]:
    """Read items of one namespace by their keys; those that are not there are left out."""
    found = {}
    path = encode_path(namespace)
    for first in range(0, len(keys), _FEW_ITEMS):
        some = [encode_key(key) for key in keys[first : first + _FEW_ITEMS]]
        for row in connection.execute(_items_by_key(len(some)), (path, *some)):
            item = _item(row, namespace)
            found[item.key] = item
    return found


def get_items(connection: sqlite3.Connection, ids: Sequence[int], namespaces: Mapping[int, Namespace]) -> list[ItemRow]:
    """Read items by id, in the order asked for; those that are gone are left out.

    Args:
        connection: In a transaction.
        ids: Item ids.
        namespaces: Labels by namespace id.

    Returns:
        The items that are there.
    """
    asked = ids if len(ids) <= _FEW_ITEMS else (json.dumps(list(ids)),)
    found = {row[0]: row for row in connection.execute(_items_by_id(len(ids)), asked)}
    rows = [found[number] for number in ids if number in found]
    return [item for row in rows if (item := read_item(row, namespaces[row[0] >> SHIFT])) is not None]


def all_items(connection: sqlite3.Connection, namespace: NamespaceRow, after: int = 0) -> Iterator[ItemRow]:
    """Read the items of one namespace, or those newer than a given one, oldest first."""
    for row in raw_items(connection, namespace, after):
        if (item := read_item(row, namespace.path)) is not None:
            yield item


def raw_items(connection: sqlite3.Connection, namespace: NamespaceRow, after: int = 0) -> Iterator[RawItem]:
    """Read the rows of `all_items`, with their values as JSON."""
    low = namespace.id << SHIFT
    yield from connection.execute(_ITEMS_BETWEEN, (max(after + 1, low), low + (1 << SHIFT)))


def vectors_after(connection: sqlite3.Connection, namespace: int, after: int) -> Iterator[tuple[int, int, bytes]]:
    """Read vectors of one namespace that are newer than a given one.

    Args:
        connection: In a transaction.
        namespace: Its id.
        after: A vector id, or 0 for all.

    Yields:
        (vector id, item id, little-endian float32 bytes), oldest first.
    """
    low, high = namespace << SHIFT, (namespace + 1) << SHIFT
    yield from connection.execute(
        "SELECT id, item, vector FROM vectors WHERE id > ? AND id < ? ORDER BY id", (max(after, low), high)
    )


def vector_of(connection: sqlite3.Connection, vector: int) -> bytes | None:
    """Read one vector's bytes, or None."""
    found = connection.execute("SELECT vector FROM vectors WHERE id = ?", (vector,)).fetchone()
    return bytes(found[0]) if found else None


def vectors_of(connection: sqlite3.Connection, items: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Read the vectors of given items.

    Args:
        connection: In a read transaction.
        items: Item ids.

    Yields:
        (item id, little-endian float32 bytes).
    """
    yield from connection.execute(_VECTORS_OF_ITEMS, (json.dumps(list(items)),))


def vectors_by_id(connection: sqlite3.Connection, vectors: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Read vectors by their ids.

    Args:
        connection: In a read transaction.
        vectors: Their ids.

    Yields:
        (vector id, little-endian float32 bytes) of those that are there.
    """
    yield from connection.execute(_VECTORS_BY_ID, (json.dumps(list(vectors)),))


def items_without_vector(connection: sqlite3.Connection, space: NamespaceRow) -> Iterator[ItemRow]:
    """Read a namespace's items that have no vector, oldest first."""
    low = space.id << SHIFT
    for row in connection.execute(_WITHOUT_VECTOR, (low, low + (1 << SHIFT))):
        if (item := read_item(row, space.path)) is not None:
            yield item
