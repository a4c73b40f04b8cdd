"""A plain remember-node: each exchange under a new key, in a namespace of the thread."""

from __future__ import annotations

import uuid
from typing import Any

from langchain_core.messages import SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from benchmarks.forkbench.adapters.adapter import Adapter
from benchmarks.forkbench.bench import Bench, unanswered, window
from benchmarks.forkbench.game import Agent


def build(bench: Bench) -> Agent:
    """Recall into the prompt, reply, and remember the exchange in a node of its own."""
    model = bench.model(lambda messages, _: bench.reply(messages))

    def namespace(config: RunnableConfig) -> tuple[str, ...]:
        return (bench.user, config["configurable"]["thread_id"])

    async def answer(state: MessagesState, config: RunnableConfig, runtime: Runtime) -> dict[str, Any]:
        asked = state["messages"][-1].text
        items = await runtime.store.asearch(namespace(config), query=asked, limit=20)
        memories = "\n".join(item.value["text"] for item in items)
        prompt = [SystemMessage(f"What you remember:\n{memories}"), *window(state["messages"])]
        return {"messages": [await model.ainvoke(prompt)]}

    async def remember(state: MessagesState, config: RunnableConfig, runtime: Runtime) -> None:
        said, reply = unanswered(state["messages"][:-1]), state["messages"][-1]
        text = f"{said}\n{reply.text}"
        await runtime.store.aput(namespace(config), str(uuid.uuid4()), {"text": text})

    graph = StateGraph(MessagesState).add_node(answer).add_node(remember)
    graph = graph.add_edge(START, "answer").add_edge("answer", "remember")
    return Agent(graph.compile(checkpointer=bench.saver, store=bench.store))


ADAPTER = Adapter(
    "remember-node",
    build,
    package="langgraph",
    doc="a node that writes each exchange to the store, as most apps do",
    note="keeps memories by thread: what another thread was told is missing by design",
)
