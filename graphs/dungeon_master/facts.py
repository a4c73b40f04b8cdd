"""The facts of a campaign: what is known before the notes, what the notes teach, and the node that writes it.

What `update_state` reads as facts and secrets waits in the channel `facts`; the node `remember` writes it to the store
once its turn has a place on the timeline. What cannot be written stays in the channel, for the next turn.

What a player writes is an attempt or a claim, so a fact that rests on it alone is theirs (`classify_fact`).
"""

import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple, cast

from langgraph.runtime import Runtime
from langgraph.store.base import PutOp
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.state import DungeonState, WaitingFact
from questbook.graphs.dungeon_master.told_rolls import ToldRolls
from questbook.graphs.turn.notes import attribute_lines, known_slots
from questbook.graphs.turn.recall import FACTS
from questbook.graphs.turn.state import Memory, Turn, failure_notice, notice
from questbook.graphs.turn.turn import head_ops, messages_of, origin_of, remember_turns
from questbook.memory.facts.fact import MAX_FIELD, MAX_TEXT, Fact, FactWords
from questbook.memory.facts.lookup import find_slots, subjects_in
from questbook.memory.facts.reading import SUPPORT, read_facts, share_of, sounds_unreal
from questbook.memory.facts.relations import is_same_fact
from questbook.memory.facts.validity import keep_valid, text_digest, time_position, turn_position
from questbook.memory.facts.writing import FactChanges, FactDraft, write_facts
from questbook.memory.store.any_store import newest_items
from questbook.memory.text.words import content_stems, normalize, numbers_in
from questbook.memory.timeline.namespaces import player_namespace
from questbook.memory.timeline.records import Stamp, read_time
from questbook.memory.timeline.timeline import Segment, branch_of, read_timeline, record_key, visible_filters
from questbook.notebooks import NotebookError, StateNotebook, render_value
from questbook.notebooks.schema import tool_schema
from questbook.types import JSON

_WRITTEN_AT_ONCE = 64  # facts that one turn writes; the rest wait for the next
_MOST_WAITING = 500  # facts that may wait
_KNOWN_PEOPLE = 4  # the player's character and people whom turns name: a search for the facts of each
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_ASIDE = re.compile(
    r"\(\((?P<a>.*?)(?:\)\)|$)"  # ((brb)), also unclosed
    r"|[(\[]\s*(?:ooc|out of character)\b[:\s]*(?P<b>[^)\]]*)[)\]]?"  # (OOC: …), [ooc …]
    r"|(?:(?m:^)[^\S\n]*|(?<=[.!?])\s*)(?:ooc|out of character)\s*:\s*(?P<c>[^\n]*)",  # OOC: … to the end of the line
    re.IGNORECASE | re.DOTALL,
)
_PLAYER_NAMES = frozenset(
    {"player", "the player", "player character", "the party", "party", "you", "pc", "everyone", "everybody", "all"}
)
_FACT_FIELDS: Mapping[str, JSON] = {
    "story_time": {"type": "string", "description": "day 3, dusk"},
    "known_by": {"type": "array", "items": {"type": "string"}, "description": "Empty: all present."},
    "about": {"type": "string", "enum": ["story", "player"]},
}
FACT_WORDS = FactWords("home, attitude, whereabouts", "what the story turns on", secrets=True, fields=_FACT_FIELDS)
_log = logging.getLogger(__name__)


class NewFacts(NamedTuple):
    """All facts that wait to be written, those of earlier turns first; and what could not be kept, as a notice says."""

    facts: list[JSON]
    remarks: list[tuple[str, str]]


async def remember(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Store each turn that is not stored yet; then, as it has its place on the timeline, the facts that wait."""
    update = await remember_turns(state, runtime)
    if runtime.store is None:
        return update | {"facts": []}
    if "remembered_through" not in update:
        return update
    return update | await write_waiting_facts(state, runtime, read_timeline(update), origin_of(runtime))


async def story_attributes(
    state: DungeonState, runtime: Runtime[Context], turns: Sequence[Turn], recalled: Iterable[Memory]
) -> str:
    """List the known attributes of the character, of people whom turns name, and of what was recalled; secrets, too."""
    store, context = runtime.store, runtime.context
    if store is None:
        return ""
    text = "\n".join(str(turn[part]) for turn in turns for part in ("player", "reply"))
    people = [state.character.name, *sorted(subjects_in(text, state.quest.people))]  # a reply calls the character "you"
    namespace, named = context.campaign_namespace(FACTS), list(filter(None, people))[:_KNOWN_PEOPLE]
    keys = [key for memory in recalled for key in (memory.get("key"), *memory.get("tells", ())) if key]
    before = state.remembered_through + 1  # a turn without a place yet may have the number of another future's
    slots = await known_slots(store, namespace, turns, named, keys=keys, timeline=state.timeline, before=before)
    # Only talk out of character is about the person who plays.
    if aside := "\n".join(split_aside(str(turn["player"]))[1] for turn in turns).strip():
        slots += await find_slots(store, player_namespace(context.user, FACTS), aside)
    return "\n".join(attribute_lines(slots))


def read_new_facts(
    state: DungeonState, turns: Sequence[Turn], arguments: Sequence[Any], recalled: Iterable[Memory]
) -> NewFacts:
    """Read what the model sent as facts of some turns; what only repeats a memory of the prompt `echoes` its key."""
    facts, oddities = read_facts(list(arguments), datetime.now(UTC).astimezone(), day=state.quest.clock.day)
    if oddities:
        _log.info("Facts of turn %d: %s", state.turn, " ".join(oddities))
    lost = any("left out" in oddity or "were read" in oddity for oddity in oddities)
    remarks = [("Not every fact of this turn could be kept.", " ".join(oddities))] if lost else []
    origin, texts = _origin(state, turns), _memory_texts(state, recalled)
    sentences = [(key, sentence) for key, text in texts for sentence in _SENTENCE_END.split(text)]
    first, last = turns[0]["turn"], turns[-1]["turn"]
    new, messages = list[JSON](), messages_of(state, first, last)
    first_ordinal = sum(entry["turns"][1] == last for entry in state.facts)
    for ordinal, fact in enumerate((classify_fact(fact, origin) for fact in facts), first_ordinal):
        # Without its slot, which spells names in a way of its own, so that `forget` would not find them here.
        fields = fact.model_dump()
        echoes = next((key for key, sentence in sentences if _repeats(fields, sentence)), "")
        new.append({"turns": [first, last], "ordinal": ordinal, "fact": fields, "echoes": echoes} | messages)
    if left_out := max(0, len(state.facts) + len(new) - _MOST_WAITING):
        remarks.append((f"{left_out} facts were left out: {_MOST_WAITING} wait to be written already.", ""))
    return NewFacts([*state.facts, *new][:_MOST_WAITING], remarks)


class KeepSecret(BaseModel):
    """Keep what only you know and the player may find out later: who lies, what waits behind a door, what a foe plans.

    Call it beside the text of your answer, never in its place. The player is not shown it.
    """

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    about: str = Field(min_length=1, max_length=MAX_FIELD, description="Whom or what it is about, by name.")
    secret: str = Field(min_length=1, max_length=MAX_TEXT, description="A sentence that can be understood by itself.")


KEEP_SECRET: JSON = tool_schema("keep_secret", KeepSecret)


def read_secrets(arguments: Iterable[Any]) -> list[JSON]:
    """Return the secrets in the arguments of calls, as {"about", "secret"}; what does not fit is left out."""
    secrets = []
    for each in arguments:
        with suppress(ValidationError):
            secrets.append(KeepSecret.model_validate(each).model_dump())
    return secrets


def with_secrets(state: DungeonState) -> tuple[StateNotebook, list[JSON]]:
    """Return the quest's page with the new secrets, and facts of them that wait to be written.

    A subject of which the page has another secret gets a number, "Oda (2)". What does not fit on a full page is still
    among the facts.
    """
    if not state.new_secrets:
        return state.quest, []
    page, told = state.quest, ToldRolls(roll for roll in state.rolls if roll.get("turn") == state.turn)
    where = {"turns": [state.turn, state.turn], "echoes": ""} | messages_of(state, state.turn, state.turn)
    first_ordinal, facts = sum(entry["turns"][1] == state.turn for entry in state.facts), list[JSON]()
    for ordinal, new in enumerate(read_secrets(state.new_secrets), first_ordinal):  # a person may have edited them
        about, secret = new["about"], told.marked(new["secret"])[:MAX_TEXT]
        fact = Fact(kind="secret", text=secret, subject=about).model_dump()
        known = {normalize(name): text for name, text in page.secrets.items()}
        names = (f"{about} ({n})" if n > 1 else about for n in count(1))
        name, old = next((n, old) for n in names if not (old := known.get(normalize(n), "")) or _repeats(fact, old))
        with suppress(NotebookError):
            page = page.apply({"secrets": {name: max(old, secret, key=len)}}).page
        facts.append(where | {"ordinal": ordinal, "fact": fact})
    return page, facts


async def write_waiting_facts(
    state: DungeonState, runtime: Runtime[Context], timeline: Sequence[Segment], origin: Mapping[str, Any]
) -> JSON:
    """Write the facts that wait; return the channels to write.

    The campaign's head moves again with the last of them: a new session would write them once more. `timeline` is the
    one after the turn's claim; `origin` says where the turn was played (`origin_of`).
    """
    store, context = runtime.store, runtime.context
    if not state.facts or store is None:
        return {}
    waiting = cast("list[WaitingFact]", state.facts)
    now, rest = waiting[:_WRITTEN_AT_ONCE], waiting[_WRITTEN_AT_ONCE:]
    where = {name: origin.get(name) for name in ("thread", "checkpoint", "said_at")}
    # What has waited long may have the field by its older name.
    of_player = [entry for entry in now if entry["fact"].get("of_person", entry["fact"].get("of_player"))]
    of_story, story = [entry for entry in now if entry not in of_player], list[FactDraft]()

    def head(facts: list[WaitingFact], importance: int) -> list[PutOp]:
        after = {"timeline": timeline, "facts": facts, "unreflected": state.unreflected + importance}
        return head_ops(state.model_copy(update=after), timeline, context, origin.get("thread"))

    def gained(changes: FactChanges) -> int:
        # What repeats nothing was new, in this attempt or in one that was killed after it had written.
        return sum(draft.value["importance"] for draft in story if draft.key not in changes.repetitions)

    importance = 0
    try:
        if story := [_story_draft(entry, timeline, where) for entry in of_story]:
            namespace = context.campaign_namespace(FACTS)
            changes = await write_facts(
                store, namespace, story, timeline=timeline, also=lambda new: head([*of_player, *rest], gained(new))
            )
            importance = gained(changes)
            of_story = []
        if of_player:
            namespace, drafts = player_namespace(context.user, FACTS), _player_drafts(of_player, context, where)
            await write_facts(store, namespace, drafts, also=lambda _: head(rest, importance))
    except Exception as error:  # noqa: BLE001 (any store or embedder may be behind this; no fact may be lost by it)
        waiting = [*of_story, *of_player, *rest]
        text = f"{len(waiting)} facts were not written to memory; the next turn will write them."
        notices = [failure_notice(state.turn, "remember", text, error)]
        return {"facts": waiting, "unreflected": state.unreflected + importance, "notices": notices}
    update: JSON = {"facts": rest, "unreflected": state.unreflected + importance}
    if rest:
        text = f"{len(now)} facts were written to memory; {len(rest)} more follow with the next turns."
        update["notices"] = [notice(state.turn, "remember", text)]
    return update


async def noted_facts(state: DungeonState, runtime: Runtime[Context], first: int, last: int) -> dict[int, list[str]]:
    """Return the facts that were noted of turns `first` to `last` and hold, by turn; no secret, rumour or claim."""
    if runtime.store is None:
        return {}
    namespace = runtime.context.campaign_namespace(FACTS)
    filters = visible_filters(state.timeline, last + 1, first=first)
    facts: dict[int, list[str]] = {}
    records = await newest_items(runtime.store, namespace, filters, _MOST_WAITING)
    for record in await keep_valid(runtime.store, records, timeline=state.timeline):
        value = record.value
        if value["kind"] not in ("secret", "rumour") and not value.get("claimed_by") and not value.get("cites"):
            facts.setdefault(value["turn"], []).append(value["text"])
    return facts


class FactOrigin(NamedTuple):
    """The words that facts may come from."""

    player: str  # what the player wrote in character
    aside: str  # what the player wrote out of character
    reply: str  # what the dungeon master, the dice and the pages say
    names: Collection[str] = ()  # names of the player's character


def split_aside(text: str) -> tuple[str, str]:
    """Split a player's message into what is in character and what is out of character ("((brb))", "OOC: …")."""
    asides = [next((part for part in match.groups() if part), "").strip() for match in _ASIDE.finditer(text)]
    return _ASIDE.sub(" ", text).strip(), " ".join(aside for aside in asides if aside)


def classify_fact(fact: Fact, origin: FactOrigin) -> Fact:
    """Return a fact, as a model gave it, as what it is: a fact, a preference of the player's, a rumour, a secret."""
    names = {word for name in origin.names for word in content_stems(name)}
    words = content_stems(fact.text) - content_stems(fact.subject) - names or content_stems(fact.text)
    spoken, aside, reply = (share_of(words, text) for text in (origin.player, origin.aside, origin.reply))
    if aside > SUPPORT and aside > max(spoken, reply):
        return fact.model_copy(update={"kind": "preference", "of_person": True, "claimed_by": ""})
    if fact.kind in ("event", "trait") and not fact.of_person and not fact.claimed_by:
        only_spoken = reply == 0 and spoken >= SUPPORT
        own_numbers = numbers_in(f"{fact.text} {fact.value}") & numbers_in(origin.player) - numbers_in(origin.reply)
        if only_spoken or own_numbers or _is_self_description(fact, origin):
            speaker = next(iter(origin.names), "") or "the player"
            return fact.model_copy(update={"kind": "rumour", "claimed_by": speaker})
        if sounds_unreal(fact.text):
            return fact.model_copy(update={"kind": "rumour"})
    if fact.kind == "secret" and _is_player(fact.claimed_by, origin):
        return fact.model_copy(update={"kind": "rumour"})  # the speaker knows it, so it is no secret
    if fact.kind in ("event", "trait") and fact.known_by and not any(_is_player(n, origin) for n in fact.known_by):
        return fact.model_copy(update={"kind": "secret"})
    return fact


def _story_draft(entry: WaitingFact, timeline: Sequence[Segment], where: JSON) -> FactDraft:
    turn, ordinal = entry["turns"][1], entry["ordinal"]
    branch = branch_of(timeline, turn)
    value = Fact.model_validate(entry["fact"]).record() | Stamp(branch, turn).to_json() | where
    value |= {"at": turn_position(turn, ordinal), "turns": entry["turns"], "cites": [], "messages": entry["messages"]}
    return FactDraft(record_key(branch, turn, "fact", ordinal), value, entry["echoes"])


def _player_drafts(entries: Sequence[WaitingFact], context: Context, where: JSON) -> list[FactDraft]:
    """Make the records of what is known of the player: it does not rewind, so keys follow from message and words."""
    drafts, now = [], read_time(str(where["said_at"])) or datetime.now(UTC)
    for entry in entries:
        turn, text = entry["turns"][1], str(entry["fact"]["text"])
        # A time orders turns by their last two digits, so those of the next hundred come a second later.
        hundreds = turn // 100 - entries[0]["turns"][1] // 100
        at = time_position(now + timedelta(seconds=hundreds), turn, entry["ordinal"])
        value = Fact.model_validate(entry["fact"]).record() | {"at": at, "turn": turn, "campaign": context.campaign}
        value |= where | {"cites": [], "messages": entry["messages"]}
        drafts.append(FactDraft(f"{text_digest(entry['said'])}-{text_digest(normalize(text))}", value))
    return drafts


def _origin(state: DungeonState, turns: Sequence[Turn]) -> FactOrigin:
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


def _memory_texts(state: DungeonState, recalled: Iterable[Memory]) -> list[tuple[str, str]]:
    texts = []
    for memory in recalled:
        words = "\n".join(str(memory[part]) for part in ("text", "player", "reply") if memory.get(part))
        key = str(memory.get("key") or "")
        if not key and isinstance(turn := memory.get("turn"), int) and 0 < turn <= state.turn:
            key = record_key(branch_of(state.timeline, turn), turn, "exchange")
        texts.append((key or text_digest(words), words))
    return texts


def _repeats(fact: JSON, sentence: str) -> bool:
    recalled = {"text": sentence, "kind": fact["kind"], "claimed_by": fact["claimed_by"]}
    return bool(sentence.strip()) and is_same_fact(fact, recalled)


def _is_self_description(fact: Fact, origin: FactOrigin) -> bool:
    """Whether a fact gives the player's character a value that the player alone has named."""
    value = content_stems(fact.value)
    about_self = bool(value) and fact.kind == "trait" and _is_player(fact.subject, origin)
    return about_self and value <= content_stems(origin.player) and not value & content_stems(origin.reply)


def _is_player(name: str, origin: FactOrigin) -> bool:
    who = normalize(name)
    return bool(who) and (who in _PLAYER_NAMES or any(content_stems(name) & content_stems(own) for own in origin.names))
