"""What holds, then and now, on each timeline, found without reading all; in records as the first stores have them."""

import random
from datetime import UTC, datetime

import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from noted_facts import FACTS, holding, home, say, seen
from stores import stores_of

from questbook import note_facts
from questbook.memory.facts.supersession import replace_superseded
from questbook.memory.facts.validity import (
    AGAIN,
    FIRST_MARKS,
    HOLDS,
    StoredFact,
    count_repetitions,
    find_holders,
    find_judgements,
    keep_valid,
    lasting_position,
    mark_op,
    position_of,
    slot_history,
    time_position,
    turn_position,
    write_judgements,
)
from questbook.memory.recall.query import Recalled
from questbook.memory.store.any_store import StoreBehind
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import UserTimeline, record_key

STAMPED = {"branch": "a", "turn": 7, "order": "00000007", "at": "00000007.003", "turns": [6, 7]}
RECORD = STAMPED | {"text": "x", "messages": ["m"], "thread": "t"}


def test_a_mark_says_which_fact_holds_a_slot_and_which_was_said_again():
    mark = {"what": "holds", "about": "ea609e48c033c0e8", "fact": "a-7-fact-3"} | STAMPED
    place = ("u", "c", "marks", "0e8")
    assert mark_op(FACTS, HOLDS, "goran|home", "a-7-fact-3", RECORD) == PutOp(place, "a-7-fact-3-holds", mark, False)
    again = mark | {"what": "again", "about": "9fee28f58c2545b3"}
    place = ("u", "c", "marks", "1b3")
    assert mark_op(FACTS, AGAIN, "a-2-fact-0", "a-7-fact-3", RECORD) == PutOp(place, "a-7-fact-3-again", again, False)


def test_a_mark_of_what_does_not_rewind_says_its_messages_and_no_branch():
    record = {"text": "y", "turn": 250, "at": "01783684800.50999", "messages": ["m1"], "turns": [250, 250]}
    mark = {"what": "holds", "about": "ea609e48c033c0e8", "fact": "k"}
    mark |= {"turn": 250, "at": "01783684800.50999", "messages": ["m1"]}
    assert mark_op(("u", "player", "facts"), HOLDS, "goran|home", "k", record).value == mark


def test_positions_have_a_fixed_width_and_sort_as_the_facts_came():
    positions = [turn_position(12, 3), turn_position(1, 998), turn_position(1, 5000)]
    assert positions == ["00000012.003", "00000001.998", "00000001.999"]
    noon = datetime(2026, 7, 10, 12, tzinfo=UTC)
    assert time_position(noon, 250, 1200) == "01783684800.50999"
    assert time_position(datetime(1969, 1, 1, tzinfo=UTC), 3, 4) == "00000000000.03004"
    assert lasting_position(-5.0) == lasting_position(0.0) == "00000000000.000000"
    assert position_of({"turn": 12}) == "00000012.000"
    assert position_of({}) == "00000000.000"
    assert position_of({"turn": 12, "at": "00000011.000"}) == "00000011.000"


async def test_a_judgement_is_found_by_fact_and_branch_and_the_earliest_one_counts():
    store = InMemoryStore()
    stamp = Stamp("b", 9).to_json() | {"at": "00000009.900", "turns": [9, 9]}
    pairs = [("a-1-fact-0", "a-2-fact-0"), ("a-1-fact-0", "a-3-fact-0"), ("a-4-fact-0", "a-5-fact-0")]
    assert await write_judgements(store, FACTS, pairs, stamp) == ["a-4-fact-0", "a-1-fact-0"]
    items = {item.value["ended"]: item for item in await store.asearch(("u", "c", "settled"))}
    assert items["a-1-fact-0"].value == stamp | {"ended": "a-1-fact-0", "fact": "a-2-fact-0"}
    assert items["a-1-fact-0"].key.endswith("-b")
    assert {item.namespace for item in await store.asearch(("u", "c", "judged"))} == {("u", "c", "judged")}
    await write_judgements(store, FACTS, pairs[:1], Stamp("c", 12).to_json())
    fact = StoredFact(FACTS, "a-1-fact-0", {"kind": "trait", **Stamp("a", 1).to_json()})
    line = [("a", 3), ("b", 10), ("c", 14)]
    assert await find_judgements(store, [fact], timeline=line) == {(FACTS, "a-1-fact-0"): 9}
    assert await find_judgements(store, [fact]) == {(FACTS, "a-1-fact-0"): 9}
    assert await find_judgements(store, [fact], timeline=line, before=9) == {}
    assert await find_judgements(store, [fact], timeline=line, before=10) == {(FACTS, "a-1-fact-0"): 9}
    assert await find_judgements(store, [fact], timeline=[("a", 3), ("b", 8)]) == {}
    latest = fact._replace(value=fact.value | Stamp("b", 9).to_json())
    assert len(await find_judgements(store, [latest], timeline=[("b", 9)])) == 1, "in its own turn"
    for branch in [*(f"gone{n}" for n in range(12)), "c"]:
        await write_judgements(store, FACTS, [("a-6-fact-0", "x"), ("a-7-fact-0", "x")], Stamp(branch, 14).to_json())
    facts = [fact._replace(key=f"a-{turn}-fact-0") for turn in (6, 7)]
    for view in (None, line, UserTimeline(line, thread="t", heads=("u", "c", "heads"))):
        assert await find_judgements(store, facts, timeline=view) == {(FACTS, one.key): 14 for one in facts}, view


async def test_what_was_said_or_printed_or_belongs_to_no_timeline_is_never_judged():
    store = InMemoryStore()
    await write_judgements(store, FACTS, [("k", "other")], Stamp("a", 2).to_json())
    stamp = Stamp("a", 1).to_json()
    for value in ({"kind": "exchange", **stamp}, {"kind": "lore", **stamp}, stamp, {"kind": "trait", "turn": 1}):
        assert await find_judgements(store, [StoredFact(FACTS, "k", value)], timeline=[("a", 2)]) == {}, value
    judged = StoredFact(FACTS, "k", {"kind": "trait", **stamp})
    assert await find_judgements(store, [judged], timeline=[("a", 2)]) == {(FACTS, "k"): 2}


async def test_what_belongs_to_no_timeline_is_judged_by_what_belongs_to_none():
    store, lasting = InMemoryStore(), StoredFact(FACTS, "k", {"kind": "trait", "turn": 0})
    await write_judgements(store, FACTS, [("k", "other")], {"turn": 0})
    rewinding = StoredFact(FACTS, "k", {"kind": "trait", **Stamp("a", 1).to_json()})
    for timeline in ([("a", 2)], None):
        assert await find_judgements(store, [lasting], timeline=timeline) == {(FACTS, "k"): 0}
        assert await find_judgements(store, [rewinding], timeline=timeline) == {}


class Recording(InMemoryStore):
    """Notes what it is asked, and how many items its searches return."""

    def __init__(self):
        super().__init__()
        self.ops, self.read = [], 0

    async def abatch(self, ops):
        self.ops += (ops := list(ops))
        results = await super().abatch(ops)
        self.read += sum(len(found) for found in results if isinstance(found, list))
        return results

    def of(self, kind):
        return [op for op in self.ops if isinstance(op, kind)]


async def test_writing_facts_asks_for_vectors_of_the_facts_alone():
    store = Recording()
    home = {"text": "Goran lives at the mill.", "subject": "Goran", "attribute": "home", "value": "the mill"}
    await note_facts(store, FACTS, [home, "The lamp is lit.", "The lamp is lit!"], timeline=[("a", 1)])
    indexed = [("marks", False), ("marks", False), ("facts", ["text"]), ("facts", ["text"])]
    assert [(op.namespace[2], op.index) for op in store.of(PutOp)] == indexed
    store.ops.clear()
    await write_judgements(store, FACTS, [("a-1-fact-0", "a-2-fact-0")], RECORD)
    assert [op.index for op in store.of(PutOp)] == [False, False]


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


async def test_who_says_more_of_a_value_takes_its_place_and_who_says_less_does_not(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    await say(store, home("the mill by the river"), "a", 2, [("a", 2)])
    await say(store, home("the mill"), "a", 3, [("a", 3)])
    assert await holding(store) == ["Goran lives at the mill by the river."]
    assert len(await seen(store)) == 2


@pytest.mark.parametrize(
    ("text", "value", "takes"),
    [("Goran owns 12 coins.", "coins 12", False), ("Goran owns silver coins.", "silver coins", True),
     ("Goran does not own 12 silver coins.", "12 silver coins", True)],
)  # fmt: skip
async def test_a_value_of_the_same_words_is_another_one_if_its_numbers_are_or_it_is_denied(store, text, value, takes):
    owns = {"subject": "Goran", "attribute": "savings", "kind": "trait"}
    await say(store, owns | {"text": "Goran owns 12 silver coins.", "value": "12 silver coins"}, "a", 1, [("a", 1)])
    done = await say(store, owns | {"text": text, "value": value}, "a", 2, [("a", 2)])
    assert bool(done.new) is takes


async def test_a_lie_a_rumour_and_a_secret_never_take_the_place_of_a_fact(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    for turn, fields in enumerate([{"claimed_by": "Oda"}, {"kind": "rumour"}, {"kind": "secret"}], start=2):
        await say(store, home("the inn") | fields, "a", turn, [("a", turn)])
    assert (await holding(store)).count("Goran lives at the mill.") == 1
    assert len(await holding(store)) == 4
    await say(store, home("the tower") | {"claimed_by": "Oda"}, "a", 6, [("a", 6)])
    claims = [i.value["value"] for i in await keep_valid(store, await seen(store)) if i.value["claimed_by"]]
    assert claims == ["the tower"], "of two claims of one person the later one is theirs"


async def test_validity_is_one_question_to_the_store_however_many_facts(store):
    for n in range(1, 31):
        goran = home("the mill", subject=f"Goran {n}", text=f"Goran {n} lives.")
        await say(store, goran, "a", n, [("a", n)])
    asked = []

    class Counting(StoreBehind):
        async def abatch(self, ops):
            asked.append(list(ops))
            return await store.abatch(asked[-1])

    assert len(await keep_valid(Counting(store), await seen(store), timeline=[("a", 99)])) == 30
    assert [len(ops) for ops in asked] == [60], "of slots and of judgements, in one batch"


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


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
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
    for before, until, last in ((None, 4, 9), (5, 4, 9), (4, None, 9), (None, None, 3)):
        [period] = await slot_history(store, FACTS, "Goran", "home", timeline=[("a", last)], before=before)
        assert (period.since, period.until, period.value["value"]) == (1, until, "the mill")


async def test_a_judgement_ends_a_fact_before_its_successor_does_and_what_was_forgotten_has_no_history(store):
    for turn, where in ((1, "the mill"), (3, "the inn"), (6, "the bay")):
        await say(store, home(where), "a", turn, [("a", turn)])
    await write_judgements(store, FACTS, [(record_key("a", 1, "fact"), "x")], Stamp("a", 2).to_json())
    await store.adelete(FACTS, record_key("a", 3, "fact"))
    periods = await slot_history(store, FACTS, "Goran", "home", timeline=[("a", 9)])
    assert [(one.value["value"], one.since, one.until) for one in periods] == [("the mill", 1, 2), ("the bay", 6, None)]


async def test_asking_what_holds_lets_no_judgement_live_longer():
    store = Recording()
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    await write_judgements(store, FACTS, [(record_key("a", 1, "fact"), "x")], Stamp("a", 4).to_json())
    store.ops.clear()
    assert await holding(store, [("a", 9)]) == []
    assert [op.refresh_ttl for op in store.of(GetOp)] == [False, False], "the flag, and the judgement"


async def test_of_a_slot_that_other_branches_changed_often_this_one_sees_its_own(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    marks = [Stamp("b", turn).to_json() | {"at": turn_position(turn, 0)} for turn in range(2, 80)]
    await store.abatch([mark_op(FACTS, HOLDS, "goran|home", f"b-{mark['turn']}", mark) for mark in marks])
    assert await holding(store, [("a", 90)]) == ["Goran lives at the mill."]
    await say(store, home("the inn"), "a", 90, [("a", 90)])
    assert await holding(store, [("a", 90)]) == ["Goran lives at the inn."]
    old = await store.aget(FACTS, record_key("a", 1, "fact"))
    assert await keep_valid(store, [old], timeline=[("a", 90)]) == []
    assert await keep_valid(store, [old], timeline=[("a", 90)], before=90) == [old]
    assert await keep_valid(store, [old], timeline=[("a", 89)]) == [old]


SLOT = "mira|location"


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
    store = Recording()
    await moved(store, range(1, 401))
    assert await holder(store, timeline=[("a", 400)]) == 400
    assert store.read <= 2 * FIRST_MARKS
    assert await holder(store, timeline=[("a", 400)], position=turn_position(300, 0)) == 300
    few = Recording()
    await moved(few, [1])
    assert await holder(few, timeline=[("a", 400)]) == 1
    assert len(few.of(SearchOp)) == 2, "one search of each slot is enough if it finds all"


async def test_a_long_history_is_told_whole_and_what_holds_is_found_behind_it():
    store = InMemoryStore()
    await moved(store, range(1, 101))
    records = [{"text": f"Town {turn}.", "slot": SLOT} | Stamp("a", turn).to_json() for turn in range(101)]
    await store.abatch([PutOp(FACTS, record_key("a", turn, "fact"), value) for turn, value in enumerate(records)])
    periods = await slot_history(store, FACTS, "Mira", "location", timeline=[("a", 100)])
    assert [one.since for one in periods] == list(range(1, 101))
    old = Recalled(record_key("a", 0, "fact"), records[0], None, 1.0, FACTS)
    [now] = await replace_superseded(store, [old], FACTS, timeline=[("a", 100)])
    assert now.text == "Town 100."


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
