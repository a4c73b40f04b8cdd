"""Ours in a plain graph: `recall`, reply, `remember`, and the channel `timeline`; all threads of the user share it."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from benchmarks.forkbench.adapters.adapter import OUR_STORES, Adapter
from benchmarks.forkbench.bench import Bench, unanswered, window
from benchmarks.forkbench.game import Agent
from questbook import Query, Segment, UserTimeline, recall, remember


class State(MessagesState):
    """The conversation, and what this checkpoint may remember."""

    timeline: list[Segment]


def build(bench: Bench) -> Agent:
    """Recall, reply and remember, as docs/memory.md has it."""
    model = bench.model(lambda messages, _: bench.reply(messages))
    exchanges, claims, heads = ((bench.user, "chat", kind) for kind in ("exchanges", "claims", "heads"))

    async def answer(state: State, config: RunnableConfig, runtime: Runtime) -> dict[str, Any]:
        messages, thread = state["messages"], config["configurable"]["thread_id"]
        timeline = UserTimeline(state.get("timeline", []), thread=thread, heads=heads)
        memories = await recall(runtime.store, exchanges, Query(messages[-1].text, timeline=timeline, limit=20))
        remembered = "\n".join(memory.text for memory in memories)
        reply = await model.ainvoke([SystemMessage(f"What you remember:\n{remembered}"), *window(messages)])
        exchange = {"player": unanswered(messages), "reply": reply.text}
        timeline = await remember(runtime.store, exchanges, exchange, timeline=timeline, claims=claims)
        return {"messages": [reply], "timeline": list(timeline)}

    graph = StateGraph(State).add_node(answer).add_edge(START, "answer")
    return Agent(graph.compile(checkpointer=bench.saver, store=bench.store))


ADAPTER = Adapter(
    "questbook, plain graph",
    build,
    package="questbook",
    doc="docs/memory.md",
    note="one node recalls, replies and remembers; messages that a crash left without a reply are remembered, too",
    stores=OUR_STORES,
)
