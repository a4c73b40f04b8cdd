"""A page that agents share in one parent graph: filled once, and without lost updates."""

import threading
import time
from typing import Annotated

import pytest
from desk import AgentModel, CustomerNotebook
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Send
from scripted import call, say
from team import OVER, VisitsNotebook, VisitsState

from questbook.graphs.agent import TeamState, as_node, build_agent
from questbook.graphs.turn.state import patches


async def test_a_shared_page_that_one_agent_has_filled_is_not_asked_for_by_the_other():
    class AskedState(TeamState):
        customer: Annotated[CustomerNotebook, patches(CustomerNotebook, bounded=False)]

    builder, models = StateGraph(AskedState), {"sales": AgentModel(), "billing": AgentModel()}
    for name, others in (("sales", {"billing": "invoices"}), ("billing", {})):
        page = CustomerNotebook
        agent = build_agent([page], name=name, model=models[name], shared=[page], handoffs=others)
        builder.add_node(name, as_node(agent.compile()), destinations=("billing", END))
    builder.add_edge(START, "sales")
    app, config = builder.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
    asked = await app.ainvoke({"messages": [HumanMessage("hello")]}, config)
    assert asked["messages"][-1].text == "Who are you?"
    models["sales"].queue("fill", say("", call("CustomerNotebook", name="Ann", product="X100")))
    models["sales"].queue("reply", OVER)
    models["billing"].queue("reply", say("Hello Ann."))
    told = await app.ainvoke({"messages": [HumanMessage("Ann, X100. My invoice?")]}, config)
    assert told["messages"][-1].text == "Hello Ann."
    assert models["billing"].asked("fill") == []


def one_more(messages):
    """Note a call and its caller, as totals of the page in view, as models are told to."""
    counted = [line for line in messages[0].text.splitlines() if line.startswith("calls: ")]
    total = int(counted[0].removeprefix("calls: ")) + 1
    return say("Noted.", call("VisitsNotebook", calls=total, callers={messages[-1].text: "called"}))


def parallel(names, runs):
    builder = StateGraph(VisitsState)
    models = {name: AgentModel() for name in names}
    for name in names:
        models[name].queue("reply", *[one_more] * runs)
        agent = build_agent([VisitsNotebook], name=name, model=models[name], shared=[VisitsNotebook])
        builder.add_node(name, as_node(agent.compile()))

    def fan_out(state):
        given = {"visits": state["visits"], "seats": {}}
        return [
            Send(name, given | {"messages": [HumanMessage(f"{name} {run}", id=f"{name}-{run}")]})
            for name in names
            for run in range(runs)
        ]

    builder.add_conditional_edges(START, fan_out, names)
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.slow
async def test_200_parallel_increments_of_two_agents_are_200():
    app = parallel(["sales", "billing"], 100)
    config = {"configurable": {"thread_id": "t"}}
    values = await app.ainvoke({"messages": [HumanMessage("go")]}, config)
    assert values["visits"]["calls"] == 200
    assert len(values["visits"]["callers"]) == 200
    assert app.get_state(config).values["visits"] == values["visits"]


def test_the_same_increments_by_the_store_alone_are_lost():
    """Read, think, write: what an agent does that keeps its page in LangGraph's store."""
    store = InMemoryStore()
    store.put(("desk",), "visits", {"calls": 0})

    def increments():
        for _ in range(50):
            seen = store.get(("desk",), "visits").value["calls"]
            time.sleep(0.0005)
            store.put(("desk",), "visits", {"calls": seen + 1})

    threads = [threading.Thread(target=increments) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = store.get(("desk",), "visits").value["calls"]
    print(f"\nLangGraph's InMemoryStore kept {kept} of 200 increments")
    assert kept < 200


async def test_parallel_writers_may_pass_the_limit_together_and_the_page_can_still_be_shortened():
    class ShortNotebook(VisitsNotebook):
        CHANNEL = "visits"
        LIMIT = 60

    class ShortState(TeamState):
        visits: Annotated[ShortNotebook, patches(ShortNotebook, bounded=False)]

    builder = StateGraph(ShortState)
    model = AgentModel()
    agent = build_agent([ShortNotebook], name="sales", model=model, shared=[ShortNotebook])
    builder.add_node("sales", as_node(agent.compile()))
    page = {"visits": {}, "seats": {}}
    builder.add_conditional_edges(
        START, lambda state: [Send("sales", page | {"messages": [HumanMessage(w, id=w)]}) for w in "ab"], ["sales"]
    )
    app = builder.compile()
    model.queue("reply", *[lambda m: say("ok", call("ShortNotebook", callers={m[-1].text: "x" * 30}))] * 2)
    values = await app.ainvoke({"messages": [HumanMessage("go")]})
    assert sorted(values["visits"]["callers"]) == ["a", "b"]
    assert len(ShortNotebook.load(values["visits"]).render()) > 60


async def test_a_shared_page_is_still_checked(caplog):
    """No edge of this parent reads the state, so LangGraph shows the channel nothing before it saves."""
    app = parallel(["sales"], 1)
    config = {"configurable": {"thread_id": "t"}}
    await app.ainvoke({"messages": [HumanMessage("go")]}, config)
    before = app.get_state(config).values
    app.update_state(config, {"visits": {"calls": "many"}, "seats": 3}, as_node="sales")
    assert app.get_state(config).values == before
    assert "calls: got 'many'" in caplog.text
