"""Validity: does this fact still hold?

Of the facts of one slot that a timeline sees, the newest holds, until a reflection judges that it is contradicted.
Nothing is ever overwritten: a fork from before a change sees what held then, and "what did I believe then?" is the same
question with an earlier `before`. What holds is read from the marks and judgements beside the facts
(`questbook.memory.facts.ledger`).

* `keep_valid` drops the records that hold no more.
* `find_holders` says which fact holds a slot, `slot_history` which facts held it and when.
* `count_repetitions` says how often a fact was said again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from langgraph.store.base import BaseStore, SearchItem, SearchOp

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
    lasting_position,
    mark_search,
    position_of,
    read_records,
    turn_position,
)
from questbook.memory.store.any_store import AnyItem, AnyItemT, search_all
from questbook.memory.store.joint_reads import JointReads
from questbook.memory.timeline.timeline import (
    Segment,
    UserTimeline,
    is_visible,
    read_heads,
    visible_filters,
)
from questbook.types import JSON

_FIRST_SPAN = 64  # turns back in which the holder of a slot that changes often is looked for first
_FIRST_SECONDS = 7 * 86_400  # the same for facts that threads share, which are ordered by time
_SPAN_GROWTH = 8


class SlotHolder(NamedTuple):
    """The fact that holds a slot.

    Attributes:
        key: Key of the fact.
        turn: The turn from which it holds the slot.
    """

    key: str
    turn: int


class FactPeriod(NamedTuple):
    """A fact and the turns in which it held.

    Attributes:
        key: Its key.
        value: Its record.
        since: The turn from which on it held.
        until: The turn at which it was superseded or judged to be wrong; None if it holds.
    """

    key: str
    value: JSON
    since: int
    until: int | None

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

    A record without a slot holds until it is judged to be wrong.

    Costs one batch of reads; one more where there are judgements, or 64 newer marks of a slot on other branches.

    Args:
        store: Any store.
        records: Records of any namespaces. A record without a branch does not rewind: no timeline hides it.
        timeline: The timeline that asks; None: everything is visible.
        before: Answer as of before this turn.
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


async def slot_history(
    store: BaseStore,
    namespace: Namespace,
    subject: str,
    attribute: str,
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> list[FactPeriod]:
    """Return all facts that held a slot, the oldest first, each with the turns in which it did.

    Args:
        store: Any store.
        namespace: Namespace of the facts.
        subject: Whom or what they are about.
        attribute: Which property of it.
        timeline: The timeline that asks; None: everything is visible.
        before: Only facts from before this turn.
    """
    [items] = await search_all(store, [mark_search(namespace, slot_of(subject, attribute), limit=ALL_MARKS)])
    await read_heads(store, timeline, (item.value for item in items))
    marks = [item.value for item in items if item.value["what"] == HOLDS and is_visible(timeline, item.value, before)]
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
    """Count how often each record was said again.

    Args:
        store: Any store.
        namespace: Namespace of the facts.
        keys: Keys of the records.
        timeline: The timeline that asks; None: everything is visible.
        before: Count only repetitions from before this turn.

    Returns:
        The count of each key; 0 if it was not said again.
    """
    unique = list(dict.fromkeys(keys))
    results = await search_all(store, [mark_search(namespace, key, limit=ALL_MARKS) for key in unique])
    await read_heads(store, timeline, (item.value for items in results for item in items))
    return {
        key: sum(item.value["what"] == AGAIN and is_visible(timeline, item.value, before) for item in items)
        for key, items in zip(unique, results, strict=True)
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
    """Find the fact that holds each slot; slots that no fact holds are left out.

    A slot that changes every turn has a mark for each turn. The newest are searched first, in spans that grow, so that
    the cost does not grow with the campaign. Judgements are not asked for.

    Args:
        store: Any store.
        namespace: Namespace of the facts.
        slots: The slots.
        timeline: The timeline that asks; None: everything is visible.
        position: Answer as of this place in the order of facts (see `turn_position`); None: as of now.
        ignore: Keys of facts that do not count.
    """

    def newest_holder(items: Iterable[SearchItem]) -> SlotHolder | None:
        marks = (item.value for item in items if item.value["what"] == HOLDS and item.value["fact"] not in ignore)
        visible_marks = (
            mark for mark in marks if (position is None or mark["at"] <= position) and is_visible(timeline, mark)
        )
        newest = max(visible_marks, key=position_of, default=None)
        return _holder(newest) if newest else None

    open_slots = list(slots)
    results = await search_all(store, [mark_search(namespace, slot) for slot in open_slots])
    await read_heads(store, timeline, (item.value for items in results for item in items))
    holders = {
        slot: newest_holder(items) for slot, items in zip(open_slots, results, strict=True) if len(items) < FIRST_MARKS
    }
    of_user = isinstance(timeline, UserTimeline)
    now = int(datetime.now(UTC).timestamp()) if of_user else timeline[-1][1] if timeline else 0
    last = int(position.partition(".")[0]) if position else now
    span = _FIRST_SECONDS if of_user else _FIRST_SPAN if timeline is not None else last
    while open_slots := [slot for slot in open_slots if slot not in holders]:
        complete = span >= last
        earliest = lasting_position(last - span) if of_user else turn_position(last - span, 0)
        since = {} if complete else {"at": {"$gt": earliest}}
        results = await search_all(store, [mark_search(namespace, slot, since, ALL_MARKS) for slot in open_slots])
        await read_heads(store, timeline, (item.value for items in results for item in items))
        for slot, items in zip(open_slots, results, strict=True):
            holder = newest_holder(items)
            if holder or complete:
                holders[slot] = holder
        span *= _SPAN_GROWTH
    return {slot: holder for slot, holder in holders.items() if holder}


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
    results = await search_all(store, [search for _, search in searches])
    await read_heads(store, timeline, (item.value for items in results for item in items))
    return superseded | {
        slot: None
        for (slot, _), items in zip(searches, results, strict=True)
        if any(is_visible(timeline, item.value, before) for item in items)
    }


def is_exchange(record: AnyItem) -> bool:
    """Return whether a record is an exchange of a timeline."""
    value = record.value
    return value.get("kind") == "exchange" and "branch" in value and isinstance(value.get("turn"), int)


def _holder(mark: JSON) -> SlotHolder:
    return SlotHolder(mark["fact"], mark["turn"])


def record_id_of(record: AnyItem) -> RecordId:
    """Return namespace and key of a record."""
    return tuple(record.namespace), record.key


def slot_id_of(record: AnyItem) -> SlotId | None:
    """Return the slot that a record fills; None if it fills none."""
    slot = record.value.get("slot")
    return SlotId(tuple(record.namespace), str(slot), "branch" in record.value) if slot else None
