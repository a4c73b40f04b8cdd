"""What takes the place of memories that hold no more: the fact that holds now, and what is left of an exchange.

A question may have words in common with an old fact, or with the exchange that taught it, and none with the new fact,
which so takes its place. Where facts say what a person has told, the exchange need not.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore

from questbook.memory.facts import validity
from questbook.memory.facts.attributes import PERSON, attribute_name
from questbook.memory.facts.lookup import latest_facts
from questbook.memory.recall.query import Passage, Recalled, said_in
from questbook.memory.store.any_store import AnyItem, get_values
from questbook.memory.text.passages import Span
from questbook.memory.text.words import content_stems, is_negated
from questbook.memory.timeline.records import UNTIL
from questbook.memory.timeline.timeline import Timeline, record_key
from questbook.types import JSON

_RECORDS = 24  # recalled records, best first, whose successors are looked for; more are seldom shown
_EXCHANGES = 16  # exchanges among them whose facts are looked up
_FACTS_OF_EXCHANGE = 4  # facts of one exchange that are looked up; a turn seldom teaches more
_ANSWER_WORDS = 40  # a reply of no more words only answers what the person told
_MOST = 256  # facts, the latest, among which one looks
_SHORT = 12  # content words of a sentence that tells one thing
_SAYS_ALL = 0.6  # share of a message's words from which on its facts say all of it
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+|;\s+")
# What people say around what they tell.
_TALK = content_stems(
    "hi hello hey oh well by the way actually just wanted tell told let know you should update news guess what so yes "
    "please remember note that anymore any more now today yesterday finally after all decided think guess instead "
    "from change changed switched new old not no longer got get thanks thank good great lovely happy really"
)


async def replace_superseded(
    store: BaseStore,
    recalled: Sequence[Recalled],
    facts: validity.Namespace,
    *,
    timeline: Timeline,
    shown: Collection[str] | None = None,
) -> list[Recalled]:
    """Return the records that hold, and in the place of each that does not the fact that holds its slot now.

    A new fact also comes before an exchange that taught the old one. `shown` are the keys of facts that the prompt has
    already: exchanges come without what these and earlier facts of the list say, or have ended. None: they come whole.
    """
    told = [one for one in recalled if one.value.get("kind") == "exchange" and "branch" in one.value]
    exchange_of = {
        (facts, record_key(str(one.value["branch"]), int(one.value["turn"]), "fact", ordinal)): one.key
        for one in [one for one in told if isinstance(one.value.get("turn"), int)][:_EXCHANGES]
        for ordinal in range(_FACTS_OF_EXCHANGE)
    }
    taught: dict[str, list[validity.StoredFact]] = defaultdict(list)
    for place, value in (await get_values(store, list(exchange_of))).items():
        taught[exchange_of[place]].append(validity.StoredFact(*place, dict(value)))
    taught_facts = [fact for facts_of_one in taught.values() for fact in facts_of_one]
    records: list[AnyItem] = [*recalled, *taught_facts]
    holding, superseded = await validity.valid_and_holders(store, records, timeline)
    valid = {validity.record_id_of(record) for record in holding}
    first: list[AnyItem] = [*recalled[:_RECORDS], *taught_facts]
    ended = [record for record in first if validity.record_id_of(record) not in valid]
    successors = await _successors(store, ended, superseded, timeline)
    by_id = {validity.record_id_of(record): record for record in recalled}
    kept: dict[validity.RecordId, Recalled] = {}
    for record in recalled:
        earlier: list[AnyItem] = [*taught.get(record.key, []), record]
        known, ends = {fact.key: fact.value for fact in taught.get(record.key, [])}, dict[str, JSON]()
        for old in earlier:
            if validity.record_id_of(old) in valid:
                fact = by_id.get(validity.record_id_of(old)) if shown is not None else None
                if fact is not None and old is not record:  # a fact comes before the exchange that says it at length
                    kept.setdefault(validity.record_id_of(fact), fact)
                continue
            new = successors.get((tuple(old.namespace), str(old.value.get("slot") or "")))
            says, told_value = str(new.value.get("text") or "") if new else "", str(old.value.get("value") or "")
            # Who is no teacher may be a nurse: a fact may only deny something else than the older one told.
            if not is_negated(says) or content_stems(told_value) <= content_stems(says):
                ends[old.key] = new.value if new else {}
            if new is not None:
                replacement = Recalled(new.key, new.value, record.score, record.weight, new.namespace, record.reason)
                kept.setdefault(validity.record_id_of(new), replacement)
        if validity.record_id_of(record) in valid:
            left: Recalled | None = record
            if shown is not None and known:
                left = _what_is_left(record, known, ends, {key for _, key in kept} | set(shown))
            if left is not None:
                kept.setdefault(validity.record_id_of(record), left)
    return list(kept.values())


def _what_is_left(
    exchange: Recalled, taught: Mapping[str, JSON], ends: Mapping[str, JSON], shown: Collection[str]
) -> Recalled | None:
    """Return an exchange without what its facts say, or have ended (see `exchange_now`); None if nothing is left."""
    value = exchange.value
    player, reply = str(value.get("player") or ""), str(value.get("reply") or "")
    now = exchange_now(player, taught, ends, shown)
    if now.rest == player and not now.ended:
        return exchange
    if not now.rest.strip() and len(reply.split()) <= _ANSWER_WORDS:
        return None
    changed = value | {"player": now.rest, "text": f"{now.rest}\n{reply}"} | ({UNTIL: now.until} if now.ended else {})
    before, after = said_in(value).text, said_in(changed).text
    words = [(before[one.span.start : one.span.end], one.weight) for one in exchange.passages]
    places = [(after.find(text), text, weight) for text, weight in words]
    passages = tuple(Passage(Span(at, at + len(text)), weight) for at, text, weight in places if at >= 0)
    return exchange._replace(value=changed, passages=passages, standing=None)


async def _successors(
    store: BaseStore, ended: Sequence[AnyItem], superseded: Mapping[validity.SlotId, str], timeline: Timeline
) -> dict[tuple[validity.Namespace, str], validity.StoredFact]:
    """Return the valid facts that hold the slots of `ended` records; `superseded` names some of them already."""
    slots: dict[tuple[validity.Namespace, bool], list[str]] = defaultdict(list)
    for slot_id in filter(None, map(validity.slot_id_of, ended)):
        slots[slot_id.namespace, slot_id.rewinds].append(slot_id.slot)
    successors: dict[tuple[validity.Namespace, str], validity.StoredFact] = {}
    for (namespace, rewinds), names in slots.items():
        line = timeline if rewinds else None
        ids = {name: validity.SlotId(namespace, name, rewinds) for name in names}
        keys = {name: holder for name, slot_id in ids.items() if (holder := superseded.get(slot_id))}
        missing = [name for name in ids if name not in keys]
        keys |= await validity.find_holders(store, namespace, missing, timeline=line)
        records = await validity.read_records(store, namespace, keys.values())
        held = {slot: validity.StoredFact(namespace, key, records[key]) for slot, key in keys.items() if key in records}
        successors |= {(namespace, slot): fact for slot, fact in held.items()}
    holding = await validity.keep_valid(store, list(successors.values()), timeline=timeline)
    valid = set(map(validity.record_id_of, holding))
    return {slot: fact for slot, fact in successors.items() if validity.record_id_of(fact) in valid}


class EndedFact(NamedTuple):
    """The record of a fact that holds no more, and that of the fact that holds its slot now."""

    old: JSON
    new: JSON

    @property
    def until(self) -> str:
        """The day on which the new fact was said, ISO 8601; "" if it is unknown."""
        return str(self.new.get("said_at") or "")[:10]


async def find_ended(store: BaseStore, namespace: validity.Namespace, *, timeline: Timeline) -> list[EndedFact]:
    """Return the facts about the person that a later fact of their slot has ended, of the latest 256."""
    only = {"subject": PERSON, "slot": {"$ne": ""}}
    items = await latest_facts(store, namespace, only, timeline=timeline, count=_MOST)
    holding = {item.key for item in await validity.keep_valid(store, items, timeline=timeline)}
    by_time = sorted(items, key=lambda item: validity.position_of(item.value))
    newest = {str(item.value["slot"]): item for item in by_time}
    return [
        EndedFact(item.value, newest[str(item.value["slot"])].value)
        for item in items
        if item.key not in holding and newest[str(item.value["slot"])].key != item.key
    ]


def _tells_old(text: str, ended: EndedFact) -> bool:
    """Return whether a sentence of a text gives a property the value that has ended, and not the one that holds."""
    old, new = (content_stems(str(record.get("value") or "")) for record in ended)
    attribute = str(ended.old.get("attribute") or "")
    names = f"{attribute} {attribute_name(attribute)} {ended.old.get('text') or ''} {ended.new.get('attribute') or ''}"
    about = content_stems(names) - old - content_stems(str(ended.old.get("subject") or ""))
    sentences = [(sentence, content_stems(sentence)) for sentence in _SENTENCE.split(text)] if old else []
    told = [(said, words) for said, words in sentences if old <= words and not (new - old and new <= words)]
    # About the property: "Home: Oslo", not "studied in Oslo".
    label = attribute_name(attribute)
    return any(words & about or (":" in said and attribute_name(said.split(":")[0]) == label) for said, words in told)


def outdated_sections(sections: Mapping[str, str], ended: Iterable[EndedFact]) -> dict[str, list[EndedFact]]:
    """Return the labels of those of a page's sections that tell what has ended, each with the facts."""
    told = list(ended)
    found = {label: [fact for fact in told if _tells_old(text, fact)] for label, text in sections.items()}
    return {label: facts for label, facts in found.items() if facts}


class ExchangeNow(NamedTuple):
    """What is left of what a person said, now that its facts are known."""

    rest: str  # the sentences that tell more than its facts; "" if the prompt can do without all of it
    ended: bool  # whether anything that it told has ended
    until: str  # the day until which that was so, ISO 8601; "" if nothing has ended, or the day is unknown


def exchange_now(
    message: str, taught: Mapping[str, JSON], ends: Mapping[str, JSON], shown: Collection[str] = ()
) -> ExchangeNow:
    """Judge what a person said by the facts that it taught: what has ended is not missed, nor what a shown fact says.

    `ends` has for the keys of facts that have ended the record of the fact in their place; {} if none is known.
    """
    old = [value for key, value in taught.items() if key in ends]
    holding = [value for key, value in taught.items() if key not in ends]
    said = [value for key, value in taught.items() if key in shown]
    rest = [
        sentence
        for sentence in _SENTENCE.split(message)
        if content_stems(sentence) - _TALK
        and not (taught and (_is_ended(sentence, old, holding) or says_all(sentence, said)))
    ]
    until = max((str(ends[key].get("said_at") or "")[:10] for key in taught if key in ends), default="")
    return ExchangeNow(" ".join(rest) if taught else message, bool(old), until)


def _is_ended(sentence: str, old: Sequence[JSON], holding: Sequence[JSON]) -> bool:
    """Return whether a sentence, if it is short, tells the value of a fact that has ended, and of none that holds."""
    words = content_stems(sentence)
    tells_old, tells_holding = (
        any(one.get("value") and content_stems(str(one["value"])) <= words for one in facts) for facts in (old, holding)
    )
    return len(words) <= _SHORT and not tells_holding and (tells_old or says_all(sentence, old))


def says_all(sentence: str, facts: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether facts have most of the words of a sentence, which then tells nothing more."""
    told = [str(fact.get(part) or "") for fact in facts for part in ("text", "subject", "attribute", "value")]
    names = [attribute_name(str(fact.get("attribute") or "")) for fact in facts]
    known = content_stems(" ".join([*told, *names])) | _TALK
    words = content_stems(sentence) - _TALK
    return bool(facts) and len(words & known) >= _SAYS_ALL * len(words)
