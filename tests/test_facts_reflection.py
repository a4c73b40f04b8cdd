"""What a reflection is made of, without a graph: reading answers with each limit, judgements on their timeline."""

import random

import pytest
from stores import stores_of

from questbook.memory.facts.fact import Fact
from questbook.memory.facts.reflection import (
    HEARSAY,
    MAX_INSIGHTS,
    Evidence,
    find_backlog,
    finished_op,
    importance_of,
    may_end,
    read_questions,
    read_reflection,
    second_drawing_op,
)
from questbook.memory.facts.validity import (
    StoredFact,
    find_judgements,
    keep_valid,
    slot_history,
    turn_position,
    write_judgements,
)
from questbook.memory.facts.writing import FactDraft, write_facts
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key

FACTS, DONE = ("u", "c", "facts"), ("u", "c", "reflections")
SHOWN = [
    Evidence("f1", {"kind": "trait", "text": "Oda never leaves the mill."}),
    Evidence("f2", {"kind": "event", "text": "Oda danced at the fair."}),
    Evidence("i1", {"kind": "insight", "text": "Oda is lonely.", "cites": ["f1"]}),
    Evidence("r1", {"kind": "rumour", "text": "Oda flew.", "claimed_by": "Goran"}),
]
store = stores_of("memory without vectors", "faiss")


async def say(store, turn, timeline, text, value):
    fact = Fact(text=text, kind="trait", subject="Oda", attribute="home", value=value)
    stamps = Stamp("a", turn).to_json() | {"at": turn_position(turn, 0), "turns": [turn, turn], "cites": []}
    await write_facts(
        store, FACTS, [FactDraft(record_key("a", turn, "fact"), fact.record() | stamps)], timeline=timeline
    )


async def test_a_judged_fact_is_history_and_its_slot_is_free_again(store):
    await say(store, 1, [("a", 1)], "Oda lives at the mill.", "the mill")
    stamped = Stamp("a", 3).to_json() | {"at": turn_position(3, 0)}
    assert await write_judgements(store, FACTS, [("a-1-fact-0", "a-2-fact-0")], stamped) == ["a-1-fact-0"]
    again = await write_judgements(store, FACTS, [("a-1-fact-0", "a-9-fact-0")], stamped)
    assert again == [], "the first judgement stays"
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
    values = {turn: {"kind": "trait", **Stamp("b000", turn).to_json()} for turn in range(1, 51)}
    facts, reads = [StoredFact(FACTS, f"b000-{turn}-fact-0", value) for turn, value in values.items()], []

    class Counting:
        ttl_config = None

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
            assert set() < set(insight.cites) <= keys
            assert insight.same_as in ("", "i1")
            assert insight.fact.text.strip()
            insight.record({one.key: one.value for one in SHOWN}, ["Mira"])
        values = {one.key: one.value for one in SHOWN}
        assert all(may_end(values[ends], values[holds]) and ends != holds for ends, holds in read.contradictions)
    assert found > 50, "else this test shows nothing"


def insight(text="Oda dreams of more than flour.", **fields):
    return {"text": text, "cites": [1]} | fields


def conclusions(*insights, contradictions=()):
    return read_reflection([{"insights": list(insights), "contradictions": list(contradictions)}], SHOWN)


def test_the_first_three_questions_are_asked_each_once_and_no_longer_than_a_prompt_bears():
    sent = {"questions": ["Who  pays?", "Who pays?", "y" * 400, "Why?", "Where?", 7, " "]}
    questions, notices = read_questions([sent])
    assert questions == ["Who pays?", "y" * 300, "Why?"]
    odd = "A question was no text and was left out (2×).", "Of 4 questions the first 3 were asked (1×)."
    assert notices == list(odd)
    assert read_questions([{"questions": "Who pays?"}, ["Why?"]]) == (["Who pays?", "Why?"], [])
    assert read_questions([{"questions": ["a", "b", "c"]}])[1] == []


def test_prose_counts_only_without_a_call_and_only_its_questions():
    questions, [odd] = read_questions([], "Let me see. What does Oda fear? Who pays her?")
    assert questions == ["What does Oda fear?", "Who pays her?"]
    assert "prose" in odd
    assert read_questions([{"questions": ["Who pays?"]}], "What does Oda fear?") == (["Who pays?"], [])
    assert read_questions([], "Nothing is worth a thought.") == ([], [])
    assert read_questions([], "Why? Who pays the\nferryman?")[0] == ["ferryman?"], "two words are no question"


def test_the_first_five_insights_are_kept():
    many = [insight(f"Oda dreams of country number {number}.") for number in range(6)]
    read = conclusions(*many)
    assert [one.fact.text for one in read.insights] == [one["text"] for one in many[:5]]
    assert read.notices == ["Of 6 insights the first 5 were kept (1×)."]
    assert conclusions(*many[:5]).notices == read_reflection([{}], SHOWN).notices == []
    assert len(read_reflection([{"insights": 7}], SHOWN).notices) == 1
    assert "5 was taken" in conclusions(insight(importance="very")).notices[0]


def test_sources_are_cited_by_their_numbers_from_one_and_an_insight_without_any_is_left_out():
    for cites, key in (("#2.", "f2"), ([3, 3], "i1"), ([0, 1, 5], "f1"), ([True, 2], "f2"), (["[1]"], "f1")):
        [read] = conclusions(insight(cites=cites)).insights
        assert read.cites == [key]
    for cites in ([], [0], [5], None, "all", [True]):
        read = conclusions(insight(cites=cites))
        assert read.insights == []
        assert any("cited nothing" in line for line in read.notices)


def test_an_insight_names_the_one_that_it_repeats_and_does_not_cite_it():
    [read] = conclusions(insight(cites=[1, 3], same_as=3)).insights
    assert (read.same_as, read.cites) == ("i1", ["f1"])
    [read] = conclusions(insight(cites=[3], same_as="3")).insights
    assert (read.same_as, read.cites) == ("i1", ["i1"]), "it rests on something"
    for fact in (1, 2):
        other = conclusions(insight(same_as=fact))
        assert other.insights[0].same_as == ""
        assert "kept by itself" in other.notices[0]
    for nothing in (None, "", 0):
        assert conclusions(insight(same_as=nothing)).notices == []


def test_an_insight_that_only_repeats_a_fact_is_left_out_and_one_that_repeats_an_insight_is_not():
    assert conclusions(insight("ODA never leaves the mill!")).insights == []
    assert len(conclusions(insight("Oda is lonely.")).insights) == 1


def test_an_insight_is_as_secret_and_as_doubtful_as_its_sources():
    [read] = conclusions(insight(cites=[1, 2])).insights
    known = {"text": "x", "kind": "event"}
    rumour, claim = known | {"kind": "rumour"}, known | {"claimed_by": "Goran"}
    for sources, kind, speaker in (
        ([known, known], "insight", ""), ([known, {"kind": "secret"}], "secret", ""), ([known, rumour], "insight", ""),
        ([claim, claim], "insight", "Goran"), ([rumour, rumour], "insight", HEARSAY),
        ([claim, rumour], "insight", HEARSAY),
        ([known | {"known_by": ["Mira"]}, known], "insight", ""),
        ([known | {"known_by": ["Wen"]}, known], "secret", ""),
    ):  # fmt: skip
        value = read.record(dict(zip(("f1", "f2"), sources, strict=True)), ["Mira"])
        assert (value["kind"], value["claimed_by"], value["slot"], value["cites"]) == (kind, speaker, "", ["f1", "f2"])


@pytest.mark.parametrize(
    ("old", "new", "ends"),
    [
        ("trait", "event", True), ("event", "rumour", False), ("rumour", "rumour", True), ("rumour", "event", True),
        ("trait", "insight", False), ("insight", "insight", True), ("insight", "trait", True),
        ("trait", "secret", False), ("secret", "secret", True), ("secret", "trait", True),
        ("exchange", "trait", False), ("trait", "exchange", False), ("lore", "trait", False), ("trait", "lore", False),
        (None, "trait", False), ("trait", None, False),
    ],
)  # fmt: skip
def test_what_may_end_what(old, new, ends):
    records = [{"kind": kind} if kind else {} for kind in (old, new)]
    assert may_end(*records) is ends
    assert not may_end(records[0], {"kind": "trait", "claimed_by": "Oda"}) or old == "rumour", "a claim ends no fact"
    assert not may_end(records[0], {"kind": "trait", "cites": ["f1"]}) or old == "insight", "what cites is an insight"


def test_each_fact_is_judged_once_and_what_holds_is_not_ended():
    first = {"ended": 1, "holds": 2}
    read = conclusions(contradictions=[first, first, {"ended": 2, "holds": 1}, {"ended": 1, "holds": 1}, {"ended": 1}])
    assert read.contradictions == [("f1", "f2")]
    assert read.notices == [
        "Contradictions were judged two ways, and the first judgement counts (1×).",
        "A contradiction did not name two memories and was left out (2×).",
        "A cited memory does not exist, and the citation was dropped (1×).",
    ]


def test_of_many_judgements_the_first_twenty_are_read():
    empty = [{"ended": 1, "holds": 1}] * 19
    assert conclusions(contradictions=[*empty, {"ended": 1, "holds": 2}]).contradictions == [("f1", "f2")]
    assert conclusions(contradictions=[*empty, empty[0], {"ended": 1, "holds": 2}]).contradictions == []


@pytest.mark.parametrize(("said", "importance"), [(1, 1), (10, 10), (0, 5), (11, 5), ("7", 5), (None, 5)])
def test_importance_counts_from_1_to_10_and_else_as_5(said, importance):
    assert importance_of({"importance": said}) == importance


async def test_what_waits_are_the_facts_after_the_last_reflection_that_the_timeline_sees(store):
    for branch, turn in (("a", 1), ("a", 2), ("a", 3), ("b", 3), ("a", 4)):
        value = {"text": f"{branch}{turn}", "importance": turn, "at": f"{turn:08}.000"} | Stamp(branch, turn).to_json()
        await store.aput(FACTS, f"{branch}{turn}", value)
    await store.aput(FACTS, "i", {"kind": "insight", "text": "i"} | Stamp("a", 3).to_json())
    for branch, turn in (("a", 1), ("b", 3)):
        await store.abatch([finished_op(DONE, Stamp(branch, turn).to_json(), turn, {"insights": ["k"]})])
    backlog = await find_backlog(store, FACTS, DONE, [("a", 4)], 3)
    assert (backlog.since, [item.key for item in backlog.facts], backlog.importance) == (1, ["a2", "a3"], 5)
    later = await find_backlog(store, FACTS, DONE, [("a", 3), ("c", 5)], 5)
    assert (later.since, [item.key for item in later.facts]) == (1, ["a2", "a3"]), "of two branches"
    fork = await find_backlog(store, FACTS, DONE, [("a", 2), ("b", 3)], 3)
    assert (fork.since, fork.facts, fork.importance) == (3, [], 0)
    record = (await store.aget(DONE, "a-1-reflection-0")).value
    assert record == {"insights": ["k"], "through": 1} | Stamp("a", 1).to_json()
    assert finished_op(DONE, Stamp("a", 1).to_json(), 1, {}).index is False, "nobody searches it by its words"


@pytest.mark.parametrize(
    ("pairs", "judged"),
    [
        ([(1, 2), (3, 4)], [(1, 2), (3, 4)]),
        ([(1, 2), (3, 2)], [(1, 2), (3, 2)]),  # one fact may end several
        ([(1, 2), (1, 3)], [(1, 2)]),  # each is ended once
        ([(1, 2), (3, 1)], [(1, 2)]),  # what has ended ends nothing
        ([(1, 2), (2, 3)], [(1, 2)]),  # what holds is not ended
        ([(1, 2), (1, 2), (3, 4)], [(1, 2), (3, 4)]),
    ],
)
def test_of_judgements_that_do_not_go_together_the_first_counts(pairs, judged):
    shown = [Evidence(str(number), {"kind": "trait", "text": f"Stone {number}."}) for number in range(1, 5)]
    given = {"contradictions": [{"ended": ended, "holds": holds} for ended, holds in pairs]}
    read = read_reflection([given], shown)
    assert read.contradictions == [(str(ended), str(holds)) for ended, holds in judged]
    assert len(read.notices) == (len(set(pairs)) > len(judged))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"insights": ["Oda is sad."]}, "An insight was no object and was left out (1×)."),
        ({"insights": [{"cites": [1]}]}, "An insight said nothing and was left out (1×)."),
        ({"insights": [insight(cites=[])]}, "An insight cited nothing that exists and was left out (1×)."),
        (
            {"insights": [insight("Oda never leaves the mill.")]},
            "An insight only said what a memory says and was left out (1×).",
        ),
        ({"insights": 7}, "What was sent as insights was no list and was left out (1×)."),
        ({"contradictions": "1 and 2"}, "What was sent as contradictions was no list and was left out (1×)."),
        ({"contradictions": [[1, 2]]}, "A contradiction was no object and was left out (1×)."),
        (
            {"contradictions": [{"ended": 1, "holds": 4}]},
            "A judgement was refused: only a fact ends a fact, not a rumour, a secret or a guess (1×).",
        ),
    ],
)
def test_what_a_reflection_says_that_cannot_be_is_told(given, says):
    read = read_reflection([given], SHOWN)
    assert (read.insights, read.contradictions, read.notices) == ([], [], [says])


def test_one_insight_or_judgement_may_come_without_its_list():
    read = read_reflection([{"insights": insight(), "contradictions": {"ended": 1, "holds": 2}}], SHOWN)
    assert ([one.fact.text for one in read.insights], read.contradictions) == ([insight()["text"]], [("f1", "f2")])


def test_an_insight_takes_no_slot_whatever_it_says_and_its_second_drawing_is_not_embedded():
    [read] = conclusions(insight(text="Goran lives in Oslo.", subject="Goran")).insights
    assert read.fact.slot == "goran|home"
    assert read.record({"f1": {"text": "x", "kind": "event"}}, [])["slot"] == ""
    assert second_drawing_op(("u", "c", "facts"), "i2", "i", {"cites": ["x"]}).index is False


async def test_what_is_considered_and_reflected_on_in_a_deeper_namespace_does_not_count(store):
    await say(store, 1, [("a", 1)], "Oda lives at the mill.", "the mill")
    [fact] = await store.asearch(FACTS)
    await store.aput((*FACTS, "work"), "deeper", fact.value)
    done = finished_op((*DONE, "work"), Stamp("a", 2).to_json(), 2, {})
    await store.aput(done.namespace, done.key, done.value)
    backlog = await find_backlog(store, FACTS, DONE, [("a", 2)], 2)
    assert (backlog.since, [item.key for item in backlog.facts]) == (0, [fact.key])
