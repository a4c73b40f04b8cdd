"""Reflection and notes in the background, on LangGraph's own development server."""

import asyncio
import json

import pytest
from dev_server import CONTEXT, ROOT, DevServer

FACTS, REFLECTIONS = (["adventurer", "studio", name] for name in ("facts", "reflections"))

pytestmark = pytest.mark.slow  # a server's start, and runs that wait for quiet


async def test_a_run_on_a_thread_of_its_own_reflects(studio):
    client = studio.start()
    [assistant] = await client.assistants.search(graph_id="reflect")
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    fields = {"timeline", "turn", "through", "note_from", "thread", "of_user", "viewer_page", "notes_only"}
    assert set(schemas["input_schema"]["properties"]) == fields
    thread = await client.threads.create(graph_id="dungeon_master")
    context = {**CONTEXT, "reflection": "background", "reflection_importance": 4}
    for words in ("I'm Mira, a halfling thief who grew up on the docks and wants her sister back.", "I look around."):
        said = {"messages": [{"role": "user", "content": words}]}
        await client.runs.wait(thread["thread_id"], "dungeon_master", input=said, context=context)
    assert (await client.store.search_items(FACTS, limit=50))["items"]
    for _ in range(200):
        done = (await client.store.search_items(REFLECTIONS, limit=50))["items"]
        if done:
            break
        await asyncio.sleep(0.5)
    assert [item["value"]["through"] for item in done] in ([1], [2])
    others = [one for one in await client.threads.search(limit=10) if one["thread_id"] != thread["thread_id"]]
    assert [one["metadata"]["graph_id"] for one in others] == ["reflect"]
    assert "BlockingError" not in (studio.state / "log").read_text()


async def test_a_run_that_failed_is_told_in_the_campaign_by_the_next_turn(studio):
    client = studio.start()
    thread = await client.threads.create(graph_id="dungeon_master")

    async def play(words, **settings):
        said = {"messages": [{"role": "user", "content": words}]}
        context = {**CONTEXT, "reflection_importance": 4, **settings}
        await client.runs.wait(thread["thread_id"], "dungeon_master", input=said, context=context)
        state = await client.threads.get_state(thread["thread_id"])
        return " | ".join(entry["text"] for entry in state["values"]["notices"] if entry["node"] == "reflect")

    await play("I'm Mira, a halfling thief who grew up on the docks and wants her sister back.", reflection="off")
    await play("I look around.", reflection="off")
    assert await play("I wait.", reflection="background", update_timeout=0.00001) == ""
    for _ in range(200):
        [run] = [one for one in await client.threads.search(limit=10) if one["thread_id"] != thread["thread_id"]]
        if (run["values"] or {}).get("failed"):
            break
        await asyncio.sleep(0.5)
    told = await play("I wait.", reflection="background")
    assert told.count("The reflection was not finished") == 1
    assert not (await client.store.search_items(REFLECTIONS, limit=50))["items"]


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
