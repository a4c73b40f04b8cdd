"""The nodes after the reply by themselves: what is noted of a turn, and what a background run had to say."""

from types import SimpleNamespace

import pytest
from fact_play import facts
from faulty_stores import Broken
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.nodes.update_state import update_state
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.reflect import trigger as reflecting

BURNT = "The mill burnt down."


def spoken_state(**channels):
    messages = [HumanMessage("I ask of the mill.", id="h1"), AIMessage(f"You hear: {BURNT}", id="a1")]
    return DungeonState(**{"messages": messages, "turn": 1, "timeline": [("a", 1)]} | channels)


def runtime(store):
    return Runtime(context=Context.of({"model": "scripted"}), store=store)


# Notes.


@pytest.mark.parametrize("error", [None, OSError("the disk is gone")])
async def test_a_noted_fact_that_repeats_a_memory_names_it_also_when_the_store_fails(model, error):
    store = Broken()
    store.error = error
    model.queue("update", facts({"text": BURNT, "kind": "event"}))
    state = spoken_state(recalled=[{"key": "k", "kind": "event", "turn": 0, "text": BURNT}])
    update = await update_state(state, runtime(store))
    assert [entry["echoes"] for entry in update["facts"]] == ["k"]
    assert ["the disk is gone" in notice["text"] for notice in update.get("notices", [])] == [True] * bool(error)


async def test_what_cannot_be_recalled_is_noted_without_memories(model):
    store = Broken()
    store.error = OSError("the disk is gone")
    model.queue("update", facts({"text": BURNT, "kind": "event"}))
    state = spoken_state(recalled=None, turn=2, remembered_through=1, messages=[
        HumanMessage("I ask.", id="h0"), AIMessage("Hm.", id="a0"), *spoken_state().messages])  # fmt: skip
    update = await update_state(state, runtime(store))
    assert [entry["echoes"] for entry in update["facts"]] == [""]
    assert update["noted_through"] == 2
    [notice] = update["notices"]
    assert "Memory could not be searched" in notice["text"]
    assert notice["turn"] == 2


# The reflection in the background.


class Server:
    """Stands for LangGraph Server with a thread of past runs; keeps what it is asked to run."""

    def __init__(self, **thread):
        self.threads = self.runs = self
        self.thread, self.made = thread, []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def create(self, *args, **fields):
        self.made += [fields] if args else []

    async def get(self, thread):
        return self.thread

    async def list(self, thread, *, status=None, limit):
        assert limit == 1, "no more is asked for than is read"
        return [] if status else [{"run_id": "last"}]


def on_a_server(monkeypatch, server, store=None, **settings):
    monkeypatch.setattr(reflecting, "get_client", lambda: server)
    context = Context.of({"model": "scripted", "reflection": "background", **settings})
    return SimpleNamespace(context=context, store=store, server_info=object(), execution_info=None)


async def test_no_background_run_is_started_when_the_store_says_that_nothing_is_due(monkeypatch):
    server = Server(status="idle", values={})
    update = await reflecting.reflect(
        spoken_state(unreflected=150), on_a_server(monkeypatch, server, store=InMemoryStore())
    )
    assert update == {"unreflected": 0, "reflection_told": "last", "notices": []}
    assert server.made == []


async def test_a_background_run_reads_only_turns_whose_facts_are_all_written_and_waits_a_little(monkeypatch):
    server = Server(status="idle", values={})
    waiting = [{"turns": [first, 9], "fact": {"text": "x"}} for first in (6, 4)]
    await reflecting.reflect(spoken_state(turn=9, facts=waiting), on_a_server(monkeypatch, server))
    [fields] = server.made
    assert (fields["input"]["turn"], fields["input"]["through"]) == (9, 3)
    assert fields["after_seconds"] == 5
    assert fields["multitask_strategy"] == "enqueue"
    assert "reflection_importance" in fields["context"]
    assert "reflection" not in fields["context"], "the setting of the game alone"
