# The public API, each name with the module that defines it: type checkers, editors and `questbook.__getattr__` read it.
# ruff: noqa: I001  (in the order of docs/reference.md)

__version__: str

# The store and its embeddings
from questbook.memory.store.faiss_store import FaissStore as FaissStore
from questbook.memory.embeddings.embedders import HashEmbeddings as HashEmbeddings
from questbook.memory.embeddings.loading import load_embeddings as load_embeddings
from questbook.memory.embeddings.minilm import MiniLMEmbeddings as MiniLMEmbeddings

# Memory in a graph of your own
from questbook.memory.timeline.timeline import remember as remember
from questbook.memory.timeline.records import Exchange as Exchange, Stamp as Stamp
from questbook.memory.recall.intents import off_record as off_record
from questbook.memory.recall.recall import recall as recall, recall_sync as recall_sync
from questbook.memory.recall.query import Query as Query, Recalled as Recalled, WeightedText as WeightedText
from questbook.memory.recall.query import Weights as Weights
from questbook.memory.timeline.timeline import Segment as Segment, UserTimeline as UserTimeline, claim as claim
from questbook.memory.timeline.namespaces import campaign_namespace as campaign_namespace
from questbook.memory.timeline.namespaces import player_namespace as player_namespace
from questbook.memory.timeline.timeline import remember_sync as remember_sync

# Facts, and which of them hold
from questbook.memory.facts.fact import Fact as Fact
from questbook.memory.facts.writing import note_facts as note_facts
from questbook.memory.facts.validity import keep_valid as keep_valid

# Documents
from questbook.memory.lore.collection import add_lore as add_lore, list_lore as list_lore, remove_lore as remove_lore

# The message buffer
from questbook.memory.buffer.policies import BufferPolicy as BufferPolicy, LastTurns as LastTurns
from questbook.memory.buffer.policies import RunningSummary as RunningSummary, TokenBudget as TokenBudget

# Notebooks
from questbook.notebooks.base import Notebook as Notebook, every as every, every_turn as every_turn
from questbook.notebooks.base import on_demand as on_demand, once as once
from questbook.notebooks.patch import Count as Count
from questbook.graphs.turn.state import patches as patches
from questbook.notebooks.character import CharacterNotebook as CharacterNotebook
from questbook.notebooks.state import StateNotebook as StateNotebook
from questbook.notebooks.core import CoreNotebook as CoreNotebook

# Memory for LangChain's agents
from questbook.graphs.turn.facts import FactNotes as FactNotes
from questbook.graphs.middleware.memory import TimelineMemoryMiddleware as TimelineMemoryMiddleware
from questbook.graphs.middleware.state import MemoryState as MemoryState

# Agents made of notebooks
from questbook.graphs.agent.graph import build_agent as build_agent
from questbook.graphs.agent.spec import Mode as Mode
from questbook.graphs.turn.recall import Recall as Recall
from questbook.graphs.agent.team import TeamState as TeamState, as_node as as_node

# Going back, and forgetting
from questbook.graphs.history.history import History as History, SyncHistory as SyncHistory
from questbook.graphs.forgetting.forget import forget as forget
from questbook.graphs.dungeon_master.why import why as why
from questbook.graphs.dungeon_master.retract import retract as retract
from questbook.graphs.pruning.prune import prune as prune

# The memories of a user or a team
from questbook.graphs.memories.memories import Memories as Memories, SyncMemories as SyncMemories

# Errors: the bases, and those that an app catches
from questbook.graphs.errors import InputError as InputError, ModelError as ModelError, QuestbookError as QuestbookError
from questbook.graphs.errors import SettingsError as SettingsError
from questbook.memory.errors import EmbedderChangedError as EmbedderChangedError, StoreError as StoreError
from questbook.memory.errors import StoreUnavailableError as StoreUnavailableError
from questbook.notebooks.errors import NotebookError as NotebookError, PatchError as PatchError
