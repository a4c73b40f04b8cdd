"""Where memory is kept and found again: an embeddable library that knows no notebook and no graph.

Names are loaded when they are first asked for, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory.embeddings import HashEmbeddings, load_embeddings
    from memory.errors import (
        CorruptStoreError,
        EmbedderChangedError,
        EmbeddingError,
        StoreClosedError,
        StoreConfigError,
        StoreError,
        StoreUnavailableError,
        UnstorableValueError,
    )
    from memory.faiss_store import FaissStore
    from memory.minilm import MiniLMEmbeddings, fetch_minilm
    from memory.namespaces import campaign_namespace, escape_label, player_namespace, unescape_label

_HOMES = {
    "CorruptStoreError": "memory.errors",
    "EmbedderChangedError": "memory.errors",
    "EmbeddingError": "memory.errors",
    "FaissStore": "memory.faiss_store",
    "HashEmbeddings": "memory.embeddings",
    "MiniLMEmbeddings": "memory.minilm",
    "StoreClosedError": "memory.errors",
    "StoreConfigError": "memory.errors",
    "StoreError": "memory.errors",
    "StoreUnavailableError": "memory.errors",
    "UnstorableValueError": "memory.errors",
    "campaign_namespace": "memory.namespaces",
    "escape_label": "memory.namespaces",
    "fetch_minilm": "memory.minilm",
    "load_embeddings": "memory.embeddings",
    "player_namespace": "memory.namespaces",
    "unescape_label": "memory.namespaces",
}

__all__ = [
    "CorruptStoreError",
    "EmbedderChangedError",
    "EmbeddingError",
    "FaissStore",
    "HashEmbeddings",
    "MiniLMEmbeddings",
    "StoreClosedError",
    "StoreConfigError",
    "StoreError",
    "StoreUnavailableError",
    "UnstorableValueError",
    "campaign_namespace",
    "escape_label",
    "fetch_minilm",
    "load_embeddings",
    "player_namespace",
    "unescape_label",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'memory' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
