"""Making the indexes anew from the texts, when a file was written with another embedder or other columns."""

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from questbook.memory.embeddings.embedding_batch import EmbeddingBatch
from questbook.memory.store.database import Database
from questbook.memory.store.lexical import Lexical, write_texts
from questbook.memory.store.rows import SHIFT

Progress = Callable[[int, int], None]
"""Called with the number of items that are done and the number there are."""
TextsOf = Callable[[Mapping[str, Any], Any], Sequence[str]]
"""The texts of a value that are embedded, given its `PutOp.index`."""

_log = logging.getLogger(__name__)
_AT_ONCE = 256  # items that are embedded in one call and written in one transaction
_LOG_EVERY = 5.0  # seconds

# What is still to do: items without new vectors, or changed since they got them.
_LEFT = (
    "SELECT items.id, items.value, items.paths, items.updated_at FROM items "
    "LEFT JOIN next_items ON next_items.item = items.id AND next_items.updated_at = items.updated_at "
    "WHERE next_items.item IS NULL AND items.id > ? ORDER BY items.id LIMIT ?"
)

_ITEMS_AFTER = "SELECT id, value, paths FROM items WHERE id > ? ORDER BY id LIMIT ?"


def embed_again(
    database: Database,
    batch: EmbeddingBatch,
    target: str,
    texts_of: TextsOf,
    progress: Progress | None,
) -> None:
    """Replace every vector by one of another embedder.

    The old vectors stay in use until all new ones are there; then they change places in one transaction. Each
    batch is kept as soon as it is made, so that an interrupted run goes on where it stopped, and two runs
    share the work.

    Args:
        database: The file.
        batch: The new embedder.
        target: Its name, as the file will keep it.
        texts_of: What is embedded of a value.
        progress: Told after each batch; by default it is logged every few seconds.

    Raises:
        EmbeddingError: If embedding fails; the file still holds the old vectors, and what was made of the
            new.
    """
    with database.writing() as connection:
        if not _begin(connection, target):
            return
    told, position = time.monotonic(), 0
    while True:
        with database.reading() as connection:
            if meta(connection, "reembedding") != target:
                return  # another process has finished it
            left = connection.execute(_LEFT, (position, _AT_ONCE)).fetchall()
            (done,) = connection.execute("SELECT count(*) FROM next_items").fetchone()
            (total,) = connection.execute("SELECT count(*) FROM items").fetchone()
        if progress is not None:
            progress(min(done, total), total)
        elif time.monotonic() - told > _LOG_EVERY:
            told = time.monotonic()
            _log.info("re-embedding %s with %s: %d of %d items", database.path, target, done, total)
        if left:
            position = left[-1][0]
            texts = [
                list(texts_of(json.loads(value), json.loads(paths) if paths else None)) for _, value, paths, _ in left
            ]
            vectors = batch.units(batch.embed([text for own in texts for text in own], ())[0])
            with database.writing() as connection:
                if meta(connection, "reembedding") != target:
                    return
                for (item, _, _, updated), own in zip(left, texts, strict=True):
                    _keep(connection, item, updated, [vectors[text].astype("<f4").tobytes() for text in own])
        else:
            with database.writing() as connection:
                if meta(connection, "reembedding") != target:
                    return
                if connection.execute(_LEFT, (0, 1)).fetchone() is None:
                    _swap(connection, target)
                    return
            position = 0  # something was written meanwhile


def meta(connection: sqlite3.Connection, key: str) -> str | None:
    """What the file says of itself under a key, or None."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else None


def _begin(connection: sqlite3.Connection, target: str) -> bool:
    if meta(connection, "embedder") == target:
        return False
    if meta(connection, "reembedding") != target:
        connection.execute("DROP TABLE IF EXISTS next_vectors")
        connection.execute("DROP TABLE IF EXISTS next_items")
        connection.execute(
            "CREATE TABLE next_vectors (id INTEGER PRIMARY KEY, item INTEGER NOT NULL, vector BLOB NOT NULL)"
        )
        connection.execute(
            "CREATE TABLE next_items (item INTEGER PRIMARY KEY, updated_at INTEGER NOT NULL, "
            "first_vector INTEGER NOT NULL, vectors INTEGER NOT NULL)"
        )
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('reembedding', ?)", (target,))
    return True


def _keep(connection: sqlite3.Connection, item: int, updated: int, vectors: Sequence[bytes]) -> None:
    known = connection.execute(
        "SELECT updated_at, first_vector, vectors FROM next_items WHERE item = ?", (item,)
    ).fetchone()
    if known is not None and known[0] == updated:
        return  # another process was faster
    if known is not None:
        connection.execute("DELETE FROM next_vectors WHERE id >= ? AND id < ?", (known[1], known[1] + known[2]))
    namespace = item >> SHIFT
    (number,) = connection.execute("SELECT next_vector FROM namespaces WHERE id = ?", (namespace,)).fetchone()
    first = (namespace << SHIFT | number) if vectors else 0
    connection.execute("UPDATE namespaces SET next_vector = next_vector + ? WHERE id = ?", (len(vectors), namespace))
    connection.executemany(
        "INSERT INTO next_vectors (id, item, vector) VALUES (?, ?, ?)",
        ((first + ordinal, item, vector) for ordinal, vector in enumerate(vectors)),
    )
    connection.execute(
        "INSERT OR REPLACE INTO next_items (item, updated_at, first_vector, vectors) VALUES (?, ?, ?, ?)",
        (item, updated, first, len(vectors)),
    )


def _swap(connection: sqlite3.Connection, target: str) -> None:
    connection.execute("DELETE FROM next_vectors WHERE item NOT IN (SELECT id FROM items)")
    connection.execute("DROP TABLE vectors")
    connection.execute("ALTER TABLE next_vectors RENAME TO vectors")
    connection.execute(
        "UPDATE items SET (first_vector, vectors) = "
        "(SELECT first_vector, vectors FROM next_items WHERE next_items.item = items.id)"
    )
    connection.execute("DROP TABLE next_items")
    connection.execute("DELETE FROM removed")
    connection.execute("UPDATE namespaces SET epoch = epoch + 1, version = version + 1")
    connection.execute("DELETE FROM meta WHERE key = 'reembedding'")
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('embedder', ?)", (target,))


def index_words_again(database: Database, lexical: Lexical, target: str) -> None:
    """Make the word index anew, in one transaction.

    Args:
        database: The file.
        lexical: The columns it is to have.
        target: Their names, as the file will keep them.
    """
    with database.writing() as connection:
        if meta(connection, "lexical") == target:
            return
        lexical.create(connection)
        last = 0
        while items := connection.execute(_ITEMS_AFTER, (last, _AT_ONCE)).fetchall():
            for last, value, paths in items:
                index = json.loads(paths) if paths else None
                texts = () if index is False else lexical.texts(json.loads(value), index)
                write_texts(connection, last >> SHIFT, last, had=False, texts=texts)
                connection.execute("UPDATE items SET texts = ? WHERE id = ?", (bool(texts), last))
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('lexical', ?)", (target,))
