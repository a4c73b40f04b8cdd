"""A turn that is remembered already and goes on, as after an edit by hand: what it says now is what is remembered."""

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from questbook import build_agent
from questbook.graphs.companion.graph import build_graph as companion
from questbook.graphs.dungeon_master.graph import build_graph as dungeon_master
from questbook.graphs.errors import InputError
from questbook.graphs.turn.turn import turn_records
from questbook.memory.timeline.timeline import read_timeline

CONFIG = {"configurable": {"thread_id": "1"}}
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
GRAPHS = {"dungeon_master": dungeon_master, "companion": companion, "agent": lambda: build_agent([], name="desk")}


class Thread:
    """A thread of one of the machines on an offline model, played for two turns."""

    @classmethod
    async def begun(cls, machine):
        thread = cls()
        thread.store, graph = InMemoryStore(), GRAPHS[machine]()
        thread.context = graph.context_schema.of({"user": "ann"} | ({} if machine == "agent" else {"campaign": "isle"}))
        thread.app = graph.compile(checkpointer=InMemorySaver(), store=thread.store)
        for words in (MIRA, "I take the green lantern."):
            await thread.say(words)
        return thread

    async def say(self, words=None):
        given = None if words is None else {"messages": [HumanMessage(words)]}
        return await self.app.ainvoke(given, CONFIG, context=self.context)

    async def edit(self, update, node=None):
        await self.app.aupdate_state(CONFIG, update, as_node=node)

    async def values(self):
        return (await self.app.aget_state(CONFIG)).values

    async def remembered(self):
        """The words of each turn as the thread's timeline knows them."""
        timeline = read_timeline(await self.values())
        records = await turn_records(self.store, self.context, timeline, range(1, timeline[-1][1] + 1))
        return [record["player"] for record in records.values()]


@pytest.fixture(params=GRAPHS)
async def thread(request):
    return await Thread.begun(request.param)


async def test_what_is_said_in_the_place_of_a_reply_that_was_removed_is_remembered(thread):
    last = (await thread.values())["messages"][-1]
    await thread.edit({"messages": [RemoveMessage(last.id)]})
    await thread.say("No, I take the red one.")
    assert await thread.remembered() == [MIRA, "I take the green lantern.\nNo, I take the red one."]
    await thread.say("I wait.")
    assert (await thread.remembered())[1:] == ["I take the green lantern.\nNo, I take the red one.", "I wait."]
    assert (await thread.values())["remembered_through"] == 3


async def test_other_words_in_a_turn_that_is_run_again_by_hand_are_remembered(thread):
    values = await thread.values()
    said, reply = [message for message in values["messages"] if message.name != "aside"][-2:]
    node = "recall" if "recall" in thread.app.nodes else "__start__"
    other = HumanMessage("I take the red lantern.", id=said.id)
    await thread.edit({"messages": [RemoveMessage(reply.id), other]}, node)
    await thread.say()
    assert await thread.remembered() == [MIRA, "I take the red lantern."]
    after = await thread.values()
    assert after["timeline"] != values["timeline"], "the first words stay on their own branch"
    assert after["turn"] == after["remembered_through"] == 2


async def test_notes_and_facts_of_a_turn_that_goes_on_are_taken_again(thread):
    last = (await thread.values())["messages"][-1]
    await thread.edit({"messages": [RemoveMessage(last.id)]})
    context = thread.context.model_copy(update={"user": "ann"})
    given, done = {"messages": [HumanMessage("I hide the red lantern.")]}, {}
    async for part in thread.app.astream(given, CONFIG, context=context, stream_mode="updates"):
        done |= {f"{node}.{name}": value for node, update in part.items() for name, value in (update or {}).items()}
    through = [value for name, value in done.items() if name.endswith("_through")]
    assert through[0] == 1, "the turn is not done any more"
    assert through[-1] == 2


@pytest.mark.parametrize("node", ["build_character", "recall"])
async def test_a_page_of_a_new_thread_is_edited_in_the_upkeep_alone_and_the_refusal_says_so(node):
    app = dungeon_master().compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    for as_node in (node, None):
        with pytest.raises(InputError, match=r'edit a page.* with as_node="remember"'):
            await app.aupdate_state(CONFIG, {"quest": {"gold": 7}}, as_node=as_node)
    await app.aupdate_state(CONFIG, {"quest": {"gold": 7}}, as_node="remember")
    assert (await app.aget_state(CONFIG)).values["quest"]["gold"] == 7
