"""What recall returns of one long talk: order, weights, reasons and excerpts, as they were recorded.

Each rule has tests of its own; here any change of one shows in what a prompt would get. If a change is meant, measure
it first (`benchmarks/evidence.py`), then record again: `python tests/test_recall_golden.py`.
"""

import asyncio
import json
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from letters import Letters
from long_talk import essay
from stores import opened

from questbook.memory.facts.writing import note_facts
from questbook.memory.recall.query import Query, WeightedText, Weights
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.timeline import remember

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from planted_campaign import campaign

RECORDED = Path(__file__).parent / "golden" / "recall.json"
STORES = {"faiss": None, "memory": Letters(), "memory without vectors": None}
HERE, FACTS, LORE = ("u", "c", "exchanges"), ("u", "c", "facts"), ("u", "lore")
_, TOLD, ASKED, PRESENT, *_ = campaign(3, 200)
TALK, SETTINGS = json.loads((Path(__file__).parent / "golden" / "talk.json").read_text("utf-8")).values()
STREAM = {"weights": Weights(scoring="generative_agents"), "accesses": ("u", "c", "accesses")}


def at(**time):
    return {"said_at": (PRESENT.now + timedelta(**time)).isoformat()}


async def fill(store):
    """Write the planted campaign, then a talk with long replies and facts; return the timeline."""
    talk = [{"player": said, "reply": essay(1500, reply, 100 * n)} for n, (said, reply) in enumerate(TALK["said"])]
    told = [*TOLD, *(exchange | at(hours=7 * n) for n, exchange in enumerate(talk))]
    [(branch, last)] = await remember(store, HERE, told, turn=1, timeline=[])
    for n, fact in enumerate(TALK["facts"]):
        await note_facts(store, FACTS, [fact], timeline=[(branch, last - 4 * n)], provenance=at(days=-3 * n))
    await remember(store, LORE, TALK["lore"])
    return [(branch, last)]


def queries(timeline):
    """Return queries about all of it, each with the settings that it names."""
    present = PRESENT._replace(now=PRESENT.now + timedelta(days=2))
    for name, text in [*(("plain", question) for question, *_ in ASKED[::6]), *TALK["asked"]]:
        settings = {"limit": 6} | SETTINGS[name] | (STREAM if name == "stream" else {})
        hints = [WeightedText(*hint) for hint in settings.pop("hints", ())]
        yield Query(text, present=present, timeline=timeline, lasting=[LORE], hints=hints, **settings)


async def answers(kind, directory):
    """Return what recall finds for each query: key, what a prompt would show, weight and the parts of its reason."""
    with opened(kind, Path(directory), STORES[kind]) as store:
        timeline = await fill(store)
        found = [await recall(store, [HERE, FACTS], query) for query in queries(timeline)]
    return [
        [[one.key, shown(one.excerpt), round(one.weight, 4), *map(rounded, one.reason)] for one in q] for q in found
    ]


def shown(excerpt):
    return f"{excerpt[:100]} ({len(excerpt)})"


def rounded(part):
    return round(part, 4) if isinstance(part, float) else part


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORES)
async def test_recall_finds_what_was_recorded_in_the_same_order_with_the_same_weights(kind, tmp_path):
    recorded = json.loads(RECORDED.read_text("utf-8"))[kind]
    for query, then, now in zip(queries([("x", 1)]), recorded, await answers(kind, tmp_path), strict=True):
        assert [row[:2] for row in now] == [row[:2] for row in then], query
        for row, before in zip(now, then, strict=True):
            assert row[2:] == pytest.approx(before[2:], abs=2e-3), query


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        everything = {kind: asyncio.run(answers(kind, home)) for kind in STORES}
    text = json.dumps(everything, ensure_ascii=False).replace("[[[", "[\n[[").replace("]], [", "]],\n[")
    RECORDED.write_text(f"{text}\n", "utf-8")
