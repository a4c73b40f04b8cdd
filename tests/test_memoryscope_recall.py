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


@pytest.mark.parametrize(
    ("query", "text"), [("谁看守灯塔？", "奥达看守灯塔。"), ("Wer hütet die Lampe?", "Oda hütet die Lampe.")]
)
async def test_ms23_other_languages_are_found_by_their_own_words(store, query, text):
    for turn in range(1, 30):
        await store.aput(FACTS, f"n{turn}", record(turn, f"今天下雨了,第{turn}天。 Es regnet, Tag {turn}."))
    await store.aput(FACTS, "x", record(40, text))
    assert (await told(store, query))[0] == text
