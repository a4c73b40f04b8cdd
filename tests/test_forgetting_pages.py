"""Words on pages that threads share, and words that a turn has in its memory meanwhile, are forgotten everywhere."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest
from desk import Desk
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from scripted import call, say
from stored_bytes import files_saying
from test_agent_scopes import ProfileNotebook

from questbook import FaissStore, campaign_namespace, forget, remember
from questbook.graphs.errors import ForgettingError, ModelError
from questbook.graphs.forgetting import erasure
from questbook.graphs.turn import shared_pages


@asynccontextmanager
async def in_files(directory):
    async with (
        AsyncSqliteSaver.from_conn_string(str(directory / "checkpoints.db")) as saver,
        FaissStore.open(directory / "memory.db", index=None) as store,
    ):
        yield saver, store, lambda: files_saying(directory, "ebracake")


@asynccontextmanager
async def in_postgres(_):
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres import AsyncPostgresStore
    from postgres import new_database
    from test_postgres import in_tables

    uri = new_database()
    async with AsyncPostgresSaver.from_conn_string(uri) as saver, AsyncPostgresStore.from_conn_string(uri) as store:
        await saver.setup()
        await store.setup()
        yield saver, store, lambda: in_tables(uri, "ebracake")


class Shop:
    """Threads of one customer whose agent keeps a page that they share."""

    def __init__(self, saver, store):
        self.desk = Desk(ProfileNotebook, saver=saver, store=store)

    async def say(self, thread, words, *, fails=False, **noted):
        if fails:
            self.desk.model.queue("reply", ValueError("the line went dead"))
        if noted:
            self.desk.model.queue("update", say("", call("ProfileNotebook", **noted)))
        config = {"configurable": {"thread_id": thread}}
        values = await self.desk.app.ainvoke({"messages": [("user", words)]}, config, context={"user": "ann"})
        assert values["notices"] == []
        return values["profile"]


EVERYWHERE = pytest.mark.parametrize("opened", [in_files, pytest.param(in_postgres, marks=pytest.mark.slow)])


@EVERYWHERE
@pytest.mark.slow
async def test_they_leave_the_page_of_every_thread(tmp_path, opened, monkeypatch):
    monkeypatch.setattr(shared_pages, "OLD", 0.0)
    monkeypatch.setattr(shared_pages, "MOST", 1)
    async with opened(tmp_path) as (saver, store, saying):
        shop = Shop(saver, store)
        await shop.say("a", "Hello.", home="12 Zebracake Street", likes={"zebracake": "with cream", "tea": "black"})
        await shop.say("b", "Hello.", likes={"scones": "with zebracake"}, visits={"$add": 1})
        await shop.say("c", "Hello.", likes={"smell of zebracake": "in the morning"})
        before = await shop.say("b", "Hello again.")
        assert before["home"] == "12 Zebracake Street"
        with pytest.raises(ModelError):
            await shop.say("d", "Hello.", fails=True)
        assert saying()
        await forget(store, "ann", words="zebracake", checkpointer=saver)
        assert saying() == []
        after = {
            "version": 1,
            "home": "12 [forgotten] Street",
            "likes": {"tea": "black", "scones": "with [forgotten]", "smell of [forgotten]": "in the morning"},
            "visits": 1,
        }
        for thread in ("a", "b", "c", "d", "new"):
            assert await shop.say(thread, "Good day.") == after
        after["likes"]["jam"] = "red"
        assert await shop.say("a", "Good day.", likes={"jam": "red"}) == after
        assert await shop.say("c", "Good day.") == after
        assert saying() == []


async def test_a_name_of_a_field_is_refused_and_nothing_is_changed(tmp_path):
    async with in_files(tmp_path) as (saver, store, _):
        shop = Shop(saver, store)
        page = await shop.say("a", "Hello.", likes={"visits": "of friends"}, home="Oslo")
        with pytest.raises(ForgettingError, match="part of 'visits', which the application is built on"):
            await forget(store, "ann", words="visits", checkpointer=saver)
        assert await shop.say("b", "Hello.") == page


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch):
    monkeypatch.setattr(erasure, "_PAUSE", 0.02)


class Thinking:
    """A model's answer that takes until it is let go."""

    def __init__(self):
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, messages):
        self.begun.set()
        self.go_on.wait(20)
        return say("I love zebracake, too.")


@EVERYWHERE
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["words", "everything"])
async def test_a_turn_that_is_played_meanwhile_is_waited_for(tmp_path, opened, whole):
    async with opened(tmp_path) as (saver, store, saying):
        shop, thinking = Shop(saver, store), Thinking()
        await shop.say("a", "I love zebracake.")
        shop.desk.model.queue("reply", thinking)
        turn = asyncio.create_task(shop.say("a", "How do I bake it?"))
        await asyncio.to_thread(thinking.begun.wait, 20)
        removal = asyncio.create_task(forget(store, "ann", words=None if whole else "zebracake", checkpointer=saver))
        done, _ = await asyncio.wait([removal], timeout=0.3)
        assert not done
        thinking.go_on.set()
        await turn
        assert not (await removal).playing
        assert saying() == []
        if whole:
            assert await store.asearch(("ann",)) == []
        await shop.say("a", "Good day.")
        assert saying() == []


@EVERYWHERE
async def test_a_turn_that_failed_or_asks_is_not_waited_for_and_plays_on(tmp_path, opened):
    def answer(state: MessagesState) -> MessagesState:
        if "fail" in state["messages"][-1].text:
            raise ValueError("the line went dead")
        return {"messages": [AIMessage(f"You said {interrupt('Really?')}.")]}

    builder = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
    async with opened(tmp_path) as (saver, store, saying):
        app = builder.compile(checkpointer=saver, store=store)
        await remember(store, campaign_namespace("ann", "trip", "exchanges"), "I love zebracake.")
        asks, fails = ({"configurable": {"thread_id": thread}} for thread in ("asks", "fails"))
        await app.ainvoke({"messages": [("user", "I love zebracake.")]}, asks)
        with pytest.raises(ValueError, match="dead"):
            await app.ainvoke({"messages": [("user", "fail with zebracake")]}, fails)
        async with asyncio.timeout(60):
            removal = await forget(
                store, "ann", "trip", words="zebracake", checkpointer=saver, threads=["asks", "fails"]
            )
        assert removal.playing == []
        assert saying() == []
        values = await app.ainvoke(Command(resume="yes"), asks)
        assert [message.text for message in values["messages"]] == ["I love [forgotten].", "You said yes."]


@EVERYWHERE
async def test_a_turn_that_forgets_by_itself_is_told_to_forget_again(tmp_path, opened):
    async with opened(tmp_path) as (saver, store, saying):

        async def answer(state: MessagesState) -> MessagesState:
            removal = await forget(store, "ann", "trip", words="zebracake", checkpointer=saver, threads=["own"])
            return {"messages": [AIMessage(f"Still played: {removal.playing}")]}

        builder = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
        app = builder.compile(checkpointer=saver, store=store)
        config = {"configurable": {"thread_id": "own"}}
        async with asyncio.timeout(60):
            values = await app.ainvoke({"messages": [("user", "Forget zebracake.")]}, config)
        assert values["messages"][-1].text == "Still played: ['own']"
        await forget(store, "ann", "trip", words="zebracake", checkpointer=saver, threads=["own"])
        assert saying() == []
