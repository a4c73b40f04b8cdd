"""Writing facts: each fact once, in any number of wordings, on any timeline.

A fact that says what a valid record says becomes a mark that it was said again; one that says something else of the
same slot, a record that supersedes the older one. Records are never changed, and writing twice is writing once.
Apps call `note_facts`, people `add_fact`; `write_facts` takes records whose keys and stamps the caller has made.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count, groupby
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, PutOp, SearchItem

from questbook.memory.facts import validity
from questbook.memory.facts.attributes import earlier_attribute_name
from questbook.memory.facts.days import find_days
from questbook.memory.facts.fact import BY_HAND, Fact, identity_of, slot_of
from questbook.memory.facts.relations import ends_another, find_hearsay, find_settled, is_same_fact, settle, settles
from questbook.memory.facts.validity import Namespace, StoredFact
from questbook.memory.recall.candidates import Scope, propose_candidates
from questbook.memory.store.any_store import JointReads, is_own, items_under, put_all
from questbook.memory.text.words import content_stems, is_negated, marks_in, normalize, numbers_in, with_cut_words
from questbook.memory.timeline.namespaces import check_namespace
from questbook.memory.timeline.records import Stamp, read_time
from questbook.memory.timeline.timeline import Timeline, UserTimeline, branch_of, record_key
from questbook.types import JSON

_AFTER_ALL = 950  # a fact by hand has its place in its turn after what the turn taught and what was concluded in it
_MICROSECONDS = 1_000_000  # of a second; facts of one moment are one apart
_COMPARED = 32  # records that sound most like a fact, which it is compared with


class FactDraft(NamedTuple):
    """A fact to write: its key, the same whenever its turn writes it, and its record, with `slot`, stamp and `at`.

    `repeats` is the key of a record that was recalled for the turn and says the same; "" if there is none.
    """

    key: str
    value: JSON
    repeats: str = ""


class FactChanges(NamedTuple):
    """What was written."""

    new: list[str]  # keys of the new records
    repetitions: dict[str, str]  # the key of each fact that says what a record says, and the key of that record
    superseded: list[str]  # keys of the records that hold no more


async def note_facts(
    store: BaseStore,
    namespace: Namespace,
    facts: Iterable[Fact | Mapping[str, Any] | str],
    *,
    timeline: Timeline | None = None,
    turn: int | None = None,
    noted_at: datetime | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> FactChanges:
    """Write facts to any store, each once; a newer fact supersedes the older one in its slot.

        await note_facts(
            store,
            ("ann", "isle", "facts"),
            [
                {"text": "Goran lives at the mill.", "subject": "Goran", "attribute": "home", "value": "the mill"},
                {"text": "Goran is a spy.", "subject": "Goran", "claimed_by": "Oda"},
                "The bridge has fallen.",
            ],
            timeline=[("main", 7)],
        )

    A fact with a subject and an attribute has a slot. A fact with a speaker (`claimed_by`) is a claim, with a slot of
    its own, so that it never supersedes what is so. What an existing fact says already is counted as a repetition.

    Args:
        store: Any store that indexes the field `text`, or makes no vectors.
        namespace: Where the facts go: `(…, "facts")`. Marks go beside it, under `(…, "marks")`.
        facts: Facts in the order in which they were said: `Fact`, its fields as a JSON object, or a sentence.
        timeline: The checkpoint's timeline: another fork does not see the facts. With a `UserTimeline` the user's other
            threads see them, until the thread that noted them goes back. None: the facts do not rewind, as what is
            known of a person.
        turn: The turn that taught them; None: the last one of the timeline.
        noted_at: Without a timeline, or with a `UserTimeline`, when they were said, with an offset; None: now. The
            later fact of a slot holds.
        provenance: Further fields of every record, such as `said_at` (ISO 8601), `thread` or `messages`.

    Raises:
        ValueError: A fact is not valid, or the timeline does not reach the turn. Nothing was written.
    """
    common: JSON = {"cites": []} | dict(provenance or {})
    check_namespace(namespace)
    now = noted_at or datetime.now(UTC)
    said = read_time(str(common.get("said_at") or "")) or now
    checked = [_with_days(_to_fact(fact), said) for fact in facts]
    if timeline is None:
        drafts = [
            _lasting_draft(fact, common | {"turn": turn or 0}, now.timestamp() + ordinal / _MICROSECONDS)
            for ordinal, fact in enumerate(checked)
        ]
    else:
        last = timeline[-1][1] if timeline else 0
        drafts = await _turn_drafts(store, namespace, checked, common, timeline, last if turn is None else turn)
    if isinstance(timeline, UserTimeline):
        for draft in drafts:
            draft.value.update(_place_among_threads(timeline, now, int(draft.key.rpartition("-")[2])))
    return await write_facts(store, namespace, drafts, timeline=timeline, also=lambda _: _head(timeline))


async def add_fact(
    store: BaseStore,
    namespace: Namespace,
    fact: Fact | Mapping[str, Any],
    *,
    timeline: Timeline | None = None,
    replaces: str = "",
) -> FactChanges:
    """Write a fact by hand, as of the last turn of a timeline; without one it does not rewind.

    `replaces` is the key of a fact that holds no more from then on; the new record names it, as `corrects`.
    """
    at = datetime.now(UTC)
    checked = _with_days(_to_fact(fact), at)
    origin: JSON = {"by": BY_HAND, "said_at": at.isoformat(timespec="seconds"), "cites": []}
    origin |= {"corrects": replaces} if replaces else {}
    if timeline:
        turn = timeline[-1][1]
        branch = branch_of(timeline, turn)
        stamp = Stamp(branch, turn).to_json()
        own = {name: stamp[name] for name in ("branch", "order")} | {"by": BY_HAND}
        ordinal = len([item async for item in items_under(store, namespace, own)])
        stamp |= {"turns": [turn, turn], "messages": [], "at": validity.turn_position(turn, _AFTER_ALL + ordinal)}
        if isinstance(timeline, UserTimeline):
            stamp |= _place_among_threads(timeline, at, ordinal)
        value = checked.record()
        by_hand = f"{BY_HAND}.{validity.text_digest(value['text'])}"  # of no fact that the turn may teach
        key = record_key(branch, turn, by_hand)
        draft = FactDraft(key, value | origin | stamp)
    else:
        draft = _lasting_draft(checked, origin | {"turn": 0}, at.timestamp())
    stamp = {"turns": [0, 0], **validity.stamp_fields(draft.value)}
    ended = [(replaces, draft.key)] if replaces else []
    judgements, _ = await validity.judgement_ops(store, namespace, ended, stamp)
    also = [*judgements, *_head(timeline)]
    return await write_facts(store, namespace, [draft], timeline=timeline or None, also=lambda _: also)


async def write_facts(
    store: BaseStore,
    namespace: Namespace,
    drafts: Sequence[FactDraft],
    *,
    timeline: Timeline | None = None,
    also: Callable[[FactChanges], Iterable[PutOp]] = lambda _: (),
) -> FactChanges:
    """Write facts whose keys and stamps the caller has made, in the order in which they were said, each once.

    A draft whose key exists is skipped. All writes of a turn are one batch: if the store or its embedder fails, a store
    that writes a batch as a whole has written nothing of that turn; with any store the same call completes it. `also`
    returns further writes for the last batch, given what is written.
    """
    ordered = sorted(drafts, key=lambda draft: str(draft.value["at"]))
    changes, writes = FactChanges([], {}, []), list[PutOp]()
    # Facts of several turns come together only after failures. Each is compared with what held at its own turn.
    for _, of_turn in groupby(ordered, key=lambda draft: draft.value.get("turn")):
        await put_all(store, writes)
        writes = await _turn_ops(store, namespace, list(of_turn), timeline, changes)
    await put_all(store, [*writes, *also(changes)])
    return changes


def _head(timeline: Timeline | None) -> list[PutOp]:
    return [timeline.head_op()] if isinstance(timeline, UserTimeline) else []


def _place_among_threads(timeline: UserTimeline, now: datetime, ordinal: int) -> JSON:
    """Return the fields by which threads share a fact: turns of several have no common order, but time has."""
    at = validity.lasting_position(now.timestamp() + ordinal / _MICROSECONDS)
    return {"scope": validity.OF_USER, "thread": timeline.thread, "at": at}


def _to_fact(fact: Fact | Mapping[str, Any] | str) -> Fact:
    fields = {"text": fact} if isinstance(fact, str) else fact
    return fields if isinstance(fields, Fact) else Fact.model_validate(dict(fields))


def _with_days(fact: Fact, said: datetime) -> Fact:
    if fact.when or fact.day is not None:
        return fact
    day = read_time(fact.real_time)
    when = [day.date().isoformat()] if day else find_days(fact.text, said, in_slot=bool(fact.attribute))
    return fact.model_copy(update={"when": when})


def _lasting_draft(fact: Fact, fields: JSON, seconds: float) -> FactDraft:
    at = validity.lasting_position(seconds)  # in the key, so that a repetition has another one
    return FactDraft(f"{at}-{validity.text_digest(normalize(fact.text))}", fact.record() | fields | {"at": at})


async def _turn_drafts(
    store: BaseStore, namespace: Namespace, facts: Sequence[Fact], fields: JSON, timeline: Timeline, number: int
) -> list[FactDraft]:
    """Make drafts of a turn's facts. Those that an earlier call has written are left out."""
    branch = branch_of(timeline, number)
    stamps = Stamp(branch, number).to_json()
    own = {name: stamps[name] for name in ("branch", "order")}
    under = [item async for item in items_under(store, namespace, own, refresh_ttl=False)]
    existing = {item.key: item.value for item in under if is_own(item, namespace)}
    written = {identity_of(value) for value in existing.values()}
    ordinals = (ordinal for ordinal in count() if record_key(branch, number, "fact", ordinal) not in existing)
    common: JSON = {"turns": [number, number]} | fields | stamps
    new = (record | common for record in (fact.record() for fact in facts) if identity_of(record) not in written)
    return [
        FactDraft(record_key(branch, number, "fact", n), record | {"at": validity.turn_position(number, n)})
        for record, n in zip(new, ordinals, strict=False)
    ]


async def _turn_ops(
    store: BaseStore, namespace: Namespace, drafts: Sequence[FactDraft], timeline: Timeline | None, changes: FactChanges
) -> list[PutOp]:
    """Make the writes of one turn's facts that do not exist, compared with what held then; add them to the changes."""
    facts, own, reads = [draft.value for draft in drafts], {draft.key for draft in drafts}, JointReads.of(store)
    corrected = {fact["corrects"] for fact in facts if "corrects" in fact}  # nothing repeats what it corrects
    slots = filter(None, dict.fromkeys(slot for fact in facts for slot in (fact["slot"], _slot_before_0_3(fact))))
    texts, position = [str(fact["text"]) for fact in facts], str(facts[0]["at"])
    existing, [similar], about, holding = await asyncio.gather(
        validity.read_records(reads, namespace, own),
        propose_candidates(reads, [Scope(namespace, timeline)], texts, [_COMPARED] * len(texts)),
        find_hearsay(reads, namespace, facts, timeline),
        validity.find_holders(reads, namespace, slots, timeline=timeline, position=position, ignore=own),
    )
    if existing:
        missing = [draft for draft in drafts if draft.key not in existing]
        return await _turn_ops(store, namespace, missing, timeline, changes) if missing else []
    same_as, hearsay, holders = await asyncio.gather(
        _valid_duplicates(reads, drafts, similar, timeline),
        find_settled(reads, namespace, facts, about, similar, timeline),
        _valid_holders(reads, namespace, holding, timeline),
    )
    holders = {slot: holder for slot, holder in holders.items() if holder.key not in corrected}
    new, marks, writes = dict[str, JSON](), list[PutOp](), list[PutOp]()
    settled = list[tuple[StoredFact, str, JSON]]()
    for draft, duplicates, earlier in zip(drafts, same_as, hearsay, strict=True):
        slot, older_slot = draft.value["slot"], _slot_before_0_3(draft.value)
        older = holders.get(older_slot)
        holder = holders.get(slot) or older
        if holder is not None and (last := validity.position_of(holder.value)).startswith(draft.value["at"]):
            draft = draft._replace(value=draft.value | {"at": f"{last}1"})  # of the same moment, as in an import: later
        draft = _known_to_more(draft, holder)
        if holder is not None and ends_another(draft.value, holder.value):
            draft, slot, holder = draft._replace(value=draft.value | {"slot": ""}), "", None
        if draft.value.get("ends"):
            earlier += [StoredFact(namespace, item.key, item.value) for item in duplicates]
            duplicates = []
        earlier += [StoredFact(namespace, key, value) for key, value in new.items() if settles(draft.value, value)]
        originals = _originals(draft, holder, [item.key for item in duplicates], new, echoes=not earlier)
        original = next((key for key in originals if key not in changes.superseded), "")
        settled += [(old, original or draft.key, draft.value) for old in earlier]
        if original:
            changes.repetitions[draft.key] = original
            marks.append(validity.mark_op(namespace, validity.AGAIN, original, draft.key, draft.value))
            continue
        changes.new.append(draft.key)
        new[draft.key] = draft.value
        writes.append(PutOp(namespace, draft.key, draft.value))
        if slot:
            marks.append(validity.mark_op(namespace, validity.HOLDS, slot, draft.key, draft.value))
            if older is not None:
                marks.append(validity.mark_op(namespace, validity.HOLDS, older_slot, draft.key, draft.value))
            own_slots = map(validity.hide_slot, (slot, older_slot))
            if holder is not None and validity.hide_slot(holder.value["slot"]) in own_slots:
                changes.superseded.append(holder.key)
            holders[slot] = FactDraft(draft.key, draft.value)
    changes.superseded.extend(old.key for old, _, _ in settled)
    marks += await settle(store, namespace, settled)
    # Marks first: a later call skips a fact that exists, so its mark must exist by then.
    return [*marks, *writes]


def _known_to_more(draft: FactDraft, holder: FactDraft | None) -> FactDraft:
    knowers = draft.value.get("known_by")
    if holder is None or not knowers or not is_same_fact(draft.value, holder.value):
        return draft
    return draft._replace(value=draft.value | {"known_by": sorted({*knowers, *(holder.value.get("known_by") or ())})})


def _originals(
    draft: FactDraft, holder: FactDraft | None, duplicates: Iterable[str], new: Mapping[str, JSON], *, echoes: bool
) -> Iterator[str]:
    """Yield the keys of records that a fact repeats, best first; of a recalled one not where hearsay says the same."""
    if draft.value.get("ends"):
        return
    if holder is not None and _adds_nothing(draft.value, holder.value) and _outlives(holder.value, draft.value):
        yield holder.key
    yield from duplicates
    yield from (k for k, value in new.items() if is_same_fact(draft.value, value) and _outlives(value, draft.value))
    if draft.repeats and holder is None and echoes:
        yield draft.repeats


def _slot_before_0_3(value: JSON) -> str:
    """Return the slot that an older store has the same property under; "" if it is the same one."""
    fields = ("subject", "attribute", "kind", "claimed_by")
    subject, attribute, kind, speaker = (str(value.get(field) or "") for field in fields)
    slot = slot_of(subject, attribute, kind, speaker, earlier_attribute_name(attribute))
    slot = with_cut_words(slot)
    return slot if slot != value["slot"] else ""


def _adds_nothing(new: JSON, old: JSON) -> bool:
    """Whether a fact says of its slot only what is known of it. A fact that says more supersedes the old one."""
    if is_same_fact(new, old):
        return not old.get("ends")
    value, old_value = new["value"], str(old.get("value", ""))
    if numbers_in(value) != numbers_in(old_value) or is_negated(new["text"]) != is_negated(old["text"]):
        return False
    words = content_stems(value)
    return bool(words) and words <= content_stems(old_value) and marks_in(value) == marks_in(old_value)


def _outlives(old: JSON, new: JSON) -> bool:
    """Whether a fact ends by itself no sooner than another one, and all may see it who may see that one.

    Else that one is no repetition: it renews it, or belongs to another project.
    """
    known, knows = old.get("known_by") or [], new.get("known_by") or []
    others = not new.get("slot") and (old.get("metadata") or {}) != (new.get("metadata") or {})
    if others or (known and not (knows and {*knows} <= {*known})):
        return False
    ends, renewed = (read_time(str(fact.get("expires") or "")) for fact in (old, new))
    return ends is None or (renewed is not None and renewed <= ends)


async def _valid_holders(
    store: BaseStore, namespace: Namespace, holders: Mapping[str, str], timeline: Timeline | None
) -> dict[str, FactDraft]:
    """Return what held each slot before. A fact that was forgotten or judged to be wrong leaves its slot empty."""
    keys = list(holders.values())
    records, flagged = await asyncio.gather(
        validity.read_records(store, namespace, keys),
        validity.flagged_records(store, [(namespace, key) for key in keys]),
    )
    judged = records if timeline is None else [key for _, key in flagged if key in records]
    stored = [StoredFact(namespace, key, records[key]) for key in judged]
    judgements = await validity.find_judgements(store, stored, timeline=timeline)
    return {
        slot: FactDraft(key, records[key])
        for slot, key in holders.items()
        if key in records and (namespace, key) not in judgements
    }


async def _valid_duplicates(
    store: BaseStore, drafts: Sequence[FactDraft], similar: Sequence[Sequence[SearchItem]], timeline: Timeline | None
) -> list[list[SearchItem]]:
    """Return for each draft the records that say the same and held at its turn, the nearest first."""
    duplicates = []
    for draft, items in zip(drafts, similar, strict=True):
        own = (draft.key, draft.value.get("corrects"))
        others = [i for i in items if i.key not in own and validity.position_of(i.value) <= str(draft.value["at"])]
        lasting = [item for item in others if _outlives(item.value, draft.value)]
        duplicates.append([item for item in lasting if is_same_fact(draft.value, item.value, item.score)])
    return await validity.keep_valid_of_each(store, duplicates, timeline, drafts[0].value)
