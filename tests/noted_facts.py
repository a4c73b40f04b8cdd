"""Facts about where Goran lives, noted in a store on a branch and a turn, and what is seen of them."""

from questbook.memory.facts.reading import read_facts
from questbook.memory.facts.validity import keep_valid, turn_position
from questbook.memory.facts.writing import FactDraft, write_facts
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key, visible_filters

FACTS = ("u", "c", "facts")


def noted(fact, branch, turn, ordinal=0, repeats=""):
    [read], _ = read_facts([fact])
    value = read.record() | Stamp(branch, turn).to_json() | {"at": turn_position(turn, ordinal)}
    return FactDraft(record_key(branch, turn, "fact", ordinal), value, repeats)


async def say(store, fact, branch, turn, timeline=None, ordinal=0, repeats=""):
    return await write_facts(store, FACTS, [noted(fact, branch, turn, ordinal, repeats)], timeline=timeline)


async def seen(store, timeline=None):
    segments = [{}] if timeline is None else visible_filters(timeline)
    return [item for only in segments for item in await store.asearch(FACTS, filter=only or None, limit=1000)]


async def holding(store, timeline=None, before=None):
    found = [i for i in await seen(store, timeline) if before is None or i.value["turn"] < before]
    return sorted(item.value["text"] for item in await keep_valid(store, found, timeline=timeline, before=before))


def home(where, **fields):
    told = {"text": f"Goran lives at {where}.", "subject": "Goran", "attribute": "home", "value": where}
    return told | {"kind": "trait"} | fields
