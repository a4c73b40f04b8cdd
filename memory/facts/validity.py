"""Validity: does this fact still hold?

Of the facts of one slot that a timeline sees, the newest holds, until a reflection judges that it is contradicted.
Nothing is ever overwritten: a fork from before a change sees what held then, and "what did I believe then?" is the same
question with an earlier `before`. What holds is read from the marks and judgements beside the facts
(`questbook.memory.facts.ledger`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from langgraph.store.base import BaseStore, SearchOp

from questbook.memory.facts.fact import FactRecord, slot_of
from questbook.memory.facts.ledger import (
    AGAIN,
    ALL_MARKS,
    FIRST_MARKS,
    HOLDS,
    Namespace,
    RecordId,
    StoredFact,
    find_judgements,
    mark_search,
    position_of,
    read_records,
    recent_spans,
)
from questbook.memory.store.any_store import AnyItem, AnyItemT, JointReads, search_all
from questbook.memory.timeline.timeline import (
    Segment,
    UserTimeline,
    is_visible,
    read_heads,
    search_visible,
    visible_filters,
)
from questbook.types import JSON


class SlotHolder(NamedTuple):
    """The key of the fact that holds a slot, and the turn from which it does."""

    key: str
    turn: int


class FactPeriod(NamedTuple):
    """A fact and the turns in which it held."""

    key: str  # key of the fact
    value: JSON  # its record
    since: int  # the turn from which on it held
    until: int | None  # the turn at which it was superseded or judged to be wrong; None if it holds

    @property
    def record(self) -> FactRecord:
        """The record as a type."""
        return FactRecord.from_json(self.value)


class SlotId(NamedTuple):
    """A slot, the namespace of its facts, and whether they rewind."""

    namespace: Namespace
    slot: str
    rewinds: bool


async def keep_valid(
    store: BaseStore,
    records: Sequence[AnyItemT],
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> list[AnyItemT]:
    """Return the records that hold, in their order, but not those that only say that something has ended (`ends`).

    A record without a slot holds until it is judged to be wrong; one without a branch does not rewind: no timeline
    hides it. With `before` the answer is as of before this turn; without a timeline everything is visible.

    Costs one batch of reads; one more where there are judgements, or 64 newer marks of a slot on other branches.
    """
    return (await valid_and_holders(store, records, timeline, before))[0]


async def valid_and_holders(
    store: BaseStore, records: Sequence[AnyItemT], timeline: Sequence[Segment] | None, before: int | None = None
) -> tuple[list[AnyItemT], dict[SlotId, SlotHolder | None]]:
    """Return the records that hold, and what holds the slots of those that are superseded, as `_superseded_slots`."""
    newest: dict[SlotId, str] = {}
    for record in records:
        if slot := slot_id_of(record):
            newest[slot] = max(newest.get(slot, ""), position_of(record.value))
    reads = JointReads.of(store)
    superseded, judgements = await asyncio.gather(
        _superseded_slots(reads, newest, timeline, before),
        find_judgements(reads, records, timeline=timeline, before=before),
    )
    valid = [
        record
        for record in records
        if (not (slot := slot_id_of(record)) or (slot not in superseded and position_of(record.value) == newest[slot]))
        and not (record_id_of(record) in judgements or record.value.get("ends"))
    ]
    return valid, superseded


async def keep_valid_of_each(
    store: BaseStore, lists: Sequence[Sequence[AnyItemT]], timeline: Sequence[Segment] | None, fact: JSON
) -> list[list[AnyItemT]]:
    """Return of each list of records of one namespace those that held at a fact's turn.

    What does not rewind has no timeline, and its facts need no turn.
    """
    unique = list({record.key: record for records in lists for record in records}.values())
    before = None if timeline is None else int(fact["turn"]) + 1
    valid = {record.key for record in await keep_valid(store, unique, timeline=timeline, before=before)}
    return [[record for record in records if record.key in valid] for records in lists]


async def slot_history(
    store: BaseStore,
    namespace: Namespace,
    subject: str,
    attribute: str,
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> list[FactPeriod]:
    """Return all facts that held the slot of a subject and attribute, the oldest first, and in which turns."""
    search = mark_search(namespace, slot_of(subject, attribute), limit=ALL_MARKS)
    [found] = await search_visible(store, [search], timeline, before)
    marks = [item.value for item in found.items if item.value["what"] == HOLDS]
    holders = [_holder(mark) for mark in sorted(marks, key=position_of)]
    records = await read_records(store, namespace, [holder.key for holder in holders])
    stored = [StoredFact(namespace, key, value) for key, value in records.items()]
    judgements = await find_judgements(store, stored, timeline=timeline, before=before)
    periods = []
    for holder, successor in zip(holders, [*holders, None][1:], strict=True):
        if holder.key in records:
            ends = [successor.turn if successor else None, judgements.get((namespace, holder.key))]
            until = min((turn for turn in ends if turn is not None), default=None)
            periods.append(FactPeriod(holder.key, records[holder.key], holder.turn, until))
    return periods


async def count_repetitions(
    store: BaseStore,
    namespace: Namespace,
    keys: Iterable[str],
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> dict[str, int]:
    """Count how often each record was said again, by its key; with `before`, only before this turn."""
    unique = list(dict.fromkeys(keys))
    searches = [mark_search(namespace, key, limit=ALL_MARKS) for key in unique]
    results = await search_visible(store, searches, timeline, before)
    return {
        key: sum(item.value["what"] == AGAIN for item in found.items)
        for key, found in zip(unique, results, strict=True)
    }


async def find_holders(
    store: BaseStore,
    namespace: Namespace,
    slots: Iterable[str],
    *,
    timeline: Sequence[Segment] | None = None,
    position: str | None = None,
    ignore: Collection[str] = (),
) -> dict[str, SlotHolder]:
    """Find the fact that holds each slot; slots that no fact holds are left out. Judgements are not asked for.

    A slot that changes every turn has a mark for each turn; the newest are searched first. `position` is a place in the
    order of facts (see `turn_position`) as of which to answer, `ignore` has the keys of facts that do not count.
    """

    def counts(mark: JSON) -> bool:
        in_time = position is None or mark["at"] <= position
        return bool(mark["what"] == HOLDS and mark["fact"] not in ignore and in_time)

    open_slots, holders = list(slots), dict[str, SlotHolder]()
    spans = recent_spans(timeline, position or "")
    for since, limit in [({}, FIRST_MARKS), *((since, ALL_MARKS) for since in spans)]:
        searches = [mark_search(namespace, slot, since, limit) for slot in open_slots]
        results = await search_visible(store, searches, timeline)
        left: list[str] = []
        for slot, found in zip(open_slots, results, strict=True):
            newest = max(filter(counts, (item.value for item in found.items)), key=position_of, default=None)
            if limit == FIRST_MARKS and not found.is_all:
                left.append(slot)
            elif newest is not None:
                holders[slot] = _holder(newest)
            elif since:
                left.append(slot)
        if not (open_slots := left):
            break
    return holders


async def _superseded_slots(
    store: BaseStore, newest: Mapping[SlotId, str], timeline: Sequence[Segment] | None, before: int | None
) -> dict[SlotId, SlotHolder | None]:
    """Return the slots that a fact holds which is newer than the position given for the slot.

    Each with the fact that holds it now; None where not all newer marks were read.
    """

    def search_newer(slot: SlotId, only: JSON, limit: int) -> SearchOp:
        newer = {"what": HOLDS, "at": {"$gt": newest[slot]}}
        return mark_search(slot.namespace, slot.slot, newer | only, limit)

    superseded, crowded = dict[SlotId, SlotHolder | None](), list[SlotId]()
    results = await search_all(store, [search_newer(slot, {}, FIRST_MARKS) for slot in newest])
    await read_heads(store, timeline, (item.value for items in results for item in items))
    for slot, items in zip(newest, results, strict=True):
        line, turn = (timeline, before) if slot.rewinds else (None, None)
        if marks := [item.value for item in items if is_visible(line, item.value, turn)]:
            superseded[slot] = _holder(max(marks, key=position_of)) if len(items) < FIRST_MARKS else None
        elif line is not None and len(items) >= FIRST_MARKS:
            crowded.append(slot)
    of_user = isinstance(timeline, UserTimeline)
    filters = [{}] if of_user else visible_filters(timeline, before) if timeline is not None else []
    searches = [(slot, search_newer(slot, only, ALL_MARKS if of_user else 1)) for slot in crowded for only in filters]
    found = await search_visible(store, [search for _, search in searches], timeline, before)
    return superseded | {slot: None for (slot, _), one in zip(searches, found, strict=True) if one.items}


def _holder(mark: JSON) -> SlotHolder:
    return SlotHolder(mark["fact"], mark["turn"])


def record_id_of(record: AnyItem) -> RecordId:
    """Return namespace and key of a record."""
    return tuple(record.namespace), record.key


def slot_id_of(record: AnyItem) -> SlotId | None:
    """Return the slot that a record fills; None if it fills none."""
    slot = record.value.get("slot")
    return SlotId(tuple(record.namespace), str(slot), "branch" in record.value) if slot else None
