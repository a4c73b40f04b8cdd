"""LangMem's store manager: it reads each exchange after the reply, and inserts, patches and removes memories."""

from __future__ import annotations

import asyncio
import re
from contextvars import Context
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langgraph.graph import START, MessagesState, StateGraph

from benchmarks.forkbench.adapters.adapter import Adapter
from benchmarks.forkbench.bench import Bench, latest, window
from benchmarks.forkbench.game import Agent

INSTANCE = re.compile(r"<instance id=(\S+) [^>]*>\n(.*?)\n</instance>", re.DOTALL)


def build(bench: Bench) -> Agent:
    """Search, reply, and let the manager work on the exchange, within the turn."""
    from langmem import create_memory_store_manager

    def manage(messages: list[BaseMessage], _: tuple[str, ...]) -> AIMessage:
        text = "\n".join(message.text for message in messages)
        held = {content.split("'content': ")[1][1:].partition(":")[0]: id_ for id_, content in INSTANCE.findall(text)}
        calls = []
        for event in {event.slot: event for event in bench.facts_in(text)}.values():
            if event.slot not in held:
                calls.append(bench.call("Memory", content=event.noted))
            elif event.over:
                calls.append(bench.call("RemoveDoc", json_doc_id=held[event.slot]))
            else:
                patch = {"op": "replace", "path": "/content", "value": event.noted}
                args = {"json_doc_id": held[event.slot], "planned_edits": "Replace it.", "patches": [patch]}
                calls.append(bench.call("PatchDoc", **args))
        return AIMessage("" if calls else "Nothing new.", tool_calls=calls)

    model = bench.model(lambda messages, _: bench.reply(messages))
    manager = create_memory_store_manager(
        bench.model(manage), namespace=("memories", "{langgraph_user_id}"), enable_deletes=True, store=bench.store
    )

    async def chat(state: MessagesState) -> dict[str, Any]:
        asked, configured = state["messages"][-1].text, {"configurable": {"langgraph_user_id": bench.user}}
        memories = "\n".join(str(item.value) for item in await manager.asearch(query=asked, config=configured))
        reply = await model.ainvoke([SystemMessage(f"<memories>\n{memories}\n</memories>"), *window(state["messages"])])
        work = manager.ainvoke({"messages": [*latest(state["messages"]), reply]}, config=configured)
        await asyncio.create_task(work, context=Context())  # its inner graph fails if it inherits durability="sync"
        return {"messages": [reply]}

    graph = StateGraph(MessagesState).add_node(chat).add_edge(START, "chat")
    return Agent(graph.compile(checkpointer=bench.saver, store=bench.store))


ADAPTER = Adapter(
    "LangMem's store manager",
    build,
    package="langmem",
    doc="the example of create_memory_store_manager in LangMem's reference",
    note="deletes are allowed, which is not its default; the manager runs within the turn, as in that example",
    needs=("langmem",),
)
