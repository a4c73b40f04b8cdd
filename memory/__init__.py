"""Where memory is kept and found again: an embeddable library that knows no notebook and no graph.

Names are loaded when they are first asked for, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory.characters import memories_for, remember_message
    from memory.embeddings import HashEmbeddings, load_embeddings
    from memory.errors import (
        CorruptStoreError,
        EmbedderChangedError,
        EmbeddingError,
        ImportFailedError,
        LtmConfigError,
        NoSuchMemoryError,
        StoreClosedError,
        StoreConfigError,
        StoreError,
        StoreUnavailableError,
        UnstorableValueError,
    )
    from memory.faiss_store import FaissStore
    from memory.greeting import greeting_line, last_talk, note_session
    from memory.injection import inject
    from memory.ltm_config import LtmConfig
    from memory.ltm_import import import_ltm
    from memory.minilm import MiniLMEmbeddings, fetch_minilm
    from memory.namespaces import (
        campaign_namespace,
        character_namespace,
        escape_label,
        player_namespace,
        unescape_label,
    )
    from memory.off_the_record import off_record

_HOMES = {
    "CorruptStoreError": "memory.errors",
    "EmbedderChangedError": "memory.errors",
    "EmbeddingError": "memory.errors",
    "FaissStore": "memory.faiss_store",
    "HashEmbeddings": "memory.embeddings",
    "ImportFailedError": "memory.errors",
    "LtmConfig": "memory.ltm_config",
    "LtmConfigError": "memory.errors",
    "MiniLMEmbeddings": "memory.minilm",
    "NoSuchMemoryError": "memory.errors",
    "StoreClosedError": "memory.errors",
    "StoreConfigError": "memory.errors",
    "StoreError": "memory.errors",
    "StoreUnavailableError": "memory.errors",
    "UnstorableValueError": "memory.errors",
    "campaign_namespace": "memory.namespaces",
    "character_namespace": "memory.namespaces",
    "escape_label": "memory.namespaces",
    "fetch_minilm": "memory.minilm",
    "greeting_line": "memory.greeting",
    "import_ltm": "memory.ltm_import",
    "inject": "memory.injection",
    "last_talk": "memory.greeting",
    "load_embeddings": "memory.embeddings",
    "memories_for": "memory.characters",
    "note_session": "memory.greeting",
    "off_record": "memory.off_the_record",
    "player_namespace": "memory.namespaces",
    "remember_message": "memory.characters",
    "unescape_label": "memory.namespaces",
}

__all__ = [
    "CorruptStoreError",
    "EmbedderChangedError",
    "EmbeddingError",
    "FaissStore",
    "HashEmbeddings",
    "ImportFailedError",
    "LtmConfig",
    "LtmConfigError",
    "MiniLMEmbeddings",
    "NoSuchMemoryError",
    "StoreClosedError",
    "StoreConfigError",
    "StoreError",
    "StoreUnavailableError",
    "UnstorableValueError",
    "campaign_namespace",
    "character_namespace",
    "escape_label",
    "fetch_minilm",
    "greeting_line",
    "import_ltm",
    "inject",
    "last_talk",
    "load_embeddings",
    "memories_for",
    "note_session",
    "off_record",
    "player_namespace",
    "remember_message",
    "unescape_label",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'memory' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
