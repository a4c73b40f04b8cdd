"""recall: open the turn, and find the memories of this timeline that help with the player's message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.prompts import memory_line
from questbook.graphs.dungeon_master.rules.sheet import fill_sheet
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.buffer import conversation
from questbook.graphs.turn.exchanges import present_of
from questbook.graphs.turn.retriever import recall_or_notice
from questbook.graphs.turn.turn import notice, open_turn
from questbook.memory.buffer.policies import count_verbatim_turns
from questbook.memory.buffer.turns import split_turns, turn_text
from questbook.memory.facts.conclusions import add_insights
from questbook.memory.facts.marks import read_records
from questbook.memory.facts.reflection import importance_of
from questbook.memory.facts.validity import keep_valid, replace_superseded
from questbook.memory.recall.age import phrase_age
from questbook.memory.recall.query import Present, Query, Recalled, WeightedText
from questbook.memory.recall.recall import recall as recall_records
from questbook.memory.store.any_store import newest_items
from questbook.memory.store.joint_reads import JointReads
from questbook.memory.text.words import count_tokens
from questbook.memory.timeline.namespaces import player_namespace
from questbook.memory.timeline.privacy import WITHHELD, may_know
from questbook.memory.timeline.timeline import Segment, as_of, branch_of, record_key, visible_filters
from questbook.notebooks import NotebookError
from questbook.types import JSON

_SCENE_WEIGHT = 0.3  # the scene helps where the words say little ("I ask her again"), and must not outvote them
_SHARE = 4  # secrets of the turns in the buffer may take a quarter of the budget; so may the player's wishes
_LATEST = 2  # turns before this one that are in the prompt whatever the message says, also in a new session
_LEAST_FOR_WISHES = 100  # tokens: a small budget must hold a limit of the player's, too
_MOST_READ = 64  # of either, the latest are read
_MOST = 24  # records; the budget of tokens ends most recalls long before

_log = logging.getLogger(__name__)


async def recall(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Open the turn and recall for it; what a person changed on the character's page by hand takes effect here."""
    opened = open_turn(state, runtime)
    notices: list[JSON] = opened["notices"]
    try:
        opened |= fill_sheet(state.character, state.character, state.quest)
    except NotebookError as error:
        _log.warning("The character's page was not filled up: %s", error)
        notices.append(notice(opened["turn"], "recall", f"The rules could not fill up the character's page. {error}"))
    now = state.model_copy(update={"turn": opened["turn"], "timeline": opened["timeline"]})
    recalled = await recall_or_notice(now, memories_for(now, runtime))
    return {**opened, **recalled, "notices": [*notices, *recalled["notices"]]}


async def memories_for(state: DungeonState, runtime: Runtime[Context]) -> list[JSON]:
    """Recall what fits the player's message best, and the scene a little: exchanges, facts, the player, lore.

    What the player likes and does not want comes along whatever the message says, and so do the last two turns: a new
    session has no buffer yet. Turns that are in the prompt, as the buffer policy says, are left out, but for their
    secrets. The best come first until `recall_tokens` are full; they are returned in story order, those without a turn
    first, as `memory_of` makes them.
    """
    context, store = runtime.context, runtime.store
    if store is None or not context.recall_tokens:
        return []
    # Turns that are in the prompt word for word need not be recalled. A turn that could not be written yet has no place
    # on the timeline either: another future's record may be there.
    before = min(state.turn - count_verbatim_turns(conversation(state, context)), state.remembered_through + 1)
    message, _ = turn_text(split_turns(state.messages, state.turn)[-1][1])
    exchanges, facts, lore, accesses = (
        context.campaign_namespace(name) for name in ("exchanges", "facts", "lore", "accesses")
    )
    now = datetime.now(UTC).astimezone()  # days change at the player's midnight
    # As of now, not as of the buffer's beginning; but the current turn has no place yet, and a record under its number
    # may be of a future that was taken back.
    written = as_of(state.timeline, min(state.turn - 1, state.remembered_through))
    tokens = state.fit_tokens(context.recall_tokens, context.model)
    player, share = player_namespace(context.user, "facts"), tokens // _SHARE
    reads = JointReads.of(store)
    present, wishes, secrets, latest = await asyncio.gather(
        present_of(state, runtime, now, day=state.quest.clock.day, store=reads),
        player_wishes(reads, player),
        buffered_secrets(reads, facts, written, before),
        latest_turns(reads, exchanges, written, range(max(state.turn - _LATEST, 1), before)),
    )

    def to_memory(record: Recalled) -> JSON:
        return memory_of(record, present, state.character.name or "")

    shares = (wishes, min(tokens, max(share, _LEAST_FOR_WISHES))), (secrets, share), (latest, tokens // 2)
    always = [memory for records, budget in shares for memory in last_within(records, to_memory, budget)]
    shown = {memory["key"] for memory in always}

    async def hold(records: list[Recalled]) -> list[Recalled]:
        held = await replace_superseded(store, records, facts, timeline=written)
        held = await add_insights(store, held, facts, question=message, timeline=written, since=before)
        return [record for record in held if record.key not in shown]

    query = Query(
        message,
        hints=[WeightedText(state.quest.scene, _SCENE_WEIGHT)],
        lasting=[lore, player],
        timeline=state.timeline,
        before=before,
        limit=_MOST,
        budget=tokens - sum(map(_cost, always)),
        cost=lambda record: _cost(to_memory(record)),
        weights=context.weights,
        present=present,
        fitting=context.max_cosine_distance is None,
        max_cosine_distance=context.max_cosine_distance,
        secrets=True,  # the dungeon master's own prompt; `questbook.graphs.events` shows a player none of them
        aliases=True,  # "the Heron" of the message is also called Goran, mostly
        refine=hold,
        accesses=accesses,
    )
    best = await recall_records(store, [exchanges, facts] if before > 1 else [], query)
    return sorted([*always, *map(to_memory, best)], key=lambda memory: memory["turn"] or 0)


async def buffered_secrets(
    store: BaseStore, facts: tuple[str, ...], timeline: Sequence[Segment], since: int
) -> list[Recalled]:
    """Return the secrets of the turns that are in the prompt word for word, as far as they hold; oldest first.

    What such a turn says need not be recalled. But nobody said its secrets, and the dungeon master must not forget them
    until the turn leaves the buffer.

    Args:
        store: Any store. No query is embedded.
        facts: Namespace of the campaign's facts.
        timeline: What can be seen: no further than what is written, since another's record may be there.
        since: First turn that is in the prompt word for word.
    """
    first = f"{max(since, 0):08}"
    filters = [
        {**segment, "kind": "secret", "order": {**segment["order"], "$gte": first}}
        for segment in visible_filters(timeline)
        if segment["order"]["$lte"] >= first
    ]
    return await _valid(store, facts, filters, timeline)


async def player_wishes(store: BaseStore, player: tuple[str, ...]) -> list[Recalled]:
    """Return what the player likes and does not want, as far as it holds; what matters most last, then the latest.

    A limit that is recalled only where a message has its words does not protect the player.

    Args:
        store: Any store. No query is embedded.
        player: Namespace of the facts of the player.
    """
    wishes = await _valid(store, player, [{"kind": "preference"}], None)
    return sorted(wishes, key=lambda wish: importance_of(wish.value))


async def latest_turns(
    store: BaseStore, exchanges: tuple[str, ...], timeline: Sequence[Segment], turns: Sequence[int]
) -> list[Recalled]:
    """Return the exchanges of some turns, oldest first, without private ones.

    Args:
        store: Any store. No query is embedded.
        exchanges: Namespace of the exchanges.
        timeline: What can be seen.
        turns: Numbers of the turns.
    """
    keys = [record_key(branch_of(timeline, turn), turn, "exchange") for turn in turns]
    records = await read_records(store, exchanges, keys) if keys else {}
    return [Recalled(key, value, None, 0.0, exchanges) for key, value in records.items() if not value.get(WITHHELD)]


async def _valid(
    store: BaseStore, namespace: tuple[str, ...], filters: Sequence[JSON], timeline: Sequence[Segment] | None
) -> list[Recalled]:
    """Return the newest records that hold, oldest first."""
    items = await newest_items(store, namespace, filters, _MOST_READ)
    records = [Recalled(item.key, item.value, None, 0.0, tuple(item.namespace)) for item in items]
    return await keep_valid(store, records, timeline=timeline)


def last_within(records: Sequence[Recalled], to_memory: Callable[[Recalled], JSON], budget: int) -> list[JSON]:
    """Return the last records that fit in a budget of tokens."""
    kept: list[JSON] = []
    for record in reversed(records):
        memory = to_memory(record)
        if (tokens := _cost(memory)) > budget:
            break
        budget -= tokens
        kept.append(memory)
    return kept[::-1]


def memory_of(record: Recalled, present: Present, character: str) -> JSON:
    """Make a memory of a record: what the prompt shows (`memory_line`), its key, its score, why it was recalled.

    What the player's character does not know is of kind "secret".
    """
    value = record.value
    session = value.get("session")
    ago = present.session - session if isinstance(session, int) and present.session else None
    kind = str(value.get("kind") or "exchange") if may_know(value, [character]) else "secret"
    memory: JSON = {"key": record.key, "kind": kind, "score": record.score, "why": str(record.reason)}
    memory |= {name: value.get(name) for name in ("turn", "said_at")}
    if kind == "lore":
        return memory | {name: value.get(name) for name in ("text", "source", "page", "section", "row")}
    memory["age"] = phrase_age(value.get("said_at"), present.now or datetime.now(UTC), ago, of_story=True)
    day = value.get("day")
    memory["story_time"] = value.get("story_time") or (None if day is None else f"day {day}")
    if kind == "exchange":
        return memory | {name: value.get(name) for name in ("player", "reply")}
    return memory | {name: value.get(name) or None for name in ("text", "claimed_by")}


def _cost(memory: JSON) -> int:
    return count_tokens(memory_line(memory))
