"""Recall over any store: what fits comes first, and nothing from another future."""

import random

import pytest
from langgraph.store.base import PutOp
from stores import opened

from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.remember import remember

HERE = ("u", "c", "exchanges")


@pytest.fixture(params=["faiss", "memory", "memory without vectors"])
def store(request, tmp_path):
    with opened(request.param, tmp_path) as store:
        yield store


async def write(store, branch, turn, text):
    await store.aput(HERE, f"{branch}-{turn}", {"text": text} | Stamp(branch, turn).to_json())


async def keys(store, query, **settings):
    return [found.key for found in await recall(store, HERE, Query(query, **settings))]


async def test_names_and_rare_words_are_found_on_every_store(store):
    for turn in range(1, 60):
        await write(store, "a", turn, f"The road goes on, mile {turn}, past hedges and ditches.")
    await write(store, "a", 60, "Goran whispers that the password is swordfish.")
    assert (await keys(store, "What was Goran's password?"))[0] == "a-60"
    assert (await keys(store, "passwords that were whispered"))[0] == "a-60", "stems count, not endings"
    assert (await keys(store, "mile 17"))[0] == "a-17"


async def test_an_old_word_is_found_among_many_records_with_and_without_a_timeline(store):
    for turn in range(1, 301):
        told = "The password is swordfish." if turn == 90 else f"The road goes on, mile {turn}."
        await write(store, "b" if turn > 150 else "a", turn, told)
    for timeline in (None, [("a", 150)], [("a", 120), ("b", 300)]):
        assert (await keys(store, "swordfish password", timeline=timeline))[0] == "a-90"


async def test_only_what_the_timeline_sees(store):
    for turn in range(1, 9):
        await write(store, "a", turn, f"heron {turn} on a")
        await write(store, "b", turn, f"heron {turn} on b")
    found = await keys(store, "heron", timeline=[("a", 3), ("b", 6)], limit=50)
    assert sorted(found) == ["a-1", "a-2", "a-3", "b-1", "b-2", "b-3", "b-4", "b-5", "b-6"]
    assert sorted(await keys(store, "heron", timeline=[("a", 3)], before=3)) == ["a-1", "a-2"]
    assert await keys(store, "heron", timeline=[]) == []
    assert await keys(store, "   ") == []


async def test_what_other_futures_wrote_changes_neither_the_choice_nor_the_order(store):
    said = random.Random(5)
    words = ["heron", "lamp", "door", "sister", "gold", "keeper", "ring", "sea", "tower", "song", "rope", "cat"]
    for turn in range(1, 30):
        await write(store, "a", turn, " ".join(said.choices(words, k=12)))
    timelines = [[("a", 20)], [("a", 10), ("b", 25)]]
    for turn in range(11, 26):
        await write(store, "b", turn, " ".join(said.choices(words, k=12)))
    before = [await keys(store, "heron ring song", timeline=timeline) for timeline in timelines]
    assert all(len(found) == 12 for found in before)
    for branch in "cdefgh":
        for turn in range(5, 30):
            await write(store, branch, turn, " ".join(["heron ring song", *said.choices(words, k=3)]))
    assert [await keys(store, "heron ring song", timeline=timeline) for timeline in timelines] == before


async def test_many_abandoned_futures_do_not_crowd_out_the_visible_one(store):
    await write(store, "a", 1, "The heron sings of the drowned keeper.")
    await write(store, "b", 2, "The tower is dark.")
    for branch in range(40):
        for turn in range(1, 10):
            await write(store, f"dead{branch}", turn, "The heron sings of the drowned keeper, heron, heron.")
    assert (await keys(store, "heron keeper", timeline=[("a", 1), ("b", 2)], fitting=False)) == ["a-1", "b-2"]


async def test_the_newest_are_found_where_a_store_cannot_rank(tmp_path):
    for kind in ("faiss without vectors", "memory without vectors"):
        with opened(kind, tmp_path) as store:
            ops = [
                PutOp(HERE, f"a-{n}", {"text": f"The road, mile {n}."} | Stamp("a", n).to_json())
                for n in range(1, 1300)
            ]
            await store.abatch(ops)
            await write(store, "a", 1300, "A heron stands in the water.")
            assert (await keys(store, "the heron", timeline=[("a", 1300)], limit=3))[0] == "a-1300"


async def test_what_another_record_was_replaced_by_gets_no_strangers_question(store):
    told = [{"player": "What about the mill?", "reply": "Is the miller awake?"}, {"player": "yes", "reply": "He is."}]
    await remember(store, HERE, told, turn=1, timeline=[("a", 2)])

    async def replaced(found):
        return [found[0]._replace(key="elsewhere", value={"text": "He moved.", "kind": "trait"})]

    (one,) = await recall(store, HERE, Query("Is he awake?", timeline=[("a", 2)], refine=replaced))
    assert one.question is None
