"""Puts and deletes as rows: what one of them changes, inside a write transaction that the caller holds."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from questbook.memory.store.rows import SHIFT, Namespace, encode_key, encode_path, now
from questbook.memory.store.word_index import write_words

MINUTE = 60_000_000
"""Microseconds."""

LONGEST_TTL = 1e10
"""Minutes, about 19,000 years: the longest time to live."""

# A list of removals that is longer than this, and than half the items, is emptied, so that it does not grow for
# ever; caches then read their namespace again at their next search.
_MANY_REMOVALS = 1_000
_COUNT_REMOVALS_EVERY = 128  # counting costs time, so it is not done at each removal


@dataclass(frozen=True, slots=True)
class Write:
    """One put or delete with everything that it needs, embedded and encoded before the transaction begins."""

    namespace: Namespace
    key: str
    value: str | None  # JSON; None to delete
    ttl_minutes: float | None = None  # time to live; None: for ever
    paths: str | None = None  # `PutOp.index` as JSON; None if it named none
    vectors: Sequence[bytes] = ()  # little-endian float32 bytes
    words: Sequence[str] = ()  # as `WordColumns.words` returns them


def is_time_to_live(minutes: object) -> TypeGuard[float]:
    """Return whether something is a number of minutes after which an item can expire."""
    return isinstance(minutes, int | float) and not isinstance(minutes, bool) and abs(minutes) <= LONGEST_TTL


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
    old = connection.execute(
        "SELECT id, updated_at, first_vector, vectors, texts FROM items WHERE namespace = ? AND key = ?",
        (namespace, key),
    ).fetchone()
    if old is None and write.value is None:
        return
    low, moment = namespace << SHIFT, now()
    first = low | next_vector if write.vectors else 0
    expires = None if write.ttl_minutes is None else moment + round(write.ttl_minutes * MINUTE)
    settings = (write.ttl_minutes, expires, write.paths, first, len(write.vectors), bool(write.words))
    item = low | next_item if old is None else old[0]
    if old is not None:
        _note_removal(connection, namespace, item, range(old[2], old[2] + old[3]))
    if write.value is None:
        connection.execute("DELETE FROM items WHERE id = ?", (item,))
    elif old is not None:
        connection.execute(
            "UPDATE items SET value = ?, updated_at = ?, ttl_minutes = ?, expires_at = ?, paths = ?, "
            "first_vector = ?, vectors = ?, texts = ? WHERE id = ?",
            # An update is later than what it updates, even within one tick of the clock.
            (write.value, max(moment, old[1] + 1), *settings, item),
        )
    else:
        connection.execute(
            "INSERT INTO items (id, namespace, key, value, created_at, updated_at, ttl_minutes, expires_at, "
            "paths, first_vector, vectors, texts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (item, namespace, key, write.value, moment, moment, *settings),
        )
    connection.executemany(
        "INSERT INTO vectors (id, item, vector) VALUES (?, ?, ?)",
        ((first + ordinal, item, vector) for ordinal, vector in enumerate(write.vectors)),
    )
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
        number = connection.execute(
            "INSERT INTO removed (namespace, vector) VALUES (?, ?)", (namespace, gone)
        ).lastrowid
        if number is not None and number % _COUNT_REMOVALS_EVERY == 0:
            _empty_removals(connection, namespace)


def _empty_removals(connection: sqlite3.Connection, namespace: int) -> None:
    """Empty a namespace's list of removals if it is long."""
    (count,) = connection.execute("SELECT count(*) FROM removed WHERE namespace = ?", (namespace,)).fetchone()
    (items,) = connection.execute("SELECT items FROM namespaces WHERE id = ?", (namespace,)).fetchone()
    if count > max(_MANY_REMOVALS, items // 2):
        connection.execute("DELETE FROM removed WHERE namespace = ?", (namespace,))
        connection.execute("UPDATE namespaces SET epoch = epoch + 1 WHERE id = ?", (namespace,))
