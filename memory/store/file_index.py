"""What a file is indexed with: keep the file's vectors and words in step with the store's settings.

A file written with another embedder, or of other fields, gets new vectors from its texts, a file with other word
columns a new word index.
"""

import json
import logging
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings

from questbook.memory.embeddings.batching import BatchEmbedder
from questbook.memory.embeddings.embedders import announced_dims, identify
from questbook.memory.errors import EmbedderChangedError
from questbook.memory.store.database import Database
from questbook.memory.store.index_config import IndexSettings
from questbook.memory.store.reembedding import ITEMS_AT_ONCE, Progress, Reembedding, vectors_of
from questbook.memory.store.rows import SHIFT, Namespace, read_meta
from questbook.memory.store.word_index import WordColumns, texts_at, write_words

_log = logging.getLogger(__name__)
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
        if self.embedder is not None and vectors_of(old) != (target := vectors_of(self._names)):
            if old.get("embedder") and not self._reembed:
                raise EmbedderChangedError(
                    f"{self._database.path} holds vectors of {vectors_of(old)}, but was opened with {target}: open it "
                    "with the former, or allow reembed=True"
                )
            Reembedding(self._database, self.embedder, self._names, self.texts, self._progress).run()
        if self.word_columns is not None and old.get("lexical") != self._names["lexical"]:
            self._index_all_words(self.word_columns, self._names["lexical"])
        return f"{old['store']} {self._names.get('embedder')}"

    def _choose(self) -> None:
        """Decide about the embedder: the settings do, or leave it to the file."""
        if self._asked is None:
            return
        with self._database.reading() as connection:
            self.settings = self._asked.of_file(self._database.path, read_meta(connection).get("embedder"))
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
                in_file = read_meta(connection).get("embedder")
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
            meta = read_meta(connection)
        if "store" in meta and meta == meta | self._names:
            return meta  # so that opening does not write
        with self._database.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('store', ?)", (uuid.uuid4().hex,))
            meta = read_meta(connection)
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

        Raises:
            EmbedderChangedError: If another process has opened it with other settings meanwhile.
        """
        meta = read_meta(connection)
        for key, mine in self._names.items():
            if meta.get(key) != mine:
                raise EmbedderChangedError(
                    f"another process has changed what {self._database.path} is indexed with from {mine} to "
                    f"{meta.get(key)}: open it again, with the same index in every process"
                )

    def texts(self, value: Mapping[str, Any], index: Any) -> list[str]:
        """Return the texts of a value that are embedded, each as a vector of its own; `index` is that of the put."""
        if index is False or self.settings is None or self.settings.embeddings is None:
            return []
        paths = self.settings.fields if index is None else index
        return [text for path in paths for text in texts_at(value, path)]

    def words(self, value: Mapping[str, Any], index: Any) -> Sequence[str]:
        """Return the words of a value for each column of the word index, or () for none; `index` is that of the put."""
        return () if index is False or self.word_columns is None else self.word_columns.words(value, index)

    def warn_unindexed(self, namespace: Namespace, key: str, value: Mapping[str, Any], index: Any) -> None:
        """Warn, once for the store, that no search by query finds an item, because it has no indexed field."""
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

    def _index_all_words(self, columns: WordColumns, target: str) -> None:
        """Make the word index again, in one transaction."""
        with self._database.writing() as connection:
            if read_meta(connection).get("lexical") == target:
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


def _fields_before(words: str | None, fields: str) -> str:
    """Return the fields of a file that does not name them, as version 0.2 wrote it.

    The fields whose words it has, if none of them is among those that the store is opened with; else the latter.
    """
    return words if words and not {*json.loads(words)} & {*json.loads(fields)} else fields
