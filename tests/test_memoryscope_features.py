"""What MemoryScope's workers do, feature by feature (MS1 to MS24 in docs/coverage.md): writing.

Its failings are tests here too: facts in small letters, long messages cut in the middle, updates in two calls, users
that mix.
"""

import asyncio

import pytest
from noted_facts import FACTS, holding, home, noted
from stores import opened
from told_facts import DONE, HERE, LINE, NOW, record, tell, told

from questbook.memory.facts.fact import KINDS
from questbook.memory.facts.reading import read_facts
from questbook.memory.facts.reflection import find_backlog, finished_op
from questbook.memory.facts.validity import count_repetitions, keep_valid, slot_history
from questbook.memory.facts.writing import write_facts
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.remember import remember


@pytest.fixture(params=["faiss", "memory"])
def store(request, tmp_path):
    with opened(request.param, tmp_path) as made:
        yield made


async def test_ms09_several_facts_of_one_message_keep_their_capitals(store):
    sent = {"facts": [{"text": "Dr McCoy left NATO.", "subject": "Dr McCoy"}, {"text": "ÉLAN is a ship, the iSea II."}]}
    facts, notices = read_facts(sent)
    assert notices == []
    for turn, fact in enumerate(facts, 1):
        await tell(store, turn, fact.text, subject=fact.subject)
    stored = {item.value["text"]: item.value["subject"] for item in await store.asearch(FACTS)}
    assert stored == {"Dr McCoy left NATO.": "Dr McCoy", "ÉLAN is a ship, the iSea II.": ""}


@pytest.mark.parametrize(
    ("said", "real", "story"),
    [
        ("yesterday", "2026-07-09", ""), ("three days ago", "2026-07-07", ""), ("last Monday", "2026-07-06", ""),
        ("3 May 2026", "2026-05-03", ""), ("2026-05-03", "2026-05-03", ""),
        ("two weeks ago", "", "two weeks ago"), ("on Tuesday", "", "on Tuesday"), ("3 May", "", "3 May"),
    ],
)  # fmt: skip
def test_ms10_a_relative_time_becomes_the_date_if_it_says_one_and_is_else_kept_as_it_was_told(said, real, story):
    [fact], notices = read_facts({"text": "Ann's sister came.", "real_time": said}, NOW)
    assert (fact.real_time, fact.story_time) == (real, story)
    assert bool(notices) == (not real)
    assert fact.text == "Ann's sister came.", "nothing is put into the text"
    [unread], _ = read_facts({"text": "Ann's sister came.", "real_time": "yesterday"})
    assert (unread.real_time, unread.story_time) == ("", "yesterday"), "counted from no time that is known"


async def test_ms11_what_is_not_reflected_on_is_loaded_and_nothing_else(store):
    for turn in (1, 2, 3, 4):
        await tell(store, turn, f"The stone number {turn} is red.", importance=turn)
    await store.aput(
        FACTS, "a-4-insight-0", record(4, "Stones are red.") | {"kind": "insight", "cites": ["a-1-fact-0"]}
    )
    await store.abatch([finished_op(DONE, Stamp("a", 2).to_json(), 2, {})])
    found = await find_backlog(store, FACTS, DONE, [("a", 3)], 3)
    assert (found.since, [item.key for item in found.facts], found.importance) == (2, ["a-3-fact-0"], 3)
    later = await find_backlog(store, FACTS, DONE, [("a", 4)], 4)
    assert [item.key for item in later.facts] == ["a-3-fact-0", "a-4-fact-0"]


async def test_ms12_what_is_contradicted_ends_and_stays_and_what_is_contained_adds_nothing(store):
    await tell(store, 1, **home("the mill by the river"))
    for turn in range(2, 80):  # theirs compared the newest 50
        await store.aput(FACTS, f"a-{turn}-fact-0", record(turn, f"The stone number {turn} is red."))
    contained = await tell(store, 80, **home("the mill"))
    assert (contained.new, list(contained.repetitions.values())) == ([], ["a-1-fact-0"])
    contradicted = await tell(store, 81, **home("the inn"))
    assert contradicted.superseded == ["a-1-fact-0"]
    assert "Goran lives at the mill by the river." not in await holding(store, LINE)
    held = await slot_history(store, FACTS, "Goran", "home", timeline=LINE)
    assert [(one.value["value"], one.since, one.until) for one in held] == [
        ("the mill by the river", 1, 81),
        ("the inn", 81, None),
    ]


async def test_ms17_a_fact_has_a_kind_and_what_became_of_it_is_told(store):
    assert set(KINDS) == {"event", "trait", "promise", "secret", "preference", "rumour"}
    assert await tell(store, 1, **home("the mill")) == (["a-1-fact-0"], {}, [])
    assert await tell(store, 2, **home("the mill")) == ([], {"a-2-fact-0": "a-1-fact-0"}, [])
    assert await tell(store, 3, **home("the inn")) == (["a-3-fact-0"], {}, ["a-1-fact-0"])
    assert await count_repetitions(store, FACTS, ["a-1-fact-0"], timeline=LINE) == {"a-1-fact-0": 1}
    assert {item.key for item in await store.asearch(FACTS)} == {"a-1-fact-0", "a-3-fact-0"}, "what ended is kept"


async def test_ms21_every_operation_is_a_function_over_any_store(store):
    await remember(store, HERE, {"player": "Who keeps the lamp?", "reply": "Oda does."}, turn=1, timeline=[("a", 1)])
    [exchange] = await recall(store, HERE, Query("Who has the lamp?", timeline=[("a", 1)]))
    assert exchange.value["reply"] == "Oda does."
    await tell(store, 1, "Oda keeps the lamp.", subject="Oda", attribute="duty", value="the lamp")
    found = await recall(store, [HERE, FACTS], Query("Who has the lamp?", timeline=[("a", 1)]))
    assert {one.key for one in found} == {"a-1-exchange-0", "a-1-fact-0"}
    await store.adelete(FACTS, "a-1-fact-0")
    assert await told(store, "Who has the lamp?") == []


async def test_ms24_many_users_at_once_do_not_mix(store):
    async def live(user):
        place = (user, "isle", "facts")
        for turn in range(1, 6):
            fact = {"text": f"{user} keeps lamp {turn}.", "subject": user, "attribute": "lamp", "value": str(turn)}
            await write_facts(store, place, [noted(fact, "a", turn)], timeline=LINE)
        found = await recall(
            store,
            place,
            Query("Who keeps the lamp?", timeline=LINE, refine=lambda hits: keep_valid(store, hits, timeline=LINE)),
        )
        return {one.value["text"] for one in found}

    users = [f"user{n}" for n in range(20)]
    assert await asyncio.gather(*map(live, users)) == [{f"{user} keeps lamp 5."} for user in users]
