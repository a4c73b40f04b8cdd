"""Items, vectors, words and namespaces as rows: reading and writing them in a transaction that the caller holds.

An item's id is `namespace << 32 | counter`, and a vector's likewise: a range of ids is a namespace.

FTS5 has one collection of texts, a store has many namespaces. So each word is indexed behind its namespace's number
("12xharbour"), and the list of its texts stays in one namespace. `word_index` reads the lists and computes the scores.
"""

import json
import logging
import marshal
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from langgraph.store.base import InvalidNamespaceError, Item, SearchItem

from questbook.memory.errors import CorruptStoreError, StoreConfigError, UnstorableValueError
from questbook.memory.text.words import TOKENIZER, WITHOUT_FTS5
from questbook.types import JSON

Namespace = tuple[str, ...]
SHIFT = 32  # an id is namespace << 32 | counter
MINUTE = 60_000_000  # microseconds

# A list of removals that is longer than this, and than half the items, is emptied, so that it does not grow for
# ever; caches then read their namespace again at their next search.
_MANY_REMOVALS = 1_000
_COUNT_REMOVALS_EVERY = 128  # counting costs time, so it is not done at each removal

_log = logging.getLogger(__name__)
_decode = json.JSONDecoder().raw_decode  # does not look for blanks around a value, because none are written
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FEW_ITEMS = 64  # that a statement names one by one
_KEPT_ITEMS, _SHORT_VALUE = 16384, 4096  # decoded items that are kept, of at most so many bytes

_ITEMS = "SELECT id, key, CAST(value AS BLOB), created_at, updated_at, expires_at, checksum FROM items"
remarks: ContextVar[list[str] | None] = ContextVar("remarks", default=None)
"""A list to which searches add what a person should know: a damaged record was left out, an order failed."""


class NamespaceRow(NamedTuple):
    """A namespace, with the counters by which a cache knows whether it is stale."""

    id: int
    path: Namespace
    items: int  # how many items it has
    version: int  # counts the writes
    epoch: int  # counts how often the list of removals was emptied; a cache of another epoch is read again


class ItemRow(NamedTuple):
    """One item."""

    id: int
    namespace: Namespace
    key: str
    packed: bytes  # its value as `marshal` has it, which copies in a tenth of the time of `deepcopy`
    created_at: datetime
    updated_at: datetime
    expires_at: int | None  # microseconds since 1970

    @property
    def value(self) -> JSON:
        """The value, a copy for each caller, who may change it."""
        value: JSON = marshal.loads(self.packed)  # noqa: S302 (our own)
        return value

    def lives(self, moment: int) -> bool:
        """Whether the item has not expired at a moment, in microseconds since 1970."""
        return self.expires_at is None or self.expires_at > moment

    def as_item(self) -> Item:
        """Return the item as LangGraph's `get` does."""
        times = {"created_at": self.created_at, "updated_at": self.updated_at}
        return Item(value=self.value, key=self.key, namespace=self.namespace, **times)

    def as_search_item(self, score: float | None) -> SearchItem:
        """Return the item as LangGraph's `search` does."""
        return SearchItem(self.namespace, self.key, self.value, self.created_at, self.updated_at, score)


def encode_value(value: Mapping[str, Any], namespace: Namespace, key: str) -> str:
    """Write the value of a put as JSON; raise an UnstorableValueError if something in it is not JSON."""
    try:
        return json.dumps(dict(value), separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise UnstorableValueError(f"cannot store {key!r} in {namespace}: {error}; values must be JSON") from error


def encode_path(namespace: Namespace) -> str:
    """Join labels for the database; () becomes "". A label that is no valid unicode is an InvalidNamespaceError."""
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
    """Return a key as the database takes it: as bytes if it is no valid unicode."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return key.encode("utf-8", "surrogatepass")
    return key


def decode_key(key: str | bytes) -> str:
    """Undo `encode_key`."""
    return key if isinstance(key, str) else key.decode("utf-8", "surrogatepass")


def now() -> int:
    """Return the time in microseconds since 1970, UTC."""
    return (datetime.now(UTC) - _EPOCH) // timedelta(microseconds=1)


def read_meta(connection: sqlite3.Connection) -> dict[str, str]:
    """Return what a file says of itself: its id, and what it is indexed with."""
    return dict(connection.execute("SELECT key, value FROM meta").fetchall())


def namespaces_under(connection: sqlite3.Connection, prefix: Namespace) -> list[NamespaceRow]:
    """Read the namespaces that begin with whole labels (() for all) and hold items, oldest first."""
    columns = "SELECT id, path, items, version, epoch FROM namespaces WHERE items > 0"
    if not prefix:
        rows = connection.execute(f"{columns} ORDER BY id")
    else:
        path = encode_path(prefix)
        # "." separates labels and "/" is the next character, so this range is everything below the prefix.
        below = (path, f"{path}.", f"{path}/")
        rows = connection.execute(f"{columns} AND (path = ? OR (path > ? AND path < ?)) ORDER BY id", below)
    return [NamespaceRow(number, decode_path(path), *counters) for number, path, *counters in rows]


def has_living(connection: sqlite3.Connection, space: NamespaceRow, moment: int) -> bool:
    """Return whether not everything in a namespace has expired at a moment."""
    living = "SELECT 1 FROM items WHERE namespace = ? AND (expires_at IS NULL OR expires_at > ?) LIMIT 1"
    return connection.execute(living, (space.id, moment)).fetchone() is not None


def get_by_keys(connection: sqlite3.Connection, namespace: Namespace, keys: Sequence[str]) -> dict[str, ItemRow]:
    """Read items of one namespace by key, without those that are not there; a damaged one is a CorruptStoreError."""
    items = {}
    path = encode_path(namespace)
    for first in range(0, len(keys), _FEW_ITEMS):
        some = [encode_key(key) for key in keys[first : first + _FEW_ITEMS]]
        of = "namespace = (SELECT id FROM namespaces WHERE path = ?)"
        for row in connection.execute(f"{_ITEMS} WHERE {of} AND key IN ({_marks(some)})", (path, *some)):
            item = _read_item(row, namespace)
            items[item.key] = item
    return items


def get_items(connection: sqlite3.Connection, ids: Sequence[int], namespaces: Mapping[int, Namespace]) -> list[ItemRow]:
    """Read items by id, in the order of the ids; leave out those that are gone or damaged."""
    rows = {row[0]: row for row in connection.execute(f"{_ITEMS} WHERE id IN ({_marks(ids)})", ids)}
    items = (_read_sound_item(rows[number], namespaces[number >> SHIFT]) for number in ids if number in rows)
    return [item for item in items if item is not None]


def items_of(connection: sqlite3.Connection, space: NamespaceRow, *, without_vector: bool = False) -> Iterator[ItemRow]:
    """Read the items of one namespace, all or those that have no vector, oldest first, without damaged ones."""
    only = "AND vectors = 0" if without_vector else ""
    for row in connection.execute(f"{_ITEMS} WHERE id >= ? AND id < ? {only} ORDER BY id", _ids_of(space.id)):
        if (item := _read_sound_item(row, space.path)) is not None:
            yield item


def values_after(connection: sqlite3.Connection, namespace: int, after: int) -> list[tuple[int, Any]]:
    """Read ids and values of a namespace's items that are newer than a given one, oldest first."""
    newer = "SELECT id, CAST(value AS BLOB) FROM items WHERE id > ? AND id < ? ORDER BY id"
    return [(item, read_value(value)) for item, value in connection.execute(newer, (after, _ids_of(namespace)[1]))]


def values_of(connection: sqlite3.Connection, items: Sequence[int]) -> list[tuple[int, Any]]:
    """Read ids and values of some items; leave out those that are gone."""
    some = "SELECT id, CAST(value AS BLOB) FROM items WHERE id IN (SELECT value FROM json_each(?))"
    return [(item, read_value(value)) for item, value in connection.execute(some, (json.dumps(list(items)),))]


def vectors_after(connection: sqlite3.Connection, namespace: int, after: int) -> Iterator[tuple[int, int, bytes]]:
    """Read (vector id, item id, little-endian float32 bytes) of a namespace's newer vectors, oldest first."""
    low, high = _ids_of(namespace)
    newer = "SELECT id, item, vector FROM vectors WHERE id > ? AND id < ? ORDER BY id"
    yield from connection.execute(newer, (max(after, low), high))


def count_vectors(connection: sqlite3.Connection, namespace: int) -> int:
    """Count a namespace's vectors."""
    counted = connection.execute("SELECT count(*) FROM vectors WHERE id > ? AND id < ?", _ids_of(namespace))
    return int(counted.fetchone()[0])


def vectors_of_items(connection: sqlite3.Connection, items: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Read the vectors of some items: (item id, little-endian float32 bytes)."""
    yield from connection.execute(
        "SELECT items.id, vectors.vector FROM json_each(?) AS wanted CROSS JOIN items ON items.id = wanted.value "
        "CROSS JOIN vectors ON vectors.id >= items.first_vector AND vectors.id < items.first_vector + items.vectors",
        (json.dumps(list(items)),),
    )


def vectors_by_id(connection: sqlite3.Connection, vectors: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Read vectors: (vector id, little-endian float32 bytes), without those that are gone."""
    some = "SELECT id, vector FROM vectors WHERE id IN (SELECT value FROM json_each(?))"
    yield from connection.execute(some, (json.dumps(list(vectors)),))


def last_removal(connection: sqlite3.Connection) -> int:
    """Return the number of the newest entry in the list of removals."""
    newest = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'removed'"
    return int(connection.execute(newest).fetchone()[0])


def removals_after(
    connection: sqlite3.Connection, namespace: int, after: int, last: int = 0
) -> tuple[int, list[int], list[int]]:
    """Return the last entry in the list of removals; vectors removed, and items changed or deleted, after an entry.

    Items after `last`, the highest that a cache has, are left out: it will read them anyway.
    """
    newer = "SELECT id, vector FROM removed WHERE namespace = ? AND id > ? ORDER BY id"
    rows = connection.execute(newer, (namespace, after)).fetchall()
    named = dict.fromkeys(each for _, each in rows)
    items = [-each for each in named if -last <= each < 0]
    return rows[-1][0] if rows else after, [each for each in named if each > 0], items


def _ids_of(namespace: int) -> tuple[int, int]:
    """Return the lowest id of a namespace, and the lowest of the next."""
    return namespace << SHIFT, (namespace + 1) << SHIFT


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _read_item(row: tuple[Any, ...], namespace: Namespace) -> ItemRow:
    return (_kept_item if len(row[2] or b"") <= _SHORT_VALUE else _decoded_item)(row, namespace)


def _decoded_item(row: tuple[Any, ...], namespace: Namespace) -> ItemRow:
    item, key, stored, created_at, updated_at, expires_at, checksum = row
    try:
        value = stored.decode()  # not by SQLite: bytes that are no text would end the whole search
        content, end = _decode(value)
        if end < len(value) or not isinstance(content, dict):
            raise ValueError(f"{value[:20]!r} … {value[-20:]!r} is no object, or not it alone")
        if checksum not in (None, zlib.crc32(stored)):
            raise ValueError("it says something else than was written")
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"the item {key!r} in {namespace} is damaged: expected a JSON object, but {error}; put or delete it"
        raise CorruptStoreError(problem) from error
    created = _EPOCH + timedelta(microseconds=created_at)
    updated = created if updated_at == created_at else _EPOCH + timedelta(microseconds=updated_at)
    return ItemRow(item, namespace, decode_key(key), marshal.dumps(content), created, updated, expires_at)


# By all that the row says; a turn reads much of what the turn before has read.
_kept_item = lru_cache(_KEPT_ITEMS)(_decoded_item)


def remark(text: str) -> None:
    """Add a sentence to `remarks`, where somebody reads them."""
    if (read := remarks.get()) is not None:
        read.append(text)


def _read_sound_item(row: tuple[Any, ...], namespace: Namespace) -> ItemRow | None:
    """Read an item; None if it is damaged, because one bad row must not stop the search beside it."""
    try:
        return _read_item(row, namespace)
    except CorruptStoreError as error:
        _log.exception("left out of a search")
        remark(f"A damaged memory was left out; `questbook doctor` examines the file: {error}")
        return None


def read_value(value: bytes) -> dict[str, Any]:
    """Read a stored value; {} if it is damaged, which is logged when the item is read itself."""
    try:
        content = json.loads(value)
    except (ValueError, TypeError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {}


class Write(NamedTuple):
    """One put or delete with everything that it needs, embedded and encoded before the transaction begins."""

    namespace: Namespace
    key: str
    value: str | None  # JSON; None to delete
    ttl_minutes: float | None = None  # time to live; None: for ever
    paths: str | None = None  # `PutOp.index` as JSON; None if it named none
    vectors: Sequence[bytes] = ()  # little-endian float32 bytes
    words: Sequence[str] = ()  # as `IndexSettings.words` returns them


def apply_write(connection: sqlite3.Connection, write: Write) -> None:
    """Put or delete one item with its vectors and words. An update keeps the item's id and `created_at`."""
    path = encode_path(write.namespace)
    space = connection.execute("SELECT id, next_item, next_vector FROM namespaces WHERE path = ?", (path,)).fetchone()
    if space is None:
        if write.value is None:
            return
        space = (connection.execute("INSERT INTO namespaces (path) VALUES (?)", (path,)).lastrowid, 1, 1)
    namespace, next_item, next_vector = space
    key = encode_key(write.key)
    select = "SELECT id, updated_at, first_vector, vectors, texts, created_at FROM items"
    old = connection.execute(f"{select} WHERE namespace = ? AND key = ?", (namespace, key)).fetchone()
    if old is None and write.value is None:
        return
    low, moment = namespace << SHIFT, now()
    first = low | next_vector if write.vectors else 0
    expires = None if write.ttl_minutes is None else moment + round(write.ttl_minutes * MINUTE)
    checksum = None if write.value is None else zlib.crc32(write.value.encode())
    settings = (write.ttl_minutes, expires, write.paths, first, len(write.vectors), bool(write.words), checksum)
    item, created, updated = low | next_item, moment, moment
    if old is not None:
        # An update is later than what it updates, even within one tick of the clock.
        item, created, updated = old[0], old[5], max(moment, old[1] + 1)
        _note_removal(connection, namespace, item, range(old[2], old[2] + old[3]))
    if write.value is None:
        connection.execute("DELETE FROM items WHERE id = ?", (item,))
    else:
        connection.execute(
            "REPLACE INTO items (id, namespace, key, value, created_at, updated_at, ttl_minutes, expires_at, "
            "paths, first_vector, vectors, texts, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (item, namespace, key, write.value, created, updated, *settings),
        )
    insert = "INSERT INTO vectors (id, item, vector) VALUES (?, ?, ?)"
    connection.executemany(insert, ((first + ordinal, item, vector) for ordinal, vector in enumerate(write.vectors)))
    write_words(connection, item, namespace, write.words, had=bool(old and old[4]))
    connection.execute(
        "UPDATE namespaces SET items = items + ?, next_item = next_item + ?, next_vector = next_vector + ?, "
        "version = version + 1 WHERE id = ?",
        ((write.value is not None) - (old is not None), old is None, len(write.vectors), namespace),
    )


def _note_removal(connection: sqlite3.Connection, namespace: int, item: int, vectors: Sequence[int]) -> None:
    """Delete an item's vectors, and tell the caches that it has changed."""
    connection.executemany("DELETE FROM vectors WHERE id = ?", ((vector,) for vector in vectors))
    for gone in (*vectors, -item):
        insert = "INSERT INTO removed (namespace, vector) VALUES (?, ?)"
        number = connection.execute(insert, (namespace, gone)).lastrowid
        if number is None or number % _COUNT_REMOVALS_EVERY:
            continue
        (count,) = connection.execute("SELECT count(*) FROM removed WHERE namespace = ?", (namespace,)).fetchone()
        (items,) = connection.execute("SELECT items FROM namespaces WHERE id = ?", (namespace,)).fetchone()
        if count > max(_MANY_REMOVALS, items // 2):
            connection.execute("DELETE FROM removed WHERE namespace = ?", (namespace,))
            connection.execute("UPDATE namespaces SET epoch = epoch + 1 WHERE id = ?", (namespace,))


def namespace_mark(namespace: int) -> str:
    """Return what is written before each word of a namespace in the word index."""
    return f"{namespace}x"


def create_word_table(connection: sqlite3.Connection, columns: int) -> None:
    """Create the word index, empty, with porter stems; drop an old one. Columns have numbers, never a user's words."""
    names = ", ".join(f"c{number}" for number in range(columns))
    connection.execute("DROP TABLE IF EXISTS texts")
    try:
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5({names}, tokenize = '{TOKENIZER}')")
    except sqlite3.OperationalError as error:
        if "no such module" not in str(error):
            raise
        raise StoreConfigError(WITHOUT_FTS5) from error
    # FTS5 looks for a word in each segment. With 2 instead of its usual 4 there are half as many segments, and
    # after thousands of single puts a word is found in half the time. Puts take as long as before.
    connection.execute("INSERT INTO texts(texts, rank) VALUES ('automerge', 2)")
    connection.execute("UPDATE namespaces SET texts = 0")


def write_words(connection: sqlite3.Connection, item: int, namespace: int, words: Sequence[str], *, had: bool) -> None:
    """Replace the words of one item. `had`: whether the index has words of it so far."""
    if had:
        connection.execute("DELETE FROM texts WHERE rowid = ?", (item,))
    if words:
        mark = namespace_mark(namespace)
        marked = [mark + column.replace(" ", f" {mark}") if column else "" for column in words]
        names = ", ".join(f"c{number}" for number in range(len(marked)))
        insert = f"INSERT INTO texts (rowid, {names}) VALUES (?, {_marks(marked)})"  # noqa: S608 - c0, c1 … and marks
        connection.execute(insert, (item, *marked))
    if change := bool(words) - had:
        connection.execute("UPDATE namespaces SET texts = texts + ? WHERE id = ?", (change, namespace))
