"""On LangGraph's development server no stream of messages holds a secret, whatever the model says."""

import json

import pytest
from conftest import MIRA
from dev_server import say as play
from fake_openai import call, say

SECRET = "Maren opened the north gate for the raiders on Midsummer night."
MODEL = "openai:gpt-4o-mini"


@pytest.mark.slow
async def test_no_stream_of_messages_holds_a_secret(studio, server):
    jobs = {"CharacterNotebook": "interview", "roll_dice": "quest", "StateNotebook": "update"}
    told = [
        say("You come to the inn."),
        say("Maren smiles.") + call("keep_secret", {"about": "Maren", "secret": SECRET}),
        say(f"She says at last: {SECRET}"),
        say("She says nothing."),
        say("On and on. " * 5_000),
    ]

    def respond(body):
        tools = {tool["function"]["name"] for tool in body.get("tools", [])}
        job = next((jobs[name] for name in jobs if name in tools), "")
        if job == "interview":
            return call("CharacterNotebook", MIRA)
        return told.pop(0) if job == "quest" else say("no change")

    server.responder = respond
    client = studio.start()
    thread = await client.threads.create(graph_id="dungeon_master")
    await play(client, thread, "I'm Mira.", model=MODEL)
    shown, events = await play(client, thread, "I talk to Maren.", model=MODEL)
    assert shown == "Maren smiles."
    heard = json.dumps([data for event, data in events if event == "messages"])
    assert "raiders" not in heard
    assert "keep_secret" not in heard
    state = await client.threads.get_state(thread["thread_id"])
    assert state["values"]["quest"]["secrets"] == {"Maren": SECRET}
    assert "raiders" not in json.dumps(state["values"]["messages"])

    shown, events = await play(client, thread, "What do you hide?", model=MODEL)
    assert shown == "She says at last: …\n\nShe says nothing."
    assert "raiders" not in json.dumps([data for event, data in events if event == "messages"])

    shown, _ = await play(client, thread, "I listen.", model=MODEL)
    values = (await client.threads.get_state(thread["thread_id"]))["values"]
    assert len(shown) <= 20_000
    assert values["messages"][-1]["content"] == shown
    assert "cut" in values["notices"][-1]["text"]
