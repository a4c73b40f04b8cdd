"""recall: find what this timeline remembers that helps with the player's message."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.entrance import enter
from graphs.dungeon_master.sections import memory_line
from graphs.dungeon_master.state import DungeonState
from graphs.turn import notice, open_turn
from memory.age import phrase_age
from memory.buffer import spoken, turns_of
from memory.namespaces import campaign_namespace
from memory.recall import Recalled
from memory.recall import recall as recall_records
from notebooks import NotebookError

_SCENE_WEIGHT = 0.3  # the scene helps where the words say little ("I ask her again"), and must not outvote them

_log = logging.getLogger(__name__)


async def recall(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Open the turn and recall for it; what a person changed on the character's page by hand takes effect here."""
    opened, notices = open_turn(state, runtime), list[dict[str, Any]]()
    try:
        opened |= enter(state.character, state.character, state.quest)
    except NotebookError as error:
        _log.warning("The character's page was not filled up: %s", error)
        notices.append(notice(opened["turn"], "recall", f"The rules could not fill up the character's page. {error}"))
    now = state.model_copy(update={"turn": opened["turn"], "timeline": opened["timeline"]})
    try:
        return {**opened, "recalled": await memories_for(now, runtime), "notices": notices}
    except Exception as error:  # noqa: BLE001 (any store may stand behind this; the game goes on without)
        _log.warning("Nothing was recalled for turn %d: %s", now.turn, error, exc_info=True)
        text = f"Memory could not be searched, so nothing was recalled for this turn. {error}"
        return {**opened, "recalled": [], "notices": [*notices, notice(now.turn, "recall", text)]}


async def memories_for(state: DungeonState, runtime: Runtime[Context]) -> list[dict[str, Any]]:
    """Recall the exchanges that fit the player's message best, and the scene a little.

    What still stands in the buffer is left out. The best come first until `recall_tokens` are full; they are returned
    in story order, each as {"turn", "age", "score", "player", "reply", "said_at"}.
    """
    if runtime.store is None or not runtime.context.recall_tokens:
        return []
    turns = turns_of(state.messages, state.turn)
    # What the buffer still holds need not be recalled. A turn that could not be written yet has no place on the
    # timeline either: there may be another's record in it.
    before = min(turns[0][0], state.remembered_through + 1)
    if before <= 1:
        return []
    query, _ = spoken(turns[-1][1])
    best = await recall_records(
        runtime.store,
        campaign_namespace(runtime.context.user, runtime.context.campaign, "exchanges"),
        [(query, 1.0), (state.quest.scene, _SCENE_WEIGHT)],
        timeline=state.timeline,
        before=before,
    )
    return sorted(_fitting(best, runtime.context.recall_tokens), key=lambda memory: memory["turn"])


def _fitting(items: list[Recalled], budget: int) -> list[dict[str, Any]]:
    now = datetime.now(UTC).astimezone()  # days change at the player's midnight
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
