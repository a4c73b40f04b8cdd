"""LangGraph's own development server with this project's graphs, as `make studio` starts it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
from langgraph_sdk import get_client

ROOT = Path(__file__).parent.parent
CONTEXT = {"campaign": "studio", "seed": 3}


class DevServer:
    """The server of an app: of this checkout, or of a directory of its own that has Questbook installed."""

    def __init__(self, home, state, python=sys.executable, *, checkout=True):
        self.home, self.state, self.python, self.process = home, state, python, None
        self.environment = {"PYTHONPATH": str(ROOT)} if checkout else {}
        state.mkdir(exist_ok=True)
        if checkout:  # the server keeps its own records beside the configuration: links to it keep the checkout clean
            for name in ("langgraph.json", "pyproject.toml", "README.md", "questbook", "graphs", "memory", "notebooks"):
                (state / name).symlink_to(ROOT / name)

    def start(self):
        """Start it; once more where another program took its port before it did."""
        try:
            return self._start()
        except AssertionError as error:
            if "address already in use" not in str(error):
                raise
            return self._start()

    def _start(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("LANGSMITH", "PYTHONPATH", "QUESTBOOK_USER"))
            },
            **self.environment,
            "QUESTBOOK_HOME": str(self.home),
            "LANGSMITH_TRACING": "false",
            "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            "LANGGRAPH_STRICT_MSGPACK": "true",
        }
        command = [str(self.python), "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
        command += ["--host", "127.0.0.1", "--port", str(port), "--config", str(self.state / "langgraph.json")]
        self.log = (self.state / "log").open("ab")
        self.process = subprocess.Popen(command, cwd=self.state, env=environment, stdout=self.log, stderr=self.log)
        self.url = f"http://127.0.0.1:{port}"
        end = time.monotonic() + 200
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/ok", timeout=1).is_success:
                    return get_client(url=self.url)
            except httpx.TransportError:
                time.sleep(0.2)
        raise AssertionError((self.state / "log").read_text()[-3000:])

    def stop(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.log.close()


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
