"""Earlier: the exchanges of this timeline that help with the message at hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, TypeVar

from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from questbook.graphs.settings import Settings
from questbook.graphs.turn.present import present_of
from questbook.graphs.turn.turn_state import TurnState
from questbook.memory.buffer.policies import count_verbatim_turns
from questbook.memory.buffer.turns import split_turns, turn_text
from questbook.memory.embeddings.embedders import HashEmbeddings, embedder_of
from questbook.memory.ltm.config import SPELLING_DISTANCE
from questbook.memory.recall.age import phrase_age
from questbook.memory.recall.query import DEFAULT_WEIGHTS, Query, Recalled, Weights
from questbook.memory.recall.recall import recall as recall_records
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.notebooks import render_value

JSON = dict[str, Any]
SettingsT = TypeVar("SettingsT", bound=Settings)


@dataclass(frozen=True)
class Recall:
    """How much of what was said earlier comes back into the prompt.

    Attributes:
        tokens: Tokens of the prompt that it may fill; 0: none is recalled.
        most: Exchanges, however short.
        max_cosine_distance: Leave out what is farther than this from the message; None: nothing.
        weights: What the order goes by.
    """

    tokens: int = 800
    most: int = 12
    max_cosine_distance: float | None = None
    weights: Weights = DEFAULT_WEIGHTS

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Read it from settings."""
        return cls(settings.recall_tokens, max_cosine_distance=settings.max_cosine_distance, weights=settings.weights)


async def earlier_exchanges(
    state: TurnState, runtime: Runtime[SettingsT], shown: list[AnyMessage], now: datetime, how: Recall
) -> list[JSON]:
    """Recall the exchanges that fit the message best and do not stand in the prompt; in the order they were said.

    Each is {"key", "turn", "age", "score", "why", "player", "reply", "said_at"}; the best come until `how.tokens` are
    full.

    Args:
        state: The thread's state, its turn opened.
        runtime: The run's.
        shown: The conversation as it stands in the prompt.
        now: Real time, in the zone whose midnight changes the day.
        how: How much.
    """
    context = runtime.context
    before = min(state.turn - count_verbatim_turns(shown), state.remembered_through + 1)
    if runtime.store is None or not how.tokens or before <= 1:
        return []
    query, _ = turn_text(split_turns(state.messages, state.turn)[-1][1])

    def told(one: Recalled) -> JSON:
        value = one.value
        said = {"player": value["player"], "reply": value["reply"], "score": one.score, "why": str(one.reason)}
        when = {"key": one.key, "turn": value["turn"], "said_at": value.get("said_at")}
        return when | {"age": phrase_age(when["said_at"], now)} | said

    best = await recall_records(
        runtime.store,
        campaign_namespace(context.user, context.campaign, "exchanges"),
        Query(
            query,
            timeline=state.timeline,
            before=before,
            limit=how.most,
            budget=how.tokens,
            cost=lambda one: count_tokens_approximately([exchange_line(told(one))]),
            weights=how.weights,
            present=await present_of(state, runtime, now),
            max_cosine_distance=how.max_cosine_distance,
            refine=_related if _by_spelling(runtime.store, how) else None,
            accesses=campaign_namespace(context.user, context.campaign, "accesses"),
        ),
    )
    return sorted((told(one) for one in best), key=lambda memory: int(memory["turn"]))


def exchange_line(memory: JSON) -> str:
    """Render an earlier exchange on one line."""
    shown = {"turn": "turn", "age": "age", "player": "user", "reply": "assistant"}
    return render_value({told: memory[name] for name, told in shown.items() if memory.get(name)})


def _by_spelling(store: BaseStore, how: Recall) -> bool:
    fits = how.weights.scoring != "generative_agents"  # which recalls the latest, whatever they say
    return fits and how.max_cosine_distance is None and isinstance(embedder_of(store), HashEmbeddings)


async def _related(found: list[Recalled]) -> list[Recalled]:
    """Leave out what has nothing to do with the message: no word of it, no time that it names, no like spelling.

    The distance alone would leave out what words find: of LoCoMo's evidence, 45 % instead of 78 % would come. This
    leaves out none of it, and two fifths of what came for messages that the talk is not about (docs/companion.md).
    """
    return [
        one for one in found if one.reason.by_words or one.reason.time or (one.score or 0.0) >= 1.0 - SPELLING_DISTANCE
    ]
