"""What a model's questions, insights and judgements come to: each limit, each number, each rule of what ends what."""

import pytest
from langgraph.store.memory import InMemoryStore

from questbook.memory.facts.reflection import (
    HEARSAY,
    Evidence,
    find_backlog,
    finished_op,
    importance_of,
    may_end,
    read_questions,
    read_reflection,
)
from questbook.memory.timeline.records import Stamp

FACTS, DONE = ("u", "c", "facts"), ("u", "c", "reflections")
MILL = Evidence("f1", {"kind": "trait", "text": "Oda never leaves the mill."})
FAIR = Evidence("f2", {"kind": "event", "text": "Oda danced at the fair."})
LONELY = Evidence("i1", {"kind": "insight", "text": "Oda is lonely.", "cites": ["f1"]})
SHOWN = [MILL, FAIR, LONELY]
SHOWN_BY_KEY = {record.key: record.value for record in SHOWN}


def insight(text="Oda dreams of more than flour.", **fields):
    return {"text": text, "cites": [1]} | fields


def conclusions(*insights, contradictions=()):
    return read_reflection([{"insights": list(insights), "contradictions": list(contradictions)}], SHOWN)


def test_the_first_three_questions_are_asked_each_once_and_no_longer_than_a_prompt_bears():
    sent = {"questions": ["Who  pays?", "Who pays?", "y" * 400, "Why?", "Where?", 7, " "]}
    read = read_questions([sent])
    assert read.questions == ["Who pays?", "y" * 300, "Why?"]
    assert read.notices == [
        "A question was no text and was left out (2×).",
        "Of 4 questions the first 3 were asked (1×).",
    ]
    assert read_questions([{"questions": "Who pays?"}, ["Why?"]]) == (["Who pays?", "Why?"], [])
    assert read_questions([{"questions": ["a", "b", "c"]}]).notices == []


def test_prose_counts_only_without_a_call_and_only_its_questions():
    assert read_questions([{"questions": ["Who pays?"]}], "What does Oda fear?") == (["Who pays?"], [])
    assert read_questions([], "Nothing is worth a thought.") == ([], [])
    assert read_questions([], "Why? Who pays the\nferryman?").questions == ["ferryman?"], "two words are no question"


def test_the_first_five_insights_are_kept():
    many = [insight(f"Oda dreams of country number {number}.") for number in range(6)]
    read = conclusions(*many)
    assert [one.fact.text for one in read.insights] == [one["text"] for one in many[:5]]
    assert read.notices == ["Of 6 insights the first 5 were kept (1×)."]
    assert conclusions(*many[:5]).notices == []


@pytest.mark.parametrize(
    ("cites", "keys"),
    [
        ([1, 2], ["f1", "f2"]),
        ("#2.", ["f2"]),
        ([3, 3], ["i1"]),
        ([0, 1, 4], ["f1"]),
        ([True, 2], ["f2"]),
        (["[1]"], ["f1"]),
    ],
)
def test_sources_are_cited_by_their_numbers_from_one(cites, keys):
    [read] = conclusions(insight(cites=cites)).insights
    assert read.cites == keys


@pytest.mark.parametrize("cites", [[], [0], [4], None, "all", [True]])
def test_an_insight_without_a_source_is_left_out(cites):
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


def test_a_claim_ends_no_fact_and_what_cites_is_an_insight():
    assert not may_end({"kind": "trait"}, {"kind": "trait", "claimed_by": "Oda"})
    assert not may_end({"kind": "trait"}, {"kind": "trait", "cites": ["f1"]})


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


async def test_what_waits_are_the_facts_after_the_last_reflection_that_the_timeline_sees():
    store = InMemoryStore()
    for branch, turn in (("a", 1), ("a", 2), ("a", 3), ("b", 3), ("a", 4)):
        value = {"text": f"{branch}{turn}", "importance": turn, "at": f"{turn:08}.000"} | Stamp(branch, turn).to_json()
        await store.aput(FACTS, f"{branch}{turn}", value)
    await store.aput(FACTS, "i", {"kind": "insight", "text": "i"} | Stamp("a", 3).to_json())
    for branch, turn in (("a", 1), ("b", 3)):
        await store.abatch([finished_op(DONE, Stamp(branch, turn).to_json(), turn, {"insights": ["k"]})])
    backlog = await find_backlog(store, FACTS, DONE, [("a", 4)], 3)
    assert (backlog.since, [item.key for item in backlog.facts], backlog.importance) == (1, ["a2", "a3"], 5)
    fork = await find_backlog(store, FACTS, DONE, [("a", 2), ("b", 3)], 3)
    assert (fork.since, fork.facts, fork.importance) == (3, [], 0)
    record = (await store.aget(DONE, "a-1-reflection-0")).value
    assert record == {"insights": ["k"], "through": 1} | Stamp("a", 1).to_json()
