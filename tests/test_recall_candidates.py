"""Candidates: how many each text brings, and which neighbours come with them."""

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from questbook.memory.recall.candidates import Scope, gather_candidates, propose_candidates
from questbook.memory.recall.query import WeightedText
from questbook.memory.timeline.remember import remember

FACTS, HERE = ("u", "c", "facts"), ("u", "c", "exchanges")


class Numbers(Embeddings):
    """The higher the last number of a text, the less it means the same as a text without one."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        last = text.split()[-1]
        return [1.0, int(last) / 100 if last.isdecimal() else 0.0]


@pytest.fixture
def store():
    return InMemoryStore(index={"dims": 2, "embed": Numbers(), "fields": ["text"]})


async def gathered(store, texts, scope, **settings):
    options = {"wanted": set(), "timeline": scope.timeline, "before": scope.before, "may_show": lambda _: True}
    return await gather_candidates(store, [scope], texts, **(options | settings))


@pytest.mark.parametrize(("weight", "brought"), [(2.0, 32), (0.5, 32), (0.1, 16), (1.0, 64)])
async def test_the_less_a_text_weighs_the_fewer_candidates_it_brings(store, weight, brought):
    for n in range(70):
        await store.aput(FACTS, f"k{n}", {"text": f"A lamp {n}"})
    candidates = await gathered(store, [WeightedText("x", 1.0), WeightedText("y", weight)], Scope(FACTS))
    lighter = 0 if weight > 1 else 1
    assert [len(candidates.cosines[n]) for n in (lighter, 1 - lighter)] == [brought, 64]


async def turns_brought(store, timeline, before=None):
    await remember(store, HERE, [f"A lamp {n}" for n in (90, 0, 91, 92, *range(1, 80))])
    candidates = await gathered(store, [WeightedText("lamp", 1.0)], Scope(HERE, timeline, before))
    return {record.stamp.turn for record in candidates.records}


@pytest.mark.parametrize("timeline", [[("main", 83)], None])
async def test_the_first_turn_comes_along_as_a_neighbour(store, timeline):
    brought = await turns_brought(store, timeline)
    assert {1, 2, 3, 4} <= brought
    assert 83 not in brought, "as many as there are would prove nothing"


@pytest.mark.parametrize("timeline", [[("main", 83)], None])
async def test_a_neighbour_of_a_later_turn_than_may_be_seen_does_not_come_along(store, timeline):
    assert await turns_brought(store, timeline, before=3) == {1, 2}


async def test_of_the_time_that_a_question_names_those_that_mean_the_same_come_along(store):
    lamps = [{"text": f"A lamp {n}", "day": "1" if n else "0"} for n in range(80)]
    await store.abatch([PutOp(FACTS, f"k{n}", lamps[n]) for n in reversed(range(80))])
    [[candidates]] = await propose_candidates(store, [Scope(FACTS, narrow=[{"day": "1"}])], ["lamp"], [1])
    days = {item.key for item in candidates if item.value["day"] == "1"}
    assert days == {f"k{n}" for n in range(1, 33)}
