"""Validity: does this fact still hold? And the small records beside the facts that say so.

Of the facts of one slot that a timeline sees, the newest holds, until a reflection judges that it is contradicted. No
fact is changed after it was written. What becomes of it is written beside it, in records that are not changed either,
carry a stamp as every record does, and are visible on the same timelines:

* A mark "holds" says that from a turn on a fact holds a slot.
* A mark "again" says that a fact was said again.
* A judgement says that a reflection found a fact to be contradicted by another one.

Marks are spread over 1,024 namespaces by what they are about, so that a store reads one small namespace. A judgement's
key follows from the fact and the branch; a flag without a branch says of which facts there is a judgement at all.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp

from questbook.memory.facts.fact import slot_of
from questbook.memory.store.any_store import (
    AnyItem,
    AnyItemT,
    JointReads,
    get_all,
    get_values,
    items_under,
    put_all,
    search_all,
)
from questbook.memory.timeline.records import has_expired
from questbook.memory.timeline.timeline import (
    Timeline,
    UserTimeline,
    is_visible,
    read_heads,
    record_key,
    search_visible,
    visible_filters,
)
from questbook.types import JSON

Namespace = tuple[str, ...]
RecordId = tuple[Namespace, str]  # namespace and key of a record

MARKS, JUDGEMENTS, FLAGS = "marks", "settled", "judged"
"""Labels of the namespaces, beside those of facts, that hold marks, judgements, and what says of which facts."""
OF_USER = "user"
"""The `scope` of facts that all threads of a user share (`UserTimeline`); they are ordered by time, not by turn."""
HOLDS, AGAIN = "holds", "again"  # what a mark says
FIRST_MARKS, ALL_MARKS = 64, 10_000
"""Marks of one slot that are read at first; and marks, or judgements, where all are wanted."""
_HIDDEN = "#"  # begins a slot of which only the digest is left; no word of a slot begins so

_FIRST_TURNS = 64  # back from now
_FIRST_SECONDS = 86_400.0  # the same for facts that threads share, which are ordered by time
_GROWTH = 8
_MARK_NAMESPACES = 1024
_NEVER_JUDGED = frozenset({"exchange", "lore"})  # kinds that nothing contradicts: they were said, or are in a book


class StoredFact(NamedTuple):
    """A fact and where it is stored."""

    namespace: Namespace
    key: str
    value: JSON


class FactPeriod(NamedTuple):
    """A fact and the turns in which it held."""

    key: str
    value: JSON
    since: int
    until: int | None  # the turn at which it was superseded or judged to be wrong; None if it holds


class SlotId(NamedTuple):
    """A slot, the namespace of its facts, and whether they rewind."""

    namespace: Namespace
    slot: str
    rewinds: bool


async def keep_valid(
    store: BaseStore, records: Sequence[AnyItemT], *, timeline: Timeline | None = None, before: int | None = None
) -> list[AnyItemT]:
    """Return the records that hold, in their order, but not those that only say that something has ended (`ends`).

    A record without a slot holds until it is judged to be wrong or expires; one without a branch does not rewind: no
    timeline hides it. With `before` the answer is as of before this turn; without a timeline everything is visible.

    Costs one batch of reads; one more where there are judgements, or 64 newer marks of a slot on other branches.
    """
    return (await valid_and_holders(store, records, timeline, before))[0]


async def valid_and_holders(
    store: BaseStore, records: Sequence[AnyItemT], timeline: Timeline | None, before: int | None = None
) -> tuple[list[AnyItemT], dict[SlotId, str]]:
    """Return the records that hold, and what holds the slots of those that are superseded, as `_superseded_slots`."""
    if not records:
        return [], {}
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
        and not (record_id_of(record) in judgements or record.value.get("ends") or has_expired(record.value))
    ]
    return valid, superseded


async def keep_valid_of_each(
    store: BaseStore, lists: Sequence[Sequence[AnyItemT]], timeline: Timeline | None, fact: JSON
) -> list[list[AnyItemT]]:
    """Return of each list of records of one namespace those that held at a fact's turn, if it has a timeline."""
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
    timeline: Timeline | None = None,
    before: int | None = None,
) -> list[FactPeriod]:
    """Return all facts that held the slot of a subject and attribute, the oldest first, and in which turns."""
    search = mark_search(namespace, slot_of(subject, attribute), limit=ALL_MARKS)
    [found] = await search_visible(store, [search], timeline, before)
    marks = sorted((item.value for item in found.items if item.value["what"] == HOLDS), key=position_of)
    records = await read_records(store, namespace, [mark["fact"] for mark in marks])
    stored = [StoredFact(namespace, key, value) for key, value in records.items()]
    judgements = await find_judgements(store, stored, timeline=timeline, before=before)
    periods = []
    for mark, successor in zip(marks, [*marks, None][1:], strict=True):
        if (key := mark["fact"]) in records:
            ends = [successor["turn"] if successor else None, judgements.get((namespace, key))]
            until = min((turn for turn in ends if turn is not None), default=None)
            periods.append(FactPeriod(key, records[key], mark["turn"], until))
    return periods


async def count_repetitions(
    store: BaseStore,
    namespace: Namespace,
    keys: Iterable[str],
    *,
    timeline: Timeline | None = None,
    before: int | None = None,
) -> dict[str, int]:
    """Count how often each record was said again, by its key; with `before`, only before this turn."""
    unique = list(dict.fromkeys(keys))
    searches = [mark_search(namespace, key, limit=ALL_MARKS) for key in unique]
    results = await search_visible(store, searches, timeline, before)
    counts = (sum(item.value["what"] == AGAIN for item in found.items) for found in results)
    return dict(zip(unique, counts, strict=True))


async def find_holders(
    store: BaseStore,
    namespace: Namespace,
    slots: Iterable[str],
    *,
    timeline: Timeline | None = None,
    position: str | None = None,
    ignore: Collection[str] = (),
) -> dict[str, str]:
    """Find the key of the fact that holds each slot; slots that none holds are left out. Judgements are not asked for.

    The newest marks are searched first. `position` is a place in the order of facts (see `turn_position`) as of which
    to answer, `ignore` has the keys of facts that do not count.
    """

    def counts(mark: JSON) -> bool:
        in_time = position is None or mark["at"][: len(position)] <= position  # longer: of the same moment, and later
        return bool(mark["what"] == HOLDS and mark["fact"] not in ignore and in_time)

    open_slots, holders = list(slots), dict[str, str]()
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
                holders[slot] = newest["fact"]
            elif since:
                left.append(slot)
        if not (open_slots := left):
            break
    return holders


async def _superseded_slots(
    store: BaseStore, newest: Mapping[SlotId, str], timeline: Timeline | None, before: int | None
) -> dict[SlotId, str]:
    """Return the slots with a newer fact than at a position, and its key; "" where not all newer marks were read."""

    def search_newer(slot: SlotId, only: JSON, limit: int) -> SearchOp:
        return mark_search(slot.namespace, slot.slot, {"what": HOLDS, "at": {"$gt": newest[slot]}} | only, limit)

    superseded, crowded = dict[SlotId, str](), list[SlotId]()
    results = await search_all(store, [search_newer(slot, {}, FIRST_MARKS) for slot in newest])
    await read_heads(store, timeline, (item.value for items in results for item in items))
    for slot, items in zip(newest, results, strict=True):
        line, turn = (timeline, before) if slot.rewinds else (None, None)
        if marks := [item.value for item in items if is_visible(line, item.value, turn)]:
            superseded[slot] = max(marks, key=position_of)["fact"] if len(items) < FIRST_MARKS else ""
        elif line is not None and len(items) >= FIRST_MARKS:
            crowded.append(slot)
    if not crowded:
        return superseded
    of_user = isinstance(timeline, UserTimeline)
    filters = [{}] if of_user else visible_filters(timeline, before) if timeline is not None else []
    searches = [(slot, search_newer(slot, only, ALL_MARKS if of_user else 1)) for slot in crowded for only in filters]
    found = await search_visible(store, [search for _, search in searches], timeline, before)
    return superseded | {slot: "" for (slot, _), one in zip(searches, found, strict=True) if one.items}


def record_id_of(record: AnyItem) -> RecordId:
    """Return namespace and key of a record."""
    return tuple(record.namespace), record.key


def slot_id_of(record: AnyItem) -> SlotId | None:
    """Return the slot that a record fills; None if it fills none."""
    slot = record.value.get("slot")
    return SlotId(tuple(record.namespace), str(slot), "branch" in record.value) if slot else None


async def write_judgements(
    store: BaseStore, facts: Namespace, contradictions: Sequence[tuple[str, str]], stamp: Mapping[str, Any]
) -> list[str]:
    """Write that facts hold no more, as `judgement_ops` says it; return the keys of those that end now."""
    writes, ended = await judgement_ops(store, facts, contradictions, stamp)
    await put_all(store, writes)
    return ended


async def judgement_ops(
    store: BaseStore, facts: Namespace, contradictions: Sequence[tuple[str, str]], stamp: Mapping[str, Any]
) -> tuple[list[PutOp], list[str]]:
    """Make the writes that say that facts hold no more, because others contradict them; and the keys that end now.

    A contradiction is the key of the fact that ends, and of the fact that holds; the first one of a fact and branch
    counts. `stamp` has the stamp, `at` and `turns` of the turn that judged; without a branch it does not rewind.
    """
    namespace, pairs = _beside(facts, JUDGEMENTS), dict(reversed(contradictions))
    keys = {ended: _judgement_key(ended, str(stamp.get("branch", ""))) for ended in pairs}
    existing = await read_records(store, namespace, keys.values())
    judged = {ended: {"ended": ended, "fact": pairs[ended], **stamp} for ended in pairs if keys[ended] not in existing}
    # Flags first: a flag without a judgement says nothing, but a judgement without a flag would not be found.
    writes = [PutOp(_beside(facts, FLAGS), text_digest(ended), {"judged": True}, index=False) for ended in pairs]
    writes += [PutOp(namespace, keys[ended], judgement, index=False) for ended, judgement in judged.items()]
    return writes, list(judged)


async def find_judgements(
    store: BaseStore, records: Iterable[AnyItem], *, timeline: Timeline | None = None, before: int | None = None
) -> dict[RecordId, int]:
    """Return the turns at which records of any namespaces were judged to hold no more, by namespace and key.

    Without a timeline every judgement counts. Exchanges and lore are never judged; what has no branch, only by a
    judgement that has none.
    """
    records = list(records)
    turns = {
        record_id_of(record): int(record.value.get("turn", 0))
        for record in records
        if record.value.get("kind", "exchange") not in _NEVER_JUDGED
    }
    lasting = {record_id_of(record) for record in records if "branch" not in record.value}
    judgements = await _judgements_of(store, turns, timeline, lasting)
    judged: dict[RecordId, int] = {}
    await read_heads(store, timeline, (judgement for _, judgement in judgements))
    for place, judgement in judgements:
        if place in turns and (place in lasting) != ("branch" in judgement) and is_visible(timeline, judgement, before):
            turn = int(judgement["turn"])
            judged[place] = min(turn, judged.get(place, turn))
    return judged


async def _judgements_of(
    store: BaseStore, turns: Mapping[RecordId, int], timeline: Timeline | None, lasting: Collection[RecordId]
) -> list[tuple[RecordId, JSON]]:
    """Return the judgements of records, as far as a timeline may see them; without one, all of their namespaces."""
    if timeline is None:
        namespaces = list(dict.fromkeys(facts for facts, _ in turns))
        results = await search_all(store, [SearchOp(_beside(one, JUDGEMENTS), limit=ALL_MARKS) for one in namespaces])
        of_all = zip(namespaces, results, strict=True)
        return [((facts, item.value["ended"]), item.value) for facts, items in of_all for item in items]
    flagged = await flagged_records(store, turns)
    if isinstance(timeline, UserTimeline):  # another thread's judgement has a branch that this one does not know
        only = [(_beside(facts, JUDGEMENTS), {"ended": key}) for facts, key in flagged]
        results = await search_all(store, [SearchOp(one, filter=ended, limit=ALL_MARKS) for one, ended in only])
        return [(place, item.value) for place, items in zip(flagged, results, strict=True) for item in items]
    place_of = {
        (_beside(facts, JUDGEMENTS), _judgement_key(key, branch)): (facts, key)
        for facts, key in flagged
        for branch, through in ([("", turns[facts, key])] if (facts, key) in lasting else timeline)
        if through >= turns[facts, key]
    }
    found = await get_values(store, list(place_of))
    return [(place_of[place], dict(judgement)) for place, judgement in found.items()]


async def flagged_records(store: BaseStore, places: Iterable[RecordId]) -> list[RecordId]:
    """Return those of some records of which there is a judgement at all, on any timeline."""
    flag_of = {place: (_beside(place[0], FLAGS), text_digest(place[1])) for place in places}
    flags = await get_values(store, list(flag_of.values()))
    return [place for place, flag in flag_of.items() if flag in flags]


async def removals_beside(
    store: BaseStore, facts: Namespace, gone: Collection[str], goes: Callable[[JSON], bool] = lambda _: False
) -> list[PutOp]:
    """Make the writes that remove what is beside facts with these keys: their marks and judgements, and marks that go.

    What held before a removed fact then holds again.
    """
    beside = [item for label in (MARKS, JUDGEMENTS) async for item in items_under(store, _beside(facts, label))]
    about = {text_digest(key) for key in gone}
    return [
        PutOp(item.namespace, item.key, None)
        for item in beside
        if {item.value.get("fact"), item.value.get("ended")} & {*gone}
        or item.value.get("about") in about
        or ("about" in item.value and goes(item.value))
    ] + [PutOp(_beside(facts, FLAGS), digest, None) for digest in sorted(about)]


async def heirs_of(
    store: BaseStore, facts: Namespace, gone: Mapping[str, JSON], goes: Callable[[JSON], bool]
) -> list[PutOp]:
    """Make the writes by which removed records live on where they were said again, but for marks that go.

    On each branch the first repetition that is left becomes the record. They come after `removals_beside`.
    """
    names = {text_digest(key): key for key in gone}
    beside = [item.value async for item in items_under(store, _beside(facts, MARKS))]
    again = [mark for mark in beside if mark["what"] == AGAIN and mark["about"] in names and not goes(mark)]
    ended = [item.value async for item in items_under(store, _beside(facts, JUDGEMENTS))]
    writes, heirs = list[PutOp](), dict[tuple[str, Any], str]()
    for mark in sorted(again, key=position_of):
        key, branch, turn = names[mark["about"]], mark.get("branch"), mark["turn"]
        heir = heirs.setdefault((key, branch), mark["fact"])
        if heir != mark["fact"]:
            writes.append(mark_op(facts, AGAIN, heir, mark["fact"], gone[key] | mark))
            continue
        said = await store.aget(_beside(facts, "exchanges"), record_key(str(branch), turn, "exchange"))
        origin = ("messages", "said_at", "thread", "checkpoint")
        value = gone[key] | {name: said.value.get(name) for name in origin if said} | stamp_fields(gone[key] | mark)
        writes.append(PutOp(facts, heir, value))
        if slot := value.get("slot"):
            writes.append(mark_op(facts, HOLDS, slot, heir, value))
        for judgement in (one for one in ended if one["ended"] == key):
            place = _judgement_key(heir, str(judgement.get("branch", "")))
            writes.append(PutOp(_beside(facts, FLAGS), text_digest(heir), {"judged": True}, index=False))
            writes.append(PutOp(_beside(facts, JUDGEMENTS), place, judgement | {"ended": heir}, index=False))
    return writes


def text_digest(text: str) -> str:
    """Return 64 bits of a text's SHA-256, as 16 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def hide_slot(slot: str) -> str:
    """Return what stands for a slot whose words are forgotten: its marks are found by it, and a later fact ends its."""
    return slot if slot.startswith(_HIDDEN) else f"{_HIDDEN}{text_digest(slot)}"


def _about(slot_or_key: str) -> str:
    return slot_or_key[1:] if slot_or_key.startswith(_HIDDEN) else text_digest(slot_or_key)


def turn_position(turn: int, ordinal: int) -> str:
    """Return the field `at` of a fact: its turn and place in it, to 999, of a fixed width so that text sorts right."""
    return f"{turn:08}.{min(ordinal, 999):03}"


def time_position(moment: datetime, turn: int, ordinal: int) -> str:
    """Return the field `at` of a fact that does not rewind, of which turns say nothing: the second, then the turn."""
    return f"{max(0, int(moment.timestamp())):011}.{turn % 100:02}{min(ordinal, 999):03}"


def lasting_position(seconds: float) -> str:
    """Return the field `at` of a fact that is ordered by time alone, to the microsecond; `seconds` since 1970."""
    return f"{max(0.0, seconds):018.6f}"


def position_of(record: Mapping[str, Any]) -> str:
    """Return a record's field `at`; a record without one counts by its turn."""
    return str(record.get("at") or turn_position(int(record.get("turn") or 0), 0))


def recent_spans(timeline: Timeline | None, until: str = "") -> Iterator[JSON]:
    """Yield store filters for what was written in growing spans back from now, or from a position; the last is {}."""
    of_user = isinstance(timeline, UserTimeline)
    now = time.time() if of_user else timeline[-1][1] if timeline else 0
    last, span = float(until.partition(".")[0] or now), _FIRST_SECONDS if of_user else _FIRST_TURNS
    while span < last and timeline is not None:
        yield {"at": {"$gt": lasting_position(last - span) if of_user else turn_position(int(last - span), 0)}}
        span *= _GROWTH
    yield {}


def mark_op(facts: Namespace, what: str, about: str, key: str, record: Mapping[str, Any], name: str = "") -> PutOp:
    """Make the write that says what became of a fact, from the stamp and `at` of its record on.

    `HOLDS`: the fact with this key holds a slot (`about`). It may hold several slots from several turns on; then the
    mark has a name of its own in place of the key. `AGAIN`: the record with the key `about` was said again; key and
    record are those that the repetition would have had.
    """
    digest = _about(about)
    value = {"what": what, "about": digest, "fact": key} | stamp_fields(record)
    return PutOp(_mark_namespace(facts, digest), f"{name or key}-{what}", value, index=False)


def stamp_fields(record: Mapping[str, Any]) -> JSON:
    """Return the fields of a fact that say where it was written, for a mark or judgement of the same place."""
    # What does not rewind has no branch; there, the messages say where it comes from.
    fields = ["branch", "turn", "order", "at", "turns"] if "branch" in record else ["turn", "at", "messages"]
    fields += ["thread"] if record.get("scope") == OF_USER else []
    return {name: record[name] for name in fields if name in record}


async def read_records(store: BaseStore, namespace: Namespace, keys: Iterable[str]) -> dict[str, JSON]:
    """Read records by their keys in one batch; leave out those that the store does not have."""
    items = await get_all(store, [GetOp(namespace, key) for key in dict.fromkeys(keys)])
    return {item.key: item.value for item in items if item is not None}


def mark_search(facts: Namespace, about: str, only: JSON | None = None, limit: int = FIRST_MARKS) -> SearchOp:
    """Make the search for the marks of a slot, or of a fact's key, that meet a further store filter."""
    digest = _about(about)
    return SearchOp(_mark_namespace(facts, digest), filter={"about": digest, **(only or {})}, limit=limit)


def _mark_namespace(facts: Namespace, digest: str) -> Namespace:
    return (*_beside(facts, MARKS), f"{int(digest, 16) % _MARK_NAMESPACES:03x}")


def _beside(facts: Namespace, label: str) -> Namespace:
    return (*facts[:-1], label)


def _judgement_key(ended: str, branch: str) -> str:
    return f"{text_digest(ended)}-{branch}"
