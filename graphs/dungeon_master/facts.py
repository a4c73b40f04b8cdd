"""The facts of a campaign: what the notes are shown as known, what they teach, and how that gets into the store.

`update_state` shows the model `known_attributes` and reads its answer with `read_new_facts` into the channel `facts`.
`remember` writes them with `write_waiting_facts` once their turn has its place on the timeline. What cannot be written
stays in the channel, and the next turn writes it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from questbook.graphs.dungeon_master.classification import FactOrigin, classify_fact, split_aside
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.facts import FACTS, attribute_lines, messages_of
from questbook.graphs.turn.sessions import head_ops
from questbook.graphs.turn.turn import notice
from questbook.memory.facts import ledger
from questbook.memory.facts.fact import Fact
from questbook.memory.facts.likeness import is_same_fact
from questbook.memory.facts.lookup import find_slots, subjects_in
from questbook.memory.facts.reading import read_facts
from questbook.memory.facts.validity import keep_valid
from questbook.memory.facts.writing import FactChanges, FactDraft, write_facts
from questbook.memory.store.any_store import newest_items
from questbook.memory.text.comparison import normalize
from questbook.memory.timeline.namespaces import player_namespace
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import Segment, branch_of, record_key, visible_filters
from questbook.notebooks import render_value
from questbook.types import JSON

_WRITTEN_AT_ONCE = 64  # facts that one turn writes; the rest wait for the next
_MOST_WAITING = 500  # facts that may wait
_KNOWN_PEOPLE = 4  # the player's character and people whom turns name: a search for the facts of each
_NO_FACTS = ("exchange", "lore")  # kinds of memories
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_log = logging.getLogger(__name__)


class NewFacts(NamedTuple):
    """What the model's notes taught.

    Attributes:
        facts: All facts that wait to be written, those of earlier turns first.
        remarks: What could not be kept, for people, each with a detail for developers.
    """

    facts: list[JSON]
    remarks: list[tuple[str, str]]


async def known_attributes(
    state: DungeonState, runtime: Runtime[Context], turns: Sequence[JSON], recalled: Iterable[Mapping[str, Any]]
) -> str:
    """List the known attributes of the character, of people whom turns name, and of what was recalled for them.

    A line is {"subject", "attributes"}. Attributes of secrets are among them: the notes are the dungeon master's own.

    Args:
        state: The state before the notes.
        runtime: With a store, or nothing is known.
        turns: The turns to note, as `state.transcript` has them.
        recalled: The memories in the prompt.
    """
    if runtime.store is None:
        return ""
    context = runtime.context
    text = "\n".join(str(turn[part]) for turn in turns for part in ("player", "reply"))
    keys = [str(memory["key"]) for memory in recalled if memory.get("key") and memory.get("kind") not in _NO_FACTS]
    own = state.character.name or ""  # a reply calls the character "you"
    people = [own, *sorted(subjects_in(text, state.quest.people))]
    slots = await find_slots(
        runtime.store,
        context.campaign_namespace(FACTS),
        text,
        subjects=list(filter(None, people))[:_KNOWN_PEOPLE],
        keys=keys,
        timeline=state.timeline,
        before=state.remembered_through + 1,  # a turn without a place yet may have the number of another future's
    )
    named = subjects_in(f"{text}\n{own}", (slot.subject for slot in slots))
    shown = [slot for slot in slots if slot.key in keys or slot.subject in named]
    aside = "\n".join(split_aside(str(turn["player"]))[1] for turn in turns).strip()
    if aside:  # only talk out of character is about the person who plays
        shown += await find_slots(runtime.store, player_namespace(context.user, FACTS), aside)
    return "\n".join(attribute_lines(shown))


def read_new_facts(
    state: DungeonState, turns: Sequence[JSON], arguments: Sequence[Any], recalled: Iterable[Mapping[str, Any]]
) -> NewFacts:
    """Read what the model sent as facts of some turns: of the story or the player, told, claimed or a rumour.

    Args:
        state: The state before the notes.
        turns: The turns, as `state.transcript` has them.
        arguments: Arguments of the model's calls of the tool `Facts`.
        recalled: The memories in the prompt: a fact that only repeats one is not new.
    """
    now = datetime.now(UTC).astimezone()
    facts, oddities = read_facts(list(arguments), now, day=state.quest.clock.day, of_story=True)
    if oddities:
        _log.info("Facts of turn %d: %s", state.turn, " ".join(oddities))
    lost = any("left out" in oddity or "were read" in oddity for oddity in oddities)
    remarks = [("Not every fact of this turn could be kept.", " ".join(oddities))] if lost else []
    origin = _origin(state, turns)
    sentences = [
        (key, sentence) for key, text in _memory_texts(state, recalled) for sentence in _SENTENCE_END.split(text)
    ]
    first, last = turns[0]["turn"], turns[-1]["turn"]
    messages = messages_of(state, first, last)
    new: list[JSON] = []
    first_ordinal = sum(entry["turns"][1] == last for entry in state.facts)
    for ordinal, fact in enumerate((classify_fact(fact, origin) for fact in facts), first_ordinal):
        record = fact.record()
        echoes = next((key for key, sentence in sentences if _repeats(record, sentence)), "")
        new.append({"turns": [first, last], "ordinal": ordinal, "fact": fact.model_dump(), "echoes": echoes} | messages)
    left_out = max(0, len(state.facts) + len(new) - _MOST_WAITING)
    if left_out:
        remarks.append((f"{left_out} facts were left out: {_MOST_WAITING} wait to be written already.", ""))
    return NewFacts([*state.facts, *new][:_MOST_WAITING], remarks)


def secret_facts(state: DungeonState, secrets: Sequence[Mapping[str, str]]) -> list[JSON]:
    """Make facts that wait to be written of secrets of the current turn, {"about", "secret"}."""
    where = {"turns": [state.turn, state.turn], "echoes": ""} | messages_of(state, state.turn, state.turn)
    first_ordinal = sum(entry["turns"][1] == state.turn for entry in state.facts)
    facts = [Fact(kind="secret", text=new["secret"], subject=new["about"]) for new in secrets]
    return [where | {"ordinal": n, "fact": fact.model_dump()} for n, fact in enumerate(facts, first_ordinal)]


async def write_waiting_facts(
    state: DungeonState, runtime: Runtime[Context], timeline: Sequence[Segment], origin: Mapping[str, Any]
) -> JSON:
    """Write the facts that wait; return the channels to write.

    The campaign's head was moved with the exchange, before the facts were written, so that a crash loses none. It moves
    again with the last of them: a new session would write them once more.

    Args:
        state: The state; the turns of its facts have their places on the timeline.
        runtime: With a store.
        timeline: The timeline after the turn's claim.
        origin: Where the turn was played: `thread`, `checkpoint`, `said_at`.
    """
    if not state.facts or runtime.store is None:
        return {}
    now, rest = state.facts[:_WRITTEN_AT_ONCE], state.facts[_WRITTEN_AT_ONCE:]
    where = {name: origin.get(name) for name in ("thread", "checkpoint", "said_at")}
    of_player, of_story = (
        [entry for entry in now if Fact.model_validate(entry["fact"]).of_person == mine] for mine in (True, False)
    )

    def head(facts: list[JSON], importance: int) -> list[PutOp]:
        after = {"timeline": timeline, "facts": facts, "unreflected": state.unreflected + importance}
        return head_ops(state.model_copy(update=after), timeline, runtime.context, origin.get("thread"))

    importance = 0
    try:
        left = partial(head, [*of_player, *rest])
        importance = await _write_story(runtime.store, runtime.context, of_story, timeline, where, left)
        of_story = []
        await _write_player(runtime.store, runtime.context, of_player, where, head(rest, importance))
    except Exception as error:  # noqa: BLE001 (any store or embedder may be behind this; no fact may be lost by it)
        _log.warning("Facts of turn %d were not written: %s", state.turn, error, exc_info=True)
        waiting = [*of_story, *of_player, *rest]
        text = f"{len(waiting)} facts were not written to memory; the next turn will write them. {error}"
        notices = [notice(state.turn, "remember", text)]
        return {"facts": waiting, "unreflected": state.unreflected + importance, "notices": notices}
    update: JSON = {"facts": rest, "unreflected": state.unreflected + importance}
    if rest:
        text = f"{len(now)} facts were written to memory; {len(rest)} more follow with the next turns."
        update["notices"] = [notice(state.turn, "remember", text)]
    return update


async def noted_facts(state: DungeonState, runtime: Runtime[Context], first: int, last: int) -> dict[int, list[str]]:
    """Return the facts that were noted of turns `first` to `last` and hold, by turn: sentences that a player may read.

    What is secret, a rumour or somebody's claim is left out.
    """
    if runtime.store is None:
        return {}
    namespace = runtime.context.campaign_namespace(FACTS)
    since = f"{first:08}"
    filters = [
        {**segment, "order": {**segment["order"], "$gte": since}}
        for segment in visible_filters(state.timeline, last + 1)
        if segment["order"]["$lte"] >= since
    ]
    facts: dict[int, list[str]] = {}
    records = await newest_items(runtime.store, namespace, filters, _MOST_WAITING)
    for record in await keep_valid(runtime.store, records, timeline=state.timeline):
        value = record.value
        if value["kind"] not in ("secret", "rumour") and not value.get("claimed_by") and not value.get("cites"):
            facts.setdefault(value["turn"], []).append(value["text"])
    return facts


async def _write_story(
    store: BaseStore,
    context: Context,
    entries: Sequence[JSON],
    timeline: Sequence[Segment],
    where: JSON,
    head: Callable[[int], list[PutOp]],
) -> int:
    """Write what happened in the story, and the head after it; return the importance of what was new."""
    drafts = []
    for entry in entries:
        turn, ordinal = entry["turns"][1], entry["ordinal"]
        branch = branch_of(timeline, turn)
        stamp = Stamp(branch, turn).to_json() | {
            "at": ledger.turn_position(turn, ordinal),
            "turns": entry["turns"],
            "cites": [],
        }
        value = Fact.model_validate(entry["fact"]).record() | stamp | where | {"messages": entry["messages"]}
        drafts.append(FactDraft(record_key(branch, turn, "fact", ordinal), value, entry["echoes"]))
    if not drafts:
        return 0
    namespace = context.campaign_namespace(FACTS)

    def importance(changes: FactChanges) -> int:
        # What repeats nothing was new, in this attempt or in one that was killed after it had written.
        return sum(draft.value["importance"] for draft in drafts if draft.key not in changes.repetitions)

    return importance(
        await write_facts(store, namespace, drafts, timeline=timeline, also=lambda c: head(importance(c)))
    )


async def _write_player(
    store: BaseStore, context: Context, entries: Sequence[JSON], where: JSON, head: list[PutOp]
) -> None:
    """Write what is known of the player, and the head after it.

    It does not rewind, so its keys follow from the message and the words.
    """
    drafts, now = [], _moment(where["said_at"])
    for entry in entries:
        turn, text = entry["turns"][1], str(entry["fact"]["text"])
        # A time orders turns by their last two digits, so those of the next hundred come a second later.
        hundreds = turn // 100 - entries[0]["turns"][1] // 100
        at = ledger.time_position(now + timedelta(seconds=hundreds), turn, entry["ordinal"])
        value = Fact.model_validate(entry["fact"]).record() | {"at": at, "turn": turn, "campaign": context.campaign}
        value |= where | {"cites": [], "messages": entry["messages"]}
        drafts.append(FactDraft(f"{ledger.text_digest(entry['said'])}-{ledger.text_digest(normalize(text))}", value))
    if drafts:
        await write_facts(store, player_namespace(context.user, FACTS), drafts, also=lambda _: head)


def _origin(state: DungeonState, turns: Sequence[JSON]) -> FactOrigin:
    words = [split_aside(str(turn["player"])) for turn in turns]
    # Only what the dungeon master told, rolled or had noted before can confirm what a player writes.
    replies = [render_value({name: turn[name] for name in ("rolls", "reply") if name in turn}) for turn in turns]
    name = state.character.name
    return FactOrigin(
        player="\n".join(spoken for spoken, _ in words),
        aside="\n".join(aside for _, aside in words),
        reply="\n".join([*replies, state.quest.render(), state.character.render()]),
        names=list(dict.fromkeys(filter(None, (name, *name.split()[:1])))),
    )


def _memory_texts(state: DungeonState, recalled: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return key and words of each memory."""
    texts = []
    for memory in recalled:
        words = "\n".join(str(memory[part]) for part in ("text", "player", "reply") if memory.get(part))
        key = str(memory.get("key") or "")
        if not key and isinstance(turn := memory.get("turn"), int) and 0 < turn <= state.turn:
            key = record_key(branch_of(state.timeline, turn), turn, "exchange")
        texts.append((key or ledger.text_digest(words), words))
    return texts


def _repeats(record: JSON, sentence: str) -> bool:
    """Whether a fact only says what a recalled sentence says."""
    recalled = {"text": sentence, "kind": record["kind"], "claimed_by": record["claimed_by"]}
    return bool(sentence.strip()) and is_same_fact(record, recalled)


def _moment(said_at: Any) -> datetime:
    return datetime.fromisoformat(said_at) if isinstance(said_at, str) and said_at else datetime.now(UTC)
