"""The latest facts are the same as if all were read, and reading them does not grow with their number."""

import random
import time

import pytest
from langgraph.store.base import PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from questbook import UserTimeline
from questbook.memory.facts import ledger, lookup
from questbook.memory.facts.ledger import lasting_position, turn_position
from questbook.memory.facts.lookup import latest_facts
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import is_visible, record_key

FACTS, HEADS = ("ann", "chat", "facts"), ("ann", "chat", "heads")
ONLY = {"subject": "the user", "slot": {"$ne": ""}}
DAY = 86_400


class Counting(InMemoryStore):
    """Counts the items that searches give."""

    given = 0

    async def abatch(self, ops):
        ops = list(ops)
        results = await super().abatch(ops)
        self.given += sum(len(found) for op, found in zip(ops, results, strict=True) if isinstance(op, SearchOp))
        return results


def fact(branch, turn, ordinal, at, *, thread="", subject="the user"):
    value = {"text": "A fact.", "subject": subject, "slot": f"{subject}|{turn}-{ordinal}", "at": at}
    stamp = Stamp(branch, turn, thread=thread).to_json()
    return PutOp(FACTS, record_key(branch, turn, "fact", ordinal), value | stamp, index=False)


def latest_of_all(ops, timeline, count):
    records = [op for op in ops if op.value["subject"] == "the user" and is_visible(timeline, op.value)]
    return [op.key for op in sorted(records, key=lambda op: (op.value["at"], op.key))][-count:]


@pytest.mark.parametrize("few", [2, 16])
async def test_they_are_those_that_reading_all_gives(few, monkeypatch):
    monkeypatch.setattr(lookup, "_FEW", few)
    monkeypatch.setattr(ledger, "_FIRST_TURNS", 4)
    chance, now = random.Random(few), time.time()
    for _ in range(3):
        store = InMemoryStore()
        ops = [
            fact(branch, turn, n, turn_position(turn, n), subject=chance.choice(["the user", "Anna"]))
            for branch in ("a", "b", "c")
            for turn in range(1, 40)
            for n in range(chance.choice([0, 0, 1, 5]))
        ]
        await store.abatch(ops)
        timeline = [("a", chance.randint(1, 20)), ("b", chance.randint(20, 38)), ("c", 39)]
        for count in (8, 500):
            found = await latest_facts(store, FACTS, ONLY, timeline=timeline, count=count)
            assert [item.key for item in found] == latest_of_all(ops, timeline, count)
        assert await latest_facts(store, FACTS, ONLY, timeline=[], count=8) == []

        store = InMemoryStore()
        ages = [chance.choice([0, 0.1, 3, 40, 400, 9000]) * DAY for _ in range(90)]
        ops = [
            fact(f"b{n % 5}", n // 5 + 1, 0, lasting_position(now - age - n / 1000), thread=f"t{n % 5}")
            for n, age in enumerate(ages)
        ]
        heads = [PutOp(HEADS, f"t{n}", {"timeline": [[f"b{n}", chance.randint(0, 18)]]}) for n in range(4)]
        await store.abatch([*ops, *heads])
        for count in (8, 500):
            view = UserTimeline([("b4", 9)], thread="t4", heads=HEADS)
            found = await latest_facts(store, FACTS, ONLY, timeline=view, count=count)
            assert [item.key for item in found] == latest_of_all(ops, view, count)


async def test_what_is_read_does_not_grow_with_the_number_of_facts():
    now, store, view = time.time(), Counting(), UserTimeline([("new", 1)], thread="new", heads=HEADS)
    await store.abatch([PutOp(HEADS, "old", {"timeline": [["old", 3000]]})])
    for first in range(0, 3000, 500):
        turns = range(first + 1, first + 501)
        await store.abatch([fact("main", turn, 0, turn_position(turn, 0)) for turn in turns])
        others = [
            fact("old", turn, 1, lasting_position(now - 60 - (3000 - turn) * 3600), thread="old", subject="the user")
            for turn in turns
        ]
        await store.abatch(others)
    await store.abatch([fact("new", 1, 0, lasting_position(now), thread="new")])
    store.given = 0
    found = await latest_facts(store, FACTS, ONLY, timeline=[("main", 3000)], count=64)
    assert len(found) == 64
    assert store.given < 400
    store.given = 0
    found = await latest_facts(store, FACTS, ONLY, timeline=view, count=64)
    assert found[-1].key == "new-1-fact-0", "of a thread that has just begun, and whose turns have low numbers"
    assert len(found) == 64
    assert store.given < 400
