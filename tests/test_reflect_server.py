"""Reflection in the background, on LangGraph's own development server."""

import asyncio

import pytest
from dev_server import CONTEXT

FACTS, REFLECTIONS = (["adventurer", "studio", name] for name in ("facts", "reflections"))

pytestmark = pytest.mark.slow  # a server's start, and runs that wait for quiet


async def test_a_run_on_a_thread_of_its_own_reflects(studio):
    client = studio.start()
    [assistant] = await client.assistants.search(graph_id="reflect")
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    assert set(schemas["input_schema"]["properties"]) == {
        "timeline",
        "turn",
        "through",
        "note_from",
        "thread",
        "of_user",
        "notes_only",
    }
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
