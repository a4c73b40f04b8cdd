"""mem0 with `infer=False`: both messages are added as they are, and searched by their vectors, with no model at all."""

from __future__ import annotations

import atexit
import os
import tempfile
from functools import cache
from typing import Any

from langchain_core.messages import SystemMessage
from langgraph.graph import START, MessagesState, StateGraph

from benchmarks.forkbench.adapters.adapter import Adapter
from benchmarks.forkbench.bench import Bench, unanswered, window
from benchmarks.forkbench.game import Agent
from questbook import HashEmbeddings


@cache
def memory() -> Any:
    """Return a mem0 on a local Qdrant, for all games: each has a user of its own. Nothing leaves the machine."""
    home = tempfile.TemporaryDirectory(prefix="mem0")
    atexit.register(home.cleanup)
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": home.name}
    from mem0 import Memory
    from mem0.utils import spacy_models

    spacy_models._ensure_model_available = lambda: None  # it would download a model where spaCy is installed
    embed = HashEmbeddings()
    vectors = {"path": f"{home.name}/qdrant", "embedding_model_dims": embed.dims, "collection_name": "forkbench"}
    return Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": vectors},
            "embedder": {"provider": "langchain", "config": {"model": embed}},
            "llm": {"provider": "openai", "config": {"api_key": "not-needed"}},
            "history_db_path": f"{home.name}/history.db",
        }
    )


def build(bench: Bench) -> Agent:
    """Search, reply and add in one node, as mem0's guide to LangGraph does; a local Qdrant bears no threads."""
    model, mem0 = bench.model(lambda messages, _: bench.reply(messages)), memory()

    async def chatbot(state: MessagesState) -> dict[str, Any]:
        asked, user = state["messages"][-1].text, bench.user
        found = mem0.search(asked, filters={"user_id": user}, threshold=0.0)
        memories = "\n".join(f"- {item['memory']}" for item in found["results"])
        prompt = [SystemMessage(f"Relevant memories:\n{memories}"), *window(state["messages"])]
        reply = await model.ainvoke(prompt)
        exchange = [{"role": "user", "content": unanswered(state["messages"])}]
        exchange.append({"role": "assistant", "content": reply.text})
        mem0.add(exchange, user_id=user, infer=False)
        bench.fuse.tick()
        return {"messages": [reply]}

    graph = StateGraph(MessagesState).add_node(chatbot).add_edge(START, "chatbot")
    return Agent(graph.compile(checkpointer=bench.saver, store=bench.store))


ADAPTER = Adapter(
    "mem0, infer=False",
    build,
    package="mem0ai",
    doc="mem0's guide to LangGraph: search, reply and add in one node",
    note="the twenty best without a threshold, on a local Qdrant with our hashing embedder",
    needs=("mem0", "qdrant_client"),
)
