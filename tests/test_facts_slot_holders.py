"""What holds a slot now is found without reading all that ever held it."""

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from questbook.memory.facts import ledger
from questbook.memory.facts.validity import find_holders
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key

FACTS, SLOT = ("u", "c", "facts"), "mira|location"


class Counting(InMemoryStore):
    """A store that counts the items that its searches return."""

    read = 0

    async def abatch(self, ops):
        results = await super().abatch(ops)
        self.read += sum(len(found) for found in results if isinstance(found, list))
        return results


async def moved(store, turns):
    writes: list[PutOp] = []
    for turn in turns:
        value = {"slot": SLOT} | Stamp("a", turn).to_json() | {"at": ledger.turn_position(turn, 0)}
        writes.append(ledger.slot_mark_op(FACTS, SLOT, record_key("a", turn, "fact"), value))
    await store.abatch(writes)


async def holder(store, **options):
    held = await find_holders(store, FACTS, [SLOT, "nobody|home"], **options)
    return held[SLOT].turn if SLOT in held else None


async def test_of_a_slot_that_changes_every_turn_only_the_newest_marks_are_read():
    store = Counting()
    await moved(store, range(1, 401))
    assert await holder(store, timeline=[("a", 400)]) == 400
    assert store.read <= 2 * ledger.FIRST_MARKS
    assert await holder(store, timeline=[("a", 400)], position=ledger.turn_position(300, 0)) == 300


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
