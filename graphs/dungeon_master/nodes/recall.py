"""recall: find what this timeline remembers that helps with the player's message."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.rules.entrance import enter
from questbook.graphs.dungeon_master.sections import conversation, memory_line
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.dungeon_master.unspoken import unspoken
from questbook.graphs.turn.present import present_of
from questbook.graphs.turn.turn import notice, open_turn
from questbook.memory.buffer.policies import count_verbatim_turns
from questbook.memory.buffer.turns import split_turns, turn_text
from questbook.memory.facts.validity import replace_superseded
from questbook.memory.recall.age import phrase_age
from questbook.memory.recall.query import Present, Query, Recalled, WeightedText
from questbook.memory.recall.recall import recall as recall_records
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.timeline.privacy import may_know
from questbook.memory.timeline.timeline import as_of
from questbook.notebooks import NotebookError

_SCENE_WEIGHT = 0.3  # the scene helps where the words say little ("I ask her again"), and must not outvote them
_UNSPOKEN = 4  # secrets of the turns that stand in the prompt may take a quarter of the budget
_MOST = 24  # records; the budget of tokens ends most recalls long before

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
    """Recall what fits the player's message best, and the scene a little: exchanges, facts, the player, lore.

    What still stands in the prompt, as the buffer policy says, is left out, but for its secrets. The best come first
    until `recall_tokens` are full; they are returned in story order, what has no turn first, as `memory_of` tells them.
    """
    context = runtime.context
    store = runtime.store
    if store is None or not context.recall_tokens:
        return []
    # What the prompt still holds word for word need not be recalled. A turn that could not be written yet has no place
    # on the timeline either: there may be another's record in it.
    before = min(state.turn - count_verbatim_turns(conversation(state, context)), state.remembered_through + 1)
    message, _ = turn_text(split_turns(state.messages, state.turn)[-1][1])
    exchanges, facts, lore, accesses = (
        campaign_namespace(context.user, context.campaign, name) for name in ("exchanges", "facts", "lore", "accesses")
    )
    now = datetime.now(UTC).astimezone()  # days change at the player's midnight
    present = await present_of(state, runtime, now, day=state.quest.clock.day)

    def told(one: Recalled) -> dict[str, Any]:
        return memory_of(one, present, state.character.name or "")

    # As of now, not as of the buffer's beginning; but the turn under way has no place yet, and what stands under its
    # number may be of a future that was taken back.
    written = as_of(state.timeline, min(state.turn - 1, state.remembered_through))
    room = context.recall_tokens // _UNSPOKEN
    hidden = await unspoken(store, facts, written, before, told, _cost, room)
    shown = {memory["key"] for memory in hidden}

    async def holding(records: list[Recalled]) -> list[Recalled]:
        held = await replace_superseded(store, records, facts, timeline=written)
        return [record for record in held if record.key not in shown]

    query = Query(
        message,
        hints=[WeightedText(state.quest.scene, _SCENE_WEIGHT)],
        lasting=[lore, player_namespace(context.user, "facts")],
        timeline=state.timeline,
        before=before,
        limit=_MOST,
        budget=context.recall_tokens - sum(map(_cost, hidden)),
        cost=lambda one: _cost(told(one)),
        weights=context.weights,
        present=present,
        max_cosine_distance=context.max_cosine_distance,
        secrets=True,  # the dungeon master's own prompt; `questbook.graphs.events` shows a player none of them
        aliases=True,  # "the Heron" of the message is known as Goran, and so is most of him
        refine=holding,
        accesses=accesses,
    )
    best = await recall_records(store, [exchanges, facts] if before > 1 else [], query)
    return sorted([*hidden, *map(told, best)], key=lambda memory: memory["turn"] or 0)


def _cost(memory: dict[str, Any]) -> int:
    return count_tokens_approximately([memory_line(memory)])


def memory_of(found: Recalled, present: Present, character: str) -> dict[str, Any]:
    """Tell a recalled record as JSON: what the prompt shows (`memory_line`), its key, its score, why it was recalled.

    What the player's character does not know is of kind "secret".
    """
    value = found.value
    session = value.get("session")
    ago = present.session - session if isinstance(session, int) and present.session else None
    kind = str(value.get("kind") or "exchange") if may_know(value, [character]) else "secret"
    memory: dict[str, Any] = {"key": found.key, "kind": kind, "score": found.score, "why": str(found.reason)}
    memory |= {name: value.get(name) for name in ("turn", "said_at")}
    if kind == "lore":
        return memory | {name: value.get(name) for name in ("text", "source", "page", "section", "row")}
    memory["age"] = phrase_age(value.get("said_at"), present.now or datetime.now(UTC), ago)
    if kind == "exchange":
        return memory | {name: value.get(name) for name in ("player", "reply")}
    return memory | {name: value.get(name) or None for name in ("text", "story_time", "claimed_by")}
