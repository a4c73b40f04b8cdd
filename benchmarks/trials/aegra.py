"""Two instances of Aegra on one database, with the files of deploy/aegra: the server's trial, and more.

AEGRA_PYTHON names the Python of an environment with `aegra-api` and this checkout ("On Aegra" in docs/deploy.md). A
`redis-server` on the path is used, too: without one nobody takes up the runs of an instance that was killed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import jwt
from dev_server import ROOT
from langgraph.checkpoint.base import empty_checkpoint
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError
from postgres import new_database

from benchmarks.trials.server import MIRA, WRONG_EDITS, ServerTrial, Spot, Story
from questbook.graphs.local.homes import home_at
from questbook.graphs.turn.run_guard import SessionLocks
from questbook.memory.timeline.namespaces import escape_label

STEPS = {"tell": 8, "ask": 6, "fork": 6, "undo": 6, "edit": 2, "wrong edit": 2, "thread": 1, "kill": 4, "cancel": 4,
         "two": 4}  # fmt: skip
_REFUSED = (APIStatusError, httpx.HTTPStatusError)  # the latter from `runs.wait`
_SECRET, _ISSUER = "s" * 32, "https://login.example.org"
_ANN = escape_label("ann@login.example.org")
_QUICK_LEASES = {"LEASE_DURATION_SECONDS": "4", "HEARTBEAT_INTERVAL_SECONDS": "1", "REAPER_INTERVAL_SECONDS": "2"}
_DONE = ("success", "error", "interrupted", "timeout", "cancelled")


class Aegra:
    """Two instances on one database, and a Redis if `redis-server` is there.

    Args:
        path: A directory for the instances' files.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.url = path, new_database()
        self.processes: dict[int, subprocess.Popen[bytes]] = {}  # by port
        self.ports = [_free_port(), _free_port()]
        for file in (ROOT / "deploy/aegra").iterdir():
            shutil.copy(file, path)
        self.redis = _start_redis(path)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("QUESTBOOK_")} | {
            "QUESTBOOK_DATABASE": self.url, "DATABASE_URL": self.url, "QUESTBOOK_HOME": str(path / "home"),
            "QUESTBOOK_EMBEDDINGS": "hash", "QUESTBOOK_OIDC_ISSUER": _ISSUER, "QUESTBOOK_OIDC_AUDIENCE": "questbook",
            "QUESTBOOK_JWT_SECRET": _SECRET, "LANGSMITH_TRACING": "false", "PYTHONPATH": "",
            "ENV_MODE": "PRODUCTION", "LOG_LEVEL": "WARNING", **_QUICK_LEASES,
        }  # fmt: skip
        if self.redis:
            port = self.redis.args[2]  # type: ignore[index, call-overload]
            self.environment |= {"REDIS_BROKER_ENABLED": "true", "REDIS_URL": f"redis://127.0.0.1:{port}/0"}

    def start(self) -> None:
        """Start what does not run."""
        python = os.environ["AEGRA_PYTHON"]
        if not self.processes:
            command = [python, "-m", "questbook.graphs.terminal", "migrate"]
            subprocess.run(command, env=self.environment, check=True, capture_output=True)
        for port in self.ports:
            if port in self.processes and self.processes[port].poll() is None:
                continue
            command = [python, "-m", "uvicorn", "aegra_api.main:app", "--host", "127.0.0.1", "--port", str(port)]
            with (self.path / f"{port}.log").open("ab") as log:
                self.processes[port] = subprocess.Popen(
                    command, cwd=self.path, env=self.environment, stdout=log, stderr=log
                )
            self._wait(port)

    def _wait(self, port: int) -> None:
        end = time.monotonic() + 120
        while time.monotonic() < end and self.processes[port].poll() is None:
            with suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{port}/health", timeout=5).is_success:
                    return
            time.sleep(0.2)
        raise AssertionError((self.path / f"{port}.log").read_text()[-3000:])

    def kill(self, pid: int) -> None:
        """Kill -9 the instance with this process id, or any if it is none of them."""
        running = {process.pid: process for process in self.processes.values() if process.poll() is None}
        process = running.get(pid) or next(iter(running.values()))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """Stop all."""
        for process in [*self.processes.values(), *([self.redis] if self.redis else [])]:
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()

    def client(self, port: int, user: str) -> Any:
        """Return a client of an instance, logged in."""
        claims = {"iss": _ISSUER, "aud": "questbook", "sub": user, "exp": int(time.time()) + 36000}
        headers = {"Authorization": f"Bearer {jwt.encode(claims, _SECRET, 'HS256')}"}
        return get_client(url=f"http://127.0.0.1:{port}", headers=headers)


class AegraTrial(ServerTrial):
    """As the server's trial; each request goes to one of the two instances by chance."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(path, seed)
        (path / "aegra").mkdir()
        self.aegra = Aegra(path / "aegra")
        self.locks = SessionLocks(self.aegra.url)

    async def play(self, steps: int) -> dict[str, tuple[int, str]]:
        """Play so many steps, and return each count with its unit."""
        self.aegra.start()
        self.ann = [self.aegra.client(port, "ann") for port in self.aegra.ports]
        try:
            await self._begin("story0")
            while self.counts["steps"] < steps:
                [kind] = self.dice.choices(list(STEPS), STEPS.values())
                self.counts["steps"] += 1
                self.counts[kind] += 1
                await self._step(kind)
            await self._look_as_others()
            await self._look_as_studio()
            await self._talk_to_the_companion()
            await self._reflect()
        finally:
            self.aegra.stop()
        faults = ("leaked", "missing", "doubled", "lost", "dropped", "refusals_not_given", "errors", "foreign")
        units = {"steps": "steps", "turns": "turns"} | dict.fromkeys(STEPS, "times")
        names = (*units, *faults)
        return {name.replace(" ", "_"): (self.counts[name], units.get(name, "faults")) for name in names}

    @property
    def client(self) -> Any:
        """A client of one of the instances."""
        return self.dice.choice(self.ann)

    async def _step(self, kind: str) -> None:
        story = self.dice.choice(self.stories)
        match kind:
            case "undo":
                await self._undo(story)
            case "cancel":
                await self._break(story, cancel=True)
            case "kill":
                await self._break(story, cancel=False)
            case "two":
                await self._say_two(story)
            case "wrong edit":
                try:
                    await self._update(story, self.dice.choice(WRONG_EDITS))
                    self.counts["refusals_not_given"] += 1
                except _REFUSED as error:  # Aegra answers 500, with the reason
                    self._check("errors", error.response.status_code not in (400, 500), f"wrong edit: {error}")
            case _:
                await super()._step(kind)

    def _check(self, fault: str, is_there: object, text: str) -> None:
        if is_there:
            self.counts[fault] += 1
            print(f"step {self.counts['steps']}: {fault}: {text}", file=sys.stderr)

    async def _undo(self, story: Story) -> None:
        """Go back to an earlier place, as Studio does, and play on from there."""
        spot = self.dice.choice(story.spots)
        thread = story.thread
        await self.client.threads.update_state(thread, None, as_node="__copy__", checkpoint_id=spot.checkpoint)
        state = await self.client.threads.get_state(thread)
        story.spots.append(Spot(state["checkpoint"]["checkpoint_id"], spot.told, spot.gold))
        await self._turn(story, story.now._replace(checkpoint=""), asks=self.dice.random() < 0.5)

    async def _break(self, story: Story, *, cancel: bool) -> None:
        """Break a run off in its middle, by its cancelling or by a kill of the instance; run it to its end."""
        word, spot = self._word(), story.now
        words = f"I write {word} on the wall, and go on."
        said: Any = {"messages": [{"role": "user", "content": words}]}
        client = self.client
        run = await client.runs.create(story.thread, "dungeon_master", input=said, context=self._context(story))
        pid = await self._wait_for_lock(story.thread)
        await asyncio.sleep(self.dice.random() * 0.2)
        if cancel:
            with suppress(*_REFUSED):  # it has ended
                await client.runs.cancel(story.thread, run["run_id"], wait=True)
        else:
            self.aegra.kill(pid)
            await asyncio.to_thread(self.aegra.start)
        with suppress(TimeoutError):  # without Redis nobody takes up the run of an instance that was killed
            await asyncio.wait_for(self._end_of(story, run["run_id"]), 60 if self.aegra.redis else 1)
        await self._go_on(story, spot, words)
        self.counts["turns"] += 1
        await self._arrive(story, spot, words, word)

    async def _go_on(self, story: Story, spot: Spot, words: str) -> None:
        """Run a turn that was broken off to its end: send its words again if the thread does not have them."""
        state = await self.client.threads.get_state(story.thread)
        has_words = [one["content"] for one in state["values"]["messages"] if one["type"] == "human"][-1:] == [words]
        if not has_words:
            await self._run(story, Spot("", spot.told), words)
        elif state["next"] or state["values"]["turn"] <= len(spot.told):
            # Aegra wants one of input, command and checkpoint
            await self.client.runs.wait(story.thread, "dungeon_master", context=self._context(story), checkpoint={})

    async def _wait_for_lock(self, thread: str) -> int:
        """Return the process that plays a thread; 0 if none has begun within two seconds."""
        for _ in range(100):
            if holder := await asyncio.to_thread(self.locks.holder, thread):
                return int(holder.rpartition(":")[2])
            await asyncio.sleep(0.02)
        return 0

    async def _end_of(self, story: Story, run: str) -> str:
        while True:
            with suppress(httpx.TransportError):
                if (made := await self.client.runs.get(story.thread, run))["status"] in _DONE:
                    return str(made["status"])
            await asyncio.sleep(0.1)

    async def _say_two(self, story: Story) -> None:
        """Send two messages at once, to both instances: both and their replies must be in the thread."""
        spot, said = story.now, [self._word(), self._word()]
        words = [f"I write {word} on the wall, and go on." for word in said]
        runs = await asyncio.gather(*(
            client.runs.create(
                story.thread, "dungeon_master", context=self._context(story),
                input={"messages": [{"role": "user", "content": text}]},
            )
            for client, text in zip(self.ann, words, strict=True)
        ))  # fmt: skip
        ends = await asyncio.gather(*(self._end_of(story, run["run_id"]) for run in runs))
        self._check("errors", set(ends) != {"success"}, f"double text: {ends}")
        state = await self.client.threads.get_state(story.thread)
        kinds = [(one["type"], one["content"]) for one in state["values"]["messages"] if one["content"]]
        for text in words:
            after = kinds[kinds.index(("human", text)) + 1 :][:1] if ("human", text) in kinds else []
            self._check("dropped", not after or after[0][0] != "ai", f"reply to {text!r}")
        if any(("human", text) not in kinds for text in words):
            return
        order = sorted(zip(words, said, strict=True), key=lambda one: kinds.index(("human", one[0])))
        self.counts["turns"] += 2
        story.spots.append(Spot("", (*spot.told, order[0][1])))
        await self._arrive(story, story.now, order[1][0], order[1][1])
        del story.spots[-2]

    async def _look_as_others(self) -> None:
        """Ask as another user, and as nobody; and for one's own memories."""
        own = await self.client.store.search_items((_ANN,), limit=1)
        self._check("missing", not own["items"], "a search of one's own memories")
        bob, nobody = (
            self.aegra.client(self.aegra.ports[0], "bob"),
            get_client(url=f"http://127.0.0.1:{self.aegra.ports[0]}"),
        )
        thread, said = self.stories[0].thread, {"messages": [{"role": "user", "content": MIRA}]}
        for one in (bob, nobody):
            for ask in (
                lambda one=one: one.threads.get(thread),
                lambda one=one: one.threads.get_state(thread),
                lambda one=one: one.threads.update_state(thread, {"quest": {"gold": 1}}, as_node="remember"),
                lambda one=one: one.runs.wait(thread, "dungeon_master", input=said),
                lambda one=one: one.threads.delete(thread),
                lambda one=one: one.store.search_items((_ANN,)),
                lambda one=one: one.store.put_item((_ANN, "x"), "y", {}),
            ):
                try:
                    answer = await ask()
                    self._check("foreign", True, f"answered {str(answer)[:200]}")
                except _REFUSED as error:
                    self._check("errors", error.response.status_code >= 500, f"as another: {error}")

        await self._take_a_thread_of_the_page(bob)

    async def _take_a_thread_of_the_page(self, bob: Any) -> None:
        """Make a thread of Aegra's with the id of a campaign that Ann began on the page: it stays hers."""
        place: Any = {"configurable": {"thread_id": str(uuid.uuid4()), "checkpoint_ns": ""}}
        thread, home = place["configurable"]["thread_id"], home_at(self.aegra.url, self.aegra.path)
        began: Any = {"source": "input", "user": "ann@login.example.org", "campaign": "isle"}
        async with home.open_checkpointer() as checkpointer:
            await checkpointer.aput(place, empty_checkpoint(), began, {})
        await bob.threads.create(thread_id=thread, graph_id="dungeon_master")
        for ask in (
            lambda: bob.threads.get_state(thread),
            lambda: bob.threads.update_state(thread, {"quest": {"gold": 1}}, as_node="remember"),
            lambda: bob.runs.wait(thread, "dungeon_master", input={"messages": [{"role": "user", "content": MIRA}]}),
            lambda: bob.threads.delete(thread),
        ):
            with suppress(Exception):  # refused: by a 500, or an `Exception` of the client's
                self._check("foreign", True, f"answered {str(await ask())[:200]}")
        self._check("foreign", await bob.threads.get_history(thread), "the history of another's campaign")
        async with home.open_checkpointer() as checkpointer:
            self._check("lost", await checkpointer.aget_tuple(place) is None, "another's campaign")

    async def _look_as_studio(self) -> None:
        """Ask what Studio asks of each graph and of a thread."""
        assistants = await self.client.assistants.search(limit=10)
        self._check("missing", len(assistants) < 3, f"assistants: {assistants}")
        for assistant in assistants:
            schemas = await self.client.assistants.get_schemas(assistant["assistant_id"])
            graph = await self.client.assistants.get_graph(assistant["assistant_id"])
            self._check("missing", not schemas["context_schema"] or not graph["nodes"], assistant["graph_id"])
        for story in self.stories:
            history = await self.client.threads.get_history(story.thread, limit=1000)
            self._check("missing", len(history) < 5, f"history of {story.thread}")
            newest = await self.client.threads.get_state(story.thread)
            first = history[-1]["checkpoint"]["checkpoint_id"]
            past = await self.client.threads.get_state(story.thread, checkpoint_id=first)
            self._check("missing", newest["values"]["turn"] <= (past["values"] or {}).get("turn", 0), "an older state")
        self._check("missing", len(await self.client.threads.search(limit=100)) < len(self.stories), "threads")

    async def _talk_to_the_companion(self) -> None:
        """Talk to the companion on a thread of its own; on a game's it is refused, and the game goes on."""
        story = self.stories[0]
        said: Any = {"messages": [{"role": "user", "content": "My name is Ann, and I live in Oslo."}]}
        thread = await self.client.threads.create(graph_id="companion")
        for _ in range(2):
            values = await self.client.runs.wait(thread["thread_id"], "companion", input=said)
            self._check("dropped", values["messages"][-1]["type"] != "ai", "the companion's reply")
        for graph, context, status in (("companion", None, 409), ("dungeon_master", {"sed": 3}, 422)):
            try:
                await self.client.runs.wait(story.thread, graph, input=said, context=context)
                self._check("refusals_not_given", True, f"{graph} on a game's thread with context {context}")
            except _REFUSED as error:
                self._check("errors", error.response.status_code != status, f"expected {status}: {error}")
        await super()._step("edit")
        await self._turn(story, story.now)

    async def _reflect(self) -> None:
        """Have a reflection made in the background; its insights are in the store a little later."""
        thread = await self.client.threads.create(graph_id="dungeon_master")
        context = {"campaign": "musing", "seed": 3, "reflection": "background", "reflection_importance": 4}
        for words in (MIRA, "I look around.", "I wait."):
            said: Any = {"messages": [{"role": "user", "content": words}]}
            values = await self.client.runs.wait(thread["thread_id"], "dungeon_master", input=said, context=context)
            told = [one["text"] for one in values["notices"] if one["node"] == "reflect"]
            self._check("errors", told, f"reflection: {told}")
        place = (_ANN, "musing", "reflections")
        for _ in range(60):
            if (await self.client.store.search_items(place))["items"]:
                return
            await asyncio.sleep(0.5)
        self._check("missing", True, "the reflection in the background")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start_redis(path: Path) -> subprocess.Popen[bytes] | None:
    program = shutil.which("redis-server")
    if program is None:
        return None
    command = [program, "--port", str(_free_port()), "--bind", "127.0.0.1", "--save", ""]
    return subprocess.Popen(command, cwd=path, stdout=subprocess.DEVNULL)
