# The public API, each name with the module that defines it: type checkers, editors and `questbook.__getattr__` read it.
# ruff: noqa: I001  (in the order of docs/reference.md)

__version__: str

# The store and its embeddings
from questbook.memory.store.faiss_store import FaissStore
from questbook.memory.embeddings.embedders import HashEmbeddings
from questbook.memory.embeddings.loading import load_embeddings
from questbook.memory.embeddings.minilm import MiniLMEmbeddings

# Memory in a graph of your own
from questbook.memory.timeline.timeline import remember
from questbook.memory.timeline.records import Exchange, Stamp
from questbook.memory.recall.intents import off_record
from questbook.memory.recall.recall import recall
from questbook.memory.recall.query import Query, Recalled, WeightedText, Weights
from questbook.memory.timeline.timeline import Segment, UserTimeline, claim
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.sync import recall_sync, remember_sync

# Facts, and which of them hold
from questbook.memory.facts.fact import Fact
from questbook.memory.facts.writing import note_facts
from questbook.memory.facts.validity import keep_valid

# Documents
from questbook.memory.lore.collection import add_lore, list_lore, remove_lore

# The message buffer
from questbook.memory.buffer.policies import BufferPolicy, LastTurns, RunningSummary, TokenBudget

# Notebooks
from questbook.notebooks.base import Notebook, every, every_turn, on_demand, once
from questbook.notebooks.patch import Count
from questbook.graphs.turn.state import patches
from questbook.notebooks.character import CharacterNotebook
from questbook.notebooks.state import StateNotebook
from questbook.notebooks.core import CoreNotebook

# Memory for LangChain's agents
from questbook.graphs.turn.facts import FactNotes
from questbook.graphs.middleware.memory import TimelineMemoryMiddleware
from questbook.graphs.middleware.state import MemoryState

# Agents made of notebooks
from questbook.graphs.agent.graph import build_agent
from questbook.graphs.agent.spec import Mode
from questbook.graphs.turn.recall import Recall
from questbook.graphs.agent.team import TeamState, as_node

# Going back, and forgetting
from questbook.graphs.history.history import History, SyncHistory
from questbook.graphs.forgetting.forget import forget
from questbook.graphs.dungeon_master.why import why
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.pruning.prune import prune

# The memories of a user or a team
from questbook.graphs.memories.memories import Memories, SyncMemories

# Errors: the bases, and those that an app catches
from questbook.graphs.errors import InputError, ModelError, QuestbookError, SettingsError
from questbook.memory.errors import EmbedderChangedError, StoreError, StoreUnavailableError
from questbook.notebooks.errors import NotebookError, PatchError

__all__ = [
    "BufferPolicy", "CharacterNotebook", "CoreNotebook", "Count", "EmbedderChangedError", "Exchange", "Fact",
    "FactNotes", "FaissStore", "HashEmbeddings", "History", "InputError", "LastTurns", "Memories", "MemoryState",
    "MiniLMEmbeddings", "Mode", "ModelError", "Notebook", "NotebookError", "PatchError", "Query", "QuestbookError",
    "Recall", "Recalled", "RunningSummary", "Segment", "SettingsError", "Stamp", "StateNotebook", "StoreError",
    "StoreUnavailableError", "SyncHistory", "SyncMemories", "TeamState", "TimelineMemoryMiddleware", "TokenBudget",
    "UserTimeline", "WeightedText", "Weights", "add_lore", "as_node", "build_agent", "campaign_namespace", "claim",
    "every", "every_turn", "forget", "keep_valid", "list_lore", "load_embeddings", "note_facts", "off_record",
    "on_demand", "once", "patches", "player_namespace", "prune", "recall", "recall_sync", "remember", "remember_sync",
    "remove_lore", "retract", "why",
]  # fmt: skip
