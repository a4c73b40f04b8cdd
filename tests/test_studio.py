"""LangGraph's own development server runs the dungeon master, and Studio's API drives it."""

import pytest
from dev_server import CONTEXT, say
from langgraph_sdk.errors import APIStatusError

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
        with pytest.raises(APIStatusError, match=r"was left as it is|xpected|got 'x'") as refused:
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
