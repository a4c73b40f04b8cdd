"""One run at a time on a thread, on any server, where a database is named."""

import asyncio
import threading
import time
from types import SimpleNamespace

import httpx
import psycopg
import pytest
from conftest import MIRA
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateUpdate
from postgres import OF_LOCKS, end_sessions, migrated_database

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.errors import InputError, SettingsError
from questbook.graphs.events import ReplyPiece
from questbook.graphs.local.game import open_game
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
    monkeypatch.setenv("QUESTBOOK_DATABASE", await asyncio.to_thread(migrated_database))
    return find_home()


@pytest.fixture
async def servers(home):
    """The graph as two servers have it, each with a checkpointer of its own."""
    async with home.open_checkpointer() as one, home.open_checkpointer() as other, home.open_store() as store:
        yield [build_graph().compile(checkpointer=saver, store=store) for saver in (one, other)]


CONTEXT = Context(user="ann", campaign="isle", model="offline")


def stream_of(graph, text, **options):
    said = {"messages": [{"role": "user", "content": text}]}
    return graph.astream(said, CONFIG, context=CONTEXT, **options)


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
    monkeypatch.setenv("QUESTBOOK_ADDRESS", "http://page2:8000")
    locks = run_guard.SessionLocks(home.url)  # another process's session
    assert locks.take(THREAD)
    said = rf"^Thread {THREAD} is being played, .* It is held by http://page2:8000\. Nothing was changed"
    with pytest.raises(InputError, match=said):
        await run(servers[1], "I wait.")
    with pytest.raises(InputError, match=said):
        await servers[1].aupdate_state(CONFIG, {"summary": "Mine."}, as_node="condense")
    with pytest.raises(InputError, match=said):
        await asyncio.to_thread(servers[1].update_state, CONFIG, {"summary": "Mine."}, "condense")
    assert await servers[0].aget_state(CONFIG) == before
    with pytest.raises(CampaignBusyError, match="open in another terminal"):
        async with hold_campaign(home, "ann", "isle"):
            pass
    locks.free(THREAD)
    await run(servers[1], "I wait.")
    await servers[1].aupdate_state(CONFIG, {"summary": "Mine."}, as_node="condense")
    await asyncio.to_thread(servers[1].update_state, CONFIG, {"summary": "And mine."}, "condense")
    assert (await servers[0].aget_state(CONFIG)).values["summary"] == "And mine."
    assert locks.take(THREAD), "it was let go again"


async def say(game, text):
    async for _ in game.send(text):
        pass
    await game.wait_for_upkeep(30)


async def test_who_holds_a_campaign_here_plays_it_and_a_run_of_the_same_process_waits_until_it_is_left(servers, home):
    async with open_game(CONTEXT, home, holds=True) as game:
        assert (home.url, THREAD) in run_guard.held_here
        await say(game, BEGIN)
        waits = asyncio.create_task(run(servers[0], "I look around."))
        edits = asyncio.create_task(servers[0].aupdate_state(CONFIG, {"summary": "Theirs."}, as_node="condense"))
        await say(game, "I wait.")
        await (await game.history()).write({"summary": "The page's."})
        await asyncio.wait({waits, edits}, timeout=1.0)
        assert (waits.done(), edits.done()) == (False, False)
        assert (await game.saved_game()).turn == 2
    assert not run_guard.held_here
    await waits
    await edits
    values = (await servers[0].aget_state(CONFIG)).values
    said = [message.text for message in values["messages"] if message.type == "human"]
    assert (values["turn"], said) == (3, [BEGIN, "I wait.", "I look around."])


async def test_a_run_of_a_process_that_holds_the_campaign_is_refused_after_a_while(servers, home, monkeypatch):
    monkeypatch.setattr(run_guard, "LONGEST_WAIT", 0.5)
    async with hold_campaign(home, "ann", "isle"):
        with pytest.raises(InputError, match=rf"^Thread {THREAD} is being played, .* It is held by \S+:\d+\."):
            await run(servers[0], BEGIN)


class Thief:
    """Ends the session that has the locks; then another process takes that of the thread, writes to it, and leaves."""

    def __init__(self, graph, home, *, leaves):
        self.graph, self.url, self.leaves = graph, home.url, leaves
        self.locks = run_guard.SessionLocks(home.url)
        self.left = None

    async def come(self):
        if self.left is None:
            assert await asyncio.to_thread(end_sessions, self.url, OF_LOCKS) == 1
            assert await asyncio.to_thread(self.locks.take, THREAD)
            theirs = [[StateUpdate({"summary": "Theirs."}, "condense")]]
            await CompiledStateGraph.abulk_update_state(self.graph, CONFIG, theirs)
            self.left = await self.graph.aget_state(CONFIG)
            if self.leaves:
                await self.leave()
                here = run_guard.locks_of(self.url)
                assert await asyncio.to_thread(here.take, "reef")
                assert await asyncio.to_thread(here.holds, THREAD), "taken again, with what was free"
                await asyncio.to_thread(here.free, "reef")

    async def leave(self):
        await asyncio.to_thread(self.locks.free, THREAD)


@pytest.mark.parametrize("leaves", [False, True], ids=["plays", "has played"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_run_whose_lock_another_took_saves_nothing_over_it(servers, home, durability, leaves):
    await run(servers[0], BEGIN)
    thief, steps = Thief(servers[1], home, leaves=leaves), []

    async def play():
        async for step in stream_of(servers[0], "I look around.", stream_mode="updates", durability=durability):
            steps.extend(step)
            await thief.come()

    with pytest.raises(run_guard.ThreadLostError, match=f"^Thread {THREAD}: its lock was lost"):
        await play()
    assert steps == ["recall"], "it stops at once, not at its end"
    assert await servers[1].aget_state(CONFIG) == thief.left
    assert leaves or await asyncio.to_thread(thief.locks.holds, THREAD)
    await thief.leave()
    await run(servers[0], "I wait.")
    values = (await servers[1].aget_state(CONFIG)).values
    assert (values["messages"][-2].text, values["summary"]) == ("I wait.", "Theirs.")


async def test_a_page_s_turn_whose_lock_another_took_saves_nothing_over_it_either(servers, home):
    async with open_game(CONTEXT, home, holds=True) as game:
        await say(game, BEGIN)
        thief = Thief(servers[1], home, leaves=False)

        async def play():
            async for event in game.send("I look around."):
                if isinstance(event, ReplyPiece):
                    await thief.come()

        with pytest.raises(run_guard.ThreadLostError):
            await play()
        with pytest.raises(CampaignBusyError):
            await say(game, "And now?")
        assert await servers[1].aget_state(CONFIG) == thief.left


async def test_a_page_s_turn_whose_lock_nobody_took_is_gone_on_with(servers, home):
    async with open_game(CONTEXT, home, holds=True) as game:
        await say(game, BEGIN)

        async def play():
            async for event in game.send("I look around."):
                if isinstance(event, ReplyPiece):
                    await asyncio.to_thread(end_sessions, home.url, OF_LOCKS)

        with pytest.raises(run_guard.ThreadLostError):
            await play()
        assert await game.has_unfinished_turn()
        async for _ in game.resume():
            pass
        await say(game, "I wait.")
        assert (await game.saved_game()).turn == 3


async def test_a_session_that_is_in_use_is_not_waited_for_and_a_lock_of_another_one_counts_as_lost(home):
    locks = run_guard.locks_of(home.url)
    assert await asyncio.to_thread(locks.take, THREAD)
    with locks._one:
        locks.check(THREAD, locks.session)
        with pytest.raises(run_guard.ThreadLostError):
            locks.check(THREAD, object())
        with pytest.raises(run_guard.ThreadLostError):
            locks.check("another thread", locks.session)


async def test_a_run_asks_for_its_lock_once_and_frees_it_once(servers, home, monkeypatch):
    asked, ask = [], run_guard.SessionLocks._ask
    monkeypatch.setattr(run_guard.SessionLocks, "_ask", lambda *given: asked.append(given[1]) or ask(*given))
    await run(servers[0], BEGIN)
    assert asked == [run_guard.TRY, run_guard._FREE]


async def test_a_run_that_is_saved_does_not_fail_where_its_lock_cannot_be_given_back(servers, monkeypatch, caplog):
    ask = run_guard.SessionLocks._ask

    def away(locks, statement, name):
        if statement == run_guard._FREE:
            raise psycopg.OperationalError("the database is away")
        return ask(locks, statement, name)

    monkeypatch.setattr(run_guard.SessionLocks, "_ask", away)
    await run(servers[0], BEGIN)
    assert (await servers[0].aget_state(CONFIG)).values["turn"] == 1
    assert f"Thread {THREAD}: its lock could not be given back: the database is away" in caplog.messages
    assert not run_guard.locks_of(find_home().url)._held


async def test_that_a_thread_was_lost_is_said_also_where_the_database_stays_away(servers, home, monkeypatch, caplog):
    await run(servers[0], BEGIN)

    async def play():
        async for _ in stream_of(servers[0], "I look around.", stream_mode="updates"):
            monkeypatch.setattr(run_guard.locks_of(home.url), "url", "postgresql://127.0.0.1:1/away")
            await asyncio.to_thread(end_sessions, home.url, OF_LOCKS)

    with pytest.raises(run_guard.ThreadLostError):
        await play()
    assert "its lock could not be given back" in caplog.text


def test_an_error_of_a_session_that_lives_costs_no_lock(home):
    locks = run_guard.SessionLocks(home.url)
    assert locks.take(THREAD)
    session = locks.session
    session.execute("SET statement_timeout = 50")
    with pytest.raises(psycopg.OperationalError, match="statement timeout"):
        locks._ask("SELECT pg_sleep(1)::text || %s", "slow")
    assert locks.session is session
    locks.check(THREAD, session)
    assert locks.holds(THREAD)
    locks.free(THREAD)


def test_a_name_that_the_database_would_cut_is_refused(home, monkeypatch):
    address, locks = "http://".ljust(53, "a"), run_guard.SessionLocks(home.url)
    monkeypatch.setenv("QUESTBOOK_ADDRESS", address)
    assert locks.take("t")
    assert locks.holder("t") == address
    for longer in (f"{address}a", "ä" * 27):
        monkeypatch.setenv("QUESTBOOK_ADDRESS", longer)
        with pytest.raises(SettingsError, match=rf"^QUESTBOOK_ADDRESS takes at most 53 bytes, got '{longer}'\.$"):
            run_guard.SessionLocks(home.url).take("t")
    monkeypatch.setenv("QUESTBOOK_ADDRESS", "")
    monkeypatch.setattr("socket.gethostname", lambda: "h" * 64)
    assert run_guard.session_options()["application_name"] == f"questbook {'h' * 53}"


async def test_a_session_that_has_ended_is_opened_again(servers, home):
    await run(servers[0], BEGIN)
    assert await asyncio.to_thread(end_sessions, home.url, OF_LOCKS) <= 1  # of this database: others test beside
    run_guard.locks_of(home.url).session.close()
    await run(servers[0], "I wait.")
    assert (await servers[0].aget_state(CONFIG)).values["turn"] == 2


def test_a_run_without_an_event_loop_waits_too(home, monkeypatch):
    locks, order = run_guard.SessionLocks(home.url), []
    assert locks.take("t")
    started = time.monotonic()
    threading.Timer(0.6, lambda: (order.append("freed"), locks.free("t"))).start()

    class Inner:
        def stream(self, *_, **__):
            order.append("begun")
            yield from ()

    class Graph(run_guard.GuardedGraph, Inner):
        def __init__(self):
            self.checkpointer, self.builder = InMemorySaver(), SimpleNamespace(input_schema=None)

    monkeypatch.setattr(run_guard.CompiledStateGraph, "stream", Inner.stream)
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
    graph = build_graph().compile(checkpointer=InMemorySaver())
    assert run_guard._Turn(graph, {"configurable": configurable}).locks is None


async def test_a_run_and_an_edit_on_langgraph_s_server_wait_for_who_holds_the_campaign(studio, home):
    studio.environment["QUESTBOOK_USER"] = "ann"
    client = studio.start()
    await client.threads.create(thread_id=THREAD, graph_id="dungeon_master")
    settings = {"context": {"user": "ann", "campaign": "isle", "model": "offline"}, "durability": "sync"}

    async def run(text):
        said = {"messages": [{"role": "user", "content": text}]}
        return (await client.runs.wait(THREAD, "dungeon_master", input=said, **settings))["turn"]

    assert await run(BEGIN) == 1
    async with open_game(CONTEXT, home, holds=True) as game:
        await say(game, "I wait.")
        runs = asyncio.create_task(run("I look around."))
        edits = asyncio.create_task(client.threads.update_state(THREAD, {"quest": {"gold": 7}}, as_node="condense"))
        await asyncio.wait({runs, edits}, timeout=3.0)
        assert (runs.done(), edits.done()) == (False, False)
        assert (await game.saved_game()).turn == 2
    await edits
    assert await runs == 3
    with httpx.Client(base_url=studio.url, timeout=60, follow_redirects=True) as page:
        assert "I look around." in page.get("/play/c/isle/").text
        runs = asyncio.create_task(run("I wait again."))
        await asyncio.wait({runs}, timeout=3.0)
        assert not runs.done(), "the page of the same process has it"
        runs.cancel()
