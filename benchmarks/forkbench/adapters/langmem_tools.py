"""LangMem's tools: the agent searches before it replies, and creates, updates and deletes memories as it is told."""

from __future__ import annotations

import json

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.forkbench.adapters.adapter import Adapter
from benchmarks.forkbench.adapters.trimmed import trim
from benchmarks.forkbench.bench import Bench, results, unanswered
from benchmarks.forkbench.game import Agent


def build(bench: Bench) -> Agent:
    """Give the agent LangMem's two tools, over one namespace of the user."""
    from langmem import create_manage_memory_tool, create_search_memory_tool

    def answer(messages: list[BaseMessage], _: tuple[str, ...]) -> AIMessage:
        said, done = unanswered(messages), results(messages)
        told = bench.facts_in(said)
        searches = list(dict.fromkeys([*(event.slot for event in told), *filter(None, [bench.asked_in(said)])]))
        if not done and searches:
            return AIMessage("", tool_calls=[bench.call("search_memory", query=slot) for slot in searches])
        found = [item for one in done if one.name == "search_memory" for item in json.loads(one.text)]
        held = {item["value"]["content"].partition(":")[0]: item["key"] for item in reversed(found)}
        if told and not any(one.name == "manage_memory" for one in done):
            calls = []
            for event in {event.slot: event for event in told}.values():
                change = {"action": "delete" if event.over else "update", "id": held.get(event.slot)}
                if event.slot not in held:
                    change = {"action": "create"}
                calls.append(bench.call("manage_memory", **change, content=event.noted))
            return AIMessage("", tool_calls=calls)
        return bench.reply(messages)

    space = ("memories", "{langgraph_user_id}")
    tools = [create_manage_memory_tool(space), create_search_memory_tool(space)]
    graph = create_agent(bench.model(answer), tools, middleware=[trim], checkpointer=bench.saver, store=bench.store)
    return Agent(graph)


ADAPTER = Adapter(
    "LangMem's tools",
    build,
    package="langmem",
    doc="LangMem's guide to memory tools (create_manage_memory_tool, create_search_memory_tool)",
    note="the model searches first and updates the memory that it finds; a memory is overwritten or deleted for good",
    needs=("langmem",),
)
