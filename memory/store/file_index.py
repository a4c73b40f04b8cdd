"""What a file is indexed with: keep the file's vectors and words in step with the store's settings.

A file written with another embedder, or of other fields, gets new vectors from its texts, a file with other word
columns a new word index.
"""

import json
import logging
import sqlite3
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings

from questbook.memory.embeddings.batching import BatchEmbedder
from questbook.memory.embeddings.embedders import announced_dims, identify
from questbook.memory.errors import EmbedderChangedError
from questbook.memory.store.database import Database
from questbook.memory.store.index_config import IndexSettings
from questbook.memory.store.rows import SHIFT, Namespace
from questbook.memory.store.word_index import WordColumns, texts_at, write_words

Progress = Callable[[int, int], None]
"""Called with the number of items that are done and the number of all items."""

_log = logging.getLogger(__name__)
ITEMS_AT_ONCE = 256
"""Items that are embedded in one call and written in one transaction."""

_LOG_EVERY = 5.0  # seconds

# Items without new vectors, or changed since they got them.
_LEFT = (
    "SELECT items.id, items.value, items.paths, items.updated_at FROM items "
    "LEFT JOIN next_items ON next_items.item = items.id AND next_items.updated_at = items.updated_at "
    "WHERE next_items.item IS NULL AND items.id > ? ORDER BY items.id LIMIT ?"
)
_ITEMS_AFTER = "SELECT id, value, paths FROM items WHERE id > ? ORDER BY id LIMIT ?"


class FileIndex:
    """The embedder and the word columns of a store, compared with those of its file.

    Args:
        database: The file.
        settings: What the store was opened with; None for no index.
        reembed: Whether vectors of another embedder may be replaced.
        progress: Called while that lasts; None: it is logged every few seconds.
    """

    def __init__(
        self, database: Database, settings: IndexSettings | None, *, reembed: bool, progress: Progress | None
    ) -> None:
        self.embedder: BatchEmbedder | None = None
        self.word_columns = WordColumns(settings.columns) if settings and settings.columns else None
        self._database = database
        self.settings = settings
        self._asked = settings  # the file may still have to decide about the embedder
        self._reembed = reembed
        self._progress = progress
        self._warned = False
        self._names: dict[str, str] = {}  # of the embedder and the columns, as the file keeps them

    def update(self) -> str:
        """Make the indexes in the file what the settings say.

        Returns:
            A name for the file with this embedder, which no other has.

        Raises:
            EmbedderChangedError: If the dimension is wrong, or the file has another embedder and may not change.
            EmbeddingError: If the embedder fails.
        """
        if self.word_columns is not None:
            self._names["lexical"] = json.dumps(list(self.word_columns.columns))
        self._choose()
        while self._follows_file(old := self._register()):
            self._choose()  # again: another process has created the file meanwhile, with another embedder
        if self.embedder is not None and _vectors_of(old) != (target := _vectors_of(self._names)):
            if old.get("embedder") and not self._reembed:
                raise EmbedderChangedError(
                    f"{self._database.path} holds vectors of {_vectors_of(old)}, but was opened with {target}: open it "
                    "with the former, or allow reembed=True"
                )
            self._embed_all(self.embedder, target)
        if self.word_columns is not None and old.get("lexical") != self._names["lexical"]:
            self._index_all_words(self.word_columns, self._names["lexical"])
        return f"{old['store']} {self._names.get('embedder')}"

    def _choose(self) -> None:
        """Decide about the embedder: the settings do, or leave it to the file."""
        if self._asked is None:
            return
        with self._database.reading() as connection:
            self.settings = self._asked.of_file(self._database.path, _read_meta(connection, "embedder"))
        if self.settings.embeddings is not None:
            self.embedder = self._measure(self.settings.embeddings, self.settings.dims)
            self._names |= {"embedder": _name(self.embedder), "fields": json.dumps(self.settings.fields)}

    def _follows_file(self, meta: Mapping[str, str]) -> bool:
        """Whether the file has another embedder, and the settings leave it to the file."""
        mine = self._names.get("embedder")
        return self._asked is not None and self._asked.is_auto and meta.get("embedder", mine) != mine

    def _measure(self, embeddings: Embeddings, dims: int | None) -> BatchEmbedder:
        """Return the embedder with its dimension; measure it if neither the embedder nor the file says it."""
        if dims is not None:
            embedder = BatchEmbedder(embeddings, dims)
            with self._database.reading() as connection:
                in_file = _read_meta(connection, "embedder")
            if announced_dims(embeddings) or in_file == _name(embedder):
                return embedder
        measured = BatchEmbedder.probed(embeddings)
        if dims not in (None, measured.dims):
            raise EmbedderChangedError(
                f'index["dims"] is {dims}, but the embedder makes vectors of {measured.dims} dimensions: '
                "give the one that the model has, or leave dims out"
            )
        return measured

    def _register(self) -> dict[str, str]:
        """Return what the file says of itself; a file without items takes on the settings."""
        with self._database.reading() as connection:
            meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        if "store" in meta and meta == meta | self._names:
            return meta  # so that opening does not write
        with self._database.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('store', ?)", (uuid.uuid4().hex,))
            meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
            if self._follows_file(meta):
                return meta
            if connection.execute("SELECT 1 FROM items LIMIT 1").fetchone() is not None:
                if "embedder" in meta and "fields" not in meta and "fields" in self._names:
                    meta["fields"] = _fields_before(meta.get("lexical"), self._names["fields"])
                    connection.execute("INSERT INTO meta (key, value) VALUES ('fields', ?)", (meta["fields"],))
                return meta
            if self.word_columns is not None and meta.get("lexical") != self._names["lexical"]:
                self.word_columns.create_table(connection)
            connection.executemany("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", self._names.items())
            return meta | self._names

    def check(self, connection: sqlite3.Connection) -> None:
        """Make sure that the file is still indexed as it was when it was opened.

        Args:
            connection: In a transaction.

        Raises:
            EmbedderChangedError: If another process has opened it with other settings meanwhile.
        """
        meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        for key, mine in self._names.items():
            if meta.get(key) != mine:
                raise EmbedderChangedError(
                    f"another process has changed what {self._database.path} is indexed with from {mine} to "
                    f"{meta.get(key)}: open it again, with the same index in every process"
                )

    def texts(self, value: Mapping[str, Any], index: Any) -> list[str]:
        """Return the texts of a value that are embedded, each as a vector of its own.

        Args:
            value: An item's value.
            index: `PutOp.index`.
        """
        if index is False or self.settings is None or self.settings.embeddings is None:
            return []
        paths = self.settings.fields if index is None else index
        return [text for path in paths for text in texts_at(value, path)]

    def words(self, value: Mapping[str, Any], index: Any) -> Sequence[str]:
        """Return the words of a value for each column of the word index, or () for none.

        Args:
            value: An item's value.
            index: `PutOp.index`.
        """
        return () if index is False or self.word_columns is None else self.word_columns.words(value, index)

    def warn_unindexed(self, namespace: Namespace, key: str, value: Mapping[str, Any], index: Any) -> None:
        """Warn, once for the store, that no search by query finds an item, because it has no indexed field.

        Args:
            namespace: The item's namespace.
            key: Its key.
            value: Its value.
            index: `PutOp.index`, not False.
        """
        if self.settings is None or self._warned:
            return
        self._warned = True
        indexed = list(dict.fromkeys([*self.settings.fields, *self.settings.columns])) if index is None else index
        _log.warning(
            "%r in %s cannot be found by a query: the store indexes %s, and its value has %s. Name its fields "
            '(index={"fields": […]} of the store, index=[…] of the put), or put it with index=False. '
            "This is said once.",
            key,
            namespace,
            indexed,
            sorted(value),
        )

    def _embed_all(self, embedder: BatchEmbedder, target: str) -> None:
        """Replace every vector by one of another embedder, or of other fields.

        The old vectors stay in use until all new ones are there; then one transaction exchanges them. Each batch is
        committed at once, so that an interrupted run goes on where it stopped, and two processes share the work.

        Args:
            embedder: The new embedder.
            target: Its name and its fields.

        Raises:
            EmbeddingError: If embedding fails; the file still has the old vectors, and the new ones made so far.
        """
        with self._database.writing() as connection:
            if not _begin_reembedding(connection, target):
                return
        logged, position = time.monotonic(), 0
        while True:
            with self._database.reading() as connection:
                if _read_meta(connection, "reembedding") != target:
                    return  # another process has finished it
                left = connection.execute(_LEFT, (position, ITEMS_AT_ONCE)).fetchall()
                (done,) = connection.execute("SELECT count(*) FROM next_items").fetchone()
                (total,) = connection.execute("SELECT count(*) FROM items").fetchone()
            if self._progress is not None:
                self._progress(min(done, total), total)
            elif time.monotonic() - logged > _LOG_EVERY:
                logged = time.monotonic()
                _log.info("re-embedding %s with %s: %d of %d items", self._database.path, target, done, total)
            if left:
                position = left[-1][0]
                texts = [
                    self.texts(json.loads(value), json.loads(paths) if paths else None) for _, value, paths, _ in left
                ]
                vectors = embedder.units(embedder.embed([text for own in texts for text in own], ()).documents)
            with self._database.writing() as connection:
                if _read_meta(connection, "reembedding") != target:
                    return
                if left:
                    for (item, _, _, updated), own in zip(left, texts, strict=True):
                        blobs = [vectors[text].astype("<f4").tobytes() for text in own]
                        _write_next_vectors(connection, item, updated, blobs)
                elif connection.execute(_LEFT, (0, 1)).fetchone() is None:
                    _exchange_vectors(connection, self._names)
                    return
                else:
                    position = 0  # something was written meanwhile

    def _index_all_words(self, columns: WordColumns, target: str) -> None:
        """Make the word index again, in one transaction.

        Args:
            columns: The columns that it is to have.
            target: Their names, as the file will keep them.
        """
        with self._database.writing() as connection:
            if _read_meta(connection, "lexical") == target:
                return
            columns.create_table(connection)
            last = 0
            while items := connection.execute(_ITEMS_AFTER, (last, ITEMS_AT_ONCE)).fetchall():
                for last, value, paths in items:
                    words = self.words(json.loads(value), json.loads(paths) if paths else None)
                    write_words(connection, last, last >> SHIFT, words, had=False)
                    connection.execute("UPDATE items SET texts = ? WHERE id = ?", (bool(words), last))
            connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('lexical', ?)", (target,))


def _name(embedder: BatchEmbedder) -> str:
    """Return the name of an embedder, as the file keeps it."""
    return f"{identify(embedder.embeddings)} with {embedder.dims} dimensions"


def _vectors_of(names: Mapping[str, str]) -> str:
    """Say which embedder made the vectors of a file, and of which fields."""
    return f"{names.get('embedder')} of {names.get('fields')}"


def _fields_before(words: str | None, fields: str) -> str:
    """Return the fields of a file that does not name them, as version 0.2 wrote it.

    The fields whose words it has, if none of them is among those that the store is opened with; else the latter.
    """
    return words if words and not {*json.loads(words)} & {*json.loads(fields)} else fields


def _read_meta(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def _begin_reembedding(connection: sqlite3.Connection, target: str) -> bool:
    """Make room for the new vectors; return False if the file already has them."""
    if _vectors_of(dict(connection.execute("SELECT key, value FROM meta"))) == target:
        return False
    if _read_meta(connection, "reembedding") != target:
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
    connection.executemany(
        "INSERT INTO next_vectors (id, item, vector) VALUES (?, ?, ?)",
        ((first + ordinal, item, vector) for ordinal, vector in enumerate(vectors)),
    )
    connection.execute(
        "INSERT OR REPLACE INTO next_items (item, updated_at, first_vector, vectors) VALUES (?, ?, ?, ?)",
        (item, updated, first, len(vectors)),
    )


def _exchange_vectors(connection: sqlite3.Connection, names: Mapping[str, str]) -> None:
    """Put the new vectors in the place of the old ones; the file then has these names of embedder and fields."""
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
    for key in ("embedder", "fields"):
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, names[key]))
