"""What a file is indexed with: bringing it and the settings together, and noticing when they part."""

import json
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings

from questbook.memory.embeddings.embedders import announced_dims, identify
from questbook.memory.embeddings.embedding_batch import EmbeddingBatch
from questbook.memory.errors import EmbedderChangedError
from questbook.memory.store.database import Database
from questbook.memory.store.index_config import IndexSettings
from questbook.memory.store.lexical import Lexical, texts_at
from questbook.memory.store.reembedding import Progress, embed_again, index_words_again, meta


class FileIndex:
    """The embedder and the word columns of a store, as its file knows them.

    Args:
        database: The file.
        settings: What the store was opened with; None for no index.
        reembed: Whether vectors of another embedder may be made anew.
        progress: Told while that lasts.
    """

    def __init__(
        self, database: Database, settings: IndexSettings | None, *, reembed: bool, progress: Progress | None
    ) -> None:
        self.batch: EmbeddingBatch | None = None
        self.lexical = Lexical(settings.columns) if settings and settings.columns else None
        self._database = database
        self._settings = settings
        self._reembed = reembed
        self._progress = progress
        self._stamps: dict[str, str] = {}

    def settle(self) -> str:
        """Make the indexes in the file what the settings say.

        Returns:
            A name for the file with this embedder, which no other has.

        Raises:
            EmbedderChangedError: If the dimension is wrong, or the file has another embedder and may not
                change.
            EmbeddingError: If the embedder fails.
        """
        if self._settings is not None and self._settings.embeddings is not None:
            self.batch = self._measured(self._settings.embeddings, self._settings.dims)
            self._stamps["embedder"] = _stamp(self.batch)
        if self.lexical is not None:
            self._stamps["lexical"] = json.dumps(list(self.lexical.columns))
        known = self._claim()
        if self.batch is not None and known.get("embedder") != self._stamps["embedder"]:
            if known.get("embedder") and not self._reembed:
                raise EmbedderChangedError(
                    f"{self._database.path} holds vectors of {known['embedder']}, but was opened with "
                    f"{self._stamps['embedder']}: open it with the former, or allow reembed=True"
                )
            embed_again(self._database, self.batch, self._stamps["embedder"], self.texts, self._progress)
        if self.lexical is not None and known.get("lexical") != self._stamps["lexical"]:
            index_words_again(self._database, self.lexical, self._stamps["lexical"])
        return f"{known['store']} {self._stamps.get('embedder')}"

    def _measured(self, embeddings: Embeddings, dims: int | None) -> EmbeddingBatch:
        """The embedder with its dimension, which is measured if it neither says it nor was ever seen here."""
        if dims is not None:
            batch = EmbeddingBatch(embeddings, dims)
            with self._database.reading() as connection:
                seen = meta(connection, "embedder")
            if announced_dims(embeddings) or seen == _stamp(batch):
                return batch
        measured = EmbeddingBatch.probed(embeddings)
        if dims not in (None, measured.dims):
            raise EmbedderChangedError(
                f'index["dims"] is {dims}, but the embedder makes vectors of {measured.dims} dimensions: '
                "give the one that the model has, or leave dims out"
            )
        return measured

    def _claim(self) -> dict[str, str]:
        """What the file says of itself; a file without items takes on whatever the settings say."""
        with self._database.reading() as connection:
            known = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        if "store" in known and known == known | self._stamps:
            return known  # so that opening does not write
        with self._database.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('store', ?)", (uuid.uuid4().hex,))
            known = dict(connection.execute("SELECT key, value FROM meta").fetchall())
            if connection.execute("SELECT 1 FROM items LIMIT 1").fetchone() is not None:
                return known
            if self.lexical is not None and known.get("lexical") != self._stamps["lexical"]:
                self.lexical.create(connection)
            connection.executemany("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", self._stamps.items())
            return known | self._stamps

    def check(self, connection: sqlite3.Connection) -> None:
        """Make sure that the file is still indexed as it was when it was opened.

        Args:
            connection: In a transaction.

        Raises:
            EmbedderChangedError: If another process has opened it with other settings meanwhile.
        """
        found = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        for name, mine in self._stamps.items():
            if found.get(name) != mine:
                raise EmbedderChangedError(
                    f"another process has changed what {self._database.path} is indexed with from {mine} to "
                    f"{found.get(name)}: open it anew, with the same index in every process"
                )

    def texts(self, value: Mapping[str, Any], index: Any) -> list[str]:
        """What is embedded of a value.

        Args:
            value: An item's value.
            index: `PutOp.index`.

        Returns:
            Texts, each of which becomes a vector.
        """
        if index is False or self._settings is None or self._settings.embeddings is None:
            return []
        paths = self._settings.fields if index is None else index
        return [text for path in paths for text in texts_at(value, path)]

    def words(self, value: Mapping[str, Any], index: Any) -> Sequence[str]:
        """What of a value goes into the word index.

        Args:
            value: An item's value.
            index: `PutOp.index`.

        Returns:
            The words of each column, or () for none.
        """
        return () if index is False or self.lexical is None else self.lexical.texts(value, index)


def _stamp(batch: EmbeddingBatch) -> str:
    return f"{identify(batch.embeddings)} with {batch.dims} dimensions"
