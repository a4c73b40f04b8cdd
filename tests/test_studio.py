"""LangGraph's own development server runs the dungeon master and our store, and Studio's API drives them."""

import json
import sqlite3

import conftest
import fake_openai as fake
import pytest
from dev_server import CONTEXT, say
from fake_openai import call
from langgraph_sdk.errors import APIStatusError

from questbook.graphs.local.file_home import FileHome

MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."


@pytest.mark.slow
async def test_studio_from_schemas_to_restart(studio):
    client = studio.start()
    [assistant] = await client.assistants.search(graph_id="dungeon_master")
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    settings = schemas["context_schema"]["properties"]
    assert {"model", "campaign", "user", "buffer_tokens", "recall_tokens"} <= set(settings)
    assert all(field["description"] for field in settings.values())
    assert {"messages", "character", "quest", "timeline", "recalled"} <= set(schemas["state_schema"]["properties"])
    assert list(schemas["input_schema"]["properties"]) == ["messages"]
    picture = await client.assistants.get_graph(assistant["assistant_id"])
    assert {"build_character", "run_quest", "update_state"} <= {node["id"] for node in picture["nodes"]}

    # Both modes, streamed.
    thread = await client.threads.create(graph_id="dungeon_master")
    asked, _ = await say(client, thread, "Hello, I'm Mira.")
    assert asked.strip()
    values = (await client.threads.get_state(thread["thread_id"]))["values"]
    assert values["character"]["name"] == "Mira"
    assert values["quest"]["scene"] == ""
    opened, events = await say(client, thread, MIRA)
    assert len(opened) > 80
    nodes = [next(iter(data)) for event, data in events if event == "updates"]
    assert nodes[:3] == ["build_character", "recall", "run_quest"]
    assert nodes[-2:] == ["update_state", "remember"]
    assert any(data.get("prompt") for event, data in events if event == "custom")
    values = (await client.threads.get_state(thread["thread_id"]))["values"]
    assert values["character"]["class"] in ("thief", "rogue", "Rogue")
    assert values["quest"]["scene"]
    assert values["messages"][-1]["content"].strip() == opened.strip() or values["messages"][-1]["content"] in opened

    # A person edits a page: a good edit counts, a bad one is refused by name and changes nothing.
    edited = await client.threads.update_state(
        thread["thread_id"], {"quest": {"inventory": {"silver key": 1}, "gold": 77}}, as_node="remember"
    )
    assert edited["checkpoint"]
    wrong = [{"messages": 5}, {"notices": "x"}, {"rolls": [1]}, {"turn": "x"}]
    for bad in ({"quest": {"gold": "much"}}, {"quest": {"treasure": 1}}, {"character": {"level": 99}}, *wrong):
        with pytest.raises(APIStatusError, match=r"was left as it is|xpected|: got ") as refused:
            await client.threads.update_state(thread["thread_id"], bad, as_node="remember")
        assert refused.value.status_code == 400
    values = (await client.threads.get_state(thread["thread_id"]))["values"]
    assert values["quest"]["gold"] == 77
    assert values["quest"]["inventory"]["silver key"] == 1
    assert values["character"]["level"] == 1
    bag, _ = await say(client, thread, "inventory")
    assert "silver key" in bag

    # A run's command is saved before its channel sees it; what does not fit is left out all the same.
    for bad in ({"quest": {"gold": "x"}}, {"messages": 5}, {"notices": "x"}, {"rolls": [1]}):
        await client.runs.wait(thread["thread_id"], "dungeon_master", command={"update": bad}, context=CONTEXT)
    state = await client.threads.get_state(thread["thread_id"])
    assert state["values"]["quest"]["gold"] == 77
    assert len(await client.threads.get_history(thread["thread_id"], limit=100)) > 8
    await say(client, thread, "I look at the key.")
    notices = (await client.threads.get_state(thread["thread_id"]))["values"]["notices"]
    assert [notice["node"] for notice in notices].count("edit") == 4

    # History, and a fork from it.
    history = await client.threads.get_history(thread["thread_id"], limit=100)
    assert len(history) > 8
    assert {"run_quest", "update_state", "remember"} <= {name for state in history for name in state["next"]}
    turns = (await client.threads.get_state(thread["thread_id"]))["values"]["turn"]

    # Restart: nothing is lost.
    studio.stop()
    client = studio.start()
    values = (await client.threads.get_state(thread["thread_id"]))["values"]
    assert values["turn"] == turns
    assert values["quest"]["gold"] == 77
    after, _ = await say(client, thread, "I look around.")
    assert after.strip()
    items = await client.store.search_items(["adventurer", "studio", "exchanges"], limit=50)
    assert sorted(item["value"]["turn"] for item in items["items"]) == list(range(1, turns + 2))
    assert "BlockingError" not in (studio.state / "log").read_text()


SECRET = "Maren opened the north gate for the raiders on Midsummer night."
MODEL = "openai:gpt-4o-mini"


@pytest.mark.slow
async def test_no_stream_of_messages_holds_a_secret(studio, server):
    jobs = {"CharacterNotebook": "interview", "roll_dice": "quest", "StateNotebook": "update"}
    told = [
        fake.say("You come to the inn."),
        fake.say("Maren smiles.") + call("keep_secret", {"about": "Maren", "secret": SECRET}),
        fake.say(f"She says at last: {SECRET}"),
        fake.say("She says nothing."),
        fake.say("On and on. " * 5_000),
    ]

    def respond(body):
        tools = {tool["function"]["name"] for tool in body.get("tools", [])}
        job = next((jobs[name] for name in jobs if name in tools), "")
        if job == "interview":
            return call("CharacterNotebook", conftest.MIRA)
        return told.pop(0) if job == "quest" else fake.say("no change")

    server.responder = respond
    client = studio.start()
    thread = await client.threads.create(graph_id="dungeon_master")
    await say(client, thread, "I'm Mira.", model=MODEL)
    shown, events = await say(client, thread, "I talk to Maren.", model=MODEL)
    assert shown == "Maren smiles."
    heard = json.dumps([data for event, data in events if event == "messages"])
    assert "raiders" not in heard
    assert "keep_secret" not in heard
    state = await client.threads.get_state(thread["thread_id"])
    assert state["values"]["quest"]["secrets"] == {"Maren": SECRET}
    assert "raiders" not in json.dumps(state["values"]["messages"])

    shown, events = await say(client, thread, "What do you hide?", model=MODEL)
    assert shown == "She says at last: …\n\nShe says nothing."
    assert "raiders" not in json.dumps([data for event, data in events if event == "messages"])

    shown, _ = await say(client, thread, "I listen.", model=MODEL)
    values = (await client.threads.get_state(thread["thread_id"]))["values"]
    assert len(shown) <= 20_000
    assert values["messages"][-1]["content"] == shown
    assert "cut" in values["notices"][-1]["text"]


NOTING = """
from typing import TypedDict
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

class State(TypedDict):
    said: str

def note(state: State, runtime: Runtime):
    runtime.store.put(("notes",), "sync", {"content": state["said"], "other": "x"})

async def anote(state: State, runtime: Runtime):
    await runtime.store.aput(("notes",), "async", {"content": state["said"], "other": "x"})

graph = StateGraph(State).add_sequence([anote, note]).add_edge(START, "anote").compile()
"""


@pytest.mark.slow
async def test_index_and_time_to_live_of_the_configuration_hold(studio):
    (studio.state / "vectors.py").write_text(
        "from questbook import HashEmbeddings\n"
        "def embed(texts):\n    return HashEmbeddings(64).embed_documents(texts)\n"
    )
    (studio.state / "noting.py").write_text(NOTING)
    settings = json.loads((studio.state / "langgraph.json").read_text())
    (studio.state / "langgraph.json").unlink()
    settings["store"] |= {
        "index": {"embed": "./vectors.py:embed", "dims": 64, "fields": ["content"]},
        "ttl": {"default_ttl": 90, "refresh_on_read": False, "sweep_interval_minutes": 1},
    }
    settings["graphs"] = {"noting": "./noting.py:graph"}
    (studio.state / "langgraph.json").write_text(json.dumps(settings))
    client = studio.start()
    await client.runs.wait(None, "noting", input={"said": "Biscuit is a tabby."})
    found = await client.store.search_items(("notes",), query="Biscuit is a tabby.")
    assert [(item["key"], round(item["score"], 3)) for item in found["items"]] == [("async", 1.0), ("sync", 1.0)]
    studio.stop()
    database = sqlite3.connect(FileHome(studio.home).memory)
    assert database.execute("SELECT ttl_minutes FROM items").fetchall() == [(90,), (90,)]
    meta = dict(database.execute("SELECT key, value FROM meta"))
    assert (meta["embedder"], meta["fields"]) == ("embed with 64 dimensions", '["content"]')
    database.close()
