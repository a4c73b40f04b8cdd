"""What a store is indexed with: its `index`, the texts and words of a value, and the file kept in step with them.

A file written with another embedder, or of other fields, gets new vectors from its texts (`reembedding`), a file with
other word columns a new word index.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path

from questbook.memory.embeddings.embedders import BatchEmbedder, announced_dims, identify
from questbook.memory.embeddings.loading import AUTO, choose_embeddings, load_embeddings
from questbook.memory.errors import EmbedderChangedError, StoreConfigError
from questbook.memory.store.database import Database
from questbook.memory.store.reembedding import ITEMS_AT_ONCE, Progress, reembed, vectors_of
from questbook.memory.store.rows import SHIFT, Namespace, create_word_table, read_meta, read_value, write_words
from questbook.memory.text.words import split_words
from questbook.types import JSON

if TYPE_CHECKING:
    from langgraph.store.base.embed import AEmbeddingsFunc, EmbeddingsFunc

_log = logging.getLogger(__name__)
_WHOLE_ITEM = ["$"]  # what LangGraph's stores embed if an index names no fields
_ITEMS_AFTER = "SELECT id, CAST(value AS BLOB), paths FROM items WHERE id > ? ORDER BY id LIMIT ?"


class StoreIndex(TypedDict, total=False):
    """LangGraph's `IndexConfig`, in which everything may be left out, with the settings of the word index."""

    embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str | None
    """An embedder, a function, or a name for `load_embeddings`; None for no vectors.

    `"auto"`: the embedder that made the file's vectors; in a new file MiniLM, if its weights and its tokenizer are
    here, else `HashEmbeddings`."""
    dims: int
    """Length of the vectors; if left out, the embedder says it."""
    fields: list[str] | None
    """Paths in the value whose texts are embedded, each as a vector of its own; default `["$"]`, the whole value."""
    lexical: Mapping[str, float] | Literal[False] | None
    """Paths whose words are indexed, with their weights; default: the fields, each with weight 1. False: none.

    If a record has its neighbours' texts, it can be found by them: `{"text": 1.0, "before": 0.6, "after": 0.5}`."""
    weights: Mapping[str, float]
    """Weights of "dense" and "lexical" in the order of the hits; 0 turns one off.

    Default: 1.0 each; an embedder may give its cosine another weight by its attribute `fusion_weight`."""


DEFAULT_INDEX: StoreIndex = {"embed": AUTO}  # the file's own embedder and the words of the whole value


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """A valid index configuration."""

    described: JSON  # what `FaissStore.index_config` shows, as LangGraph's stores show theirs
    embeddings: Embeddings | None  # the embedder; None for no vectors, and while `is_auto` waits for the file
    is_auto: bool  # whether the file decides which embedder it is
    dims: int | None  # length of the vectors, if it is known before the embedder was asked
    fields: tuple[str, ...]  # paths whose texts are embedded
    columns: dict[str, float]  # weights of the paths whose words are indexed; empty for no word index
    weights: dict[str, float]  # weights of "dense" and "lexical" in the order of the hits

    def of_file(self, file: Path, recorded: str | None) -> IndexSettings:
        """Return the settings with the embedder that a file records (None: no vectors yet), if the file decides."""
        if not self.is_auto:
            return self
        index = {**self.described, "embed": choose_embeddings(file, recorded)}
        return replace(read_index(cast("StoreIndex", index)), is_auto=True)

    @property
    def column_weights(self) -> list[float]:
        """Weights of the word index's columns; the last one is for texts at paths that only a single put named."""
        return [*self.columns.values(), max(self.columns.values())] if self.columns else []

    def texts(self, value: Mapping[str, Any], paths: Any) -> list[str]:
        """Return the texts of a value that are embedded, each as a vector of its own; `paths` is `PutOp.index`."""
        if paths is False or self.embeddings is None:
            return []
        return [text for path in (self.fields if paths is None else paths) for text in _texts_at(value, path)]

    def words(self, value: Mapping[str, Any], paths: Any) -> tuple[str, ...]:
        """Return the words of a value for each column of the word index, separated by blanks; () if there are none."""
        if paths is False or not self.columns:
            return ()
        columns = [_words_at(value, [path]) if paths is None or path in paths else "" for path in self.columns]
        columns.append(_words_at(value, [path for path in paths or () if path not in self.columns]))
        return tuple(columns) if any(columns) else ()


def read_index(index: StoreIndex | IndexConfig | None) -> IndexSettings:
    """Read what a store was opened with; None: neither vectors nor words.

    A wrong setting is a StoreConfigError, other `dims` than the embedder makes an EmbedderChangedError, an embedder
    that cannot be loaded an EmbeddingError.
    """
    if index is None:
        return IndexSettings({}, None, False, None, (), {}, {})
    settings = cast("StoreIndex", index)
    if unknown := set(settings) - set(StoreIndex.__annotations__) - {"__tokenized_fields"}:
        allowed = ", ".join(StoreIndex.__annotations__)
        raise StoreConfigError(f"index has no setting {sorted(unknown)}; it has {allowed}")
    fields, embed = _fields(settings.get("fields")), settings.get("embed")
    is_auto = embed == AUTO
    embed = None if is_auto else embed
    embeddings = load_embeddings(embed) if isinstance(embed, str) else embed and ensure_embeddings(embed)
    dims = _dims(settings.get("dims"), announced_dims(embeddings))
    columns = _columns(settings.get("lexical"), fields)
    defaults = {"dense": float(getattr(embeddings, "fusion_weight", 1.0)), "lexical": 1.0}
    weights = _weights(settings.get("weights") or {}, defaults)
    described: JSON = {**settings, "fields": list(fields)}
    if dims is not None:
        described["dims"] = dims
    return IndexSettings(described, embeddings or None, is_auto, dims, tuple(fields), columns, weights)


def _fields(fields: Sequence[str] | None) -> list[str]:
    fields = fields or _WHOLE_ITEM
    if isinstance(fields, str | Mapping) or not all(isinstance(field, str) and field for field in fields):
        raise StoreConfigError(f'index["fields"] must be a list of paths, for example ["text"]; got {fields!r}')
    return list(dict.fromkeys(fields))


def _dims(dims: object, announced: int | None) -> int | None:
    if dims is None:
        return announced
    if not isinstance(dims, int) or isinstance(dims, bool) or dims < 1:
        raise StoreConfigError(f'index["dims"] must be a positive number, got {dims!r}')
    _check_dims(dims, announced)
    return dims


def _check_dims(asked: int | None, made: int | None) -> None:
    if asked is not None and made is not None and asked != made:
        wrong = f'index["dims"] is {asked}, but the embedder makes vectors of {made} dimensions'
        raise EmbedderChangedError(f"{wrong}: give the one that the model has, or leave dims out")


def _columns(lexical: object, fields: Sequence[str]) -> dict[str, float]:
    if lexical is None:
        return dict.fromkeys(fields, 1.0)
    if lexical is False:
        return {}
    if not isinstance(lexical, Mapping) or not all(isinstance(path, str) and path for path in lexical):
        expected = 'must give weights by path, for example {"text": 1.0}, or be False'
        raise StoreConfigError(f'index["lexical"] {expected}; got {lexical!r}')
    return {path: _weight(lexical, path, 1.0) for path in lexical}


def _weights(weights: Mapping[str, object], defaults: Mapping[str, float]) -> dict[str, float]:
    if not isinstance(weights, Mapping) or not set(weights) <= set(defaults):
        raise StoreConfigError(f'index["weights"] may have {", ".join(defaults)}; got {weights!r}')
    return {name: _weight(weights, name, default) for name, default in defaults.items()}


def _weight(weights: Mapping[str, object], name: str, default: float) -> float:
    weight = weights.get(name, default)
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 <= weight < float("inf"):
        raise StoreConfigError(f"the weight of {name!r} must be a number, 0 or more; got {weight!r}")
    return float(weight)


def _texts_at(value: Mapping[str, object], path: str) -> list[str]:
    """Return the texts of a value at a path, as LangGraph reads paths; "$" is the whole value as JSON."""
    return get_text_at_path(value, path if path == "$" else _steps(path))


_steps = lru_cache(maxsize=256)(tokenize_path)


def _words_at(value: Mapping[str, object], paths: Iterable[str]) -> str:
    return " ".join(word for path in paths for text in _texts_at(value, path) for word in split_words(text))


class FileIndex:
    """The settings of a store beside what its file is indexed with; `reembed` and `progress` as `FaissStore.open`."""

    def __init__(self, file: Database, settings: IndexSettings, *, reembed: bool, progress: Progress | None) -> None:
        self.embedder: BatchEmbedder | None = None
        self.settings = self._asked = settings  # the file may still have to decide about the embedder
        self._database, self._reembed, self._progress = file, reembed, progress
        self._warned = False
        self._names: dict[str, str] = {}  # of the embedder, the fields and the columns, as the file keeps them

    def update(self) -> str:
        """Make the indexes in the file what the settings say; return a name that only this file with this embedder has.

        A wrong dimension, or another embedder where the file may not change, is an EmbedderChangedError.
        """
        if self._asked.columns:
            self._names["lexical"] = json.dumps(list(self._asked.columns))
        self._choose()
        while self._follows_file(old := self._register()):
            self._choose()  # again: another process has created the file meanwhile, with another embedder
        if self.embedder is not None and vectors_of(old) != (target := vectors_of(self._names)):
            if old.get("embedder") and not self._reembed:
                differs = f"{self._database.path} holds vectors of {vectors_of(old)}, but was opened with {target}"
                raise EmbedderChangedError(f"{differs}: open it with the former, or allow reembed=True")
            reembed(self._database, self.embedder, self._names, self.settings.texts, self._progress)
        if "lexical" in self._names and old.get("lexical") != self._names["lexical"]:
            self._index_all_words()
        return f"{old['store']} {self._names.get('embedder')}"

    def _choose(self) -> None:
        with self._database.reading() as connection:
            recorded = read_meta(connection).get("embedder")
        self.settings = self._asked.of_file(self._database.path, recorded)
        if self.settings.embeddings is not None:
            self.embedder = _measure(self.settings.embeddings, self.settings.dims, recorded)
            self._names |= {"embedder": _name(self.embedder), "fields": json.dumps(self.settings.fields)}

    def _follows_file(self, meta: Mapping[str, str]) -> bool:
        """Whether the file has another embedder, and the settings leave it to the file."""
        mine = self._names.get("embedder")
        return self._asked.is_auto and meta.get("embedder", mine) != mine

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
                    # Version 0.2 named none. They are those whose words the file has, unless the store is opened with
                    # one of them: then those of the store.
                    words, meta["fields"] = meta.get("lexical"), self._names["fields"]
                    if words and not {*json.loads(words)} & {*json.loads(meta["fields"])}:
                        meta["fields"] = words
                    connection.execute("INSERT INTO meta (key, value) VALUES ('fields', ?)", (meta["fields"],))
                return meta
            if "lexical" in self._names and meta.get("lexical") != self._names["lexical"]:
                create_word_table(connection, len(self.settings.column_weights))
            connection.executemany("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", self._names.items())
            return meta | self._names

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise an EmbedderChangedError if another process has opened the file with other settings meanwhile."""
        meta = read_meta(connection)
        for key, mine in self._names.items():
            if meta.get(key) != mine:
                changed = f"what {self._database.path} is indexed with from {mine} to {meta.get(key)}"
                remedy = "open it again, with the same index in every process"
                raise EmbedderChangedError(f"another process has changed {changed}: {remedy}")

    def warn_unindexed(self, namespace: Namespace, key: str, value: Mapping[str, Any], index: Any) -> None:
        """Warn, once for the store, that no search by query finds an item, because it has no indexed field."""
        if self._warned or not self.settings.described:
            return
        self._warned = True
        indexed = list(dict.fromkeys([*self.settings.fields, *self.settings.columns])) if index is None else index
        _log.warning(
            "%r in %s cannot be found by a query: the store indexes %s, and its value has %s. Name its fields "
            '(index={"fields": […]} of the store, index=[…] of the put), or put it with index=False. '
            "This is said once.",
            *(key, namespace, indexed, sorted(map(str, value))),
        )

    def _index_all_words(self) -> None:
        with self._database.writing() as connection:
            if read_meta(connection).get("lexical") == self._names["lexical"]:
                return
            create_word_table(connection, len(self.settings.column_weights))
            last = 0
            while items := connection.execute(_ITEMS_AFTER, (last, ITEMS_AT_ONCE)).fetchall():
                for last, value, paths in items:
                    words = self.settings.words(read_value(value), json.loads(paths) if paths else None)
                    write_words(connection, last, last >> SHIFT, words, had=False)
                    connection.execute("UPDATE items SET texts = ? WHERE id = ?", (bool(words), last))
            names = ("lexical", self._names["lexical"])
            connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", names)


def _measure(embeddings: Embeddings, dims: int | None, recorded: str | None) -> BatchEmbedder:
    """Return the embedder with its dimension; measure it if neither the embedder nor what the file records says it."""
    if dims is not None:
        embedder = BatchEmbedder(embeddings, dims)
        if announced_dims(embeddings) or recorded == _name(embedder):
            return embedder
    measured = BatchEmbedder.probed(embeddings)
    _check_dims(dims, measured.dims)
    return measured


def _name(embedder: BatchEmbedder) -> str:
    return f"{identify(embedder.embeddings)} with {embedder.dims} dimensions"
