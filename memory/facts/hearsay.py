"""Hearsay: rumours, claims and secrets, and which of them a later fact settles.

What was shown later decides. A fact that is stated as true settles an earlier rumour or claim of the same
slot, whether it confirms it or not, and any that says the same in other words. It settles a secret only if it says the
same: then the secret is out. What another value of the slot seems to say may be what people only believe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, PutOp, SearchItem, SearchOp

from questbook.memory.facts.fact import slot_of
from questbook.memory.facts.ledger import (
    Namespace,
    StoredFact,
    position_of,
    slot_mark_op,
    stamp_fields,
    text_digest,
    write_judgements,
)
from questbook.memory.facts.likeness import is_same_fact
from questbook.memory.facts.validity import keep_valid_of_each
from questbook.memory.store.any_store import AnyItem
from questbook.memory.timeline.timeline import Segment, search_visible
from questbook.types import JSON

_SHOWN = frozenset({"event", "trait", "promise"})
"""Kinds of facts that settle hearsay, unless someone only claims them."""
_MOST = 64  # rumours, and secrets, about one subject that are looked at


def settles(fact: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a fact settles another record, which was said before it."""
    return _is_shown(fact) and _is_hearsay(earlier) and _settles(fact, earlier, _slot_of(earlier))


async def find_hearsay(
    store: BaseStore, namespace: Namespace, facts: Sequence[JSON], timeline: Sequence[Segment] | None
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
    timeline: Sequence[Segment] | None,
) -> list[list[StoredFact]]:
    """Find for each fact of a turn that is about to be written the valid records that it settles.

    `about` is what `find_hearsay` found for them, `similar` for each of them the records whose text is like its own.
    """
    near = [item for fact, items in zip(facts, similar, strict=True) if _is_shown(fact) for item in items]
    # Of one slot only the latest can hold, so the others need not be looked at.
    latest: dict[str, AnyItem] = {}
    for item in filter(lambda item: _is_hearsay(item.value), [*about, *near]):
        place = str(item.value.get("slot") or "") or item.key
        if place not in latest or position_of(latest[place].value) < position_of(item.value):
            latest[place] = item
    hearsay = [(StoredFact(namespace, item.key, item.value), _slot_of(item.value)) for item in latest.values()]
    settled = [
        [
            item
            for item, slot in hearsay
            if _is_shown(fact) and position_of(item.value) < str(fact["at"]) and _settles(fact, item.value, slot)
        ]
        for fact in facts
    ]
    return await keep_valid_of_each(store, settled, timeline, facts[0]) if facts else []


async def settle(
    store: BaseStore, namespace: Namespace, settled: Iterable[tuple[StoredFact, str, JSON]]
) -> list[PutOp]:
    """Return the marks by which facts take the slots of what they settle; what has no slot is judged at once.

    `settled` has what is settled, each with the key of the fact that does it, and the record that said so.
    """
    marks = list[PutOp]()
    for earlier, key, record in settled:
        if slot := str(earlier.value.get("slot") or ""):
            # The fact shows what is true of the hearsay, whether it says so itself or is said again.
            name = f"{key}-{record.get('branch', '')}-{record['at']}-{text_digest(slot)}"
            marks.append(slot_mark_op(namespace, slot, key, record, name))
        elif "branch" in record:
            await write_judgements(store, namespace, [(earlier.key, key)], stamp_fields(record))
    return marks


def _is_shown(fact: Mapping[str, Any]) -> bool:
    return fact.get("kind") in _SHOWN and not fact.get("claimed_by")


def _is_hearsay(record: Mapping[str, Any]) -> bool:
    return record.get("kind") in ("rumour", "secret") or bool(record.get("claimed_by"))


def _slot_of(record: Mapping[str, Any]) -> str:
    """Return the slot that a record would have if it were told as so."""
    return slot_of(str(record.get("subject") or ""), str(record.get("attribute") or ""))


def _settles(fact: Mapping[str, Any], earlier: Mapping[str, Any], slot: str) -> bool:
    if slot and slot == fact.get("slot") and earlier.get("kind") != "secret":
        return True
    return is_same_fact(fact, {**earlier, "kind": fact.get("kind"), "claimed_by": "", "slot": slot})
