"""What facts have ended: in a section of core memory that tells the old value, and in the exchange that taught it.

A fact that ends another leaves the words that told the old one where they are. These functions say which words those
are, so that a prompt leaves them out or shows them as past.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, SearchItem

from questbook.memory.facts.attributes import PERSON, attribute_name
from questbook.memory.facts.latest import latest_facts
from questbook.memory.facts.marks import Namespace, position_of
from questbook.memory.facts.validity import keep_valid
from questbook.memory.recall.intents import is_standing
from questbook.memory.text.wording import content_stems, normalize
from questbook.memory.timeline.timeline import Segment
from questbook.types import JSON

_MOST = 256  # facts, the latest, among which one looks
_SHORT = 12  # content words of a sentence that tells one thing
_SAYS_ALL = 0.6  # share of a message's words from which on its facts say all of it
_MINE = re.compile(r"^(?:my|our|mein\w*|unser\w*)\s+", re.I)
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+|;\s+")
# What people say around what they tell.
_TALK = content_stems(
    "hi hello hey oh well by the way actually just wanted tell told let know you should update news guess what so yes "
    "please remember note that anymore any more now today yesterday finally after all decided think guess instead "
    "from change changed switched new old not no longer got get thanks thank good great lovely happy really"
)
_WANTS = re.compile(
    r"\b(?:wants?|would like|wishes|prefers?|asks?|expects?) (?:(?:the )?(?:assistant|answers?|replies|responses)"
    r"|you|to be"
    r" (?:answered|addressed|called|told|asked))\b|\bmöchte, dass\b",
    re.I,
)


class EndedFact(NamedTuple):
    """A fact that holds no more."""

    old: JSON  # its record
    new: JSON  # the record of the fact that holds its slot now

    @property
    def until(self) -> str:
        """The day on which the new fact was said, ISO 8601; "" if it is unknown."""
        return str(self.new.get("said_at") or "")[:10]


async def find_ended(
    store: BaseStore, namespace: Namespace, *, timeline: Sequence[Segment], subject: str = PERSON
) -> list[EndedFact]:
    """Return the facts about a subject that a later fact of their slot has ended, of the latest 256.

    Costs the reads of `latest_facts` and `keep_valid`.

    Args:
        store: Any store.
        namespace: Namespace of the facts.
        timeline: The timeline that asks.
        subject: Whom they are about.
    """
    only = {"subject": subject, "slot": {"$ne": ""}}
    items = await latest_facts(store, namespace, only, timeline=timeline, count=_MOST)
    holding = {item.key for item in await keep_valid(store, items, timeline=timeline)}
    newest = {str(item.value["slot"]): item for item in sorted(items, key=lambda item: position_of(item.value))}
    return [
        EndedFact(item.value, newest[str(item.value["slot"])].value)
        for item in items
        if item.key not in holding and newest[str(item.value["slot"])].key != item.key
    ]


def tells_old(text: str, ended: EndedFact) -> bool:
    """Return whether a sentence of a text gives a property the value that has ended, and not the one that holds.

    Args:
        text: Any text, such as a section of core memory, a fact a line.
        ended: The fact that has ended, and its successor.
    """
    old, new = (content_stems(str(record.get("value") or "")) for record in ended)
    attribute = str(ended.old.get("attribute") or "")
    names = f"{attribute} {attribute_name(attribute)} {ended.old.get('text') or ''} {ended.new.get('attribute') or ''}"
    about = content_stems(names) - old - content_stems(str(ended.old.get("subject") or ""))
    for sentence in _SENTENCE.split(text):
        words = content_stems(sentence)
        if old and old <= words and not (new - old and new <= words) and _fits(sentence, words, about, attribute):
            return True
    return False


def outdated_sections(sections: Mapping[str, str], ended: Iterable[EndedFact]) -> dict[str, list[EndedFact]]:
    """Return the sections of a page that tell what has ended, each with the facts.

    Args:
        sections: Their texts by label.
        ended: What has ended, as `find_ended` returns it.
    """
    told = list(ended)
    found = {label: [fact for fact in told if tells_old(text, fact)] for label, text in sections.items()}
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

    Args:
        message: What the person said.
        taught: The records of its facts, by key.
        ends: Of those that have ended: the record of the fact in their place, by their key; {} if none is known.
        shown: Keys of the facts that the prompt has.
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
    if len(words) > _SHORT:
        return False
    if any(_has_value(words, fact) for fact in holding):
        return False
    return any(_has_value(words, fact) for fact in old) or says_all(sentence, old)


def _has_value(words: frozenset[str], fact: JSON) -> bool:
    value = str(fact.get("value") or "")
    return bool(value) and content_stems(value) <= words


def says_all(sentence: str, facts: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether facts have most of the words of a sentence, which then tells nothing more."""
    parts = ("text", "subject", "attribute", "value")
    told = [str(fact.get(part) or "") for fact in facts for part in parts]
    names = [attribute_name(str(fact.get("attribute") or "")) for fact in facts]
    known = content_stems(" ".join([*told, *names])) | _TALK
    words = content_stems(sentence) - _TALK
    return bool(facts) and len(words & known) >= _SAYS_ALL * len(words)


def is_standing_fact(value: Mapping[str, Any]) -> bool:
    """Return whether a fact says how the person always wants to be answered: what a prompt should never be without.

    Args:
        value: The fact's record.
    """
    if value.get("claimed_by") or value.get("ends") or value.get("kind") == "rumour":
        return False
    text = str(value.get("text") or "")
    if attribute_name(str(value.get("attribute") or "")).split(" ")[0] == "instruction":
        return True
    of_person = normalize(str(value.get("subject") or "")) in ("", normalize(PERSON), "user", "player")
    return of_person and (is_standing(text) or (value.get("kind") == "preference" and bool(_WANTS.search(text))))


async def facts_about(
    store: BaseStore, namespace: Namespace, *, timeline: Sequence[Segment], subject: str = PERSON
) -> list[SearchItem]:
    """Return what holds of somebody and of what is theirs, the latest last: all slots, and the cat's as well.

    Theirs is what a fact of theirs names as its value, and whose own facts name them ("relation to the user").

    Args:
        store: Any store.
        namespace: Namespace of the facts.
        timeline: The timeline that asks.
        subject: Whom it is about.
    """
    items = await latest_facts(store, namespace, {}, timeline=timeline, count=_MOST)
    items = [item for item in await keep_valid(store, items, timeline=timeline) if item.value.get("kind") != "rumour"]
    own, person, named = {normalize(subject)}, normalize(PERSON), f" {normalize(subject)} "
    values = {normalize(str(item.value.get("value") or "")) for item in items if _subject(item.value) in own}
    about = {_subject(item.value) for item in items if _names(item.value, named)} | values
    own |= about - {person, ""}
    return [item for item in items if _subject(item.value) in own or _names(item.value, named)]


async def facts_asked_for(
    store: BaseStore, namespace: Namespace, whom: str, *, timeline: Sequence[Segment]
) -> list[SearchItem]:
    """Return what holds of those whom a question asks all about, the latest last.

    Args:
        store: Any store.
        namespace: Namespace of the facts.
        whom: As `asks_about` returns it: "" for the person, a name, or what is theirs, such as "my cat".
        timeline: The timeline that asks.
    """
    named = _MINE.sub("", whom)
    if named == whom:
        return await facts_about(store, namespace, timeline=timeline, subject=whom or PERSON)
    own = await facts_about(store, namespace, timeline=timeline)
    told = [item for item in own if attribute_name(str(item.value.get("attribute") or "")) == attribute_name(named)]
    names = {str(item.value.get("value") or "") for item in told} - {""} or {named}
    found = {item.key: item for item in told}
    for name in sorted(names):
        found |= {item.key: item for item in await facts_about(store, namespace, timeline=timeline, subject=name)}
    return sorted(found.values(), key=lambda item: position_of(item.value))


def _subject(value: Mapping[str, Any]) -> str:
    return normalize(str(value.get("subject") or ""))


def _names(value: Mapping[str, Any], named: str) -> bool:
    """Return whether a fact about somebody else, or about nobody, names a subject."""
    return any(named in f" {normalize(str(value.get(part) or ''))} " for part in ("text", "attribute", "value"))


def _fits(sentence: str, words: frozenset[str], about: frozenset[str], attribute: str) -> bool:
    """Return whether a sentence that has the value is about the property: "Home: Oslo", not "studied in Oslo"."""
    label = sentence.partition(":")[0]
    return bool(words & about) or (":" in sentence and attribute_name(label) == attribute_name(attribute))
