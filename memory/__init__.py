"""Where memory is kept and found again: an embeddable library that knows no notebook and no graph.

Names are loaded when they are first asked for, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from questbook.memory.embeddings.embedders import HashEmbeddings, load_embeddings
    from questbook.memory.embeddings.minilm import MiniLMEmbeddings, fetch_minilm
    from questbook.memory.errors import (
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
    from questbook.memory.ltm.characters import memories_for, remember_message
    from questbook.memory.ltm.config import LtmConfig
    from questbook.memory.ltm.greeting import greeting_line, last_talk, note_session
    from questbook.memory.ltm.import_ltm import import_ltm
    from questbook.memory.ltm.injection import inject
    from questbook.memory.store.faiss_store import FaissStore
    from questbook.memory.timeline.namespaces import (
        campaign_namespace,
        character_namespace,
        escape_label,
        player_namespace,
        unescape_label,
    )
    from questbook.memory.timeline.off_the_record import off_record

_HOMES = {
    "CorruptStoreError": "questbook.memory.errors",
    "EmbedderChangedError": "questbook.memory.errors",
    "EmbeddingError": "questbook.memory.errors",
    "FaissStore": "questbook.memory.store.faiss_store",
    "HashEmbeddings": "questbook.memory.embeddings.embedders",
    "ImportFailedError": "questbook.memory.errors",
    "LtmConfig": "questbook.memory.ltm.config",
    "LtmConfigError": "questbook.memory.errors",
    "MiniLMEmbeddings": "questbook.memory.embeddings.minilm",
    "NoSuchMemoryError": "questbook.memory.errors",
    "StoreClosedError": "questbook.memory.errors",
    "StoreConfigError": "questbook.memory.errors",
    "StoreError": "questbook.memory.errors",
    "StoreUnavailableError": "questbook.memory.errors",
    "UnstorableValueError": "questbook.memory.errors",
    "campaign_namespace": "questbook.memory.timeline.namespaces",
    "character_namespace": "questbook.memory.timeline.namespaces",
    "escape_label": "questbook.memory.timeline.namespaces",
    "fetch_minilm": "questbook.memory.embeddings.minilm",
    "greeting_line": "questbook.memory.ltm.greeting",
    "import_ltm": "questbook.memory.ltm.import_ltm",
    "inject": "questbook.memory.ltm.injection",
    "last_talk": "questbook.memory.ltm.greeting",
    "load_embeddings": "questbook.memory.embeddings.embedders",
    "memories_for": "questbook.memory.ltm.characters",
    "note_session": "questbook.memory.ltm.greeting",
    "off_record": "questbook.memory.timeline.off_the_record",
    "player_namespace": "questbook.memory.timeline.namespaces",
    "remember_message": "questbook.memory.ltm.characters",
    "unescape_label": "questbook.memory.timeline.namespaces",
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
