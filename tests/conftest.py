"""What most tests need: a home of their own, a clean environment, and a game with a scripted model."""

from __future__ import annotations

import gc
import os
import shutil
import ssl
import tempfile
import traceback
import uuid
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from dev_server import DevServer
from fake_openai import KEY, FakeOpenAI
from hypothesis import HealthCheck, settings
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import id as checkpoint_ids
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from letters import Letters
from postgres import IN_DATABASE, database_of
from scripted import ScriptedModel, call, say

from questbook import FaissStore
from questbook.graphs.turn import canary
from questbook.graphs.turn.clock import time_of
from questbook.memory.embeddings.minilm import SHA256, minilm_directory
from questbook.memory.timeline.namespaces import campaign_namespace

_NOBODY = 65534

# How fast a machine is says nothing about the code.
settings.register_profile("any machine", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

MIRA = {
    "name": "Mira",
    "ancestry": "halfling",
    "class": "rogue",
    "background": "grew up on the docks",
    "goal": "wants her sister back",
}
EXCHANGES = campaign_namespace("adventurer", "default", "exchanges")


def pytest_collection_modifyitems(items):
    """In a run on PostgreSQL, leave out what is about the files of a data directory."""
    if os.environ.get(IN_DATABASE):
        for item in items:
            if mark := item.get_closest_marker("files"):
                item.add_marker(pytest.mark.skip(reason=f"about files: {mark.args[0]}"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage while everything is loaded, and later not in what is loaded: it stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _ids_of_now():
    """No test's checkpoint ids begin in the future that another test read."""
    yield
    last = vars(checkpoint_ids)
    if time_of(str(checkpoint_ids.uuid6())) > datetime.now(UTC) + timedelta(seconds=1):
        last["_last_v6_timestamp"] = None


@pytest.fixture(autouse=True)
def _nothing_leaks():
    """No test's prompt gets a record that its run may not see; a test that makes one takes it from the count."""
    before = canary.counts["leaked"]
    yield
    assert canary.counts["leaked"] == before


@pytest.fixture(scope="session", autouse=True)
def _one_ssl_context():
    """Certificates are read once. Each client of a provider reads them, and that takes a processor 30 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith(("QUESTBOOK_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path / "home"))
    if os.environ.get(IN_DATABASE):
        monkeypatch.setenv("QUESTBOOK_DATABASE", database_of(tmp_path / "home"))
    monkeypatch.setenv("QUESTBOOK_USER", "adventurer")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    monkeypatch.setenv("TERM", "xterm-256color")  # on a runner it is "dumb" or nothing
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):  # pytest-xdist sets COLUMNS, and it would wrap tables
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def home():
    """The data directory of the test."""
    from questbook.graphs.local.homes import find_home

    return find_home()


@pytest.fixture(scope="session")
def published_weights():
    """Directory of MiniLM's published weights, where the user has them; nothing is downloaded."""
    directory = minilm_directory()
    if not all((directory / name).is_file() for name in SHA256):
        pytest.skip(f"needs the published weights in {directory}: `questbook embeddings get minilm`")
    return directory


@pytest.fixture
def as_nobody():
    """Run a check on a directory as a user who is not root: root may write everywhere."""
    made = Path(tempfile.mkdtemp(prefix="questbook-nobody-"))

    def run(check):
        if os.geteuid():
            return check(made)
        os.chown(made, _NOBODY, _NOBODY)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgid(_NOBODY)
                os.setuid(_NOBODY)
                check(made)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "what it said stands above"
        return None

    yield run
    made.chmod(0o700)
    shutil.rmtree(made)


@pytest.fixture(params=[InMemoryStore, FaissStore], ids=lambda kind: kind.__name__)
def make_store(request, tmp_path):
    """Make stores of LangGraph's kind and of ours, with vectors by letters or without."""
    opened = []

    def make(fields=None, *, vectors=True, embed=None):
        index = {"embed": embed or Letters(), "dims": Letters.dims} | ({"fields": fields} if fields else {})
        if request.param is InMemoryStore:
            return InMemoryStore(index=index if vectors else None)
        opened.append(FaissStore.open(tmp_path / f"{len(opened)}.db", index=index if vectors else None))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def path(tmp_path):
    """Where the file of a store goes; it is not there yet."""
    return tmp_path / "store.db"


@pytest.fixture
def bot_memories(tmp_path):
    """Where the LTM extension kept its databases; nothing is there yet."""
    return tmp_path / "text-generation-webui" / "user_data" / "bot_memories"


@pytest.fixture
def model(monkeypatch):
    scripted = ScriptedModel()
    monkeypatch.setattr("questbook.graphs.models.chat_models.load_chat_model", lambda *_, **__: scripted)
    return scripted


@cache
def _dungeon_master() -> Any:
    """Build the machine once: what it is compiled with differs, the machine does not."""
    from questbook.graphs.dungeon_master.graph import build_graph

    return build_graph()


_JOBS = ("interview", "quest", "update", "condense", "question", "conclude")


class Game:
    """One thread of the dungeon master on a scripted model, in RAM."""

    def __init__(self, scripted: ScriptedModel | None, **settings: Any) -> None:
        self.model: Any = scripted
        self.saver = InMemorySaver()
        self.settings = {"model": "scripted", "user": "adventurer", "seed": 7, **settings}
        self.config: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}
        self.keep_in(InMemoryStore())

    def keep_in(self, store: Any) -> None:
        """Go on with another store; None: without one."""
        self.store = store
        self.app = _dungeon_master().compile(checkpointer=self.saver, store=store)

    def queue(self, **answers: Any) -> None:
        for job, queued in answers.items():
            self.model.queue(job, *(queued if isinstance(queued, list) else [queued]))

    async def play(self, words: Any, **more: Any) -> dict[str, Any]:
        """Play a turn with answers of the model, by job (`quest=say("Rain.")`, or a list), and with settings."""
        self.queue(**{job: more.pop(job) for job in _JOBS if job in more})
        update = {"messages": [HumanMessage(words)]} if isinstance(words, str) else words
        return await self.app.ainvoke(update, self.config, context={**self.settings, **more}, durability="sync")

    async def begin(self) -> dict[str, Any]:
        self.model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        self.model.queue("update", say("", call("StateNotebook", scene="An inn at dusk.", location="The Bent Nail")))
        return await self.play("I'm Mira, a halfling rogue from the docks; I want my sister back.")

    async def walk(self, miles: int) -> None:
        """Play turns of some length in which nothing happens."""
        for mile in range(miles):
            self.model.queue("quest", say(f"Mile {mile}. " + "The road goes on and on. " * 8))
            await self.play(f"I walk mile {mile}")

    @property
    def values(self) -> dict[str, Any]:
        return self.app.get_state(self.config).values

    @property
    def checkpointed(self) -> dict[str, Any]:
        """What the last checkpoint holds; `values` also shows what a failed start would have written."""
        values = dict(self.saver.get_tuple(self.config).checkpoint["channel_values"])
        return {name: value for name, value in values.items() if not name.startswith(("__", "branch:"))}

    @property
    def next(self) -> tuple[str, ...]:
        return self.app.get_state(self.config).next

    @property
    def reply(self) -> str:
        return self.values["messages"][-1].text


@pytest.fixture
def server(monkeypatch):
    """A loopback server that the OpenAI client asks, with a key of its own."""
    with FakeOpenAI() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


@pytest.fixture
def studio(tmp_path):
    """LangGraph's development server, not started yet."""
    running = DevServer(tmp_path / "home", tmp_path / "studio")
    yield running
    running.stop()


@pytest.fixture
def companion(model):
    from companion_thread import Companion

    return Companion(model)


@pytest.fixture
def game(model):
    return Game(model)


@pytest.fixture
async def mira(game):
    """A game that Mira plays: the interview is over."""
    await game.begin()
    return game


@pytest.fixture
def new_game(model):
    return lambda **settings: Game(model, **settings)


@pytest.fixture
def new_mira(model):
    """A function that begins a game that Mira plays with these settings."""

    async def new_mira(**settings):
        game = Game(model, **settings)
        await game.begin()
        return game

    return new_mira


@pytest.fixture
async def eager(new_mira):
    """A game that Mira plays, and that reflects as soon as two facts of some importance came up."""
    return await new_mira(reflection_importance=12)
