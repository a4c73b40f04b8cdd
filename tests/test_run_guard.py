"""One run at a time on a thread, on any server, where a database is named."""

import asyncio
import threading
import time

import pytest
from conftest import MIRA
from postgres import new_database

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.errors import InputError
from questbook.graphs.local.home import CampaignBusyError, hold_campaign
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.turn import run_guard

pytestmark = pytest.mark.slow  # they need a PostgreSQL
BEGIN = f"I am {MIRA['name']}, a halfling rogue who {MIRA['background']} and {MIRA['goal']}."
THREAD = thread_id_of("ann", "isle")
CONFIG = {"configurable": {"thread_id": THREAD}}


@pytest.fixture
async def home(monkeypatch):
    monkeypatch.setenv("QUESTBOOK_DATABASE", await asyncio.to_thread(new_database))
    home = find_home()
    await home.migrate("hash")
    return home


@pytest.fixture
async def servers(home):
    """The graph as two servers have it, each with a checkpointer of its own."""
    async with home.open_checkpointer() as one, home.open_checkpointer() as other, home.open_store() as store:
        yield [build_graph().compile(checkpointer=saver, store=store) for saver in (one, other)]


def stream_of(graph, text):
    said = {"messages": [{"role": "user", "content": text}]}
    return graph.astream(said, CONFIG, context=Context(user="ann", campaign="isle", model="offline"))


async def run(graph, text):
    async for _ in stream_of(graph, text):
        pass


async def test_of_two_messages_at_once_both_are_answered_one_after_the_other(servers):
    await run(servers[0], BEGIN)
    await asyncio.gather(run(servers[0], "I look around."), run(servers[1], "I wait."))
    values = (await servers[0].aget_state(CONFIG)).values
    said = [message.text for message in values["messages"] if message.type == "human"]
    assert said[0] == BEGIN
    assert sorted(said[1:]) == ["I look around.", "I wait."]
    assert (values["turn"], len(values["timeline"])) == (3, 1), "nobody had to give way to a branch of its own"
    kinds = [message.type for message in values["messages"] if message.text]
    assert kinds[-4:] == ["human", "ai", "human", "ai"]


async def test_a_run_that_fails_or_is_left_lets_the_next_one_begin(servers, monkeypatch):
    monkeypatch.setattr(run_guard, "LONGEST_WAIT", 5.0)
    await run(servers[0], BEGIN)
    with pytest.raises(InputError, match="characters"):
        await run(servers[0], "x" * 100_000)
    stream = stream_of(servers[0], "I wait.")
    await anext(stream)
    await stream.aclose()
    stopped = asyncio.create_task(run(servers[0], "I wait again."))
    await asyncio.sleep(0.3)
    stopped.cancel()
    await asyncio.wait({stopped})
    await run(servers[1], "I look around.")


async def test_who_waits_too_long_is_told_and_nothing_changes(servers, home, monkeypatch):
    monkeypatch.setattr(run_guard, "LONGEST_WAIT", 0.5)
    await run(servers[0], BEGIN)
    before = await servers[0].aget_state(CONFIG)
    locks = run_guard.SessionLocks(home.url)  # another process's session
    assert locks.take(THREAD)
    with pytest.raises(InputError, match=f"^Thread {THREAD} is being played, .*Nothing was changed"):
        await run(servers[1], "I wait.")
    assert await servers[0].aget_state(CONFIG) == before
    with pytest.raises(CampaignBusyError, match="open in another terminal"):
        async with hold_campaign(home, "ann", "isle"):
            pass
    locks.free(THREAD)
    await run(servers[1], "I wait.")


async def test_who_holds_a_campaign_here_runs_it_without_a_second_lock(servers, home):
    async with hold_campaign(home, "ann", "isle"):
        await run(servers[0], BEGIN)
        assert (home.url, THREAD) in run_guard.held_here
    assert not run_guard.held_here


async def test_a_session_that_has_ended_is_opened_again(servers, home):
    await run(servers[0], BEGIN)
    await home._rows("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
    run_guard.locks_of(home.url)._session.close()
    await run(servers[0], "I wait.")
    assert (await servers[0].aget_state(CONFIG)).values["turn"] == 2


def test_a_run_without_an_event_loop_waits_too(home, monkeypatch):
    locks, order = run_guard.SessionLocks(home.url), []
    assert locks.take("t")
    threading.Timer(0.6, lambda: (order.append("freed"), locks.free("t"))).start()

    class Inner:
        def stream(self, *_, **__):
            order.append("begun")
            yield from ()

    class Graph(run_guard.GuardedGraph, Inner):
        def __init__(self):
            pass

    monkeypatch.setattr(run_guard.CompiledStateGraph, "stream", Inner.stream)
    started = time.monotonic()
    assert list(Graph().stream({}, {"configurable": {"thread_id": "t"}})) == []
    assert order == ["freed", "begun"]
    assert time.monotonic() - started > 0.5


@pytest.mark.parametrize(
    "configurable",
    [{}, {"thread_id": ""}, {"thread_id": "t", "checkpoint_ns": "a:1"}, {"thread_id": "t", "__pregel_read": print}],
    ids=["none", "empty", "inner", "node"],
)
def test_what_has_no_thread_of_its_own_takes_no_lock(monkeypatch, configurable):
    monkeypatch.setenv("QUESTBOOK_DATABASE", "postgresql://nowhere.invalid/x")
    assert run_guard._locks_for({"configurable": configurable})[0] is None
