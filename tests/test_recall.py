"""Recall over any store: what each text brings, what fits comes first, and nothing from another future."""

import random

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from stores import opened, stores_of

from questbook import FaissStore
from questbook.memory.recall.candidates import Scope, gather_candidates, propose_candidates
from questbook.memory.recall.query import Query, WeightedText, Weights
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import UserTimeline, record_key, remember

HERE = ("u", "c", "exchanges")


store = stores_of("faiss", "memory", "memory without vectors")


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


@pytest.mark.slow
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


@pytest.mark.parametrize("timeline", [None, [("a", 9)], UserTimeline([("a", 9)], thread="t", heads=("heads",))])
async def test_what_lies_in_a_deeper_namespace_is_not_recalled_and_crowds_nothing_out(store, timeline):
    for turn in range(1, 4):
        await write(store, "a", turn, f"heron {turn} at home")
    deeper = [
        PutOp((*HERE, "work"), f"a-{turn}", {"text": f"heron {turn}"} | Stamp("a", 1 + turn % 9).to_json())
        for turn in range(400)
    ]
    await store.abatch(deeper)
    found = await recall(store, HERE, Query("heron", timeline=timeline, limit=50, fitting=False))
    assert sorted((hit.namespace, hit.value["text"]) for hit in found) == [
        (HERE, f"heron {turn} at home") for turn in range(1, 4)
    ]


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


FACTS, HERE = ("u", "c", "facts"), ("u", "c", "exchanges")


class Numbers(Embeddings):
    """The higher the last number of a text, the less it means the same as a text without one."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        last = text.split()[-1]
        return [1.0, int(last) / 100 if last.isdecimal() else 0.0]


@pytest.fixture
def numbered():
    return InMemoryStore(index={"dims": 2, "embed": Numbers(), "fields": ["text"]})


async def gathered(numbered, texts, scope, **settings):
    options = {"wanted": set(), "timeline": scope.timeline, "before": scope.before, "may_show": lambda _: True}
    return await gather_candidates(numbered, [scope], texts, **(options | settings))


@pytest.mark.parametrize(("weight", "brought"), [(2.0, 32), (0.5, 32), (0.1, 16), (1.0, 64)])
async def test_the_less_a_text_weighs_the_fewer_candidates_it_brings(numbered, weight, brought):
    for n in range(70):
        await numbered.aput(FACTS, f"k{n}", {"text": f"A lamp {n}"})
    candidates = await gathered(numbered, [WeightedText("x", 1.0), WeightedText("y", weight)], Scope(FACTS))
    lighter = 0 if weight > 1 else 1
    assert [len(candidates.cosines[n]) for n in (lighter, 1 - lighter)] == [brought, 64]


async def turns_brought(numbered, timeline, before=None):
    await remember(numbered, HERE, [f"A lamp {n}" for n in (90, 0, 91, 92, *range(1, 80))])
    candidates = await gathered(numbered, [WeightedText("lamp", 1.0)], Scope(HERE, timeline, before))
    return {record.stamp.turn for record in candidates.records}


@pytest.mark.parametrize("timeline", [[("main", 83)], None])
async def test_the_first_turn_comes_along_as_a_neighbour(numbered, timeline):
    brought = await turns_brought(numbered, timeline)
    assert {1, 2, 3, 4} <= brought
    assert 83 not in brought, "as many as there are would prove nothing"


@pytest.mark.parametrize("timeline", [[("main", 83)], None])
async def test_a_neighbour_of_a_later_turn_than_may_be_seen_does_not_come_along(numbered, timeline):
    assert await turns_brought(numbered, timeline, before=3) == {1, 2}


async def test_of_the_time_that_a_question_names_those_that_mean_the_same_come_along(numbered):
    lamps = [{"text": f"A lamp {n}", "day": "1" if n else "0"} for n in range(80)]
    await numbered.abatch([PutOp(FACTS, f"k{n}", lamps[n]) for n in reversed(range(80))])
    [[candidates]] = await propose_candidates(numbered, [Scope(FACTS, narrow=[{"day": "1"}])], ["lamp"], [1])
    days = {item.key for item in candidates if item.value["day"] == "1"}
    assert days == {f"k{n}" for n in range(1, 33)}


@pytest.mark.parametrize(("before", "turns"), [(4, (2, 3)), (99, (8, 9)), (None, (8, 9)), (2, (1,))])
def test_the_latest_turns_are_those_before_the_one_asked_and_on_the_timeline(before, turns):
    latest = Scope(HERE, [("a", 9)], before).latest(2)
    assert latest == {(HERE, record_key("a", turn, "exchange")) for turn in turns}


async def test_of_the_twenty_best_two_turns_on_either_side_come_along(numbered):
    said = [
        f"A lamp {n if place == 2 else 99}" for n in range(66) for place in range(5)
    ]  # the nth best has turn 5n + 3
    timeline = await remember(numbered, HERE, said)
    candidates = await gathered(numbered, [WeightedText("lamp", 1.0)], Scope(HERE, timeline), timeline=timeline)
    best = {5 * n + 3 for n in range(64)}
    beside = {5 * n + place for n in range(20) for place in (1, 2, 4, 5)}
    assert {record.stamp.turn for record in candidates.records} == best | beside


async def test_each_further_filter_proposes_thirty_two_of_its_own(tmp_path):
    index = {"embed": Numbers(), "fields": ["text"], "lexical": False}
    with FaissStore.open(tmp_path / "m.db", index) as store:
        puts = [PutOp(FACTS, f"{day}-{n}", {"text": f"A lamp {n}", "day": day}) for day in "012" for n in range(40)]
        await store.abatch(puts)
        narrow = [{"day": "1"}, {"day": "2"}]
        [[candidates]] = await propose_candidates(store, [Scope(FACTS, narrow=narrow)], ["lamp"], [1])
        assert len(candidates) == 1 + 64
        assert len({item.key for item in candidates}) == 65, "each comes once"


async def test_where_a_store_cannot_rank_those_with_most_of_the_words_come_and_of_equals_the_newest():
    store = InMemoryStore()
    ops = [PutOp(HERE, f"a-{n}", {"text": f"Mile {n}."} | Stamp("a", n).to_json()) for n in range(2, 1102)]
    await store.abatch(ops)
    await write(store, "a", 1, "A LAMP was lit.")
    scopes = [Scope(HERE, [("a", 1200)])]
    [[found]] = await propose_candidates(store, scopes, ["the lamps of the tower"], [1])
    keys_found = {item.key for item in found}
    assert len(found) == 1000
    assert "a-1" in keys_found, "in capitals and inflected"
    assert {f"a-{n}" for n in range(103, 1102)} == keys_found - {"a-1"}
    longer = "Ale, bread, cheese, dates and eggs: where are the lamps?"
    [[found]] = await propose_candidates(store, scopes, [longer], [1])
    assert {item.key for item in found} == keys_found, "the last words count as the first do"


LORE = ("u", "c", "lore")


async def test_what_belongs_to_no_timeline_is_recalled_though_the_timeline_sees_nothing(store):
    await write(store, "a", 1, "The lamp is red.")
    await store.aput(LORE, "x", {"text": "Lamps are old.", "kind": "lore"})
    assert await keys(store, "lamp", timeline=[], lasting=[LORE]) == ["x"]
    assert set(await keys(store, "lamp", timeline=[("a", 1)], lasting=[LORE])) == {"a-1", "x"}
    assert await keys(store, "lamp", timeline=[]) == []
    assert set(await keys(store, "lamp", timeline=[("a", 1)], before=1, lasting=[LORE])) == {"x"}


async def test_the_best_are_put_in_an_order_of_ones_own_and_the_others_follow_in_theirs(store):
    for n, text in enumerate(["lamp lamp lamp", "lamp lamp oil", "lamp oil wick", "a lamp of oil, wick and brass"]):
        await store.aput(HERE, f"k{n}", {"text": text})
    usual, asked = await keys(store, "lamp"), []

    async def turned_round(question, records):
        asked.append((question, [one.key for one in records]))
        return records[::-1]

    async def only_the_last(_, records):
        return records[-1:]

    assert await keys(store, "lamp", rerank=turned_round, reranked=2) == [usual[1], usual[0], *usual[2:]]
    assert asked == [("lamp", usual[:2])]
    assert await keys(store, "lamp", rerank=only_the_last, reranked=3) == [usual[2], usual[3]], "it may leave some out"


async def test_the_best_fifty_are_put_in_an_order_of_ones_own_unless_it_is_said_how_many():
    store, asked = InMemoryStore(), []
    await store.abatch([PutOp(HERE, f"k{n}", {"text": f"A lamp and mile {n}"}) for n in range(60)])

    async def turned_round(_, records):
        asked.extend(one.key for one in records)
        return records[::-1]

    usual = await keys(store, "lamp", limit=60)
    assert await keys(store, "lamp", limit=60, rerank=turned_round) == usual[49::-1] + usual[50:]
    assert asked == usual[:50]


async def test_as_published_the_hundred_latest_turns_are_looked_at_whatever_they_say(numbered):
    said = [f"A lamp {n}" for n in range(100)] + [f"A mill 9{n % 10}" for n in range(150)]
    timeline = await remember(numbered, HERE, said)
    weights = Weights(scoring="generative_agents")
    found = await recall(numbered, HERE, Query("lamp", timeline=timeline, weights=weights, limit=500))
    keys_found = {key for one in found for key in (one.key, *one.folded)}
    assert {record_key("main", turn, "exchange") for turn in range(151, 251)} <= keys_found


async def test_only_records_with_all_of_the_metadata_are_recalled(store):
    for key, metadata in (("a", {"project": "x", "n": 1}), ("b", {"project": "y"}), ("c", None)):
        await store.aput(HERE, key, {"text": f"The lamp, {key}."} | ({"metadata": metadata} if metadata else {}))
    assert sorted(await keys(store, "lamp")) == ["a", "b", "c"]
    assert await keys(store, "lamp", metadata={"project": "x"}) == ["a"]
    assert await keys(store, "lamp", metadata={"project": "y", "n": 1}) == []


async def test_a_neighbour_whose_words_are_not_kept_does_not_come_along(store):
    await remember(store, HERE, ["A lamp.", "A boat.", "A mill."])
    hidden = record_key("main", 2, "exchange")
    await store.aput(HERE, hidden, (await store.aget(HERE, hidden)).value | {"withheld": True})
    found = await recall(store, HERE, Query("lamp", timeline=[("main", 3)], fitting=False))
    assert {one.value["turn"] for one in found} == {1, 3}


async def test_what_is_withheld_or_not_for_the_viewer_is_recalled_by_nobody_or_by_all_alone(store):
    await store.aput(HERE, "withheld", {"text": "The lamp.", "withheld": True})
    await store.aput(HERE, "secret", {"text": "A secret lamp.", "kind": "secret"})
    await store.aput(HERE, "hers", {"text": "A lamp of hers.", "known_by": ["Oda"]})
    assert await keys(store, "lamp") == []
    assert await keys(store, "lamp", viewer=["oda"]) == ["hers"]
    assert sorted(await keys(store, "lamp", visibility="all")) == ["hers", "secret"]
