"""A folder that LangChain's `FAISS.save_local` wrote, read without running anything that it holds.

Its texts are a pickle, and to load one is to run it. Here the unpickler makes of LangChain's two classes objects that
can do nothing, and refuses every other class by its name, but for a few of the standard library that only hold values.
The vectors are read as numbers, if the index is a flat one; of another index the texts are embedded again.
"""

import asyncio
import io
import pickle
import pickletools
import struct
from collections import OrderedDict
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langgraph.store.base import BaseStore, PutOp

from questbook.memory.errors import UnreadableDocumentError
from questbook.memory.store.any_store import put_all
from questbook.types import JSON

TEXTS, VECTORS = ".pkl", ".faiss"  # suffixes of the folder's two files

_VALUES: dict[tuple[str, str], type] = {
    (kind.__module__, kind.__name__): kind
    for kind in (set, frozenset, date, datetime, time, timedelta, timezone, OrderedDict)
}
_MOST_COPIES = 10  # times the file's size that its texts may have: a pickle may name one text a million times
_DEEPEST, _MOST_VALUES = 6, 1000  # of a document's metadata
_FLAT = (b"IxF2", b"IxFI", b"IxFl")  # as faiss/impl/index_write.cpp begins flat indexes
_HEADER = struct.Struct("<4siqqqBi")  # kind, width, count, two unused numbers, trained, metric
_MAX_BYTES = 4 * 2**30  # of an index of vectors


class SavedText(NamedTuple):
    """A document of the folder."""

    key: str  # its id in LangChain's docstore
    text: str
    metadata: Mapping[str, Any]  # as it was saved


def read_texts(data: bytes) -> list[SavedText]:
    """Read the documents of a folder from the bytes of its `index.pkl`, in the order of their vectors.

    If it is no such file, or holds anything else, which is named, it is an UnreadableDocumentError.
    """
    try:
        for opcode, argument, _ in pickletools.genops(data):  # it also finds lengths beyond the end
            if opcode.name == "LONG_BINPUT" and int(argument or 0) > len(data):
                raise UnreadableDocumentError("it is damaged: a place in its memo would only ask for memory")
        saved = _Unpickler(io.BytesIO(data)).load()
    except UnreadableDocumentError:
        raise
    except Exception as error:  # a broken pickle raises errors of any class
        raise UnreadableDocumentError(f"it is no pickle that can be read: {type(error).__name__}: {error}") from error
    store, keys = saved if isinstance(saved, tuple) and len(saved) == 2 else (None, None)
    documents = store.fields.get("_dict") if isinstance(store, _Docstore) else None
    if not isinstance(documents, dict) or not isinstance(keys, dict) or not all(type(row) is int for row in keys):
        raise UnreadableDocumentError("it is not what LangChain's FAISS.save_local writes")
    texts = list[SavedText]()
    for _, key in sorted(keys.items()):
        fields = document.fields if isinstance(document := documents.get(key), _Document) else {}
        text, metadata = fields.get("page_content"), fields.get("metadata")
        if not isinstance(key, str) or not isinstance(text, str):
            raise UnreadableDocumentError(f"its document {key!r:.60} has no text")
        texts.append(SavedText(key, text, metadata if isinstance(metadata, dict) else {}))
    if sum(len(text.text) for text in texts) > _MOST_COPIES * len(data):
        raise UnreadableDocumentError("its texts are many times as long as the file itself")
    return texts


def read_langchain_vectors(folder: str | Path, index_name: str = "index") -> dict[str, list[float]]:
    """Return a folder's vectors by their texts, none if its index is not a flat one; what is damaged is refused."""
    texts = read_texts(_bytes_of(Path(folder) / f"{index_name}{TEXTS}"))
    data = _bytes_of(Path(folder) / f"{index_name}{VECTORS}")
    if data[:4] not in _FLAT:
        return {}
    if len(data) < _HEADER.size:
        raise UnreadableDocumentError("the index of vectors is cut off")
    _, width, count, _, _, _, metric = _HEADER.unpack_from(data)
    begin = _HEADER.size + (4 if metric > 1 else 0) + 8  # further metrics have an argument; then the length
    if width <= 0 or count != len(texts) or len(data) != begin + 4 * width * count:
        raise UnreadableDocumentError("the index of vectors does not belong to the texts, or is damaged")
    vectors = np.frombuffer(data, "<f4", width * count, begin).reshape(count, width)
    return {text.text: vector for text, vector in zip(texts, vectors.tolist(), strict=True)}


async def import_langchain_faiss(
    store: BaseStore, namespace: tuple[str, ...], folder: str | Path, index_name: str = "index"
) -> int:
    """Bring the documents of a folder that `FAISS.save_local` wrote into a store; return how many there are.

    Each becomes an item {"text", "metadata"} under its id in LangChain's docstore. The store embeds the texts, or takes
    `read_langchain_vectors` over through `KnownVectors`. `index_name` is the name of the files, without suffixes. A
    folder that holds more than texts and plain metadata is an UnreadableDocumentError.
    """
    texts = await asyncio.to_thread(lambda: read_texts(_bytes_of(Path(folder) / f"{index_name}{TEXTS}")))
    values = [{"text": text.text, "metadata": _plain(text.metadata, text.key)} for text in texts]
    await put_all(store, [PutOp(namespace, text.key, value) for text, value in zip(texts, values, strict=True)])
    return len(texts)


class _Saved:
    """What was saved of an object: its fields, and nothing that it could do."""

    fields: Mapping[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        inner = state.get("__dict__", state) if isinstance(state, dict) else {}  # pydantic's objects have one inside
        self.fields = inner if isinstance(inner, dict) else {}


class _Docstore(_Saved):
    """A saved InMemoryDocstore."""


class _Document(_Saved):
    """A saved Document."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        langchain = ("langchain", "langchain_classic", "langchain_community", "langchain_core")
        own = {"InMemoryDocstore": _Docstore, "Document": _Document} if module.partition(".")[0] in langchain else {}
        if (kind := own.get(name) or _VALUES.get((module.replace("__builtin__", "builtins"), name))) is not None:
            return kind
        only = "only texts and plain metadata are brought over"
        raise UnreadableDocumentError(f"it holds {module}.{name}, which is not loaded: {only}")


def _plain(metadata: Mapping[str, Any], key: str) -> JSON:
    """Return metadata as JSON: times as their ISO 8601 text, sets as lists."""
    left, what = _MOST_VALUES, f"the metadata of its document {key!r:.60}"

    def plain(value: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or depth > _DEEPEST:
            raise UnreadableDocumentError(f"{what} is too large or too deep")
        if value is None or isinstance(value, str | int | float):
            return value
        if isinstance(value, date | time):
            return value.isoformat()
        if isinstance(value, Mapping):
            return {str(name): plain(inner, depth + 1) for name, inner in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [plain(inner, depth + 1) for inner in value]
        raise UnreadableDocumentError(f"{what} holds a {type(value).__name__}, which is no JSON")

    return {str(name): plain(value, 1) for name, value in metadata.items()}


def _bytes_of(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UnreadableDocumentError(f"{path.name} has more than {_MAX_BYTES >> 30} GiB")
        return path.read_bytes()
    except OSError as error:
        raise UnreadableDocumentError(f"{path}: {error.strerror or error}") from error
