"""Facts go into a store once: in whatever words, in whatever batch, and whatever fails on the way."""

import random

import pytest
from faulty_stores import Halting
from noted_facts import FACTS, holding, home, noted, say, seen
from stores import KINDS, opened
from wordings import DIFFERENT, FIELDED, TEXTS

from questbook import FaissStore, HashEmbeddings, MiniLMEmbeddings
from questbook.memory.facts.ledger import MARKS, write_judgements
from questbook.memory.facts.likeness import is_same_fact
from questbook.memory.facts.validity import count_repetitions
from questbook.memory.facts.writing import write_facts
from questbook.memory.timeline.records import Stamp


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    with opened(request.param, tmp_path) as store:
        yield store


async def test_ten_wordings_of_five_facts_leave_five(store):
    wordings = [text for pair in TEXTS for text in pair]
    assert len(wordings) == 10
    random.Random(1).shuffle(wordings)
    for turn, text in enumerate(wordings, start=1):
        await say(store, {"text": text}, "a", turn, [("a", turn)])
    kept = await seen(store)
    assert len(kept) == 5
    again = await count_repetitions(store, FACTS, [item.key for item in kept])
    assert list(again.values()) == [1] * 5


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
async def test_ten_wordings_of_each_of_five_facts_leave_five(store, seed):
    wordings = [fact for group in FIELDED for fact in group]
    random.Random(seed).shuffle(wordings)
    for turn, fact in enumerate(wordings, start=1):
        await say(store, fact, "a", turn, [("a", turn)])
    kept = await seen(store)
    assert len(kept) == 5
    assert sum((await count_repetitions(store, FACTS, [item.key for item in kept])).values()) == 45
    assert len(await holding(store)) == 5


async def test_wordings_in_one_batch_are_one_as_well(store):
    wordings = [fact for group in FIELDED for fact in group]
    notes = [noted(fact, "a", 1, ordinal) for ordinal, fact in enumerate(wordings)]
    done = await write_facts(store, FACTS, notes, timeline=[("a", 1)])
    assert (len(done.new), len(done.repetitions)) == (5, 45)


async def test_what_sounds_alike_and_is_not_the_same_stays_apart(store):
    for turn, (one, other) in enumerate(DIFFERENT, start=1):
        for ordinal, text in enumerate((one, other)):
            await say(store, {"text": text}, "a", 10 * turn, [("a", 10 * turn)], ordinal)
    kept = {item.value["text"] for item in await seen(store)}
    assert kept == {text for pair in DIFFERENT for text in pair}


@pytest.mark.parametrize("cosine", [None, 0.99])
def test_no_cosine_makes_two_facts_one(cosine):
    for one, other in DIFFERENT:
        assert not is_same_fact({"text": one}, {"text": other}, cosine)
        assert is_same_fact({"text": one}, {"text": one.upper()}, cosine)


async def test_exactly_the_same_is_one_in_any_spelling(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    await say(store, home("the mill") | {"text": "GORAN lives at the Mill"}, "a", 2, [("a", 2)])
    assert len(await seen(store)) == 1


async def test_no_record_that_stands_is_written_again(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    before = {item.key: (item.value, item.updated_at) for item in await seen(store)}
    for turn, where in ((2, "the mill"), (3, "the inn"), (4, "the mill")):
        await say(store, home(where), "a", turn, [("a", turn)])
    after = {item.key: (item.value, item.updated_at) for item in await seen(store)}
    assert all(after[key] == value for key, value in before.items())


async def test_what_was_recalled_is_not_new(store):
    repetition = {"text": "Goran lives at the mill.", "kind": "trait"}
    done = await say(store, repetition, "a", 8, [("a", 8)], repeats="a-2-exchange-0")
    assert (done.new, await seen(store)) == ([], [])
    assert await count_repetitions(store, FACTS, ["a-2-exchange-0"]) == {"a-2-exchange-0": 1}
    await say(store, home("the inn"), "a", 9, [("a", 9)])
    await say(store, home("the mill"), "a", 10, [("a", 10)], repeats="a-2-exchange-0")
    assert await holding(store) == ["Goran lives at the mill."], "unless it holds again after something else did"


async def test_noting_twice_is_noting_once(store):
    facts = [home("the mill"), home("the inn"), {"text": "The lamp went out."}, {"text": "The lamp, it went out."}]
    notes = [noted(fact, "a", 1, ordinal) for ordinal, fact in enumerate(facts)]
    await write_facts(store, FACTS, notes, timeline=[("a", 1)])
    first = [(i.key, i.value) for place in (FACTS, (*FACTS[:-1], MARKS)) for i in await store.asearch(place, limit=99)]
    await write_facts(store, FACTS, notes, timeline=[("a", 1)])
    second = [(i.key, i.value) for place in (FACTS, (*FACTS[:-1], MARKS)) for i in await store.asearch(place, limit=99)]
    assert sorted(first, key=str) == sorted(second, key=str)
    assert len(first) == 3 + 2 + 1


async def test_facts_of_several_turns_that_were_late_are_judged_each_by_what_held_at_its_turn(store):
    line = [("a", 5)]
    await say(store, home("the inn"), "a", 3, line)  # turns 2 and 4 could not be written then
    late = [noted(home("the mill"), "a", 2), noted(home("the mill"), "a", 4)]
    done = await write_facts(store, FACTS, late, timeline=line)
    assert done.new == [one.key for one in late]
    assert await holding(store, line) == ["Goran lives at the mill."]
    assert await holding(store, line, before=4) == ["Goran lives at the inn."]
    assert await holding(store, line, before=3) == ["Goran lives at the mill."]
    again = await say(store, home("the mill"), "a", 5, line)
    assert list(again.repetitions.values()) == [late[1].key]


async def test_a_late_fact_strengthens_what_held_at_its_turn_and_not_what_took_its_place(store):
    line = [("a", 9)]
    await say(store, home("the mill"), "a", 1, line)
    await say(store, home("the inn"), "a", 5, line)
    done = await write_facts(
        store, FACTS, [noted(home("the mill"), "a", 3), noted(home("the inn"), "a", 6)], timeline=line
    )
    first, second = [item.key for item in sorted(await seen(store), key=lambda item: item.value["turn"])]
    assert list(done.repetitions.values()) == [first, second]
    assert await holding(store, line) == ["Goran lives at the inn."]


async def test_a_late_fact_repeats_what_was_believed_at_its_turn_though_it_was_judged_wrong_since(store):
    line, lamp = [("a", 9)], {"text": "The lamp of the tower is lit."}
    await say(store, lamp, "a", 1, line)
    await write_judgements(store, FACTS, [("a-1-fact-0", "x")], Stamp("a", 5).to_json())
    assert await say(store, lamp, "a", 3, line) == ([], {"a-3-fact-0": "a-1-fact-0"}, [])
    assert await say(store, lamp, "a", 6, line) == (["a-6-fact-0"], {}, [])


@pytest.mark.parametrize("after", range(8))
async def test_a_batch_that_broke_in_the_middle_is_completed(after):
    whole, broken = Halting(), Halting()
    first = [home("the mill"), {"text": "The lamp went out."}, home("the inn"), {"text": "Out went the lamp."}]
    notes = [noted(fact, "a", 1, ordinal) for ordinal, fact in enumerate(first)]
    await write_facts(whole, FACTS, notes, timeline=[("a", 1)])
    broken.left = after
    try:
        await write_facts(broken, FACTS, notes, timeline=[("a", 1)])
    except ConnectionError:
        broken.left = 10**9
        await write_facts(broken, FACTS, notes, timeline=[("a", 1)])
    everything = [sorted((i.key, str(i.value)) for i in await s.asearch((), limit=99)) for s in (whole, broken)]
    assert everything[0] == everything[1]


class Failing(HashEmbeddings):
    """Fails once it has embedded as many texts as are left."""

    left = 10**9

    def embed_documents(self, texts):
        self.left -= len(texts)
        if self.left < 0:
            raise RuntimeError("no embedder")
        return super().embed_documents(texts)

    def embed_query(self, text):
        return self.embed_documents([text])[0]


async def test_an_embedder_that_fails_in_the_middle_writes_nothing(tmp_path):
    embed = Failing()
    with FaissStore.open(tmp_path / "m.db", index={"embed": embed, "fields": ["text"]}) as store:
        notes = [
            noted({"text": f"The {word} lamp burns."}, "a", 1, n) for n, word in enumerate(["red", "blue", "green"])
        ]
        for left in range(6):
            embed.left = left
            with pytest.raises(Exception, match="embed"):
                await write_facts(store, FACTS, notes, timeline=[("a", 1)])
            assert await seen(store) == []
        embed.left = 10**9
        await write_facts(store, FACTS, notes, timeline=[("a", 1)])
        assert len(await seen(store)) == 3


@pytest.mark.slow
async def test_ten_wordings_of_five_facts_leave_five_with_minilm(published_weights, tmp_path):
    minilm = MiniLMEmbeddings(published_weights)
    for name, wordings in (
        ("texts", [{"text": t} for pair in TEXTS for t in pair]),
        ("fields", [f for group in FIELDED for f in group]),
    ):
        with FaissStore.open(tmp_path / f"{name}.db", index={"embed": minilm, "fields": ["text"]}) as store:
            for turn, fact in enumerate(wordings, start=1):
                await say(store, fact, "a", turn, [("a", turn)])
            assert len(await seen(store)) == 5
            for turn, (one, other) in enumerate(DIFFERENT, start=100):
                for ordinal, text in enumerate((one, other)):
                    await say(store, {"text": text}, "a", turn, [("a", turn)], ordinal)
            apart = {item.value["text"] for item in await seen(store)}
            lost = [text for pair in DIFFERENT for text in pair if text not in apart]
            assert all(any(is_same_fact({"text": t}, f) for f in wordings) for t in lost)


@pytest.mark.parametrize("kind", ["faiss", "faiss without vectors"])
async def test_a_store_that_ranks_is_not_read_through(kind, tmp_path, monkeypatch):
    with opened(kind, tmp_path) as store:
        for n in range(120):
            there = noted({"text": f"Goran saw the lamp of house {n} burn.", "subject": f"house {n}"}, "a", n + 1)
            await store.aput(FACTS, there.key, there.value)
        read, search = [], store.abatch

        async def counted(ops):
            results = await search(ops)
            read.extend(len(found) for found in results if isinstance(found, list))
            return results

        monkeypatch.setattr(store, "abatch", counted)
        done = await say(store, {"text": "Goran saw the lamp of house 7 burn.", "subject": "house 7"}, "a", 200)
        assert done.repetitions
        assert sum(read) <= 64
