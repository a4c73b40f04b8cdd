"""What holds, then and now, on each timeline; found without reading all that ever held a slot."""

import random

import pytest
from langgraph.store.base import GetOp, PutOp
from langgraph.store.memory import InMemoryStore
from noted_facts import FACTS, holding, home, say, seen
from stores import stores_of

from questbook.memory.facts.validity import (
    FIRST_MARKS,
    HOLDS,
    count_repetitions,
    find_holders,
    keep_valid,
    mark_op,
    slot_history,
    turn_position,
    write_judgements,
)
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key

store = stores_of()


async def test_a_fork_strengthens_for_itself_alone(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    fork = [("a", 2), ("b", 5)]
    await say(store, home("the mill"), "b", 4, fork)
    key = record_key("a", 1, "fact", 0)
    assert len(await seen(store)) == 1
    assert await count_repetitions(store, FACTS, [key], timeline=fork) == {key: 1}
    assert await count_repetitions(store, FACTS, [key], timeline=[("a", 5)]) == {key: 0}
    assert await count_repetitions(store, FACTS, [key], timeline=fork, before=4) == {key: 0}


async def test_what_another_future_knows_is_new_here(store):
    await say(store, home("the mill"), "a", 3, [("a", 3)])
    fork = [("a", 2), ("b", 5)]
    await say(store, home("the mill"), "b", 4, fork)
    assert len(await seen(store)) == 2
    assert await holding(store, fork) == ["Goran lives at the mill."]


async def test_what_comes_back_holds_again_and_is_no_repetition(store):
    for turn, where in enumerate(["the mill", "the inn", "the mill"], start=1):
        await say(store, home(where), "a", turn, [("a", turn)])
    [now] = await keep_valid(store, await seen(store))
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
    claims = [i.value["value"] for i in await keep_valid(store, await seen(store)) if i.value["claimed_by"]]
    assert claims == ["the tower"], "of two claims of one person the later one is theirs"


@pytest.mark.slow
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


async def test_validity_is_one_question_to_the_store_however_many_facts(store):
    for n in range(30):
        await say(
            store, home("the mill") | {"subject": f"Goran {n}", "text": f"Goran {n} lives."}, "a", n + 1, [("a", n + 1)]
        )
    counting = Counting(store)
    assert len(await keep_valid(counting, await seen(store), timeline=[("a", 99)])) == 30
    assert [len(ops) for ops in counting.asked] == [60], "of slots and of judgements, in one batch"


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


@pytest.mark.parametrize(
    "seed",
    [
        0,
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(4, marks=pytest.mark.slow),
        pytest.param(5, marks=pytest.mark.slow),
    ],
)
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


async def test_history_as_of_then_knows_no_later_judgement(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    await write_judgements(store, FACTS, [(record_key("a", 1, "fact"), "x")], Stamp("a", 4).to_json())
    for before, until in ((None, 4), (5, 4), (4, None)):
        [period] = await slot_history(store, FACTS, "Goran", "home", timeline=[("a", 9)], before=before)
        assert (period.since, period.until, period.value["value"]) == (1, until, "the mill")


async def test_a_judgement_ends_a_fact_before_its_successor_does_and_what_was_forgotten_has_no_history(store):
    for turn, where in ((1, "the mill"), (3, "the inn"), (6, "the bay")):
        await say(store, home(where), "a", turn, [("a", turn)])
    await write_judgements(store, FACTS, [(record_key("a", 1, "fact"), "x")], Stamp("a", 2).to_json())
    await store.adelete(FACTS, record_key("a", 3, "fact"))
    periods = await slot_history(store, FACTS, "Goran", "home", timeline=[("a", 9)])
    assert [(one.value["value"], one.since, one.until) for one in periods] == [("the mill", 1, 2), ("the bay", 6, None)]


async def test_asking_what_holds_lets_no_judgement_live_longer():
    gets = []

    class Recording(InMemoryStore):
        async def abatch(self, ops):
            ops = list(ops)
            gets.extend(op for op in ops if isinstance(op, GetOp))
            return await super().abatch(ops)

    store = Recording()
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    await write_judgements(store, FACTS, [(record_key("a", 1, "fact"), "x")], Stamp("a", 4).to_json())
    gets.clear()
    assert await holding(store, [("a", 9)]) == []
    assert [op.refresh_ttl for op in gets] == [False, False], "the flag, and the judgement"


@pytest.mark.slow
async def test_of_a_slot_that_other_branches_changed_often_this_one_sees_its_own(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    for turn in range(2, 80):
        await say(store, home(f"house {turn}"), "b", turn, [("a", 1), ("b", turn)])
    assert await holding(store, [("a", 90)]) == ["Goran lives at the mill."]
    await say(store, home("the inn"), "a", 90, [("a", 90)])
    assert await holding(store, [("a", 90)]) == ["Goran lives at the inn."]
    old = await store.aget(FACTS, record_key("a", 1, "fact"))
    assert await keep_valid(store, [old], timeline=[("a", 90)]) == []
    assert await keep_valid(store, [old], timeline=[("a", 90)], before=90) == [old]
    assert await keep_valid(store, [old], timeline=[("a", 89)]) == [old]


SLOT = "mira|location"


class CountingReads(InMemoryStore):
    """A store that counts the items that its searches return."""

    read = 0

    async def abatch(self, ops):
        results = await super().abatch(ops)
        self.read += sum(len(found) for found in results if isinstance(found, list))
        return results


async def moved(store, turns):
    writes: list[PutOp] = []
    for turn in turns:
        value = {"slot": SLOT} | Stamp("a", turn).to_json() | {"at": turn_position(turn, 0)}
        writes.append(mark_op(FACTS, HOLDS, SLOT, record_key("a", turn, "fact"), value))
    await store.abatch(writes)


async def holder(store, **options):
    held = await find_holders(store, FACTS, [SLOT, "nobody|home"], **options)
    return int(held[SLOT].split("-")[1]) if SLOT in held else None


async def test_of_a_slot_that_changes_every_turn_only_the_newest_marks_are_read():
    store = CountingReads()
    await moved(store, range(1, 401))
    assert await holder(store, timeline=[("a", 400)]) == 400
    assert store.read <= 2 * FIRST_MARKS
    assert await holder(store, timeline=[("a", 400)], position=turn_position(300, 0)) == 300


async def test_what_another_branch_holds_or_nobody_is_not_seen():
    store = InMemoryStore()
    await moved(store, range(1, 401))
    assert await holder(store, timeline=[("a", 9), ("b", 400)]) == 9
    assert await holder(store, timeline=[("b", 400)]) is None
    assert await holder(store) == 400


async def test_what_changed_once_long_ago_still_holds():
    store = InMemoryStore()
    await moved(store, range(1, 101))
    assert await holder(store, timeline=[("a", 5000)]) == 100
    assert await holder(store, timeline=[("a", 5000)], ignore={record_key("a", 100, "fact")}) == 99
