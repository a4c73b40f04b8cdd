"""LangGraph's store with a summary: one document of the user, read before the reply and written anew after it."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import SystemMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from benchmarks.forkbench.adapters.adapter import Adapter
from benchmarks.forkbench.bench import Bench, unanswered, window
from benchmarks.forkbench.game import Agent


def build(bench: Bench) -> Agent:
    """Show the summary, reply, and fold the exchange into it in a node of its own."""
    model, space = bench.model(lambda messages, _: bench.reply(messages)), (bench.user, "memories")

    async def summary_of(runtime: Runtime) -> dict[str, str]:
        item = await runtime.store.aget(space, "summary")
        return dict(line.split(": ", 1) for line in item.value["text"].splitlines()) if item else {}

    async def answer(state: MessagesState, runtime: Runtime) -> dict[str, Any]:
        lines = [f"{slot}: {value}" for slot, value in (await summary_of(runtime)).items()]
        prompt = [SystemMessage("\n".join(["Summary of what was said:", *lines])), *window(state["messages"])]
        return {"messages": [await model.ainvoke(prompt)]}

    async def summarize(state: MessagesState, runtime: Runtime) -> None:
        summary = await summary_of(runtime)
        for event in bench.facts_in(unanswered(state["messages"][:-1])):  # as a model would that makes no mistakes
            summary |= dict([event.noted.split(": ", 1)])
            if event.over:
                del summary[event.slot]
        text = "\n".join(f"{slot}: {value}" for slot, value in summary.items())
        await runtime.store.aput(space, "summary", {"text": text})

    graph = StateGraph(MessagesState).add_node(answer).add_node(summarize)
    graph = graph.add_edge(START, "answer").add_edge("answer", "summarize")
    return Agent(graph.compile(checkpointer=bench.saver, store=bench.store))


ADAPTER = Adapter(
    "a summary in the store",
    build,
    package="langgraph",
    doc="LangChain's guide to long-term memory: a profile, one document that is updated",
    note="each slot has one value: what was overwritten is gone for a checkpoint from before",
)
