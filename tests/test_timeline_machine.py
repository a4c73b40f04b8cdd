"""A hypothesis state machine against the timeline model: whatever is done to a game, each place knows its own past."""

import asyncio
import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from langgraph.store.memory import InMemoryStore
from timeline_baseline import PlainWorld
from timeline_model import OPENING
from timeline_moves import CRASHES, World
from timeline_records import Fact

from questbook import FaissStore, HashEmbeddings

PICK = st.integers(min_value=0, max_value=10_000)


def memory_store():
    embed = HashEmbeddings()
    return InMemoryStore(index={"embed": embed, "dims": embed.dims, "fields": ["text"]})


class Timelines(RuleBasedStateMachine):
    """Every rule is a way in which LangGraph lets a run begin."""

    patch = staticmethod(lambda *_: None)
    make_store = staticmethod(memory_store)

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = self.make_store()
        self.world = World(self.store)
        self.world.answered_by_model(self.patch)
        self.runner.run(self.world.begin())
        self.checked = 0

    def go(self, move):
        self.runner.run(move)

    def place(self, pick):
        """A place; the newest ones come first, so that small numbers play on."""
        return self.world.places[-1 - pick % len(self.world.places)]

    @rule(at=PICK)
    def turn(self, at):
        self.go(self.world.turn(self.place(at)))

    @rule(at=PICK)
    def undo(self, at):
        self.go(self.world.undo(self.place(at)))

    @rule(at=PICK, node=st.sampled_from([*OPENING, "update_state", "remember"]))
    def replay(self, at, node):
        inside = self.world.within(node)
        self.go(self.world.replay(inside[at % len(inside)]))

    @rule(at=PICK, node=st.sampled_from([*OPENING, "update_state", "remember"]))
    def edit(self, at, node):
        inside = self.world.within(node)
        self.go(self.world.edit(inside[at % len(inside)]))

    @rule(at=PICK)
    def edit_page(self, at):
        self.go(self.world.edit_page(self.place(at)))

    @rule(at=PICK)
    def edit_page_within(self, at):
        inside = self.world.within("remember")
        self.go(self.world.edit_page_within(inside[at % len(inside)]))

    @rule(at=PICK, where=st.sampled_from(CRASHES), cancel=st.booleans(), resume=st.booleans())
    def crash(self, at, where, cancel, resume):
        self.go(self.world.crash(self.place(at), where, cancel=cancel, resume=resume))

    @rule(at=PICK, what=st.sampled_from(["exchanges", "facts"]))
    def store_fails(self, at, what):
        self.go(self.world.store_fails(self.place(at), what))

    @rule()
    def new_thread(self):
        self.go(self.world.new_thread())

    @precondition(lambda self: self.world.within("build_character"))
    @rule(at=PICK)
    def first_message_again(self, at):
        first = self.world.within("build_character")
        self.go(self.world.first_message_again(first[at % len(first)]))

    @rule(at=PICK)
    def copy_thread(self, at):
        self.go(self.world.copy_thread(self.place(at)))

    @rule(at=PICK)
    def promise(self, at):
        self.go(self.world.promise(self.place(at)))

    @invariant()
    def new_places_and_prompts_know_their_own_past(self):
        assert not +self.world.prompts
        for place in self.world.places[self.checked :]:
            assert not +self.runner.run(self.world.faults(place))
            timeline = self.runner.run(self.world.timeline(place))
            assert len(json.dumps(timeline)) < 2_000
        self.checked = len(self.world.places)

    def teardown(self):
        try:
            for place in self.world.places:
                assert not +self.runner.run(self.world.faults(place))
            assert self.runner.run(self.world.broken()) == 0
        finally:
            self.runner.close()
            if isinstance(self.store, FaissStore):
                self.store.close()


def machine(monkeypatch, store=memory_store):
    return type(
        "Timelines", (Timelines,), {"patch": staticmethod(monkeypatch.setattr), "make_store": staticmethod(store)}
    )


def profile(examples, steps):
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )


def test_each_place_knows_its_own_past_and_nothing_else(monkeypatch):
    run_state_machine_as_test(machine(monkeypatch), settings=profile(3, 10))


@pytest.mark.slow
def test_so_it_does_on_our_own_store(monkeypatch, tmp_path_factory):
    def store():
        return FaissStore.open(tmp_path_factory.mktemp("store") / "m.db", synchronous="normal")

    run_state_machine_as_test(machine(monkeypatch, store), settings=profile(4, 10))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_so_it_does_in_long_games(monkeypatch):
    run_state_machine_as_test(machine(monkeypatch), settings=profile(150, 25))


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
    await world.undo(world.places[1])
    assert world.prompts == Counter(leaked=1)
