"""`recall_sync` and its like inside and outside event loops, and `SyncHistory` beside `History`."""

import asyncio
import inspect
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore
from scripted import say

from questbook import (
    FaissStore,
    History,
    Query,
    SyncHistory,
    TimelineMemoryMiddleware,
    recall,
    recall_sync,
    remember_sync,
)
from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.graph import build_graph
from questbook.graphs.history.history import sync_graph
from questbook.memory.store.any_store import SyncStore, with_async_methods
from questbook.memory.sync import run_sync
from questbook.memory.timeline.timeline import claim_sync

PLACE, CLAIMS = ("ann", "exchanges"), ("ann", "claims")
CONTEXT = CompanionContext(model="scripted", user="ann")
THREAD = {"configurable": {"thread_id": "1"}}


class OfALoop(AsyncBatchedBaseStore):
    """LangGraph's kind of asynchronous store: its sync methods wait for the event loop in which it was made."""

    def __init__(self):
        super().__init__()
        self.store = InMemoryStore()

    async def abatch(self, ops):
        return self.store.batch(ops)


def test_every_method_of_history_has_a_sync_one():
    public = [name for name in dir(History) if not name.startswith("_")]
    assert [name for name in dir(SyncHistory) if not name.startswith("_")] == public
    assert [name for name in public if inspect.iscoroutinefunction(getattr(SyncHistory, name))] == []
    named = {name: getattr(SyncHistory, name).__wrapped__ for name in public if callable(getattr(SyncHistory, name))}
    assert named == {name: getattr(History, name) for name in named}, "each is the method of its name"


def check(store):
    timeline = remember_sync(store, PLACE, "My lamp is red.", claims=CLAIMS)
    timeline = remember_sync(store, PLACE, "My cat is old.", timeline=timeline, claims=CLAIMS)
    assert recall_sync(store, PLACE, Query("Which lamp?", timeline=timeline))[0].text == "My lamp is red."
    assert recall_sync(store=store, namespaces=PLACE, query=Query("Which lamp?", timeline=[])) == []
    assert claim_sync(store, CLAIMS, timeline, 2, "another") != timeline


async def test_langgraphs_sqlite_store_alone_is_used_by_its_sync_methods(tmp_path):
    with SqliteStore.from_conn_string(":memory:") as store:
        assert isinstance(with_async_methods(store), SyncStore)
    async with AsyncSqliteStore.from_conn_string(":memory:") as store, FaissStore.open(tmp_path / "s.db") as ours:
        assert [with_async_methods(one) is one for one in (store, ours, InMemoryStore(), None)] == [True] * 4


def test_they_work_without_an_event_loop():
    check(InMemoryStore())


async def test_they_work_inside_one_and_in_the_midst_of_sync_work():
    store = InMemoryStore()
    check(store)
    assert len(await recall(store, PLACE, Query("lamp", timeline=None))) == 2, "what they write is seen by the others"

    async def node():
        check(InMemoryStore())

    await asyncio.wait_for(asyncio.to_thread(lambda: run_sync(node())), 20)


async def test_a_store_of_the_running_loop_is_refused_and_served_from_another_thread():
    store = OfALoop()
    with pytest.raises(asyncio.InvalidStateError, match=r"OfALoop.*recall, remember"):
        check(store)
    await asyncio.to_thread(check, store)


def test_an_error_is_raised_for_the_caller():
    with pytest.raises(ValueError, match="needs a text"):
        remember_sync(InMemoryStore(), PLACE, {})


@contextmanager
def conversation(model, saver, store):
    """A conversation of three turns."""
    app = build_graph().compile(checkpointer=saver, store=store)
    for word in ("one", "two", "three"):
        model.queue("companion", say(f"So {word}."))
        app.invoke({"messages": [("user", word)]}, THREAD, context=CONTEXT)
    yield app


def move(app, model):
    """Go back, try again, and name lines; return what was played."""
    history = SyncHistory(app, THREAD, CONTEXT)
    assert history.current_state().values["turn"] == 3
    [first, _] = history.current_turn()
    assert history.undo().values["messages"][-1].text == "So two."
    assert history.undo().values["messages"][-1].text == "So one."
    model.queue("companion", say("So another."))
    app.invoke({"messages": [("user", "another")]}, THREAD, context=CONTEXT)
    history.name_line("elsewhere")
    replay = history.retry()
    model.queue("companion", say("Yet another."))
    app.invoke(None, replay.config, context=replay.context)
    assert history.go(first).values["messages"][-1].text == "So three."
    assert history.difference("elsewhere").only_after[-1].player == "three"
    assert history.find("elsewhere").player == "another"
    assert history.last_message().text == "three"
    return [turn.reply for turn in history.turns()]


PLAYED = ["So one.", "So two.", "So another.", "Yet another.", "So three."]


def test_history_moves_an_app_whose_stores_have_sync_methods_alone(model, tmp_path):
    with (
        SqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver,
        SqliteStore.from_conn_string(str(tmp_path / "s.db")) as store,
    ):
        store.setup()
        with conversation(model, saver, store) as app:
            assert app.get_state(THREAD).values["notices"] == []
            assert sorted(move(app, model)) == sorted(PLAYED)


async def test_the_checkpoints_of_a_sync_checkpointer_are_listed_as_it_lists_them(model, tmp_path):
    with (
        SqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver,
        conversation(model, saver, InMemoryStore()) as app,
    ):
        through = sync_graph(app)
        every = [state.config for state in app.get_state_history(THREAD)]
        assert len(every) > 9
        for limit in (None, 2, 4, 6):
            listed = through.aget_state_history(THREAD, limit=limit)
            assert [state.config async for state in listed] == every[:limit]
        before = through.aget_state_history(THREAD, before=every[5])
        assert [state.config async for state in before] == every[6:]
        inputs = through.aget_state_history(THREAD, filter={"source": "input"})
        assert [state.metadata["source"] async for state in inputs] == ["input"] * 3


async def test_middleware_works_on_a_store_that_has_sync_methods_alone(tmp_path):
    with SqliteStore.from_conn_string(str(tmp_path / "s.db")) as store:
        store.setup()
        agent = create_agent(
            FakeListChatModel(responses=["Fine."]), middleware=[TimelineMemoryMiddleware(user="ann")], store=store
        )
        agent.invoke({"messages": [("user", "My lamp is red.")]})
        await agent.ainvoke({"messages": [("user", "My cat is old.")]})
        said = {item.value["player"] for item in store.search(("ann",), filter={"kind": "exchange"})}
    assert said == {"My lamp is red.", "My cat is old."}


async def test_a_checkpointer_of_the_running_loop_is_refused_and_served_from_another_thread(model, tmp_path):
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:

        def play():
            with conversation(model, saver, InMemoryStore()) as app:
                assert sorted(move(app, model)) == sorted(PLAYED)
            return app

        app = await asyncio.to_thread(play)
        with pytest.raises(asyncio.InvalidStateError, match=r"AsyncSqliteSaver.*History"):
            SyncHistory(app, THREAD, CONTEXT)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_callers_who_come_first_at_once_share_one_event_loop():
    program = """
import asyncio, os, threading
from questbook.memory.sync import run_sync
async def loop():
    return asyncio.get_running_loop()
def count(callers):
    loops, gate = set(), threading.Barrier(callers)
    def call():
        gate.wait()
        loops.add(run_sync(loop()))
    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return len(loops)
sound = asyncio.new_event_loop
def slow():
    import time
    time.sleep(0.05)
    return sound()
asyncio.new_event_loop = slow
print(count(16), flush=True)
if (child := os.fork()) == 0:
    print(count(4), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["1", "1"]


def test_work_of_a_caller_who_was_interrupted_ends(monkeypatch):
    ended = threading.Event()

    async def work():
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    def interrupted(future, timeout=None):
        time.sleep(0.05)  # the work has begun
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_sync(work())
    assert ended.wait(5)


def test_many_sync_callers_at_once_leave_the_threads_of_the_loop_to_an_asynchronous_embedder(tmp_path):
    async def embed(texts):
        await asyncio.to_thread(time.sleep, 0.01)
        return [[1.0, float(len(text))] for text in texts]

    callers = min(32, (os.cpu_count() or 1) + 4) + 4
    found, gate = [], threading.Barrier(callers)

    def call(number):
        gate.wait()
        found.append(recall_sync(store, ("ann",), Query(f"Who said hello {number}?", fitting=False)))

    with FaissStore.open(tmp_path / "memory.db", {"embed": embed, "dims": 2, "fields": ["text"]}) as store:
        store.put(("ann",), "a", {"text": "hello there"})
        threads = [threading.Thread(target=call, args=(number,), daemon=True) for number in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert [len(records) for records in found] == [1] * callers
