"""Facts and records on branch "a", and what is recalled of them."""

from datetime import UTC, datetime

from noted_facts import FACTS, noted, say

from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall

HERE, DONE = (*FACTS[:-1], "exchanges"), (*FACTS[:-1], "reflections")
NOW = datetime(2026, 7, 10, 12, tzinfo=UTC)  # a Friday
LINE = [("a", 999)]


def record(turn, text, **more):
    """The value of a fact's record."""
    return noted({"text": text}, "a", turn).value | more


async def tell(store, turn, text, **more):
    """Note a fact."""
    return await say(store, {"text": text} | more, "a", turn, LINE)


async def told(store, query, namespace=FACTS, **more):
    """Texts of what is recalled."""
    return [one.value["text"] for one in await recall(store, namespace, Query(query, timeline=LINE, **more))]
