"""Reflection and notes in the background of a process that has no server's queue: `process_queue`."""

import asyncio
from types import SimpleNamespace

import pytest
from desk import AgentModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from reflecting import DEBT, INSIGHT, ask, conclude, insights, tell
from scripted import call, say

from questbook.graphs.agent import build_agent
from questbook.graphs.reflect import background
from questbook.graphs.reflect.background import process_queue

ONE = {"configurable": {"thread_id": "one"}}
IN_BACKGROUND = {"reflection_importance": 6, "reflection": "background"}


def notices(game):
    return " | ".join(entry["text"] for entry in game.values["notices"] if entry["node"] == "reflect")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(background, "_QUIET_SECONDS", 0.05)


async def ends(game):
    """Wait until nothing is done in the background."""
    queue = background._queues[asyncio.get_running_loop()]
    await asyncio.wait_for(asyncio.gather(*queue._tasks.values()), 20)


async def test_the_turn_ends_first_and_the_process_reflects_before_it_ends(new_mira, monkeypatch):
    monkeypatch.setattr(background, "_QUIET_SECONDS", 60)
    begun, begin = [], background.ProcessQueue.begin

    async def count(queue, *args):
        begun.append(args)
        await begin(queue, *args)

    monkeypatch.setattr(background.ProcessQueue, "begin", count)
    game = await new_mira(**IN_BACKGROUND)
    async with process_queue(20):
        await tell(game, "I ask.", DEBT)
        await tell(game, "I wait.")
        await asyncio.sleep(0.2)
        assert (await insights(game), notices(game), game.values["unreflected"]) == ({}, "", 6)
        assert (len(begun), game.model.asked("question")) == (1, []), "one waits, as long as it is quiet"
        game.queue(question=ask(), conclude=conclude((INSIGHT, [DEBT["text"]])))
    assert [value["text"] for value in (await insights(game)).values()] == [INSIGHT]
    assert not background._queues


async def test_a_server_that_only_says_who_logged_in_has_no_queue(new_mira):
    game = await new_mira(**IN_BACKGROUND)
    game.config["configurable"]["langgraph_auth_user"] = SimpleNamespace(identity="adventurer")
    async with process_queue(20):
        await tell(game, "I ask.", DEBT, question=ask(), conclude=conclude((INSIGHT, [DEBT["text"]])))
        assert notices(game) == ""
    assert len(await insights(game)) == 1


async def test_one_run_of_a_thread_works_at_a_time_and_the_next_turn_knows_that_it_is_done(new_mira):
    game = await new_mira(**IN_BACKGROUND)
    async with process_queue(20):
        await tell(game, "I ask.", DEBT, question=ask(), conclude=conclude((INSIGHT, [DEBT["text"]])))
        await ends(game)
        await tell(game, "I wait.")
        assert (notices(game), game.values["unreflected"]) == ("", 0)
    assert len(game.model.asked("question")) == 1


async def test_of_two_agents_on_one_thread_each_does_its_own_work():
    one = {"text": "Ann has a cat.", "subject": "Ann", "kind": "trait"}
    fact = say("", call("Facts", facts=[one]))
    store, asked = InMemoryStore(), []
    async with process_queue(20):
        for name in ("desk", "sales"):
            model = AgentModel()
            model.queue("facts", fact)
            app = build_agent([], facts=True, name=name, model=model).compile(store=store, checkpointer=InMemorySaver())
            context = {"user": "ann", "noting": "background"}
            await app.ainvoke({"messages": [("user", "I have a cat.")]}, ONE, context=context, durability="sync")
            asked.append(model)
    assert [len(model.asked("facts")) for model in asked] == [1, 1]


@pytest.mark.parametrize("broken", [False, True], ids=["model", "run"])
async def test_a_failure_is_told_by_the_next_turn_once_and_the_work_is_taken_up_again(new_mira, monkeypatch, broken):
    game = await new_mira(**IN_BACKGROUND)
    async with process_queue(20):
        with monkeypatch.context() as broken_here:
            if broken:
                broken_here.setattr(background.ProcessQueue, "_run", failing(background.ProcessQueue._run))
            answers = {} if broken else {"question": ConnectionError("503")}
            await tell(game, "I ask.", DEBT, **answers)
            await ends(game)
        assert await insights(game) == {}
        await tell(game, "I wait.", question=ask(), conclude=conclude((INSIGHT, [DEBT["text"]])))
        assert notices(game).count("nothing is lost, and it will be taken up again") == 1
        await ends(game)
        await tell(game, "I wait on.")
        assert notices(game).count("nothing is lost, and it will be taken up again") == 1
    assert [value["text"] for value in (await insights(game)).values()] == [INSIGHT]


def failing(run):
    async def fail(queue, _, turn):
        async def broken():
            raise RuntimeError("out of order")

        return await run(queue, broken, turn)

    return fail


async def test_where_too_much_waits_the_turn_reflects_itself_and_says_so(new_mira, monkeypatch):
    monkeypatch.setattr(background, "_MOST_THREADS", 0)
    game = await new_mira(**IN_BACKGROUND)
    async with process_queue(20):
        await tell(game, "I ask.", DEBT, question=ask(), conclude=conclude((INSIGHT, [DEBT["text"]])))
        assert len(await insights(game)) == 1
    assert "not in the background, because 0 threads wait for theirs" in notices(game)


async def test_the_end_waits_no_longer_than_it_is_told(new_mira, monkeypatch):
    monkeypatch.setattr(background, "_QUIET_SECONDS", 60)
    game = await new_mira(**IN_BACKGROUND)
    async with process_queue(0):
        await tell(game, "I ask.", DEBT)
    assert await insights(game) == {}
    assert game.values["unreflected"] == 6, "a later turn reflects"
