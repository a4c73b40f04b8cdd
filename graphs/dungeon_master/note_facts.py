"""Facts on their way from the model's notes into the store.

`update_state` gathers them into the channel `facts`; `remember` has them written once their turn has its place on the
timeline. What cannot be written stays in the channel, and the next turn writes it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.turn import notice
from questbook.memory.buffer.turns import split_turns
from questbook.memory.facts import marks
from questbook.memory.facts.fact import TOOL, Fact
from questbook.memory.facts.likeness import is_same_fact
from questbook.memory.facts.reading import FactOrigin, classify_fact, read_facts, split_aside
from questbook.memory.facts.writing import FactDraft, write_facts
from questbook.memory.text.wording import normalize
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import Segment, branch_of, record_key
from questbook.notebooks import render_value

JSON = dict[str, Any]
FACTS = "facts"
"""Last label of the namespaces that hold facts."""
_AT_ONCE = 64  # facts that one turn writes; what is left over waits for the next
_WAITING = 500  # facts that may wait
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_log = logging.getLogger(__name__)


class Gathered(NamedTuple):
    """What the model's notes taught.

    Attributes:
        facts: All facts that wait to be written, those of earlier turns first.
        notices: What was odd about them.
    """

    facts: list[JSON]
    notices: list[str]


def gather(
    state: DungeonState, turns: Sequence[JSON], given: Sequence[Any], recalled: Iterable[Mapping[str, Any]]
) -> Gathered:
    """Read what the model sent as facts of some turns, as what each of them is.

    Args:
        state: The state before the notes.
        turns: The turns, as `transcript` tells them.
        given: Arguments of the model's calls of the tool `Facts`.
        recalled: What was recalled into the prompt: what only says that again is not new.
    """
    facts, notices = read_facts(list(given), datetime.now(UTC).astimezone())
    told = _told(state, turns)
    sentences = [(key, sentence) for key, text in _texts(state, recalled) for sentence in _SENTENCE.split(text)]
    first, last = turns[0]["turn"], turns[-1]["turn"]
    messages = _messages(state, first, last)
    new: list[JSON] = []
    for ordinal, fact in enumerate(classify_fact(fact, told) for fact in facts):
        echoes = next((key for key, sentence in sentences if _echoes(fact, sentence)), "")
        new.append({"turns": [first, last], "ordinal": ordinal, "fact": fact.model_dump(), "echoes": echoes} | messages)
    left = max(0, len(state.facts) + len(new) - _WAITING)
    if left:
        notices.append(f"{left} facts were left out: {_WAITING} wait to be written already.")
    return Gathered([*state.facts, *new][:_WAITING], [f"{TOOL}: {line}" for line in notices])


def taught(state: DungeonState, turn: int) -> str:
    """Tell the facts that wait of a turn from those of every other attempt at it; "" if there are none."""
    waiting = [entry["fact"] for entry in state.facts if entry["turns"][1] == turn]
    return marks.text_digest(json.dumps(waiting, sort_keys=True)) if waiting else ""


async def note_facts(
    state: DungeonState, runtime: Runtime[Context], timeline: Sequence[Segment], said: Mapping[str, Any]
) -> JSON:
    """Write the facts that wait; return the channels to write.

    Args:
        state: The state; the turns that its facts belong to have their place on the timeline.
        runtime: With a store.
        timeline: The timeline after the turn's claim.
        said: Where the turn was played: `thread`, `checkpoint`, `said_at`.
    """
    if not state.facts or runtime.store is None:
        return {}
    now, rest = state.facts[:_AT_ONCE], state.facts[_AT_ONCE:]
    where = {name: said.get(name) for name in ("thread", "checkpoint", "said_at")}
    of_player, of_story = ([e for e in now if bool(e["fact"].get("of_player")) == mine] for mine in (True, False))
    learnt = 0
    try:
        learnt = await _write_story(runtime.store, runtime.context, of_story, timeline, where)
        of_story = []
        await _write_player(runtime.store, runtime.context, of_player, where)
    except Exception as error:  # noqa: BLE001 (any store or embedder may stand behind this; nothing may be lost by it)
        _log.warning("Facts of turn %d were not written: %s", state.turn, error, exc_info=True)
        waiting = [*of_story, *of_player, *rest]
        text = f"{len(waiting)} facts were not written to memory; the next turn will write them. {error}"
        return {
            FACTS: waiting,
            "unreflected": state.unreflected + learnt,
            "notices": [notice(state.turn, "remember", text)],
        }
    update: JSON = {FACTS: rest, "unreflected": state.unreflected + learnt}
    if rest:
        text = f"{len(now)} facts were written to memory; {len(rest)} more follow with the next turns."
        update["notices"] = [notice(state.turn, "remember", text)]
    return update


async def _write_story(
    store: BaseStore, context: Context, entries: Sequence[JSON], timeline: Sequence[Segment], where: JSON
) -> int:
    """Write what happened in the story; return the importance of what was new."""
    notes = []
    for entry in entries:
        turn, ordinal = entry["turns"][1], entry["ordinal"]
        branch = branch_of(timeline, turn)
        stamps = Stamp(branch, turn).to_json() | {
            "at": marks.turn_position(turn, ordinal),
            "turns": entry["turns"],
            "cites": [],
        }
        value = Fact.model_validate(entry["fact"]).record() | stamps | where | {"messages": entry["messages"]}
        notes.append(FactDraft(record_key(branch, turn, "fact", ordinal), value, entry["echoes"]))
    if not notes:
        return 0
    space = campaign_namespace(context.user, context.campaign, FACTS)
    await write_facts(store, space, notes, timeline=timeline)
    # What stands under its own key was new, in this attempt or in one that was killed after it had written.
    stands = await store.abatch([GetOp(space, one.key, refresh_ttl=False) for one in notes])
    return sum(one.value["importance"] for one, item in zip(notes, stands, strict=True) if item is not None)


async def _write_player(store: BaseStore, context: Context, entries: Sequence[JSON], where: JSON) -> None:
    """Write what is known of the player. It does not rewind, so its keys follow from the message and the words."""
    notes, now = [], _moment(where["said_at"])
    for entry in entries:
        turn, text = entry["turns"][1], str(entry["fact"]["text"])
        # A time tells turns apart by their last two digits, so those of the next hundred come a second later.
        hundreds = turn // 100 - entries[0]["turns"][1] // 100
        at = marks.time_position(now + timedelta(seconds=hundreds), turn, entry["ordinal"])
        value = Fact.model_validate(entry["fact"]).record() | {"at": at, "turn": turn, "campaign": context.campaign}
        value |= where | {"cites": [], "messages": entry["messages"]}
        notes.append(FactDraft(f"{marks.text_digest(entry['said'])}-{marks.text_digest(normalize(text))}", value))
    if notes:
        await write_facts(store, player_namespace(context.user, FACTS), notes)


def _told(state: DungeonState, turns: Sequence[JSON]) -> FactOrigin:
    words = [split_aside(str(turn["player"])) for turn in turns]
    # Only what the dungeon master told, rolled or had noted before can bear out what a player writes.
    replies = [render_value({name: turn[name] for name in ("rolls", "reply") if name in turn}) for turn in turns]
    name = state.character.name
    return FactOrigin(
        player="\n".join(spoken for spoken, _ in words),
        aside="\n".join(aside for _, aside in words),
        reply="\n".join([*replies, state.quest.render(), state.character.render()]),
        names=list(dict.fromkeys(filter(None, (name, *name.split()[:1])))),
    )


def _texts(state: DungeonState, recalled: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return key and words of what was recalled."""
    texts = []
    for memory in recalled:
        words = "\n".join(str(memory[part]) for part in ("text", "player", "reply") if memory.get(part))
        key = str(memory.get("key") or "")
        if not key and isinstance(turn := memory.get("turn"), int) and 0 < turn <= state.turn:
            key = record_key(branch_of(state.timeline, turn), turn, "exchange")
        texts.append((key or marks.text_digest(words), words))
    return texts


def _echoes(fact: Fact, sentence: str) -> bool:
    """Whether a fact only says what a recalled sentence says."""
    said = fact.record()
    return bool(sentence.strip()) and is_same_fact(
        said, {"text": sentence, "kind": fact.kind, "claimed_by": fact.claimed_by}
    )


def _messages(state: DungeonState, first: int, last: int) -> JSON:
    told = [m for turn, messages in split_turns(state.messages, state.turn) if first <= turn <= last for m in messages]
    asked = next((m.id for m in told if isinstance(m, HumanMessage) and m.id), "")
    return {"messages": [message.id for message in told if message.id], "said": asked}


def _moment(said_at: Any) -> datetime:
    return datetime.fromisoformat(said_at) if isinstance(said_at, str) and said_at else datetime.now(UTC)
