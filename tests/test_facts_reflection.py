"""What a reflection is made of, without a graph: reading answers, judgements on their timeline."""

import random

import pytest
from stores import opened

from questbook.memory.facts import ledger
from questbook.memory.facts.fact import Fact
from questbook.memory.facts.ledger import StoredFact, find_judgements, write_judgements
from questbook.memory.facts.reflection import MAX_INSIGHTS, Evidence, may_end, read_questions, read_reflection
from questbook.memory.facts.validity import keep_valid, slot_history
from questbook.memory.facts.writing import FactDraft, write_facts
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key

FACTS = ("ann", "isle", "facts")
SHOWN = [
    Evidence("a-1-fact-0", {"kind": "trait", "text": "Oda never leaves the mill."}),
    Evidence("a-2-fact-0", {"kind": "event", "text": "Oda danced at the fair."}),
    Evidence("a-2-insight-0", {"kind": "insight", "text": "Oda is lonely.", "cites": ["a-1-fact-0"]}),
    Evidence("a-3-fact-0", {"kind": "rumour", "text": "Oda flew.", "claimed_by": "Goran"}),
]


@pytest.fixture(params=["memory without vectors", "faiss"], ids=["memory", "faiss"])
def store(request, tmp_path):
    with opened(request.param, tmp_path) as store:
        yield store


async def say(store, turn, timeline, text, value):
    fact = Fact(text=text, kind="trait", subject="Oda", attribute="home", value=value)
    stamps = Stamp("a", turn).to_json() | {"at": ledger.turn_position(turn, 0), "turns": [turn, turn], "cites": []}
    await write_facts(
        store, FACTS, [FactDraft(record_key("a", turn, "fact"), fact.record() | stamps)], timeline=timeline
    )


async def test_a_judged_fact_is_history_and_its_slot_is_free_again(store):
    await say(store, 1, [("a", 1)], "Oda lives at the mill.", "the mill")
    stamped = Stamp("a", 3).to_json() | {"at": ledger.turn_position(3, 0)}
    assert await write_judgements(store, FACTS, [("a-1-fact-0", "a-2-fact-0")], stamped) == ["a-1-fact-0"]
    assert await write_judgements(store, FACTS, [("a-1-fact-0", "a-9-fact-0")], stamped) == [], (
        "the first judgement stays"
    )
    items = await store.asearch(FACTS)
    assert await keep_valid(store, items, timeline=[("a", 3)]) == []
    assert await keep_valid(store, items) == []
    for then in ({"timeline": [("a", 2)]}, {"timeline": [("a", 2), ("b", 9)]}, {"timeline": [("a", 9)], "before": 3}):
        assert len(await keep_valid(store, items, **then)) == 1, then
    [held] = await slot_history(store, FACTS, "Oda", "home", timeline=[("a", 9)])
    assert (held.since, held.until) == (1, 3)
    assert await find_judgements(store, items, timeline=[("a", 9)]) == {(FACTS, "a-1-fact-0"): 3}
    await say(store, 4, [("a", 4)], "Oda lives at the mill.", "the mill")
    items = await store.asearch(FACTS)
    assert [item.key for item in await keep_valid(store, items, timeline=[("a", 4)])] == ["a-4-fact-0"]


async def test_a_hundred_branches_cost_no_more_reads_than_one_and_a_judgement_on_any_of_them_counts(store):
    timeline = [(f"b{number:03}", 10 * (number + 1)) for number in range(101)]
    facts = [
        StoredFact(FACTS, f"b000-{turn}-fact-0", {"kind": "trait", **Stamp("b000", turn).to_json()})
        for turn in range(1, 51)
    ]
    reads = []

    class Counting:
        async def abatch(self, ops):
            reads.extend(ops)
            return await store.abatch(ops)

    assert await find_judgements(Counting(), facts, timeline=timeline) == {}
    assert len(reads) == len(facts)
    for branch, turn in (("b050", 505), ("b100", 1005), ("lost", 700)):
        await write_judgements(store, FACTS, [(f"b000-{turn % 50 + 1}-fact-0", "x")], Stamp(branch, turn).to_json())
    reads.clear()
    assert await find_judgements(Counting(), facts, timeline=timeline) == {(FACTS, "b000-6-fact-0"): 505}
    assert len(reads) <= len(facts) + 3 * len(timeline)
    assert await find_judgements(store, facts, timeline=timeline[:50]) == {}
    assert await find_judgements(store, facts) == {(FACTS, "b000-6-fact-0"): 505, (FACTS, "b000-1-fact-0"): 700}


def test_five_hundred_fuzzed_answers_make_no_insight_without_sources_and_no_odd_judgement():
    rolls, keys = random.Random(5), {one.key for one in SHOWN}

    def junk(depth=0):
        leaves = [None, True, -1, 0, 1, 2, 3, 4, 99, 10**30, 1.5, float("nan"), "", "2", "#1", "x\x00\ud800", "Oda."]
        if depth > 2 or rolls.random() < 0.5:
            return rolls.choice(leaves)
        if rolls.random() < 0.5:
            return [junk(depth + 1) for _ in range(rolls.randrange(4))]
        names = ["insights", "contradictions", "text", "cites", "same_as", "ended", "holds", "importance", "subject"]
        return {name: junk(depth + 1) for name in rolls.sample(names, rolls.randrange(6))}

    found = 0
    for _ in range(500):
        entries = [{"text": junk(3), "cites": junk(1), "same_as": junk(2), "importance": junk(3)} for _ in range(3)]
        judged = [{"ended": junk(2), "holds": junk(2)} for _ in range(3)]
        given = rolls.choice([[junk()], [{"insights": entries, "contradictions": judged}], [junk(), junk()]])
        read = read_reflection(given, SHOWN)
        read_questions([junk()], str(junk()))
        found += len(read.insights)
        assert len(read.insights) <= MAX_INSIGHTS
        for insight in read.insights:
            assert insight.cites
            assert set(insight.cites) <= keys
            assert insight.same_as in ("", "a-2-insight-0")
            assert insight.fact.text.strip()
            insight.record({one.key: one.value for one in SHOWN}, ["Mira"])
        values = {one.key: one.value for one in SHOWN}
        assert all(may_end(values[ends], values[holds]) and ends != holds for ends, holds in read.contradictions)
    assert found > 50, "else this test shows nothing"


def test_two_facts_do_not_end_each_other():
    both = {"contradictions": [{"ended": 1, "holds": 2}, {"ended": 2, "holds": 1}]}
    read = read_reflection([both], SHOWN)
    assert read.contradictions == [("a-1-fact-0", "a-2-fact-0")]
    assert "two ways" in read.notices[0]


def test_what_rests_on_rumours_alone_is_claimed_by_who_spread_them():
    read = read_reflection([{"insights": [{"text": "Oda has wings.", "cites": [4]}]}], SHOWN)
    assert read.insights[0].record({one.key: one.value for one in SHOWN}, [])["claimed_by"] == "Goran"


def test_questions_in_prose_are_read_and_told():
    questions, odd = read_questions([], "Let me see. What does Oda fear? Who pays her?")
    assert questions == ["What does Oda fear?", "Who pays her?"]
    assert "prose" in odd[0]
