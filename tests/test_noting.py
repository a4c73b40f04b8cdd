"""Facts go into a store once; what changes, ends what was; and each timeline sees its own."""

import random

import pytest
from langgraph.store.memory import InMemoryStore
from wordings import DIFFERENT, FIELDED, TEXTS

from memory import FaissStore, HashEmbeddings, MiniLMEmbeddings
from memory.fact_reading import read_facts
from memory.likeness import alike
from memory.marks import MARKS, at
from memory.noting import Note, note
from memory.timeline import record_key, stamp, visible
from memory.validity import history, strengths, valid

FACTS = ("u", "c", "facts")


@pytest.fixture(params=["faiss", "memory", "memory without vectors", "faiss without vectors"])
def store(request, tmp_path):
    if request.param.startswith("faiss"):
        index = {} if request.param == "faiss" else {"index": {"embed": None, "fields": ["text"]}}
        with FaissStore.open(tmp_path / "m.db", **index) as opened:
            yield opened
    elif request.param == "memory":
        embed = HashEmbeddings()
        yield InMemoryStore(index={"embed": embed, "dims": embed.dims, "fields": ["text"]})
    else:
        yield InMemoryStore()


def noted(fact, branch, turn, ordinal=0, echoes=""):
    [read], _ = read_facts([fact])
    value = read.record() | stamp(branch, turn) | {"at": at(turn, ordinal)}
    return Note(record_key(branch, turn, "fact", ordinal), value, echoes)


async def say(store, fact, branch, turn, timeline=None, ordinal=0, echoes=""):
    return await note(store, FACTS, [noted(fact, branch, turn, ordinal, echoes)], timeline=timeline)


async def seen(store, timeline=None):
    segments = [{}] if timeline is None else visible(timeline)
    return [item for only in segments for item in await store.asearch(FACTS, filter=only or None, limit=1000)]


async def holding(store, timeline=None, before=None):
    found = [i for i in await seen(store, timeline) if before is None or i.value["turn"] < before]
    return sorted(item.value["text"] for item in await valid(store, found, timeline=timeline, before=before))


def home(where):
    return {
        "text": f"Goran lives at {where}.",
        "subject": "Goran",
        "attribute": "home",
        "value": where,
        "kind": "trait",
    }


async def test_ten_wordings_of_five_facts_leave_five(store):
    wordings = [text for pair in TEXTS for text in pair]
    assert len(wordings) == 10
    random.Random(1).shuffle(wordings)
    for turn, text in enumerate(wordings, start=1):
        await say(store, {"text": text}, "a", turn, [("a", turn)])
    kept = await seen(store)
    assert len(kept) == 5
    again = await strengths(store, FACTS, [item.key for item in kept])
    assert list(again.values()) == [1] * 5


@pytest.mark.parametrize("seed", range(3))
async def test_ten_wordings_of_each_of_five_facts_leave_five(store, seed):
    wordings = [fact for group in FIELDED for fact in group]
    random.Random(seed).shuffle(wordings)
    for turn, fact in enumerate(wordings, start=1):
        await say(store, fact, "a", turn, [("a", turn)])
    kept = await seen(store)
    assert len(kept) == 5
    assert sum((await strengths(store, FACTS, [item.key for item in kept])).values()) == 45
    assert len(await holding(store)) == 5


async def test_wordings_in_one_batch_are_one_as_well(store):
    wordings = [fact for group in FIELDED for fact in group]
    notes = [noted(fact, "a", 1, ordinal) for ordinal, fact in enumerate(wordings)]
    done = await note(store, FACTS, notes, timeline=[("a", 1)])
    assert (len(done.new), len(done.again)) == (5, 45)


async def test_what_sounds_alike_and_is_not_the_same_stays_apart(store):
    for turn, (one, other) in enumerate(DIFFERENT, start=1):
        for ordinal, text in enumerate((one, other)):
            await say(store, {"text": text}, "a", 10 * turn, [("a", 10 * turn)], ordinal)
    kept = {item.value["text"] for item in await seen(store)}
    assert kept == {text for pair in DIFFERENT for text in pair}


@pytest.mark.parametrize("cosine", [None, 0.99])
def test_no_cosine_makes_two_facts_one(cosine):
    for one, other in DIFFERENT:
        assert not alike({"text": one}, {"text": other}, cosine)
        assert alike({"text": one}, {"text": one.upper()}, cosine)


async def test_exactly_the_same_is_one_in_any_spelling(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    await say(store, home("the mill") | {"text": "GORAN lives at the Mill"}, "a", 2, [("a", 2)])
    assert len(await seen(store)) == 1


async def test_a_newer_fact_of_the_same_slot_ends_the_older_one(store):
    for turn, where in enumerate(["the mill", "the inn", "the tower"], start=1):
        await say(store, home(where), "a", turn, [("a", turn)])
    assert await holding(store, [("a", 3)]) == ["Goran lives at the tower."]
    assert len(await seen(store)) == 3, "nothing is lost"


async def test_what_did_i_believe_then(store):
    for turn, where in ((2, "the mill"), (5, "the inn")):
        await say(store, home(where), "a", turn, [("a", turn)])
    assert await holding(store, [("a", 9)], before=5) == ["Goran lives at the mill."]
    assert await holding(store, [("a", 9)], before=6) == ["Goran lives at the inn."]
    past = await history(store, FACTS, "goran", "residence", timeline=[("a", 9)])
    assert [(held.value["value"], held.since, held.until) for held in past] == [
        ("the mill", 2, 5),
        ("the inn", 5, None),
    ]
    assert await history(store, FACTS, "goran", "residence", timeline=[("b", 9)]) == []


async def test_a_fork_from_before_the_change_sees_what_was(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    await say(store, home("the inn"), "a", 3, [("a", 3)])
    fork = [("a", 2), ("b", 5)]
    assert await holding(store, fork) == ["Goran lives at the mill."]
    await say(store, home("the tower"), "b", 4, fork)
    assert await holding(store, fork) == ["Goran lives at the tower."]
    assert await holding(store, [("a", 5)]) == ["Goran lives at the inn."]


async def test_a_fork_strengthens_for_itself_alone(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    fork = [("a", 2), ("b", 5)]
    await say(store, home("the mill"), "b", 4, fork)
    key = record_key("a", 1, "fact", 0)
    assert len(await seen(store)) == 1
    assert await strengths(store, FACTS, [key], timeline=fork) == {key: 1}
    assert await strengths(store, FACTS, [key], timeline=[("a", 5)]) == {key: 0}
    assert await strengths(store, FACTS, [key], timeline=fork, before=4) == {key: 0}


async def test_what_another_future_knows_is_new_here(store):
    await say(store, home("the mill"), "a", 3, [("a", 3)])
    fork = [("a", 2), ("b", 5)]
    await say(store, home("the mill"), "b", 4, fork)
    assert len(await seen(store)) == 2
    assert await holding(store, fork) == ["Goran lives at the mill."]


async def test_no_record_that_stands_is_written_again(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    before = {item.key: (item.value, item.updated_at) for item in await seen(store)}
    for turn, where in ((2, "the mill"), (3, "the inn"), (4, "the mill")):
        await say(store, home(where), "a", turn, [("a", turn)])
    after = {item.key: (item.value, item.updated_at) for item in await seen(store)}
    assert all(after[key] == value for key, value in before.items())


async def test_what_comes_back_holds_again_and_is_no_repetition(store):
    for turn, where in enumerate(["the mill", "the inn", "the mill"], start=1):
        await say(store, home(where), "a", turn, [("a", turn)])
    [now] = await valid(store, await seen(store))
    assert (now.value["turn"], now.value["value"]) == (3, "the mill")


async def test_who_says_more_of_a_value_takes_its_place_and_who_says_less_does_not(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    await say(store, home("the mill by the river"), "a", 2, [("a", 2)])
    await say(store, home("the mill"), "a", 3, [("a", 3)])
    assert await holding(store) == ["Goran lives at the mill by the river."]
    assert len(await seen(store)) == 2


async def test_a_lie_a_rumour_and_a_secret_never_take_the_place_of_a_fact(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    for turn, fields in enumerate([{"claimed_by": "Oda"}, {"kind": "rumour"}, {"kind": "secret"}], start=2):
        await say(store, home("the inn") | fields, "a", turn, [("a", turn)])
    assert (await holding(store)).count("Goran lives at the mill.") == 1
    assert len(await holding(store)) == 4
    await say(store, home("the tower") | {"claimed_by": "Oda"}, "a", 6, [("a", 6)])
    claims = [i.value["value"] for i in await valid(store, await seen(store)) if i.value["claimed_by"]]
    assert claims == ["the tower"], "of two claims of one person the later one is theirs"


async def test_what_was_recalled_is_not_new(store):
    echo = {"text": "Goran lives at the mill.", "kind": "trait"}
    done = await say(store, echo, "a", 8, [("a", 8)], echoes="a-2-exchange-0")
    assert (done.new, await seen(store)) == ([], [])
    assert await strengths(store, FACTS, ["a-2-exchange-0"]) == {"a-2-exchange-0": 1}
    await say(store, home("the inn"), "a", 9, [("a", 9)])
    await say(store, home("the mill"), "a", 10, [("a", 10)], echoes="a-2-exchange-0")
    assert await holding(store) == ["Goran lives at the mill."], "unless it holds again after something else did"


async def test_noting_twice_is_noting_once(store):
    facts = [home("the mill"), home("the inn"), {"text": "The lamp went out."}, {"text": "The lamp, it went out."}]
    notes = [noted(fact, "a", 1, ordinal) for ordinal, fact in enumerate(facts)]
    await note(store, FACTS, notes, timeline=[("a", 1)])
    first = [(i.key, i.value) for place in (FACTS, (*FACTS[:-1], MARKS)) for i in await store.asearch(place, limit=99)]
    await note(store, FACTS, notes, timeline=[("a", 1)])
    second = [(i.key, i.value) for place in (FACTS, (*FACTS[:-1], MARKS)) for i in await store.asearch(place, limit=99)]
    assert sorted(first, key=str) == sorted(second, key=str)
    assert len(first) == 3 + 2 + 1


class Halting(InMemoryStore):
    """Writes some of a batch and fails, as a store without transactions may."""

    left = 10**9

    async def abatch(self, ops):
        results = []
        for op in list(ops):
            if hasattr(op, "value"):
                if not self.left:
                    raise ConnectionError("the line went dead")
                self.left -= 1
            results += await super().abatch([op])
        return results


@pytest.mark.parametrize("after", range(8))
async def test_a_batch_that_broke_in_the_middle_is_completed(after):
    whole, broken = Halting(), Halting()
    first = [home("the mill"), {"text": "The lamp went out."}, home("the inn"), {"text": "Out went the lamp."}]
    notes = [noted(fact, "a", 1, ordinal) for ordinal, fact in enumerate(first)]
    await note(whole, FACTS, notes, timeline=[("a", 1)])
    broken.left = after
    try:
        await note(broken, FACTS, notes, timeline=[("a", 1)])
    except ConnectionError:
        broken.left = 10**9
        await note(broken, FACTS, notes, timeline=[("a", 1)])
    everything = [sorted((i.key, str(i.value)) for i in await s.asearch((), limit=99)) for s in (whole, broken)]
    assert everything[0] == everything[1]


class Failing(HashEmbeddings):
    """Fails from some text on."""

    left = 10**9

    def _embed(self, text):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("no embedder")
        return super()._embed(text)


async def test_an_embedder_that_fails_in_the_middle_writes_nothing(tmp_path):
    embed = Failing()
    with FaissStore.open(tmp_path / "m.db", index={"embed": embed, "fields": ["text"]}) as store:
        notes = [
            noted({"text": f"The {word} lamp burns."}, "a", 1, n) for n, word in enumerate(["red", "blue", "green"])
        ]
        for left in range(6):
            embed.left = left
            with pytest.raises(Exception, match="embed"):
                await note(store, FACTS, notes, timeline=[("a", 1)])
            assert await seen(store) == []
        embed.left = 10**9
        await note(store, FACTS, notes, timeline=[("a", 1)])
        assert len(await seen(store)) == 3


async def test_a_slot_that_changed_on_a_hundred_branches_is_told_by_each(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    for n in range(100):
        await say(store, home(f"house number {n}"), f"b{n:03}", 2, [("a", 1), (f"b{n:03}", 2)])
    for n in (0, 50, 99):
        assert await holding(store, [("a", 1), (f"b{n:03}", 9)]) == [f"Goran lives at house number {n}."]
    assert await holding(store, [("a", 9)]) == ["Goran lives at the mill."]


class Counting:
    """Counts what a store is asked."""

    def __init__(self, store):
        self.store, self.asked = store, []

    async def abatch(self, ops):
        self.asked.append(list(ops))
        return await self.store.abatch(self.asked[-1])


async def test_validity_is_two_questions_to_the_store_however_many_facts(store):
    for n in range(30):
        await say(
            store, home("the mill") | {"subject": f"Goran {n}", "text": f"Goran {n} lives."}, "a", n + 1, [("a", n + 1)]
        )
    counting = Counting(store)
    assert len(await valid(counting, await seen(store), timeline=[("a", 99)])) == 30
    assert [len(ops) for ops in counting.asked] == [30, 30], "of slots, and of judgements"


class Model:
    """What each place should know: a list of values by slot, kept by the moves alone."""

    def __init__(self):
        self.places = [((), 0, {})]  # timeline, turn, value by subject
        self.taken = set()

    def play(self, chance, at_place):
        timeline, turn, known = self.places[at_place]
        turn += 1
        segments = (*timeline[:-1], (timeline[-1][0], turn)) if timeline else ()
        if not timeline or segments[-1] in self.taken:
            segments = (*timeline, (f"b{len(self.places):03}", turn))
        self.taken.add(segments[-1])
        subject, value = chance.choice(["Goran", "Oda", "Lia"]), chance.choice(["the mill", "the inn", "the bay"])
        self.places.append((segments, turn, known | {subject: value}))
        return list(segments), turn, subject, value


@pytest.mark.parametrize("seed", range(6))
async def test_wherever_one_goes_in_a_tree_of_games_the_facts_are_those_of_the_way_there(store, seed):
    chance, model = random.Random(seed), Model()
    for _ in range(40):
        place = chance.choice([len(model.places) - 1, chance.randrange(len(model.places))])
        timeline, turn, subject, value = model.play(chance, place)
        fact = home(value) | {"subject": subject, "text": f"{subject} lives at {value}."}
        await say(store, fact, timeline[-1][0], turn, timeline)
    for timeline, _, known in model.places[1:]:
        due = sorted(f"{subject} lives at {value}." for subject, value in known.items())
        assert await holding(store, list(timeline)) == due


@pytest.mark.slow
async def test_ten_wordings_of_five_facts_leave_five_with_minilm(weights, tmp_path):
    minilm = MiniLMEmbeddings(weights)
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
            assert all(any(alike({"text": t}, f) for f in wordings) for t in lost)
