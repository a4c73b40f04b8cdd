"""What MemoryScope's workers do, feature by feature (MS1 to MS24 in docs/coverage.md): finding.

Its failings are tests here too: message dates that never match, event dates that keep the year alone, times that are
not seen, or seen where there are none.
"""

from datetime import timedelta

import pytest
from langgraph.store.memory import InMemoryStore
from noted_facts import FACTS, home
from stores import opened
from told_facts import HERE, LINE, NOW, record, tell, told

from questbook.memory.facts.validity import keep_valid
from questbook.memory.recall.query import Present, Query
from questbook.memory.recall.recall import recall
from questbook.memory.recall.times import read_asked_time, score_time
from questbook.memory.recall.usage import access_op, last_accesses
from questbook.memory.recall.weights import Weights
from questbook.memory.timeline.records import Record
from questbook.memory.timeline.remember import remember


@pytest.fixture(params=["faiss", "memory"])
def store(request, tmp_path):
    with opened(request.param, tmp_path) as made:
        yield made


async def test_ms01_a_query_is_asked_at_a_time(store):
    for back in range(1, 8):
        said_at = (NOW - timedelta(days=back)).isoformat()
        await remember(
            store, HERE, [{"text": f"We camp at mill {back}.", "said_at": said_at}], turn=back, timeline=LINE
        )
    for then in (NOW, NOW - timedelta(days=3)):
        [best, *_] = await told(store, "Where did we camp yesterday?", HERE, present=Present(then))
        assert best == f"We camp at mill {(NOW - then).days + 1}."


@pytest.mark.parametrize(
    ("query", "first", "days"),
    [
        ("What did I do two weeks ago?", "2026-06-23", 7), ("Was it last month!", "2026-06-01", 30),
        ("Where was I in 2022?", "2022-01-01", 365), ("on 25 December 2022", "2022-12-25", 1),
        ("in May 2022", "2022-05-01", 31), ("this week", "2026-07-06", 7), ("last Monday", "2026-07-06", 1),
    ],
)  # fmt: skip
def test_ms02_year_month_day_week_and_weekday_are_read_without_a_model(query, first, days):
    when = read_asked_time(query, NOW)
    assert (when.start.date().isoformat(), (when.end - when.start).days) == (first, days)


def test_ms02_what_names_no_time_is_not_taken_for_one_and_a_month_is_no_other_month():
    assert not any(read_asked_time(query, NOW).is_named for query in ("May I come in?", "I take the second option."))
    christmas, may = read_asked_time("25 December 2022", NOW), {"real_time": "2022-05-10"}
    assert score_time(christmas, Record.from_json({"real_time": "2022-12-25"})) == 1
    assert score_time(christmas, Record.from_json(may)) < 0.01
    assert score_time(read_asked_time("in May 2022", NOW), Record.from_json(may)) == 1


async def test_ms03_observations_and_insights_come_together_and_what_has_ended_where_it_is_asked_for(store):
    await tell(store, 1, **home("the mill"))
    await tell(store, 5, **home("the inn"))
    await store.aput(FACTS, "i", record(6, "Goran flees from whoever lives at the mill.") | {"kind": "insight"})
    query = "Where does Goran live, the mill or the inn?"
    assert len(await told(store, query)) == 3, "nobody asked what holds"

    async def holds(found):
        return await keep_valid(store, found, timeline=LINE)

    now = await told(store, query, refine=holds)
    assert set(now) == {"Goran lives at the inn.", "Goran flees from whoever lives at the mill."}
    assert await told(
        store, query, before=5, refine=lambda found: keep_valid(store, found, timeline=LINE, before=5)
    ) == ["Goran lives at the mill."]


async def test_ms04_candidates_are_ranked_anew_by_words_and_meaning_and_the_same_is_said_once(store):
    for turn in range(1, 41):
        await store.aput(FACTS, f"n{turn}", record(turn, f"The lamp in the tower burns, night {turn}."))
    await store.aput(FACTS, "x", record(50, "Oda's swordfish lamp was stolen from the tower."))
    await store.aput(FACTS, "y", record(51, "Oda's swordfish lamp was STOLEN from the tower."))
    found = await recall(store, FACTS, Query("Who took the swordfish lamp?", timeline=LINE, limit=20))
    assert found[0].value["text"].casefold() == "oda's swordfish lamp was stolen from the tower."
    assert len(found[0].folded) == 1
    assert sum("swordfish" in one.value["text"] for one in found) == 1


@pytest.mark.parametrize(
    ("embed", "question"),
    [
        (lambda texts: [[1.0, 0.0] for _ in texts], "Who took the swordfish?"),
        (
            lambda texts: [[1.0, 0.0] if "thief" in text or "swordfish" in text else [0.0, 1.0] for text in texts],
            "A thief?",
        ),
    ],
    ids=["words alone", "meaning alone"],
)
async def test_ms04_either_of_words_and_meaning_decides_where_the_other_says_nothing(embed, question):
    store = InMemoryStore(index={"dims": 2, "embed": embed, "fields": ["text"]})
    for turn in range(1, 6):
        await store.aput(FACTS, f"n{turn}", record(turn, f"It rains, night {turn}."))
    await store.aput(FACTS, "z", record(3, "The swordfish lamp is gone."))
    best, *_ = await recall(store, FACTS, Query(question, timeline=LINE))
    assert best.key == "z"


async def test_ms05_a_time_that_matches_weighs_and_what_is_too_far_and_the_21st_stay_out(store):
    for day in range(1, 31):
        said_at = f"2026-06-{day:02}T20:00:00+00:00"
        await store.aput(FACTS, f"d{day}", record(day, f"We camp at the mill, night {day}.", said_at=said_at))
    await store.aput(FACTS, "far", record(40, "Somebody else sings wholly other words."))
    first, *rest = await told(store, "Where did we camp on 12 June?", present=Present(NOW), limit=20)
    assert first == "We camp at the mill, night 12."
    assert len(rest) == 19
    near = await told(store, "We camp at the mill, night", limit=99, max_cosine_distance=0.5)
    assert near
    assert "Somebody else sings wholly other words." not in near


async def test_ms20_importance_is_kept_and_weighed_and_so_is_what_was_used(store):
    for turn, importance in ((1, 2), (2, 9)):
        await tell(store, turn, f"The lamp number {turn} burns.", importance=importance)
    with_it, without = [
        {one.key: one for one in await recall(store, FACTS, Query("Which lamp burns?", timeline=LINE, weights=weights))}
        for weights in (Weights(), Weights(importance=0))
    ]
    for key, importance in (("a-1-fact-0", 2), ("a-2-fact-0", 9)):
        assert with_it[key].value["importance"] == importance
        assert with_it[key].weight - without[key].weight == pytest.approx(0.1 * importance / 10)
    place = ("ann", "isle", "accesses")
    await store.abatch([access_op(place, [("a", 3)], 3, {}, ["a-1-fact-0"], NOW.isoformat())])
    assert await last_accesses(store, place, [("a", 3)], 4) == {"a-1-fact-0": NOW.isoformat()}


@pytest.mark.parametrize(
    ("query", "text"), [("谁看守灯塔？", "奥达看守灯塔。"), ("Wer hütet die Lampe?", "Oda hütet die Lampe.")]
)
async def test_ms23_other_languages_are_found_by_their_own_words(store, query, text):
    for turn in range(1, 30):
        await store.aput(FACTS, f"n{turn}", record(turn, f"今天下雨了,第{turn}天。 Es regnet, Tag {turn}."))
    await store.aput(FACTS, "x", record(40, text))
    assert (await told(store, query))[0] == text
