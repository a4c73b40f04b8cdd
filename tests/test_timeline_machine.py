"""Random play against the timeline model: whatever is done to a game, each place knows its own past."""

import json
import random
from collections import Counter

import pytest
from langgraph.store.memory import InMemoryStore
from timeline_baseline import PlainWorld
from timeline_model import Fact
from timeline_moves import World

from questbook import FaissStore, HashEmbeddings
from questbook.graphs.turn import canary


def memory_store():
    embed = HashEmbeddings()
    return InMemoryStore(index={"embed": embed, "dims": embed.dims, "fields": ["text"]})


async def play(store, patch, seed, moves):
    """Make random moves, in each way in which LangGraph lets a run begin; after each, places and prompts are right."""
    world, dice, checked = World(store, seed), random.Random(seed), 0
    world.answered_by_model(patch)
    await world.begin()
    for _ in range(moves):
        await world.step(dice)
        assert not +world.prompts
        for place in world.places[checked:]:
            assert not +await world.faults(place)
            assert len(json.dumps(await world.timeline(place))) < 2_000
        checked = len(world.places)
    for place in world.places:
        assert not +await world.faults(place), "what came later has changed nothing"
    assert await world.broken() == 0
    return len(world.places)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "moves"),
    [(1, 10), (2, 10), (3, 10), *(pytest.param(seed, 25, marks=pytest.mark.slow) for seed in range(4, 34))],
)
async def test_each_place_knows_its_own_past_and_nothing_else(monkeypatch, seed, moves):
    assert await play(memory_store(), monkeypatch.setattr, seed, moves) > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_so_it_does_on_our_own_store(monkeypatch, tmp_path, seed):
    with FaissStore.open(tmp_path / "m.db", synchronous="normal") as store:
        assert await play(store, monkeypatch.setattr, seed, 10) > 1


async def test_the_model_finds_what_a_plain_remember_node_does_wrong(monkeypatch):
    """Who never fails a baseline proves nothing."""
    world = PlainWorld(memory_store())
    world.answered_by_model(monkeypatch.setattr)
    await world.begin()
    root = world.places[0]
    await world.turn(root)
    await world.promise(world.places[-1])
    await world.turn(root)
    await world.replay(world.within("remember")[-1])
    found = await world.faults(world.places[-1])
    assert found["leaked"] == 1
    assert found["doubled"] == 1
    assert await world.broken() == 1


async def test_the_model_finds_what_a_prompt_tells_of_an_abandoned_turn(monkeypatch):
    """As a prompt did that took secrets of the turn under way from whatever stood under its number."""
    monkeypatch.setattr("timeline_model.teach", lambda _, number: [Fact(0, "secret", f"Oda stole {number} rubies.")])
    world = World(memory_store())
    world.answered_by_model(monkeypatch.setattr)
    await world.begin()
    await world.turn(world.places[0])
    await world.turn(world.places[1])
    await world.undo(world.places[1])
    assert not +world.prompts
    monkeypatch.setattr("questbook.graphs.turn.recall.as_of", lambda timeline, _: timeline)
    called_out = canary.counts["leaked"]
    await world.undo(world.places[1])
    assert not +world.prompts, "the canary stands behind the filter"
    assert canary.counts["leaked"] == called_out + 1
    canary.counts["leaked"] = called_out
    monkeypatch.setattr("questbook.graphs.turn.recall.without_leaks", lambda records, *_: list(records))
    await world.undo(world.places[1])
    assert world.prompts == Counter(leaked=1)
