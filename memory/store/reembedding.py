"""Re-embedding: every vector of a file is replaced by one of another embedder, or of other fields.

The old vectors stay in use until all new ones are there, in tables of their own; then one transaction exchanges them.
Each batch is committed at once, so that an interrupted run goes on where it stopped, and two processes share the work.
"""

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from questbook.memory.embeddings.embedders import BatchEmbedder
from questbook.memory.store.database import Database
from questbook.memory.store.rows import SHIFT, read_meta, read_value

Progress = Callable[[int, int], None]  # called with the number of items that are done and the number of all items
ITEMS_AT_ONCE = 256  # items that are embedded in one call and written in one transaction
_log = logging.getLogger(__name__)
_LOG_EVERY = 5.0  # seconds

# Items without new vectors, or changed since they got them.
_LEFT = (
    "SELECT items.id, CAST(items.value AS BLOB), items.paths, items.updated_at FROM items "
    "LEFT JOIN next_items ON next_items.item = items.id AND next_items.updated_at = items.updated_at "
    "WHERE next_items.item IS NULL AND items.id > ? ORDER BY items.id LIMIT ?"
)


def reembed(
    database: Database,
    embedder: BatchEmbedder,
    names: Mapping[str, str],
    texts: Callable[[Mapping[str, Any], Any], list[str]],
    progress: Progress | None,
) -> None:
    """Replace a file's vectors, or what is left of them; if embedding fails, the file keeps those that it has so far.

    `names` are those of embedder and fields, as the file will keep them, `texts` is as `IndexSettings.texts`. Without
    `progress` it is logged every few seconds.
    """
    target, logged, last = vectors_of(names), time.monotonic(), 0
    with database.writing() as connection:
        if not _begin(connection, target):
            return
    while True:
        with database.reading() as connection:
            if read_meta(connection).get("reembedding") != target:
                return  # another process has finished it
            left = connection.execute(_LEFT, (last, ITEMS_AT_ONCE)).fetchall()
            (done,) = connection.execute("SELECT count(*) FROM next_items").fetchone()
            (total,) = connection.execute("SELECT count(*) FROM items").fetchone()
        if progress is not None:
            progress(min(done, total), total)
        elif time.monotonic() - logged > _LOG_EVERY:
            logged = time.monotonic()
            _log.info("re-embedding %s with %s: %d of %d items", database.path, target, done, total)
        said = [texts(read_value(value), json.loads(paths) if paths else None) for _, value, paths, _ in left]
        documents = [text for own in said for text in own]
        vectors = embedder.units(embedder.embed(documents, ()).documents) if documents else {}
        with database.writing() as connection:
            if read_meta(connection).get("reembedding") != target:
                return
            for (item, _, _, updated), own in zip(left, said, strict=True):
                _write_next_vectors(connection, item, updated, [vectors[text].astype("<f4").tobytes() for text in own])
            if not left and connection.execute(_LEFT, (0, 1)).fetchone() is None:
                _exchange_vectors(connection, names)
                return
        last = left[-1][0] if left else 0  # from the beginning: something was written meanwhile


def _begin(connection: sqlite3.Connection, target: str) -> bool:
    """Make room for the new vectors; return False if the file already has them."""
    meta = read_meta(connection)
    if vectors_of(meta) == target:
        return False
    if meta.get("reembedding") != target:
        connection.execute("DROP TABLE IF EXISTS next_vectors")
        connection.execute("DROP TABLE IF EXISTS next_items")
        columns = "id INTEGER PRIMARY KEY, item INTEGER NOT NULL, vector BLOB NOT NULL"
        connection.execute(f"CREATE TABLE next_vectors ({columns})")
        columns = ", ".join(f"{name} INTEGER NOT NULL" for name in ("updated_at", "first_vector", "vectors"))
        connection.execute(f"CREATE TABLE next_items (item INTEGER PRIMARY KEY, {columns})")
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('reembedding', ?)", (target,))
    return True


def vectors_of(names: Mapping[str, str]) -> str:
    """Say which embedder made the vectors of a file, and of which fields."""
    return f"{names.get('embedder')} of {names.get('fields')}"


def _write_next_vectors(connection: sqlite3.Connection, item: int, updated: int, vectors: Sequence[bytes]) -> None:
    """Keep the new vectors of an item until all items have theirs."""
    row = connection.execute("SELECT updated_at, first_vector, vectors FROM next_items WHERE item = ?", (item,))
    old = row.fetchone()
    if old is not None and old[0] == updated:
        return  # another process was faster
    if old is not None:
        connection.execute("DELETE FROM next_vectors WHERE id >= ? AND id < ?", (old[1], old[1] + old[2]))
    namespace = item >> SHIFT
    (number,) = connection.execute("SELECT next_vector FROM namespaces WHERE id = ?", (namespace,)).fetchone()
    first = (namespace << SHIFT | number) if vectors else 0
    connection.execute("UPDATE namespaces SET next_vector = next_vector + ? WHERE id = ?", (len(vectors), namespace))
    insert = "INSERT INTO next_vectors (id, item, vector) VALUES (?, ?, ?)"
    connection.executemany(insert, ((first + ordinal, item, vector) for ordinal, vector in enumerate(vectors)))
    replace = "INSERT OR REPLACE INTO next_items (item, updated_at, first_vector, vectors) VALUES (?, ?, ?, ?)"
    connection.execute(replace, (item, updated, first, len(vectors)))


def _exchange_vectors(connection: sqlite3.Connection, names: Mapping[str, str]) -> None:
    """Put the new vectors in the place of the old ones; the file then has these names of embedder and fields."""
    connection.execute("DELETE FROM next_vectors WHERE item NOT IN (SELECT id FROM items)")
    connection.execute("DROP TABLE vectors")
    connection.execute("ALTER TABLE next_vectors RENAME TO vectors")
    new = "SELECT first_vector, vectors FROM next_items WHERE next_items.item = items.id"
    connection.execute(f"UPDATE items SET (first_vector, vectors) = ({new})")  # noqa: S608 (a constant)
    connection.execute("DROP TABLE next_items")
    connection.execute("DELETE FROM removed")
    connection.execute("UPDATE namespaces SET epoch = epoch + 1, version = version + 1")
    connection.execute("DELETE FROM meta WHERE key = 'reembedding'")
    for key in ("embedder", "fields"):
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, names[key]))
