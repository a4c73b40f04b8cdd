"""Facts as a turn on branch "a" notes them, and what is recalled of them."""

from datetime import UTC, datetime

from memory import marks
from memory.facts import Fact
from memory.noting import Note, note
from memory.recall import recall
from memory.timeline import record_key, stamp
from memory.validity import valid

FACTS, HERE, DONE = ("ann", "isle", "facts"), ("ann", "isle", "exchanges"), ("ann", "isle", "reflections")
NOW = datetime(2026, 7, 10, 12, tzinfo=UTC)  # a Friday
LINE = [("a", 999)]


def record(turn, text, **more):
    fact = Fact(text=text, **{name: value for name, value in more.items() if name in Fact.model_fields})
    rest = {name: value for name, value in more.items() if name not in Fact.model_fields}
    return fact.record() | stamp("a", turn) | {"at": marks.at(turn, 0), "turns": [turn, turn], "cites": []} | rest


async def tell(store, turn, text, **more):
    return await note(store, FACTS, [Note(record_key("a", turn, "fact"), record(turn, text, **more))], timeline=LINE)


async def told(store, query, namespace=FACTS, **more):
    return [one.value["text"] for one in await recall(store, namespace, query, timeline=LINE, **more)]


async def holding(store):
    items = await store.asearch(FACTS, limit=999)
    return {item.value["text"] for item in await valid(store, items, timeline=LINE)}


def home(where):
    return {"text": f"Goran lives at {where}.", "subject": "Goran", "attribute": "home", "value": where}
