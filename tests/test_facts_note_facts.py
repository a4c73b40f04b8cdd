"""note_facts: any app writes facts with slot, speaker and stamp to any store, in one call."""

from datetime import UTC, datetime, timedelta

import pytest
from langgraph.store.memory import InMemoryStore
from pydantic import ValidationError
from stores import KINDS, opened

from questbook import Fact, keep_valid, note_facts
from questbook.memory.facts.fact import FactRecord
from questbook.memory.facts.validity import count_repetitions, slot_history
from questbook.memory.timeline.timeline import visible_filters

FACTS = ("ann", "isle", "facts")
NOON = datetime(2026, 7, 10, 12, tzinfo=UTC)


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    with opened(request.param, tmp_path) as store:
        yield store


def home(where, **fields):
    fact = {"text": f"Goran lives at {where}.", "subject": "Goran", "attribute": "home", "value": where}
    return fact | {"kind": "trait"} | fields


async def valid_texts(store, timeline=None, before=None):
    filters = [None] if timeline is None else visible_filters(timeline, before)
    items = [item for only in filters for item in await store.asearch(FACTS, filter=only, limit=99)]
    return sorted(item.value["text"] for item in await keep_valid(store, items, timeline=timeline, before=before))


async def test_a_later_fact_supersedes_the_earlier_one_in_its_slot(store):
    first = await note_facts(store, FACTS, [home("the mill")], timeline=[("a", 1)])
    second = await note_facts(store, FACTS, [home("the inn")], timeline=[("a", 2)])
    assert (first.new, second.new, second.superseded) == (["a-1-fact-0"], ["a-2-fact-0"], ["a-1-fact-0"])
    assert await valid_texts(store, [("a", 2)]) == ["Goran lives at the inn."]
    assert await valid_texts(store, [("a", 2)], before=2) == ["Goran lives at the mill."]
    periods = await slot_history(store, FACTS, "Goran", "lives in", timeline=[("a", 2)])
    assert [(one.record.value, one.since, one.until) for one in periods] == [("the mill", 1, 2), ("the inn", 2, None)]


async def test_a_claim_is_kept_beside_the_fact_and_supersedes_only_a_claim_of_its_speaker(store):
    await note_facts(store, FACTS, [home("the mill")], timeline=[("a", 1)])
    claim = home("the palace", claimed_by="Oda", text="Oda says that Goran lives at the palace.")
    await note_facts(store, FACTS, [claim], timeline=[("a", 2)])
    assert await valid_texts(store, [("a", 2)]) == ["Goran lives at the mill.", claim["text"]]
    newer = home("the cave", claimed_by="Oda", text="Oda says that Goran lives at the cave.")
    done = await note_facts(store, FACTS, [newer], timeline=[("a", 3)])
    assert done.superseded == ["a-2-fact-0"]
    assert await valid_texts(store, [("a", 3)]) == ["Goran lives at the mill.", newer["text"]]


async def test_a_fork_from_before_the_change_believes_what_held_and_then_its_own(store):
    await note_facts(store, FACTS, [home("the mill")], timeline=[("a", 1)])
    await note_facts(store, FACTS, [home("the inn")], timeline=[("a", 3)])
    fork = [("a", 2), ("b", 4)]
    assert await valid_texts(store, fork) == ["Goran lives at the mill."]
    await note_facts(store, FACTS, [home("the bay")], timeline=fork)
    assert await valid_texts(store, fork) == ["Goran lives at the bay."]
    assert await valid_texts(store, [("a", 3)]) == ["Goran lives at the inn."]


async def test_a_record_says_who_what_where_and_when(store):
    fact = Fact(text="Goran is a spy.", subject="Goran", claimed_by="Oda", importance=8, known_by=["Oda"])
    provenance = {"said_at": NOON.isoformat(), "thread": "t1"}
    await note_facts(store, FACTS, ["The bridge has fallen.", fact], timeline=[("a", 7)], turn=5, provenance=provenance)
    bridge, spy = [FactRecord.from_json((await store.aget(FACTS, f"a-5-fact-{n}")).value) for n in range(2)]
    assert (bridge.text, bridge.kind, bridge.slot, bridge.cites, bridge.at) == (
        "The bridge has fallen.", "event", "", (), "00000005.000",
    )  # fmt: skip
    assert (spy.subject, spy.claimed_by, spy.importance, spy.known_by, spy.at) == (
        "Goran", "Oda", 8, ("Oda",), "00000005.001",
    )  # fmt: skip
    assert (spy.stamp.branch, spy.stamp.turn, spy.stamp.thread, spy.stamp.time) == ("a", 5, "t1", NOON)
    assert spy.stored["turns"] == [5, 5]


async def test_noting_a_turn_again_adds_only_what_is_new(store):
    lamp, key = {"text": "The lamp went out."}, {"text": "The silver key is rusty."}
    await note_facts(store, FACTS, [home("the mill"), lamp], timeline=[("a", 1)])
    again = await note_facts(store, FACTS, [home("the mill"), key, lamp], timeline=[("a", 1)])
    assert again == (["a-1-fact-2"], {}, [])
    assert len(await store.asearch(FACTS, limit=99)) == 3
    repeated = await note_facts(store, FACTS, [lamp], timeline=[("a", 2)])
    assert repeated == ([], {"a-2-fact-0": "a-1-fact-1"}, [])
    assert await count_repetitions(store, FACTS, ["a-1-fact-1"]) == {"a-1-fact-1": 1}


async def test_without_a_timeline_facts_do_not_rewind_and_the_later_one_holds(store):
    first = await note_facts(store, FACTS, [home("the mill"), home("the inn")], noted_at=NOON)
    assert len(first.new) == 2
    assert first.superseded == first.new[:1]
    late = await note_facts(store, FACTS, [home("the bay")], noted_at=NOON - timedelta(days=1))
    assert late.superseded == []
    assert await valid_texts(store) == ["Goran lives at the inn."]
    items = await store.asearch(FACTS, limit=99)
    [seen] = await keep_valid(store, items, timeline=[("any", 1)], before=1)
    assert seen.value["text"] == "Goran lives at the inn.", "no timeline hides it"
    await note_facts(store, FACTS, [home("the tower")])
    await note_facts(store, FACTS, [home("the mill")])
    assert await valid_texts(store) == ["Goran lives at the mill."], "it holds again, though it was noted before"
    assert all("branch" not in item.value for item in await store.asearch(FACTS, limit=99))


async def test_what_is_no_fact_is_refused_and_nothing_is_written():
    store = InMemoryStore()
    for wrong in ({"text": ""}, {"text": "x", "importance": 11}, {"text": "x", "speaker": "Oda"}, ""):
        with pytest.raises(ValidationError):
            await note_facts(store, FACTS, [home("the mill"), wrong], timeline=[("a", 1)])
    for timeline, turn in (([("a", 1)], 2), ([], None)):
        with pytest.raises(ValueError, match="beyond the timeline"):
            await note_facts(store, FACTS, [home("the mill")], timeline=timeline, turn=turn)
    assert await store.asearch(()) == []
    assert await note_facts(store, FACTS, [], timeline=[("a", 1)]) == ([], {}, [])


@pytest.mark.parametrize(
    ("ended", "ends"),
    [("Paris", False), ("Paris any more", False), ("Oslo", True), ("Oslo, Norway", True), ("there", True)],
)
async def test_the_end_of_another_value_ends_nothing(ended, ends):
    store, timeline = InMemoryStore(), [("a", 3)]
    lives = {"text": "The user lives in Oslo.", "subject": "the user", "attribute": "home", "value": "Oslo"}
    gone = {**lives, "text": f"The user does not live in {ended}.", "value": f"no longer {ended}"}
    await note_facts(store, FACTS, [lives], timeline=timeline, turn=1)
    changes = await note_facts(store, FACTS, [gone], timeline=timeline, turn=2)
    assert bool(changes.superseded) is ends
    assert await valid_texts(store, timeline) == sorted([gone["text"], *([] if ends else [lives["text"]])])
    await note_facts(store, FACTS, [{**lives, "text": "The user lives in Rome.", "value": "Rome"}], timeline=timeline)
    assert "The user lives in Oslo." not in await valid_texts(store, timeline)
