"""One of Questbook's graphs inside an app's graph: it goes back with the app, whatever the app forks."""

import random

import pytest
from conftest import MIRA
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from scripted import call, say

from questbook import TeamState, as_node
from questbook.graphs.companion.graph import build_graph as build_companion
from questbook.graphs.dungeon_master.graph import build_graph as build_dungeon_master
from questbook.graphs.reflect.graph import build_graph as build_reflect
from questbook.notebooks.errors import DeclarationError

MACHINES = {"dungeon_master": (build_dungeon_master, "quest"), "companion": (build_companion, "companion")}


class App:
    """An app whose one node is a machine; `path` is what its checkpoint descends from."""

    def __init__(self, model, machine, saver=None, store=None):
        self.model, self.machine = model, machine
        build, self.job = MACHINES[machine]
        builder = StateGraph(TeamState).add_node("inside", as_node(build().compile()))
        builder.add_edge(START, "inside").add_edge("inside", END)
        self.app = builder.compile(checkpointer=saver or InMemorySaver(), store=store or InMemoryStore())
        self.config = {"configurable": {"thread_id": "t"}}
        self.path, self.ends = [], []

    async def say(self, words, config=None):
        context = {"model": "scripted", "user": "ann", "buffer_tokens": 200}
        update = {"messages": [HumanMessage(words)]}
        return await self.app.ainvoke(update, config or self.config, context=context, durability="sync")

    async def begin(self):
        if self.machine == "dungeon_master":
            self.model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        await self.say("I'm Mira.")
        self.ends.append(self.app.get_state(self.config).config)

    async def turn(self, word, config=None):
        self.model.queue("update", say("", call("StateNotebook", scene=f"Somebody shouts {word}.")))
        await self.say(
            f"I shout the word {word}. " + "The road goes on and on, over hills and through woods. " * 6, config
        )
        self.path.append(word)
        self.ends.append(self.app.get_state(self.config).config)

    def rewind(self, turns):
        del self.path[len(self.path) - turns :], self.ends[len(self.ends) - turns :]
        return self.ends[-1]

    @property
    def prompt(self):
        return "\n".join(message.text for message in self.model.asked(self.job)[-1])

    @property
    def seat(self):
        return self.app.get_state(self.config).values["seats"]["inside"]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", range(3))
async def test_a_machine_inside_knows_what_the_parents_checkpoint_descends_from(model, machine, seed):
    chance, app = random.Random(seed), App(model, machine)
    await app.begin()
    used = []
    for number in range(9):
        back = chance.randint(1, len(app.path)) if app.path and chance.random() < 0.45 else 0
        config = app.rewind(back) if back else None
        used.append(f"zebra{number}")
        await app.turn(used[-1], config)
        for word in used:
            assert (word in app.prompt) <= (word in app.path), (number, word)
        assert app.path[-1] in app.prompt
        assert app.seat["turn"] == len(app.path) + 1
        if machine == "dungeon_master":
            assert app.seat["quest"]["scene"] == f"Somebody shouts {app.path[-1]}."
    await app.say("Which word did I shout first?")
    if seed == 0:  # whose path is long
        memories = app.prompt.split("<memories>\n")[1]
        assert any(word in memories for word in app.path), "what left the buffer is recalled"


async def test_what_the_embedding_example_leaked_stays_in_its_fork(model):
    app = App(model, "dungeon_master")
    await app.begin()
    before = app.ends[-1]
    await app.turn("zebracake")
    await app.say("What did I shout?", before)
    assert "zebracake" not in app.prompt


async def test_two_machines_in_one_parent_each_have_their_own_conversation(model):
    builder = StateGraph(TeamState)
    builder.add_node("game", as_node(build_dungeon_master().compile()))
    builder.add_node("helper", as_node(build_companion().compile()))
    builder.add_edge(START, "game").add_edge("game", "helper").add_edge("helper", END)
    app = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config = {"configurable": {"thread_id": "t", "user": "ann"}}
    hello = {"messages": [HumanMessage("Hello.")]}
    values = await app.ainvoke(hello, config, context={"model": "scripted"})
    assert [message.text for message in values["messages"]] == ["Hello.", "And what else?", "I see."]
    assert {name: seat["machine"] for name, seat in values["seats"].items()} == {
        "game": "dungeon_master",
        "helper": "companion",
    }
    assert app.invoke(hello, config, context={"model": "scripted"})["seats"]["helper"]["turn"] == 2


async def test_an_app_that_is_opened_again_goes_on(model):
    saver, store = InMemorySaver(), InMemoryStore()
    app = App(model, "dungeon_master", saver, store)
    await app.begin()
    await app.turn("zebra")
    again = App(model, "dungeon_master", saver, store)
    await again.say("I look around.")
    assert again.seat["turn"] == 3
    assert "zebra" in again.prompt


def test_what_cannot_be_a_node_is_refused_with_what_can():
    other = StateGraph(MessagesState).add_node("a", lambda _: {}).add_edge(START, "a").compile()
    for wrong in (other, build_dungeon_master(), build_reflect().compile(), "dungeon_master"):
        with pytest.raises(DeclarationError, match="expected a compiled graph of Questbook's") as refused:
            as_node(wrong)
        assert "build_agent" in str(refused.value)
    for saver in (True, InMemorySaver()):
        with pytest.raises(DeclarationError, match="'dungeon_master' has a checkpointer of its own"):
            as_node(build_dungeon_master().compile(checkpointer=saver))
