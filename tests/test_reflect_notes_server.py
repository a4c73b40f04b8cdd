"""Facts that are noted in the background, on LangGraph's own development server."""

import asyncio
import json

import pytest
from dev_server import ROOT, DevServer

pytestmark = pytest.mark.slow  # a server's start, and runs that wait for quiet

AGENT = """
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from questbook import FactNotes, TimelineMemoryMiddleware

memory = TimelineMemoryMiddleware(user="ann", model="offline", facts=FactNotes(noting="background"))
agent = create_agent(FakeListChatModel(responses=["I see."]), middleware=[memory])
"""


async def test_a_run_of_reflect_notes_each_turn_of_an_agent_of_langchains_once(tmp_path):
    server = DevServer(tmp_path / "home", tmp_path / "app", checkout=False)
    server.environment = {"PYTHONPATH": str(ROOT)}
    (server.state / "agent.py").write_text(AGENT)
    graphs = {"agent": "./agent.py:agent", "reflect": "questbook.graphs.reflect.graph:graph"}
    (server.state / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    try:
        client = server.start()
        thread = await client.threads.create()
        for words in ("I live in Oslo.", "I have a dog."):
            said = {"messages": [{"role": "user", "content": words}]}
            await client.runs.wait(thread["thread_id"], "agent", input=said)
        noted = []
        for _ in range(200):
            noted = (await client.store.search_items(["ann", "agent~3a;agent", "noted"]))["items"]
            if len(noted) == 2:
                break
            await asyncio.sleep(0.5)
        assert sorted(item["value"]["turn"] for item in noted) == [1, 2]
        assert {item["value"]["thread"] for item in noted} == {thread["thread_id"]}
        values = await client.threads.get_state(thread["thread_id"])
        assert values["values"].get("notices", []) == []
        assert "BlockingError" not in (server.state / "log").read_text()
    finally:
        server.stop()
