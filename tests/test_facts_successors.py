"""What took the place of a memory is recalled in its place, on each timeline its own."""

import pytest
from noted_facts import FACTS, say
from stores import KINDS, opened

from questbook.memory.facts.supersession import replace_superseded
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.remember import remember
from questbook.memory.timeline.timeline import record_key

EXCHANGES = ("u", "c", "exchanges")
HOME = {"subject": "Goran", "attribute": "home", "kind": "trait"}


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    with opened(request.param, tmp_path) as store:
        yield store


async def tell(store, branch, turn, text, timeline=None, **fields):
    await say(store, {"text": text} | fields, branch, turn, timeline)


async def found(store, query, timeline, **options):
    async def holding(records):
        return await replace_superseded(store, records, FACTS, timeline=timeline)

    got = await recall(store, [EXCHANGES, FACTS], Query(query, timeline=timeline, refine=holding, **options))
    return [one.value["text"] for one in got]


async def test_who_asks_by_a_name_that_only_the_old_fact_has_finds_the_new_one(store):
    await tell(store, "a", 1, "Goran, called the Heron, lives at the mill.", value="the mill", **HOME)
    await tell(store, "a", 9, "Goran moved to the tower.", value="the tower", **HOME)
    assert await found(store, "Where is the Heron?", [("a", 9)]) == ["Goran moved to the tower."]


async def test_an_exchange_that_told_what_has_changed_comes_after_what_holds_now(store):
    told = {"player": "I ask.", "reply": "The Heron? Goran is his name, and he lives at the mill."}
    await remember(store, EXCHANGES, told, turn=1, timeline=[("a", 1)])
    await tell(store, "a", 1, "Goran lives at the mill.", value="the mill", **HOME)
    await tell(store, "a", 9, "Goran moved to the tower.", value="the tower", **HOME)
    texts = await found(store, "Where is the Heron?", [("a", 9)])
    assert texts[0] == "Goran moved to the tower."
    assert "The Heron?" in texts[1]
    short = await found(store, "Where is the Heron?", [("a", 9)], budget=12)
    assert short == ["Goran moved to the tower."], "if one of them fits, it is what holds"


async def test_a_fork_from_before_the_change_finds_what_was_and_another_its_own(store):
    await tell(store, "a", 1, "Goran, called the Heron, lives at the mill.", value="the mill", **HOME)
    await tell(store, "a", 9, "Goran moved to the tower.", value="the tower", **HOME)
    fork = [("a", 5), ("b", 8)]
    assert await found(store, "Where is the Heron?", fork) == ["Goran, called the Heron, lives at the mill."]
    await tell(store, "b", 7, "Goran moved to the inn.", fork, value="the inn", **HOME)
    assert await found(store, "Where is the Heron?", fork) == ["Goran moved to the inn."]


async def test_what_holds_comes_once_and_what_is_in_no_slot_stays(store):
    for turn, where in ((1, "mill"), (4, "inn"), (9, "tower")):
        await tell(store, "a", turn, f"Goran, called the Heron, lives at the {where}.", value=where, **HOME)
    await tell(store, "a", 2, "The Heron sings.", subject="Goran")
    texts = await found(store, "Where is the Heron?", [("a", 9)])
    assert sorted(texts) == ["Goran, called the Heron, lives at the tower.", "The Heron sings."]


async def test_what_was_forgotten_is_not_brought_back(store):
    await tell(store, "a", 1, "Goran, called the Heron, lives at the mill.", value="the mill", **HOME)
    await tell(store, "a", 9, "Goran moved to the tower.", value="the tower", **HOME)
    await store.adelete(FACTS, record_key("a", 9, "fact", 0))
    assert await found(store, "Where is the Heron?", [("a", 9)]) == []


async def test_what_holds_now_is_brought_though_it_was_not_recalled(store):
    await tell(store, "a", 1, "Goran, called the Heron, lives at the mill.", value="the mill", **HOME)
    await tell(store, "a", 9, "Goran moved to the tower.", value="the tower", **HOME)
    recalled = await recall(store, FACTS, Query("Where is the Heron?", timeline=[("a", 9)]))
    [old] = [one for one in recalled if one.value["turn"] == 1]
    [new] = await replace_superseded(store, [old], FACTS, timeline=[("a", 9)])
    assert (new.key, new.text) == (record_key("a", 9, "fact"), "Goran moved to the tower.")
    assert await replace_superseded(store, [old], FACTS, timeline=[("a", 8)]) == [old]
