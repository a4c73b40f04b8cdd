"""Relations of facts: whether one says the same as another in other words, ends it, or settles it.

Another number, a negation, another subject, value or speaker tells two facts apart, however alike they sound. After
that the share of common words decides, and the cosine if the store has vectors (measured: `docs/figures.md`).

Hearsay is rumours, claims and secrets. A fact that is stated as true settles an earlier rumour or claim of the same
slot, whether it confirms it or not, and any that says the same in other words; a secret only if it says the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, PutOp, SearchItem, SearchOp

from questbook.memory.facts import validity
from questbook.memory.facts.fact import slot_of
from questbook.memory.facts.validity import Namespace, StoredFact
from questbook.memory.store.any_store import AnyItem
from questbook.memory.text.words import content_stems, is_negated, marks_in, names_in, normalize, numbers_in
from questbook.memory.timeline.timeline import Timeline, search_visible
from questbook.types import JSON

_MIN_CONTAINED = 0.6  # share of common words, if one text has all words of the other
_MIN_SAME_VALUE = 0.4  # is enough, if subject, attribute and value are the same
_MIN_COSINE = 0.5  # is required in addition, if there are vectors
_SHOWN = frozenset({"event", "trait", "promise"})  # kinds of facts that settle hearsay, unless someone only claims them
_MOST = 64  # rumours, and secrets, about one subject that are looked at


def is_same_fact(record: Mapping[str, Any], other: Mapping[str, Any], cosine: float | None = None) -> bool:
    """Return whether two facts are one, by the fields of their records and, if there is one, their texts' cosine."""
    text, other_text = str(record.get("text", "")), str(other.get("text", ""))
    if _voice(record) != _voice(other):
        return False
    one_slot = bool(record.get("slot")) and record.get("slot") == other.get("slot")
    words, other_words = content_stems(text), content_stems(other_text)
    common = len(words & other_words) / len(words | other_words) if words | other_words else 0.0
    if not one_slot and common < _MIN_SAME_VALUE:  # by far most pairs: nothing below would make them one
        return False
    value, other_value = _words(record, "value"), _words(other, "value")
    marks = {marks_in(str(fact.get("value") or fact.get("text", ""))) for fact in (record, other)}
    if value == other_value and len(marks) > 1:
        return False
    if normalize(text) == normalize(other_text):
        return not one_slot or value == other_value
    if numbers_in(text) != numbers_in(other_text) or is_negated(text) != is_negated(other_text):
        return False
    subject, other_subject = _words(record, "subject"), _words(other, "subject")
    both_subjects = bool(subject and other_subject)
    if both_subjects and not _one_has_all(subject, other_subject):
        return False
    same_value = bool(value) and value == other_value
    if one_slot and (value or other_value):
        return same_value
    if value and other_value and not value & other_value:
        return False
    if cosine is not None and cosine < _MIN_COSINE:
        return False
    if not both_subjects:  # "Oda hates Goran" is not "Goran hates Oda"
        first, second = dict.fromkeys(names_in(text)), dict.fromkeys(names_in(other_text))
        if [name for name in first if name in second] != [name for name in second if name in first]:
            return False
    if _one_has_all(words, other_words):
        return common >= (_MIN_SAME_VALUE if same_value else _MIN_CONTAINED)
    # Each text has a word that the other lacks, "bell" and "book": no embedder tells those apart, so fields must.
    attribute = _words(record, "attribute") & _words(other, "attribute")
    return both_subjects and same_value and bool(attribute) and common >= _MIN_SAME_VALUE


def ends_another(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether a fact ends a value that another fact of its slot does not have: "no longer Paris", and "Oslo".

    A value is compared if it is a name: "no longer there" may mean any.
    """
    begin, _, ended = str(new.get("value", "")).partition(" longer ")
    if begin.casefold() != "no" or not names_in(ended):
        return False
    return content_stems(ended).isdisjoint(content_stems(str(old.get("value", ""))))


def settles(fact: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a fact settles another record, which was said before it."""
    if not (_is_shown(fact) and _is_hearsay(earlier)):
        return False
    slot = slot_of(str(earlier.get("subject") or ""), str(earlier.get("attribute") or ""))  # as if it were told as so
    if slot and slot == fact.get("slot") and earlier.get("kind") != "secret":
        return True
    return is_same_fact(fact, {**earlier, "kind": fact.get("kind"), "claimed_by": "", "slot": slot})


async def find_hearsay(
    store: BaseStore, namespace: Namespace, facts: Sequence[JSON], timeline: Timeline | None
) -> list[SearchItem]:
    """Find rumours and secrets about the subjects of facts; `find_settled` picks those that a fact settles."""
    shown = [fact for fact in facts if _is_shown(fact)]
    subjects = dict.fromkeys(str(fact["subject"]) for fact in shown if fact["slot"])
    searches = [
        SearchOp(namespace, filter={"subject": subject, "kind": kind}, limit=_MOST)
        for subject in subjects
        for kind in ("rumour", "secret")
    ]
    return [item for found in await search_visible(store, searches, timeline) for item in found.items]


async def find_settled(
    store: BaseStore,
    namespace: Namespace,
    facts: Sequence[JSON],
    about: Iterable[AnyItem],
    similar: Sequence[Iterable[AnyItem]],
    timeline: Timeline | None,
) -> list[list[StoredFact]]:
    """Find for each fact of a turn that is about to be written the valid records that it settles.

    `about` is what `find_hearsay` found for them, `similar` for each of them the records whose text is like its own.
    """
    near = [item for fact, items in zip(facts, similar, strict=True) if _is_shown(fact) for item in items]
    # Of one slot only the latest can hold, so the others need not be looked at.
    latest: dict[str, AnyItem] = {}
    for item in filter(lambda item: _is_hearsay(item.value), [*about, *near]):
        place = str(item.value.get("slot") or "") or item.key
        if place not in latest or validity.position_of(latest[place].value) < validity.position_of(item.value):
            latest[place] = item
    hearsay = [StoredFact(namespace, item.key, item.value) for item in latest.values()]
    before = [[item for item in hearsay if validity.position_of(item.value) < str(fact["at"])] for fact in facts]
    settled = [[item for item in items if settles(fact, item.value)] for fact, items in zip(facts, before, strict=True)]
    return await validity.keep_valid_of_each(store, settled, timeline, facts[0]) if facts else []


async def settle(store: BaseStore, facts: Namespace, settled: Iterable[tuple[StoredFact, str, JSON]]) -> list[PutOp]:
    """Return the marks by which facts take the slots of what they settle; what has no slot is judged at once."""
    marks = list[PutOp]()
    for earlier, key, record in settled:  # what is settled, the key of the fact that does it, the record that said so
        if slot := str(earlier.value.get("slot") or ""):
            # The fact shows what is true of the hearsay, whether it says so itself or is said again.
            name = f"{key}-{record.get('branch', '')}-{record['at']}-{validity.text_digest(slot)}"
            marks.append(validity.mark_op(facts, validity.HOLDS, slot, key, record, name))
        elif "branch" in record:
            await validity.write_judgements(store, facts, [(earlier.key, key)], validity.stamp_fields(record))
    return marks


def _is_shown(fact: Mapping[str, Any]) -> bool:
    return fact.get("kind") in _SHOWN and not fact.get("claimed_by")


def _is_hearsay(record: Mapping[str, Any]) -> bool:
    return record.get("kind") in ("rumour", "secret") or bool(record.get("claimed_by"))


def _voice(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind and the speaker: a rumour that comes true is a new fact, and so is a secret that comes out."""
    kind = str(record.get("kind", ""))
    return kind if kind in ("secret", "rumour", "insight") else "", normalize(str(record.get("claimed_by", "")))


def _words(record: Mapping[str, Any], field: str) -> frozenset[str]:
    return content_stems(str(record.get(field, "")))


def _one_has_all(words: frozenset[str], other: frozenset[str]) -> bool:
    return words | other in (words, other)
