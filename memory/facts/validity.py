"""Validity: which facts hold, which held once, and how often one was said.

Nothing is ever written over. Of the facts of one slot that a timeline sees, the newest holds; so a fork from before a
change sees what was so then, and "what did I believe then?" is the same question with an earlier `before`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, GetOp, SearchItem, SearchOp

from questbook.memory.facts import marks
from questbook.memory.facts.facts import slot_of
from questbook.memory.facts.settled import Standing, settled
from questbook.memory.store.any_store import AnyItem, AnyItemT, get_all, search_all
from questbook.memory.timeline.timeline import Segment, visible

JSON = dict[str, Any]
Namespace = tuple[str, ...]
_ALL = 10_000  # marks of one slot that are read where all are wanted
_SPAN = 64  # turns back in which what holds a slot that changes often is looked for first


class _Place(NamedTuple):
    """A slot, in its namespace, and whether it rewinds."""

    namespace: Namespace
    slot: str
    rewinds: bool


class Held(NamedTuple):
    """A fact and when it held.

    Attributes:
        key: Its key.
        value: Its record.
        since: The turn from which on it held.
        until: The turn at which another took its place; None if it holds.
    """

    key: str
    value: JSON
    since: int
    until: int | None


async def valid(
    store: BaseStore,
    found: Sequence[AnyItemT],
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> list[AnyItemT]:
    """Return the records that hold, in their order; what is in no slot does until a reflection has judged otherwise.

    Asks the store once for all slots of the records, once for all judgements; once more if a slot has 64 newer marks on
    other branches.

    Args:
        store: Any store.
        found: Records of any namespaces. What carries no branch does not rewind, and is held to no timeline.
        timeline: What can be seen; None: everything.
        before: Take account only of what was written before this turn: what held then.
    """
    newest: dict[_Place, str] = {}
    for record in found:
        if place := _place(record):
            newest[place] = max(newest.get(place, ""), _at(record.value))
    ended = await _ended(store, newest, timeline, before)
    holding = [
        record
        for record in found
        if not (place := _place(record)) or (place not in ended and _at(record.value) == newest[place])
    ]
    over = await settled(store, holding, timeline=timeline, before=before)
    return [record for record in holding if (tuple(record.namespace), record.key) not in over]


async def history(
    store: BaseStore,
    namespace: Namespace,
    subject: str,
    attribute: str,
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> list[Held]:
    """Return all facts that held a slot, the oldest first, each with the turns in which it did.

    Args:
        store: Any store.
        namespace: Where the facts are.
        subject: Whom or what they are about.
        attribute: What of it.
        timeline: What can be seen; None: everything.
        before: Only what was written before this turn.
    """
    [held] = await holders(store, namespace, [slot_of(subject, attribute)], timeline=timeline, before=before)
    facts = await records(store, namespace, [mark["fact"] for mark in held])
    ends = [*(mark["turn"] for mark in held), None][1:]
    standing = [Standing(namespace, key, value) for key, value in facts.items()]
    judged = await settled(store, standing, timeline=timeline, before=before)
    over = {key: turn for (_, key), turn in judged.items()}
    return [
        Held(
            mark["fact"],
            facts[mark["fact"]],
            mark["turn"],
            min((t for t in (end, over.get(mark["fact"])) if t is not None), default=None),
        )
        for mark, end in zip(held, ends, strict=True)
        if mark["fact"] in facts
    ]


async def strengths(
    store: BaseStore,
    namespace: Namespace,
    keys: Iterable[str],
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> dict[str, int]:
    """Count how often each record has been said again, as far as a timeline sees it; 0 where it was not.

    Args:
        store: Any store.
        namespace: Where the facts are.
        keys: Keys of the records.
        timeline: What can be seen; None: everything.
        before: Count only what was said before this turn.
    """
    asked = list(dict.fromkeys(keys))
    results = await search_all(store, [marks.search(namespace, marks.digest(key), limit=_ALL) for key in asked])
    return {
        key: sum(item.value["what"] == "again" and marks.seen(timeline, item.value, before) for item in items)
        for key, items in zip(asked, results, strict=True)
    }


async def holders(
    store: BaseStore,
    namespace: Namespace,
    slots: Sequence[str],
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> list[list[JSON]]:
    """Return for each slot the marks of the facts that held it and can be seen, the oldest first."""
    results = await search_all(store, [marks.search(namespace, marks.digest(slot), limit=_ALL) for slot in slots])
    found = [
        [i.value for i in items if i.value["what"] == "holds" and marks.seen(timeline, i.value, before)]
        for items in results
    ]
    return [sorted(held, key=_at) for held in found]


async def holding(
    store: BaseStore,
    namespace: Namespace,
    slots: Iterable[str],
    *,
    timeline: Sequence[Segment] | None = None,
    at: str | None = None,
    without: Collection[str] = (),
) -> dict[str, JSON]:
    """Return for each slot that is held the mark of the fact that holds it, as far as it can be seen.

    A slot that changes every turn has a mark for each. The newest are looked for first, in spans that grow, so that
    what this costs does not grow with the campaign.

    Args:
        store: Any store.
        namespace: Where the facts are.
        slots: The slots.
        timeline: What can be seen; None: everything.
        at: Only what was noted by then, as `questbook.memory.facts.marks.at` says it; None: until now.
        without: Keys of facts that do not count.
    """

    def last(items: Iterable[SearchItem]) -> JSON | None:
        held = (item.value for item in items if item.value["what"] == "holds" and item.value["fact"] not in without)
        known = (mark for mark in held if (at is None or mark["at"] <= at) and marks.seen(timeline, mark))
        return max(known, key=_at, default=None)

    found: dict[str, JSON | None] = {}
    left = {slot: marks.digest(slot) for slot in slots}
    results = await search_all(store, [marks.search(namespace, about) for about in left.values()])
    found |= {slot: last(items) for slot, items in zip(left, results, strict=True) if len(items) < marks.MOST}
    newest = int(at.partition(".")[0]) if at else timeline[-1][1] if timeline else 0
    span = _SPAN if timeline is not None else newest
    while left := {slot: about for slot, about in left.items() if slot not in found}:
        whole = span >= newest
        since = {} if whole else {"at": {"$gt": marks.at(newest - span, 0)}}
        results = await search_all(store, [marks.search(namespace, about, since, _ALL) for about in left.values()])
        held = {slot: last(items) for slot, items in zip(left, results, strict=True)}
        found |= {slot: mark for slot, mark in held.items() if mark or whole}
        span *= 8
    return {slot: mark for slot, mark in found.items() if mark}


async def records(store: BaseStore, namespace: Namespace, keys: Iterable[str]) -> dict[str, JSON]:
    """Read records by their keys; those that are gone are left out."""
    asked = list(dict.fromkeys(keys))
    if not asked:
        return {}
    items = await get_all(store, [GetOp(namespace, key) for key in asked])
    return {item.key: item.value for item in items if item is not None}


async def _ended(
    store: BaseStore, newest: Mapping[_Place, str], timeline: Sequence[Segment] | None, before: int | None
) -> set[_Place]:
    """Return the slots that something newer holds than what is given."""

    def asked(place: _Place, only: JSON, limit: int = marks.MOST) -> SearchOp:
        after = {"what": "holds", "at": {"$gt": newest[place]}}
        return marks.search(place.namespace, marks.digest(place.slot), after | only, limit)

    ended, crowded = set[_Place](), list[_Place]()
    for place, items in zip(newest, await search_all(store, [asked(place, {}) for place in newest]), strict=True):
        mine = timeline if place.rewinds else None
        if any(marks.seen(mine, item.value, before if place.rewinds else None) for item in items):
            ended.add(place)
        elif mine is not None and len(items) >= marks.MOST:
            crowded.append(place)
    segments = visible(timeline, before) if timeline is not None else []
    narrow = [(place, asked(place, only, 1)) for place in crowded for only in segments]
    results = await search_all(store, [search for _, search in narrow])
    return ended | {place for (place, _), items in zip(narrow, results, strict=True) if items}


def _place(record: AnyItem) -> _Place | None:
    slot = record.value.get("slot")
    return _Place(tuple(record.namespace), str(slot), "branch" in record.value) if slot else None


def _at(value: Mapping[str, Any]) -> str:
    """Return when a record was noted; one that was written without saying so counts by its turn."""
    return str(value.get("at") or marks.at(int(value.get("turn") or 0), 0))
