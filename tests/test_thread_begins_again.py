"""A thread id that begins again with empty checkpoints hides nothing, and a thread that has gone back leaks nothing."""

import asyncio
import sqlite3

import pytest
from answering import THREAD, Talk
from desk import Desk, TicketNotebook, of_scope
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from scripted import call, say

from questbook import UserTimeline
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import list_visible, remember

HALL = {"configurable": {"thread_id": "hall"}}
AGAIN = "A thread with the id '1' was here before, and its checkpoints are gone."


@pytest.fixture(params=["InMemorySaver", "SqliteSaver", "AsyncSqliteSaver"])
async def saver(request, tmp_path):
    if request.param == "InMemorySaver":
        yield InMemorySaver()
    elif request.param == "SqliteSaver":
        yield SqliteSaver(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False))
    else:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            yield saver


class FileHome(Talk):
    """A talk of Ann's whose questions tell what memory knows; sync callers are served too."""

    async def say(self, words, config=None, *answers):
        self.model.answers += answers
        given = {"messages": [("user", words)]} if words else None
        if isinstance(self.agent.checkpointer, SqliteSaver):
            return await asyncio.to_thread(self.agent.invoke, given, config or self.thread)
        return await self.agent.ainvoke(given, config or self.thread)

    async def knows(self, words="Which colour has my lamp?", config=None):
        await self.say(words, config)
        return self.model.remembered

    async def first_checkpoint(self):
        return [state async for state in self.states()][-1].config

    async def states(self):
        if isinstance(self.agent.checkpointer, SqliteSaver):
            for state in await asyncio.to_thread(lambda: list(self.agent.get_state_history(self.thread))):
                yield state
            return
        async for state in self.agent.aget_state_history(self.thread):
            yield state

    async def notices(self):
        state = await anext(self.states())
        return [entry["text"] for entry in state.values.get("notices", [])]


async def delete(saver, thread="1"):
    if isinstance(saver, AsyncSqliteSaver):
        await saver.adelete_thread(thread)
    else:
        await asyncio.to_thread(saver.delete_thread, thread)


@pytest.mark.slow
async def test_a_deleted_thread_that_begins_again_hides_nothing_and_says_so_once(saver):
    home = FileHome(saver=saver)
    await home.say("My lamp is red.")
    await home.say("My lamp is on the shelf.")
    for life in ("first", "second"):
        await delete(saver)
        await home.say(f"This is after the {life} life.")
        assert "My lamp is red." in await home.knows()
        assert "on the shelf" in await home.knows()
        assert "on the shelf" in await home.knows(config=HALL)
        assert "after the first life" in await home.knows("What came after the first life?", HALL)
        [told] = await home.notices()
        assert told.startswith(AGAIN)
        assert "docs/forgetting.md" in told


@pytest.mark.slow
async def test_another_process_with_checkpoints_in_ram_and_the_store_in_a_file_goes_on_knowing(make_store):
    store = make_store()
    for number in range(3):
        home = FileHome(store, saver=InMemorySaver())
        known = await home.knows()
        assert [word for word in range(3) if f"lamp number {word}" in known] == [*range(number)]
        await home.say(f"I have a lamp number {number}.")


async def test_two_agents_with_checkpointers_of_their_own_on_one_thread_id_hide_nothing_of_each_other():
    store = InMemoryStore()
    one, other = (FileHome(store, saver=InMemorySaver()) for _ in range(2))
    for number in range(3):
        for home, name in ((one, "hall"), (other, "kitchen")):
            await home.say(f"In the {name} there is lamp {number}.")
    third = {"configurable": {"thread_id": "3"}}
    for home, config in ((one, THREAD), (other, THREAD), (one, third)):
        known = await home.knows("Which lamp is in the hall, and which in the kitchen?", config)
        words = [m.text for m in home.model.prompts[-1]]
        for name in ("hall", "kitchen"):
            for number in range(3):
                said = f"In the {name} there is lamp {number}."
                assert said in known or said in words
    before = await other.first_checkpoint()
    await other.say("Now I begin in the cellar.", before)  # takes back what this one has said, and nothing of the other
    known = await one.knows("Which lamp is in the hall, in the kitchen, in the cellar?", third)
    assert "cellar" in known
    assert "kitchen there is" not in known
    assert all(f"In the hall there is lamp {number}." in known for number in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("lives", [1, pytest.param(2, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("way", ["input", "replay", "edit"])
async def test_a_thread_that_has_gone_back_to_before_its_first_turn_leaks_nothing(saver, lives, way):
    home = FileHome(saver=saver)
    for life in range(1, lives):
        await home.say(f"My lamp of life {life} is red.")
        await delete(saver)
    await home.say("Hello.")
    await home.say("I have painted my lamp blue.")
    await home.say("My lamp is in the attic.")
    before = await home.first_checkpoint()
    if way == "edit":
        if isinstance(saver, SqliteSaver):
            before = await asyncio.to_thread(home.agent.update_state, before, {"messages": []})
        else:
            before = await home.agent.aupdate_state(before, {"messages": []})
    await home.say(None if way == "replay" else "Good morning.", before)
    for config in (None, HALL):
        known = await home.knows(config=config) + await home.knows("Where is my painted lamp?", config)
        assert "blue" not in known
        assert "attic" not in known
        assert all(f"life {life} is red" in known for life in range(1, lives))


async def test_a_thread_that_went_back_and_is_then_deleted_keeps_its_last_line_alone():
    home = FileHome(saver=InMemorySaver())
    await home.say("Hello.")
    before = home.state.config
    await home.say("My lamp is blue.")
    await home.say("My lamp is green.", before)
    await delete(home.agent.checkpointer)
    await home.say("Hello again.")
    for config in (None, HALL):
        known = await home.knows(config=config)
        assert "green" in known
        assert "blue" not in known


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_it_is_so_with_every_durability(durability):
    home = FileHome(saver=InMemorySaver())
    await home.agent.ainvoke({"messages": [("user", "My lamp is red.")]}, THREAD, durability=durability)
    await delete(home.agent.checkpointer)
    await home.agent.ainvoke({"messages": [("user", "Hello.")]}, THREAD, durability=durability)
    assert "red" in await home.knows()
    assert "red" in await home.knows(config=HALL)


async def test_an_agents_page_of_scope_user_keeps_what_a_deleted_thread_noted():
    [page] = of_scope("user", TicketNotebook)
    desk = Desk(page)
    await desk.say("It leaks.", reply=say("Oh."), update=say("", call("TicketNotebook", problem="leaks")))
    desk.saver.delete_thread(desk.config["configurable"]["thread_id"])
    await desk.say("Hello.", reply=say("Hi."))
    assert desk.values["ticket"]["problem"] == "leaks"
    assert "was here before" in desk.values["notices"][0]["text"]
    await desk.say("It is green.", reply=say("I see."), update=say("", call("TicketNotebook", status="green")))
    earliest = [*desk.app.get_state_history(desk.config)][-1]
    await desk.app.ainvoke({"messages": [("user", "Good morning.")]}, {**desk.config, **earliest.config})
    assert (desk.values["ticket"]["problem"], desk.values["ticket"]["status"]) == ("leaks", "open")


async def test_a_deleted_thread_of_a_campaign_goes_on_where_the_campaign_stands(mira):
    await mira.play("I look around.")
    mira.saver.delete_thread(mira.config["configurable"]["thread_id"])
    await mira.play("I look around again.")
    assert mira.values["turn"] == 3
    assert mira.values["quest"]["location"] == "The Bent Nail"


async def test_a_deleted_threads_user_timeline_begins_again_with_a_life_of_its_own(make_store):
    store, place, heads = make_store(["text"]), ("ann", "chat", "exchanges"), ("ann", "chat", "heads")
    claims = ("ann", "chat", "claims")
    for life in ("", "b", "c"):
        begun = UserTimeline(thread="a/b.c", heads=heads, life=life)
        for number in range(2):
            said = f"Life {life} says {number}."
            begun = begun.with_segments(await remember(store, place, said, timeline=begun, claims=claims))
    fork = begun.with_segments([(begun[0][0], 1)])
    await remember(store, place, "Life c says otherwise.", timeline=fork, claims=claims)
    for view in (begun, UserTimeline(thread="2", heads=heads)):
        seen = [item.value["text"] for item in await list_visible(store, place, view)]
        others = ["Life  says 0.", "Life  says 1.", "Life b says 0.", "Life b says 1.", "Life c says 0."]
        last = "Life c says 1." if view is begun else "Life c says otherwise."
        assert sorted(seen) == sorted([*others, last])
    assert all(Stamp.from_json(item.value).thread == "a/b.c" for item in store.search(place, limit=99))
