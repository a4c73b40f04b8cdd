"""Questbook: long-term memory for LangGraph agents, modelled as graph state.

Everything that an app needs is importable from here. A name is loaded when it is first used, so that `import questbook`
costs nothing. The names in groups:

* the store: `FaissStore`
* embeddings: `HashEmbeddings`, `load_embeddings`, `MiniLMEmbeddings`, `fetch_minilm`,
  `KnownVectors`
* namespaces of the store: `campaign_namespace`, `player_namespace`, `character_namespace`, `escape_label`,
  `unescape_label`
* writing memories: `remember`, `off_record`, `Record`, `Exchange`, `Stamp`
* finding memories: `recall`, `Query`, `WeightedText`, `Present`, `Weights`, `Recalled`, `Reason`
* facts, and which of them hold: `Fact`, `note_facts`, `FactChanges`, `keep_valid`, `slot_history`, `FactPeriod`
* the same for sync callers: `remember_sync`, `recall_sync`, `claim_sync`, `SyncHistory`
* the timeline of a checkpoint: `Segment`, `UserTimeline`, `claim`, `branch_of`, `record_key`, `extend`, `sees`,
  `visible_filters`, `as_of`, `fork`
* documents: `add_lore`, `list_lore`, `remove_lore`, `import_langchain_faiss`, `read_langchain_vectors`
* the message buffer: `BufferPolicy`, `TokenBudget`, `LastTurns`, `RunningSummary`, `Unbounded`, `Summarizer`,
  `ExtractiveSummarizer`
* notebooks of your own: `Notebook`, `Entry`, `Change`, `Update`, `once`, `every`, `every_turn`, `on_demand`,
  `Number`, `Count`, `merge_patch`, `diff_patch`, `patches`
* notebooks of this project: `CharacterNotebook`, `StateNotebook`, `CoreNotebook`, `Section`, `CORE_TOOLS`,
  `edit_core`, `core_tool`
* memory for LangChain's agents: `TimelineMemoryMiddleware`, `FactNotes`, `MemoryState`
* agents: `build_agent`, `Mode`, `Recall`, `TeamState`, `as_node`, `read_stream`
* going back, and forgetting: `History`, `forget`, `Forgetting`, `retract`, `why`; and for a checkpointer of your own,
  `keep_ids_after`
* checkpoints that do not grow for ever: `prune`, `prune_sync`, `Pruned`
* memories of the LTM extension: `import_ltm`, `LtmConfig`, `recall_messages`, `remember_message`, `inject`,
  `greeting_line`, `last_talk`, `note_session`
* errors of the store and of searches: `StoreError`, `StoreConfigError`, `EmbedderChangedError`, `LtmConfigError`,
  `StoreUnavailableError`, `CorruptStoreError`, `StoreClosedError`, `EmbeddingError`, `UnstorableValueError`,
  `UnreadableDocumentError`, `UnknownLoreError`, `ImportFailedError`, `NoSuchMemoryError`, `BadQueryError`
* errors of notebooks: `NotebookError`, `DeclarationError`, `PatchError`, `PageFullError`, `SectionFullError`,
  `EditError`, `VersionError`
* errors of graphs: `QuestbookError`, `SettingsError`, `InputError`, `UnreadableError`, `HistoryError`,
  `ForgettingError`, `PruningError`, `PastUnknownError`, `ModelError`, `FatalModelError`, `PromptTooLongError`
* JSON objects: `JSON`
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from questbook.graphs.agent.description import Mode
    from questbook.graphs.agent.graph import build_agent
    from questbook.graphs.agent.team import TeamState, as_node
    from questbook.graphs.dungeon_master.forgetting.provenance import why
    from questbook.graphs.dungeon_master.forgetting.retract import retract
    from questbook.graphs.errors import (
        FatalModelError,
        ForgettingError,
        HistoryError,
        InputError,
        ModelError,
        PastUnknownError,
        PromptTooLongError,
        PruningError,
        QuestbookError,
        SettingsError,
        UnreadableError,
    )
    from questbook.graphs.events import read_stream
    from questbook.graphs.forgetting.forget import Forgetting, forget
    from questbook.graphs.history.history import History
    from questbook.graphs.history.sync_history import SyncHistory
    from questbook.graphs.middleware.channels import MemoryState
    from questbook.graphs.middleware.memory import FactNotes, TimelineMemoryMiddleware
    from questbook.graphs.pruning.prune import Pruned, prune, prune_sync
    from questbook.graphs.turn.clock import keep_ids_after
    from questbook.graphs.turn.recall import Recall
    from questbook.graphs.turn.state import patches
    from questbook.memory.buffer.policies import BufferPolicy, LastTurns, RunningSummary, TokenBudget, Unbounded
    from questbook.memory.buffer.summary import ExtractiveSummarizer, Summarizer
    from questbook.memory.embeddings.embedders import HashEmbeddings, load_embeddings
    from questbook.memory.embeddings.known_vectors import KnownVectors
    from questbook.memory.embeddings.minilm import MiniLMEmbeddings, fetch_minilm
    from questbook.memory.errors import (
        BadQueryError,
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
        UnknownLoreError,
        UnreadableDocumentError,
        UnstorableValueError,
    )
    from questbook.memory.facts.fact import Fact
    from questbook.memory.facts.validity import FactPeriod, keep_valid, slot_history
    from questbook.memory.facts.writing import FactChanges, note_facts
    from questbook.memory.lore.collection import add_lore, list_lore, remove_lore
    from questbook.memory.lore.langchain_index import import_langchain_faiss, read_langchain_vectors
    from questbook.memory.ltm.config import LtmConfig
    from questbook.memory.ltm.greeting import greeting_line, last_talk, note_session
    from questbook.memory.ltm.injection import inject
    from questbook.memory.ltm.memories import recall_messages, remember_message
    from questbook.memory.ltm.migration import import_ltm
    from questbook.memory.recall.query import Present, Query, Reason, Recalled, WeightedText
    from questbook.memory.recall.recall import recall
    from questbook.memory.recall.weights import Weights
    from questbook.memory.store.faiss_store import FaissStore
    from questbook.memory.sync import claim_sync, recall_sync, remember_sync
    from questbook.memory.timeline.namespaces import (
        campaign_namespace,
        character_namespace,
        escape_label,
        player_namespace,
        unescape_label,
    )
    from questbook.memory.timeline.off_record import off_record
    from questbook.memory.timeline.records import Exchange, Record, Stamp
    from questbook.memory.timeline.remember import remember
    from questbook.memory.timeline.timeline import (
        Segment,
        UserTimeline,
        as_of,
        branch_of,
        claim,
        extend,
        fork,
        record_key,
        sees,
        visible_filters,
    )
    from questbook.notebooks.base import Change, Entry, Notebook, Update, every, every_turn, on_demand, once
    from questbook.notebooks.character import CharacterNotebook
    from questbook.notebooks.core import CoreNotebook, Section
    from questbook.notebooks.core_tools import CORE_TOOLS, core_tool, edit_core
    from questbook.notebooks.errors import (
        DeclarationError,
        EditError,
        NotebookError,
        PageFullError,
        PatchError,
        SectionFullError,
        VersionError,
    )
    from questbook.notebooks.patch import Count, Number, diff_patch, merge_patch
    from questbook.notebooks.state import StateNotebook
    from questbook.types import JSON

__version__ = "0.2.1"

_HOMES = {
    "questbook.graphs.agent.description": "Mode",
    "questbook.graphs.agent.graph": "build_agent",
    "questbook.graphs.agent.team": "TeamState as_node",
    "questbook.graphs.forgetting.forget": "Forgetting forget",
    "questbook.graphs.dungeon_master.forgetting.provenance": "why",
    "questbook.graphs.dungeon_master.forgetting.retract": "retract",
    "questbook.graphs.errors": (
        "FatalModelError ForgettingError HistoryError InputError ModelError PastUnknownError "
        "PromptTooLongError PruningError QuestbookError SettingsError UnreadableError"
    ),
    "questbook.graphs.events": "read_stream",
    "questbook.graphs.history.history": "History",
    "questbook.graphs.history.sync_history": "SyncHistory",
    "questbook.graphs.middleware.channels": "MemoryState",
    "questbook.graphs.middleware.memory": "FactNotes TimelineMemoryMiddleware",
    "questbook.graphs.pruning.prune": "Pruned prune prune_sync",
    "questbook.graphs.turn.recall": "Recall",
    "questbook.graphs.turn.clock": "keep_ids_after",
    "questbook.graphs.turn.state": "patches",
    "questbook.memory.buffer.policies": "BufferPolicy LastTurns RunningSummary TokenBudget Unbounded",
    "questbook.memory.buffer.summary": "ExtractiveSummarizer Summarizer",
    "questbook.memory.embeddings.embedders": "HashEmbeddings load_embeddings",
    "questbook.memory.embeddings.known_vectors": "KnownVectors",
    "questbook.memory.embeddings.minilm": "MiniLMEmbeddings fetch_minilm",
    "questbook.memory.errors": (
        "BadQueryError CorruptStoreError EmbedderChangedError EmbeddingError ImportFailedError LtmConfigError "
        "NoSuchMemoryError StoreClosedError StoreConfigError StoreError StoreUnavailableError "
        "UnknownLoreError UnreadableDocumentError UnstorableValueError"
    ),
    "questbook.memory.facts.fact": "Fact",
    "questbook.memory.facts.validity": "FactPeriod keep_valid slot_history",
    "questbook.memory.facts.writing": "FactChanges note_facts",
    "questbook.memory.lore.collection": "add_lore list_lore remove_lore",
    "questbook.memory.lore.langchain_index": "import_langchain_faiss read_langchain_vectors",
    "questbook.memory.ltm.memories": "recall_messages remember_message",
    "questbook.memory.ltm.config": "LtmConfig",
    "questbook.memory.ltm.greeting": "greeting_line last_talk note_session",
    "questbook.memory.ltm.migration": "import_ltm",
    "questbook.memory.ltm.injection": "inject",
    "questbook.memory.recall.query": "Present Query Reason Recalled WeightedText",
    "questbook.memory.recall.recall": "recall",
    "questbook.memory.recall.weights": "Weights",
    "questbook.memory.store.faiss_store": "FaissStore",
    "questbook.memory.sync": "claim_sync recall_sync remember_sync",
    "questbook.memory.timeline.namespaces": (
        "campaign_namespace character_namespace escape_label player_namespace unescape_label"
    ),
    "questbook.memory.timeline.off_record": "off_record",
    "questbook.memory.timeline.records": "Exchange Record Stamp",
    "questbook.memory.timeline.remember": "remember",
    "questbook.memory.timeline.timeline": (
        "Segment UserTimeline as_of branch_of claim extend fork record_key sees visible_filters"
    ),
    "questbook.notebooks.base": "Change Entry Notebook Update every every_turn on_demand once",
    "questbook.notebooks.character": "CharacterNotebook",
    "questbook.notebooks.core": "CoreNotebook Section",
    "questbook.notebooks.core_tools": "CORE_TOOLS core_tool edit_core",
    "questbook.notebooks.errors": (
        "DeclarationError EditError NotebookError PageFullError PatchError SectionFullError VersionError"
    ),
    "questbook.notebooks.patch": "Count Number diff_patch merge_patch",
    "questbook.notebooks.state": "StateNotebook",
    "questbook.types": "JSON",
}
"""Names by the module that defines them; the imports above say the same for type checkers and editors."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CORE_TOOLS", "JSON", "BadQueryError", "BufferPolicy", "Change", "CharacterNotebook", "CoreNotebook",
    "CorruptStoreError", "Count", "DeclarationError", "EditError", "EmbedderChangedError", "EmbeddingError", "Entry",
    "Exchange", "ExtractiveSummarizer", "Fact", "FactChanges", "FactNotes", "FactPeriod", "FaissStore",
    "FatalModelError", "Forgetting", "ForgettingError", "HashEmbeddings", "History", "HistoryError",
    "ImportFailedError", "InputError", "KnownVectors", "LastTurns", "LtmConfig", "LtmConfigError", "MemoryState",
    "MiniLMEmbeddings", "Mode", "ModelError", "NoSuchMemoryError", "Notebook", "NotebookError", "Number",
    "PageFullError", "PastUnknownError", "PatchError", "Present", "PromptTooLongError", "Pruned", "PruningError",
    "Query", "QuestbookError", "Reason", "Recall", "Recalled", "Record", "RunningSummary", "Section",
    "SectionFullError", "Segment", "SettingsError", "Stamp", "StateNotebook", "StoreClosedError", "StoreConfigError",
    "StoreError", "StoreUnavailableError", "Summarizer", "SyncHistory", "TeamState", "TimelineMemoryMiddleware",
    "TokenBudget", "Unbounded", "UnknownLoreError", "UnreadableDocumentError", "UnreadableError",
    "UnstorableValueError", "Update", "UserTimeline", "VersionError", "WeightedText", "Weights", "add_lore", "as_node",
    "as_of", "branch_of", "build_agent", "campaign_namespace", "character_namespace", "claim", "claim_sync",
    "core_tool", "diff_patch", "edit_core", "escape_label", "every", "every_turn", "extend", "fetch_minilm", "forget",
    "fork", "greeting_line", "import_langchain_faiss", "import_ltm", "inject", "keep_ids_after", "keep_valid",
    "last_talk", "list_lore", "load_embeddings", "merge_patch", "note_facts", "note_session", "off_record", "on_demand",
    "once", "patches", "player_namespace", "prune", "prune_sync", "read_langchain_vectors", "read_stream", "recall",
    "recall_messages", "recall_sync", "record_key", "remember", "remember_message", "remember_sync", "remove_lore",
    "retract", "sees", "slot_history", "unescape_label", "visible_filters", "why",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'questbook' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
