"""Words that a turn has in its memory while they are forgotten go when it ends, on savers that know nothing of it."""

import asyncio
import threading

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from scripted import say
from test_forgetting_pages import Shop, in_files, in_postgres

from questbook import campaign_namespace, forget, remember
from questbook.graphs.forgetting import erasure

EVERYWHERE = pytest.mark.parametrize("opened", [in_files, pytest.param(in_postgres, marks=pytest.mark.slow)])


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
