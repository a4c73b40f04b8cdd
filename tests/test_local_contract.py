"""Whatever a graph does, our checkpointer says the same as LangGraph's own for SQLite."""

import operator
import random
from collections import Counter
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from twin_saver import assert_each_value_is_listed, open_postgres_twins, open_twins

MOVES = ("say", "go on", "answer", "edit", "copy", "roll back", "delete")


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], DeltaChannel(lambda log, writes: sum(writes, log), snapshot_frequency=3)]
    page: Annotated[dict[str, Any], operator.or_]
    sums: Annotated[int, operator.add]
    long: str
    asked: str


class Part(TypedDict, total=False):
    sums: Annotated[int, operator.add]
    page: Annotated[dict[str, Any], operator.or_]


def app_on(saver, choice):
    """A graph with all that a checkpoint may hold: parallel tasks, a subgraph, questions, errors, a DeltaChannel."""

    def plan(state):
        said = state["messages"][-1].text if state["messages"] else "nothing"
        if choice.random() < 0.1:
            raise RuntimeError(f"cannot plan {said}")
        return {"long": f"{said} " * choice.choice([1, 10, 400]), "log": [said], "page": {said: "x" * 300}}

    def fan(state):
        return [Send("work", {"sums": n}) for n in range(choice.randrange(4))] or "ask"

    def work(state):
        return {"sums": state["sums"], "log": [f"worked {state['sums']}"], "page": {str(state["sums"]): "work " * 40}}

    def inner(state):
        return {"sums": 1, "page": {"inner": f"{state.get('sums', 0)} " * 50}}

    def ask(state):
        if choice.random() < 0.3:
            return {"asked": interrupt({"question": "really? " * 30})}
        return {"messages": [AIMessage("told " * 20)]}

    def forget(state):
        first = state["messages"][0].id
        return {"messages": [RemoveMessage(id=first)]} if len(state["messages"]) > 8 else {"asked": ""}

    sub = StateGraph(Part).add_node(inner).add_edge(START, "inner").compile()
    builder = StateGraph(State).add_node(plan).add_node(work).add_node("sub", sub).add_node(ask).add_node(forget)
    builder.add_edge(START, "plan").add_conditional_edges("plan", fan, ["work", "ask"]).add_edge("work", "sub")
    builder.add_edge("sub", "ask").add_edge("ask", "forget").add_edge("forget", END)
    return builder.compile(checkpointer=saver)


async def assert_same(twins, app, threads):
    """Both say the same of each state, and of all checkpoints there are."""
    other = app.copy(update={"checkpointer": twins.theirs})
    for thread in threads:
        config = {"configurable": {"thread_id": thread}}
        assert await app.aget_state(config, subgraphs=True) == await other.aget_state(config, subgraphs=True)
        states = [state async for state in app.aget_state_history(config)]
        assert states == [state async for state in other.aget_state_history(config)]
    [one async for one in twins.alist(None)]
    await assert_each_value_is_listed(twins)


async def move(twins, app, choice, tip, number, given):
    """Make one move from the tip of a thread or, often, from an earlier checkpoint."""
    config: Any = {**tip, "metadata": {"run_id": f"run {number}"}}
    states = [state async for state in app.aget_state_history(tip, limit=20)]
    if states and choice.random() < 0.4:
        config |= choice.choice(states).config
    how = choice.choice(["sync", "async", "exit"])
    if given == "say":
        await app.ainvoke({"messages": [HumanMessage(f"said {number}")]}, config, durability=how)
    elif given == "go on" and states:
        await app.ainvoke(None, config, durability=how)
    elif given == "answer" and states:
        await app.ainvoke(Command(resume="yes"), config, durability=how)
    elif given == "edit" and states:
        await app.aupdate_state(config, {"page": {"edited": "y" * number * 20}}, as_node="ask")
    elif given == "copy" and states:
        await app.aupdate_state(config, None, as_node="__copy__")
    elif given == "roll back":
        await twins.adelete_for_runs([f"run {choice.randrange(number + 1)}", f"run {number - 1}"])
    elif given == "delete":
        await twins.adelete_thread(tip["configurable"]["thread_id"])


async def play(twins, seed, moves):
    choice, done = random.Random(seed), Counter()
    app, threads = app_on(twins, choice), ["one", "two"]
    for number in range(moves):
        tip = {"configurable": {"thread_id": choice.choice(threads)}}
        [given] = choice.choices(MOVES, [9, 3, 3, 3, 3, 2, 1])
        try:
            await move(twins, app, choice, tip, number, given)
            done[given] += 1
        except RuntimeError as error:
            assert "cannot plan" in str(error)  # noqa: PT017
            done["failed"] += 1
        if number % 10 == 0:
            await assert_same(twins, app, threads)
    await assert_same(twins, app, threads)
    return done


@pytest.mark.parametrize(("seed", "moves"), [(1, 10), *(pytest.param(n, 30, marks=pytest.mark.slow) for n in (2, 3))])
async def test_random_runs_forks_edits_and_deletes_are_told_alike(tmp_path, monkeypatch, seed, moves):
    monkeypatch.setattr("questbook.graphs.local.checkpointer._PAGE", 3)
    async with open_twins(tmp_path) as twins:
        done = await play(twins, seed, moves)
    assert moves < 30 or len(done) >= len(MOVES), done


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "moves"), [(2, 30), (3, 60)])
async def test_on_postgresql_too(seed, moves):
    async with open_postgres_twins() as twins:
        done = await play(twins, seed, moves)
    assert len(done) >= len(MOVES), done
