"""The ledger: small records beside the facts, from which `validity` reads whether a fact still holds.

A fact is never changed after it was written. What becomes of it is written beside it, in records that are not changed
either, carry a stamp as every record does, and are visible on the same timelines:

* A mark "holds" says that from a turn on a fact holds a slot.
* A mark "again" says that a fact was said again.
* A judgement says that a reflection found a fact to be contradicted by another one.

Marks are spread over 1,024 namespaces by what they are about, so that a store reads one small namespace, not the
campaign. A judgement has the fact and the branch in its key. A timeline may have a hundred branches, and hardly any
fact is ever judged; so a flag without a branch says of which facts there is a judgement at all.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp

from questbook.memory.store.any_store import AnyItem, get_all, put_all, search_all
from questbook.memory.timeline.timeline import Segment, UserTimeline, is_visible, read_heads
from questbook.types import JSON

Namespace = tuple[str, ...]
RecordId = tuple[Namespace, str]
"""Namespace and key of a record."""

MARKS = "marks"
"""Last but one label of the namespaces, beside those of facts, that hold marks."""
JUDGEMENTS = "settled"
"""Last label of the namespaces, beside those of facts, that hold judgements. The word is that of the first stores."""
OF_USER = "user"
"""The `scope` of facts that all threads of a user share (`UserTimeline`); they are ordered by time, not by turn."""
HOLDS, AGAIN = "holds", "again"
FIRST_MARKS = 64
"""Marks of one slot that are read at first, before each branch is asked for its own."""
ALL_MARKS = 10_000
"""Marks, or judgements, that are read where all are wanted."""

_FIRST_TURNS = 64  # back from now
_FIRST_SECONDS = 86_400.0  # the same for facts that threads share, which are ordered by time
_GROWTH = 8
_JUDGED_FLAGS = "judged"
_MARK_NAMESPACES = 1024
_NEVER_JUDGED = frozenset({"exchange", "lore"})  # kinds that nothing contradicts: they were said, or are in a book


class StoredFact(NamedTuple):
    """A fact and where it is stored, where a store's item is not at hand."""

    namespace: Namespace
    key: str
    value: JSON


def text_digest(text: str) -> str:
    """Return 64 bits of a text's SHA-256, as 16 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def turn_position(turn: int, ordinal: int) -> str:
    """Return the field `at` of a fact: its turn and place in it, at a fixed width, so that text and numbers sort alike.

    Of one turn's facts, those from place 999 on are equal.
    """
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


def recent_spans(timeline: Sequence[Segment] | None, until: str = "") -> Iterator[JSON]:
    """Yield store filters for what was written in spans back from now, or from a position, that grow; the last is {}.

    What is wanted is mostly recent: so its cost does not grow with the campaign.
    """
    of_user = isinstance(timeline, UserTimeline)
    last = time.time() if of_user else float(timeline[-1][1] if timeline else 0)
    last = float(until.partition(".")[0]) if until else last
    span = _FIRST_SECONDS if of_user else _FIRST_TURNS
    while span < last and timeline is not None:
        yield {"at": {"$gt": lasting_position(last - span) if of_user else turn_position(int(last - span), 0)}}
        span *= _GROWTH
    yield {}


def slot_mark_op(facts: Namespace, slot: str, key: str, record: Mapping[str, Any], name: str = "") -> PutOp:
    """Make the write that says that a fact holds a slot, from the stamp and `at` of its record on.

    A fact may hold several slots from several turns on; then the mark has a name of its own in place of the fact's key.
    """
    return _mark_op(facts, HOLDS, slot, key, record, name)


def repetition_mark_op(facts: Namespace, original: str, key: str, record: Mapping[str, Any]) -> PutOp:
    """Make the write that says that a record was said again; key and record are those that it would have had."""
    return _mark_op(facts, AGAIN, original, key, record)


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
    digest = text_digest(about)
    return SearchOp(_mark_namespace(facts, digest), filter={"about": digest, **(only or {})}, limit=limit)


async def write_judgements(
    store: BaseStore, facts: Namespace, contradictions: Sequence[tuple[str, str]], stamp: Mapping[str, Any]
) -> list[str]:
    """Write that facts hold no more, because others contradict them; return the keys of those that end.

    A contradiction is the key of the fact that ends, and of the fact that holds; the first one of a fact counts.
    `stamp` has the stamp, `at` and `turns` of the turn that judged. Facts that were judged on this branch before are
    left out.
    """
    branch = str(stamp["branch"])
    pairs = dict(reversed(contradictions))
    keys = {ended: _judgement_key(ended, branch) for ended in pairs}
    existing = await get_all(store, [GetOp(_judgement_namespace(facts), key) for key in keys.values()])
    ended_now = [ended for ended, item in zip(keys, existing, strict=True) if item is None]
    # Flags first: a flag without a judgement says nothing, but a judgement without a flag would not be found.
    writes = [PutOp(_flag_namespace(facts), text_digest(ended), {"judged": True}, index=False) for ended in pairs]
    writes += [
        PutOp(_judgement_namespace(facts), keys[ended], {"ended": ended, "fact": pairs[ended], **stamp}, index=False)
        for ended in ended_now
    ]
    await put_all(store, writes)
    return ended_now


async def find_judgements(
    store: BaseStore,
    records: Iterable[AnyItem],
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> dict[RecordId, int]:
    """Return the turns at which records of any namespaces were judged to hold no more, by namespace and key.

    Costs two batches of reads, and without a timeline a search: then every judgement counts. Exchanges, lore and what
    has no branch are never judged.
    """
    turns = {
        (tuple(record.namespace), record.key): int(record.value.get("turn", 0))
        for record in records
        if "branch" in record.value and record.value.get("kind", "exchange") not in _NEVER_JUDGED
    }
    judgements = await (
        _all_judgements(store, turns) if timeline is None else _timeline_judgements(store, turns, timeline)
    )
    judged: dict[RecordId, int] = {}
    await read_heads(store, timeline, (judgement for _, judgement in judgements))
    for place, judgement in judgements:
        if place in turns and is_visible(timeline, judgement, before):
            turn = int(judgement["turn"])
            judged[place] = min(turn, judged.get(place, turn))
    return judged


async def _timeline_judgements(
    store: BaseStore, turns: Mapping[RecordId, int], timeline: Sequence[Segment]
) -> list[tuple[RecordId, JSON]]:
    flags = await get_all(
        store, [GetOp(_flag_namespace(facts), text_digest(key), refresh_ttl=False) for facts, key in turns]
    )
    if isinstance(timeline, UserTimeline):  # another thread's judgement has a branch that this one does not know
        flagged = [place for place, flag in zip(turns, flags, strict=True) if flag is not None]
        results = await search_all(
            store,
            [SearchOp(_judgement_namespace(facts), filter={"ended": key}, limit=ALL_MARKS) for facts, key in flagged],
        )
        return [(place, item.value) for place, items in zip(flagged, results, strict=True) for item in items]
    gets = [
        (place, GetOp(_judgement_namespace(place[0]), _judgement_key(place[1], branch), refresh_ttl=False))
        for (place, turn), flag in zip(turns.items(), flags, strict=True)
        if flag is not None
        for branch, through in timeline
        if through >= turn
    ]
    items = await get_all(store, [get for _, get in gets])
    return [(place, item.value) for (place, _), item in zip(gets, items, strict=True) if item is not None]


async def _all_judgements(store: BaseStore, turns: Mapping[RecordId, int]) -> list[tuple[RecordId, JSON]]:
    namespaces = list(dict.fromkeys(facts for facts, _ in turns))
    searches = [SearchOp(_judgement_namespace(facts), limit=ALL_MARKS) for facts in namespaces]
    results = await search_all(store, searches)
    return [
        ((facts, item.value["ended"]), item.value)
        for facts, items in zip(namespaces, results, strict=True)
        for item in items
    ]


def _mark_op(facts: Namespace, what: str, about: str, key: str, record: Mapping[str, Any], name: str = "") -> PutOp:
    digest = text_digest(about)
    value = {"what": what, "about": digest, "fact": key} | stamp_fields(record)
    return PutOp(_mark_namespace(facts, digest), f"{name or key}-{what}", value, index=False)


def _mark_namespace(facts: Namespace, digest: str) -> Namespace:
    return (*facts[:-1], MARKS, f"{int(digest, 16) % _MARK_NAMESPACES:03x}")


def _judgement_namespace(facts: Namespace) -> Namespace:
    return (*facts[:-1], JUDGEMENTS)


def _flag_namespace(facts: Namespace) -> Namespace:
    return (*facts[:-1], _JUDGED_FLAGS)


def _judgement_key(ended: str, branch: str) -> str:
    return f"{text_digest(ended)}-{branch}"
