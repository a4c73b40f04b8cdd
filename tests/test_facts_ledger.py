"""Marks and judgements have the shape that the first stores have, so that an old store answers as it did."""

from datetime import UTC, datetime

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from questbook import note_facts
from questbook.memory.facts.validity import (
    AGAIN,
    HOLDS,
    StoredFact,
    find_judgements,
    mark_op,
    mark_search,
    position_of,
    time_position,
    turn_position,
    write_judgements,
)
from questbook.memory.timeline.records import Stamp

FACTS = ("u", "c", "facts")
RECORD = {"text": "x", **Stamp("a", 7).to_json(), "at": "00000007.003", "turns": [6, 7], "messages": ["m"]}
STAMPED = {"branch": "a", "turn": 7, "order": "00000007", "at": "00000007.003", "turns": [6, 7]}


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


def test_the_marks_of_a_slot_are_searched_in_one_small_namespace():
    search = mark_search(FACTS, "goran|home", {"what": "holds"})
    assert search.namespace_prefix == ("u", "c", "marks", "0e8")
    assert (search.filter, search.limit) == ({"about": "ea609e48c033c0e8", "what": "holds"}, 64)
    assert mark_search(FACTS, "goran|home", limit=3).limit == 3


def test_positions_have_a_fixed_width_and_sort_as_the_facts_came():
    assert [turn_position(12, 3), turn_position(1, 998), turn_position(1, 5000)] == [
        "00000012.003", "00000001.998", "00000001.999",
    ]  # fmt: skip
    noon = datetime(2026, 7, 10, 12, tzinfo=UTC)
    assert time_position(noon, 250, 1200) == "01783684800.50999"
    assert time_position(datetime(1969, 1, 1, tzinfo=UTC), 3, 4) == "00000000000.03004"
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


async def test_what_was_said_or_printed_or_belongs_to_no_timeline_is_never_judged():
    store = InMemoryStore()
    await write_judgements(store, FACTS, [("k", "other")], Stamp("a", 2).to_json())
    stamp = Stamp("a", 1).to_json()
    for value in ({"kind": "exchange", **stamp}, {"kind": "lore", **stamp}, stamp, {"kind": "trait", "turn": 1}):
        assert await find_judgements(store, [StoredFact(FACTS, "k", value)], timeline=[("a", 2)]) == {}, value
    judged = StoredFact(FACTS, "k", {"kind": "trait", **stamp})
    assert await find_judgements(store, [judged], timeline=[("a", 2)]) == {(FACTS, "k"): 2}


class Recording(InMemoryStore):
    """Notes every write in `puts`."""

    def __init__(self):
        super().__init__()
        self.puts = []

    async def abatch(self, ops):
        ops = list(ops)
        self.puts += [op for op in ops if isinstance(op, PutOp)]
        return await super().abatch(ops)


async def test_writing_facts_asks_for_vectors_of_the_facts_alone():
    store = Recording()
    home = {"text": "Goran lives at the mill.", "subject": "Goran", "attribute": "home", "value": "the mill"}
    await note_facts(store, FACTS, [home, "The lamp is lit.", "The lamp is lit!"], timeline=[("a", 1)])
    assert [(op.namespace[2], op.index) for op in store.puts] == [
        ("marks", False), ("marks", False), ("facts", ["text"]), ("facts", ["text"]),
    ]  # fmt: skip


async def test_judgements_ask_for_no_vectors():
    store = Recording()
    await write_judgements(store, FACTS, [("a-1-fact-0", "a-2-fact-0")], RECORD)
    assert [op.index for op in store.puts] == [False, False]
