"""LangGraph's own development server runs the dungeon master, and Studio's API drives it."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError

ROOT = Path(__file__).parent.parent
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
CONTEXT = {"campaign": "studio", "seed": 3}


class DevServer:
    def __init__(self, home, state):
        self.home, self.state, self.process = home, state, None

    def start(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LANGSMITH")},
            "QUESTBOOK_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "LANGSMITH_TRACING": "false",
            "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            "LANGGRAPH_STRICT_MSGPACK": "true",
        }
        command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
        command += ["--host", "127.0.0.1", "--port", str(port), "--config", str(self.state / "langgraph.json")]
        self.log = (self.state / "log").open("ab")
        self.process = subprocess.Popen(command, cwd=self.state, env=environment, stdout=self.log, stderr=self.log)
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            if self.process.poll() is not None:
                break
            try:
                if httpx.get(f"{self.url}/ok", timeout=1).is_success:
                    return get_client(url=self.url)
            except httpx.TransportError:
                time.sleep(0.2)
        raise AssertionError((self.state / "log").read_text()[-3000:])

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(20)
            self.log.close()


@pytest.fixture
def server(tmp_path):
    # The server keeps its own records beside the configuration: a copy of it keeps them out of the checkout.
    state = tmp_path / "studio"
    state.mkdir()
    for name in ("langgraph.json", "pyproject.toml", "README.md", "graphs", "memory", "notebooks"):
        (state / name).symlink_to(ROOT / name)
    running = DevServer(tmp_path / "home", state)
    yield running
    running.stop()


async def say(client, thread, words, **settings):
    """Play a turn; return the reply as it was streamed, and the events by mode."""
    tokens, events = [], []
    stream = client.runs.stream(
        thread["thread_id"],
        "dungeon_master",
        input={"messages": [{"role": "user", "content": words}]},
        context={**CONTEXT, **settings},
        stream_mode=["messages-tuple", "updates", "custom"],
        durability="sync",
    )
    async for part in stream:
        events.append((part.event, part.data))
        if part.event == "messages":
            message, metadata = part.data
            if message["type"] == "AIMessageChunk" and metadata["langgraph_node"] in ("build_character", "run_quest"):
                tokens.append(message["content"])
    assert not [data for event, data in events if event == "error"], events
    return "".join(tokens), events


async def test_studio_from_schemas_to_restart(server):
    client = server.start()
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
    for bad in ({"quest": {"gold": "much"}}, {"quest": {"treasure": 1}}, {"character": {"level": 99}}):
        with pytest.raises(APIStatusError):
            await client.threads.update_state(thread["thread_id"], bad, as_node="remember")
    values = (await client.threads.get_state(thread["thread_id"]))["values"]
    assert values["quest"]["gold"] == 77
    assert values["quest"]["inventory"]["silver key"] == 1
    assert values["character"]["level"] == 1
    log = (server.state / "log").read_text()
    assert "gold: got 'much'" in log
    bag, _ = await say(client, thread, "inventory")
    assert "silver key" in bag

    # History, and a fork from it.
    history = await client.threads.get_history(thread["thread_id"], limit=100)
    assert len(history) > 8
    assert {"run_quest", "update_state", "remember"} <= {name for state in history for name in state["next"]}
    turns = (await client.threads.get_state(thread["thread_id"]))["values"]["turn"]

    # Restart: nothing is lost.
    server.stop()
    client = server.start()
    values = (await client.threads.get_state(thread["thread_id"]))["values"]
    assert values["turn"] == turns
    assert values["quest"]["gold"] == 77
    after, _ = await say(client, thread, "I look around.")
    assert after.strip()
    items = await client.store.search_items(["adventurer", "studio", "exchanges"], limit=50)
    assert sorted(item["value"]["turn"] for item in items["items"]) == list(range(1, turns + 2))
    assert "BlockingError" not in (server.state / "log").read_text()
