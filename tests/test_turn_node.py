"""A node by itself: what it says and is given, and what of the upkeep gives way to the person's next message."""

import asyncio
from types import SimpleNamespace
from typing import ClassVar

import pytest
from desk import CallbackNotebook, CustomerNotebook, TicketNotebook
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import ExecutionInfo, Runtime, ServerInfo
from langgraph.store.memory import InMemoryStore
from reflecting import queue_client

from questbook import build_agent
from questbook.graphs.errors import InputError, SettingsError
from questbook.graphs.settings import AppRules, Settings
from questbook.graphs.turn.node import (
    Edge,
    GaveWay,
    Machine,
    Node,
    Upkeep,
    give_way,
    give_way_on,
    settings_of_run,
    speaking_nodes,
    upkeep_nodes,
)
from questbook.graphs.turn.state import TurnState


class Tagged(Settings):
    APP: ClassVar = AppRules(metadata=lambda run: {"tag": run.context.user})


async def run_node(work, *, upkeep=False, settings=Settings, given=None, **caller):
    """Run a node alone; return what its stream says."""
    builder = StateGraph(MessagesState, context_schema=settings)
    builder.add_node("node", Node(work, settings.of, upkeep=upkeep)).add_edge(START, "node")
    app = builder.compile(store=InMemoryStore(), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"} | caller}
    context = {"user": "ann"} if given is None else given
    return [part async for part in app.astream({"messages": []}, config, context=context, stream_mode="custom")]


@pytest.mark.parametrize(("upkeep", "said"), [(False, {}), (True, {"upkeep": True})])
async def test_a_node_says_that_it_begins_and_is_given_its_settings_and_a_store_that_cannot_hang(upkeep, said):
    seen = []

    async def narrate(state, runtime):
        seen.append(runtime)

    assert await run_node(narrate, upkeep=upkeep, settings=Tagged) == [{"begins": "narrate"} | said]
    [runtime] = seen
    assert (runtime.context.user, runtime.context.metadata) == ("ann", {"tag": "ann"})
    assert type(runtime.store) is not InMemoryStore


async def test_metadata_of_a_run_that_are_no_json_are_refused_before_the_turn():
    class Dated(Settings):
        APP: ClassVar = AppRules(metadata=lambda run: {"seen": {1}})

    with pytest.raises(SettingsError, match=r"What the app says of the run: metadata: got \{'seen'.*expected a JSON"):
        await run_node(lambda state, runtime: None, settings=Dated)


async def test_a_node_without_a_user_or_with_two_is_refused():
    async def narrate(state, runtime):
        raise AssertionError

    with pytest.raises(SettingsError, match="Two users are named"):
        await run_node(narrate, user="bob")


async def test_upkeep_may_be_stopped_in_the_work_that_gives_way_and_nowhere_else():
    upkeep, seen = Upkeep(), []
    give_way_on(upkeep)

    async def ask():
        seen.append(upkeep.stoppable.is_set())
        return 7

    async def note(state, runtime):
        seen.append(upkeep.stoppable.is_set())
        seen.append(await give_way(ask(), runtime))
        seen.append(upkeep.stoppable.is_set())

    await run_node(note, upkeep=True)
    assert seen == [False, True, 7, False]
    assert upkeep.stoppable.is_set()
    seen.clear()
    await run_node(note)
    assert seen == [True, True, 7, True], "another node is stopped with its run"


async def test_work_gives_way_as_soon_as_the_next_message_waits_and_before_that_its_result_or_error_counts():
    run, done = Runtime(context=Settings()), []

    async def fail():
        raise OSError("cut")

    async def hang(begun=None):
        try:
            if begun:
                begun.set()
            await asyncio.sleep(60)
        finally:
            done.append("stopped")

    async def answer():
        return 7

    assert await give_way(answer(), run) == 7, "nobody waits"
    assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing goes on waiting"
    upkeep = Upkeep()
    give_way_on(upkeep)
    assert await give_way(answer(), run) == 7
    with pytest.raises(OSError, match="cut"):
        await give_way(fail(), run)
    begun = asyncio.Event()
    work = asyncio.create_task(give_way(hang(begun), run))
    await begun.wait()
    upkeep.next_message.set()
    with pytest.raises(GaveWay):
        await work
    assert done == ["stopped"]
    assert upkeep.stoppable.is_set()
    for coroutine in (hang(), answer()):
        with pytest.raises(GaveWay):
            await give_way(coroutine, run)
    assert done == ["stopped"], "what comes after the message does not begin"


def test_nodes_that_speak_and_those_behind_the_reply_are_known():
    app = build_agent([CustomerNotebook, TicketNotebook, CallbackNotebook], facts=True).compile()
    assert speaking_nodes(app) == {"fill_customer": "asks", "respond": "answers"}
    assert upkeep_nodes(app) == {"update_pages", "remember", "learn", "reflect", "condense"}


class Strict(TurnState):
    """A state that refuses each edit."""

    def check_edit(self, *, upkeep):
        raise InputError(f"upkeep: {upkeep}")


class Repeated(TurnState):
    is_repeated: ClassVar = True


async def test_an_edge_checks_an_edit_alone_and_a_run_that_has_ended_before_leaves():
    for upkeep in (True, False):
        with pytest.raises(InputError, match=f"upkeep: {upkeep}"):
            Edge(lambda state: "next", upkeep=upkeep).invoke(Strict)
    said = [HumanMessage("Hi.")]
    assert Edge(lambda state: "next").invoke(lambda: Repeated(messages=said)) == "next"
    assert Edge(lambda state: "next", starts=True).invoke(lambda: Repeated(messages=said)) == "condense"
    assert Edge(lambda state: "next", starts=True).invoke(lambda: TurnState(messages=said)) == "next"
    builder = Machine(Strict).add_node("next", lambda state: {"summary": "gone on"}).add_node("condense", lambda _: {})
    builder.add_conditional_edges(START, lambda state: "next", ["next"])
    assert (await builder.compile().ainvoke({"messages": []}))["summary"] == "gone on", "a run is no edit"


async def test_outside_of_a_run_there_are_no_settings_and_in_it_they_are_the_threads():
    seen = []

    async def narrate(state, runtime):
        seen.append(settings_of_run(Settings, TurnState(turn=1, campaign=["ann", "tale"])))
        with pytest.raises(InputError, match="belongs to"):
            settings_of_run(Settings, TurnState(turn=1, campaign=["bob", "tale"]))

    await run_node(narrate)
    assert [(one.user, one.campaign) for one in seen] == [("ann", "tale")]


async def test_on_a_server_work_gives_way_to_a_run_that_is_due_and_waits_and_goes_on_if_the_queue_is_not_known(
    monkeypatch,
):
    monkeypatch.setattr("questbook.graphs.turn.node._POLL", 0.01)
    monkeypatch.setattr("questbook.graphs.turn.node.PATIENCE", 0.03)
    later, due = ({"created_at": f"{year}-01-01T00:00:00+00:00"} for year in (2999, 2001))
    queue, asked = [[], [later], [later, due]], []

    def runs_of(thread, status):
        asked.append((thread, status))
        if not queue:
            raise OSError("no queue")
        return queue.pop(0)

    monkeypatch.setattr("questbook.graphs.turn.api_server.client", queue_client(runs_of))
    info = ExecutionInfo(checkpoint_id="", checkpoint_ns="", task_id="", thread_id="t")
    server = ServerInfo(assistant_id="a", graph_id="g")
    run = Runtime(context=Settings(), execution_info=info, server_info=server)

    async def slow():
        await asyncio.sleep(0.02)
        return 7

    with pytest.raises(GaveWay):
        await give_way(asyncio.sleep(60), run)
    assert asked == [("t", "pending")] * 3, "a run that begins later does not count"
    assert await give_way(slow(), run) == 7
    assert len(asked) == 4
    on_aegra = ServerInfo(assistant_id="", graph_id="", user=SimpleNamespace(identity="ann"))
    for other in (None, on_aegra):
        assert await give_way(slow(), run.override(server_info=other)) == 7
    upkeep = Upkeep()
    give_way_on(upkeep)
    assert await give_way(slow(), run) == 7
    assert len(asked) == 4, "a program that has its own queue does not ask the server"
