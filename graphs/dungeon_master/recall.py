"""recall: find what this timeline remembers that helps with the player's message."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime
from langgraph.store.base import SearchItem, SearchOp

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.entrance import enter
from graphs.dungeon_master.sections import memory_line
from graphs.dungeon_master.state import DungeonState
from graphs.dungeon_master.turn import open_turn
from memory.age import phrase_age
from memory.buffer import spoken, turns_of
from memory.namespaces import campaign_namespace
from memory.timeline import visible

_CANDIDATES = 12
_SCENE_WEIGHT = 0.3
_RANK_CONSTANT = 60  # reciprocal rank fusion, Cormack et al. 2009


async def recall(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Open the turn and recall for it; a character whose page a person completed by hand enters the story here."""
    opened = open_turn(state, runtime)
    if state.character.hit_points is None:
        opened |= enter(state.character, state.character)
    now = state.model_copy(update={"turn": opened["turn"], "timeline": opened["timeline"]})
    return {**opened, "recalled": await memories_for(now, runtime)}


async def memories_for(state: DungeonState, runtime: Runtime[Context]) -> list[dict[str, Any]]:
    """Recall the exchanges that fit the player's message best, and the scene a little.

    What still stands in the buffer is left out. The best come first until `recall_tokens` are full; they are returned
    in story order, each as {"turn", "age", "score", "player", "reply", "said_at"}.
    """
    if runtime.store is None or not runtime.context.recall_tokens:
        return []
    turns = turns_of(state.messages, state.turn)
    before = turns[0][0]  # what the buffer still holds need not be recalled
    if before <= 1:
        return []
    query, _ = spoken(turns[-1][1])
    queries = [(query, 1.0), (state.quest.scene, _SCENE_WEIGHT)]
    namespace = campaign_namespace(runtime.context.user, runtime.context.campaign, "exchanges")
    searches = [
        (SearchOp(namespace, seen, limit=_CANDIDATES, query=text), weight)
        for seen in visible(state.timeline, before)
        for text, weight in queries
        if text
    ]
    found = await runtime.store.abatch([search for search, _ in searches])
    weights: dict[str, float] = {}
    items: dict[str, SearchItem] = {}
    for (_, weight), hits in zip(searches, found, strict=True):
        for rank, item in enumerate(cast("list[SearchItem]", hits)):
            items.setdefault(item.key, item)
            weights[item.key] = weights.get(item.key, 0.0) + weight / (_RANK_CONSTANT + rank)
    best = sorted(items.values(), key=lambda item: (-weights[item.key], item.key))
    return sorted(_fitting(best, runtime.context.recall_tokens), key=lambda memory: memory["turn"])


def _fitting(items: list[SearchItem], budget: int) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    kept: list[dict[str, Any]] = []
    for item in items:
        value = item.value
        memory = {key: value.get(key) for key in ("turn", "player", "reply", "said_at")}
        memory |= {"age": phrase_age(value.get("said_at"), now), "score": item.score}
        cost = count_tokens_approximately([memory_line(memory)])
        if cost <= budget:
            kept.append(memory)
            budget -= cost
    return kept
