"""The recipe of docs/memory.md for plain graphs: exact through forks and rewinds, on every store, async and sync."""

import asyncio
import random
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from postgres import postgres_store, sync_postgres_store

from questbook import FaissStore, HashEmbeddings, Query, recall, recall_sync, remember, remember_sync

ROOT = Path(__file__).parent.parent
INDEX: Any = {"embed": HashEmbeddings(), "dims": 512}
[RECIPE] = re.findall(
    r"```python\n(class ChatState.*?)```", (ROOT / "docs" / "memory.md").read_text("utf-8"), re.DOTALL
)


def nodes(recipe=RECIPE):
    """What the recipe defines."""
    names = {"EXCHANGES": ("ann", "chat", "exchanges"), "CLAIMS": ("ann", "chat", "claims"), "__name__": __name__}
    functions = (recall, remember, recall_sync, remember_sync, Query, MessagesState)
    scope = names | {function.__name__: function for function in functions}
    exec("from typing import Any\nfrom langgraph.store.base import BaseStore\n" + recipe, scope)
    return scope


def in_sync(recipe):
    calls = (
        recipe.replace("async def", "def")
        .replace("await recall(", "recall_sync(")
        .replace("await remember(", "remember_sync(")
    )
    assert "await" not in calls
    return calls


def build(store, recipe=RECIPE):
    scope = nodes(recipe)

    def call_model(state):
        return {"messages": [("ai", "I see.")]}

    steps = [scope["recall_before"], call_model, scope["remember_after"]]
    graph = StateGraph(scope["ChatState"]).add_sequence(steps).add_edge(START, "recall_before")
    return graph.compile(checkpointer=InMemorySaver(), store=store)


class Walk:
    """Plays at random: says a word of its own, from any place it was at; knows which words each place has heard."""

    def __init__(self, app, seed):
        self.app, self.choice, self.places, self.words, self.wrong = app, random.Random(seed), [], 0, []

    def moves(self, count):
        thread = {"configurable": {"thread_id": "1"}}
        for _ in range(count):
            where, heard = (
                self.choice.choice(self.places[-6:]) if self.places and self.choice.random() < 0.6 else (None, None)
            )
            if where is None:
                where, heard = self.places[-1] if self.places else (thread, [])
            self.words += 1
            word = f"gem{self.words:03}"
            yield where, word, set(heard)
            self.places.append((self.config, [*heard, word]))

    def check(self, values, heard):
        if {word for memory in values["memories"] for word in re.findall(r"gem\d+", memory)} != heard:
            self.wrong.append((values["memories"], heard))

    async def play(self, count):
        for where, word, heard in self.moves(count):
            self.check(
                await self.app.ainvoke({"messages": [("user", f"I keep the jewel {word} there.")]}, where), heard
            )
            self.config = (await self.app.aget_state({"configurable": {"thread_id": "1"}})).config
        return self.wrong

    def play_sync(self, count):
        for where, word, heard in self.moves(count):
            self.check(self.app.invoke({"messages": [("user", f"I keep the jewel {word} there.")]}, where), heard)
            self.config = self.app.get_state({"configurable": {"thread_id": "1"}}).config
        return self.wrong


@asynccontextmanager
async def opened(kind, directory):
    if kind == "InMemoryStore":
        yield InMemoryStore(index=INDEX)
    elif kind == "FaissStore":
        async with FaissStore.open(directory / "store.db") as store:
            yield store
    elif kind == "PostgresStore":
        async with postgres_store(INDEX) as store:
            yield store
    elif kind == "SqliteStore":
        with SqliteStore.from_conn_string(str(directory / "store.db")) as store:
            store.setup()
            yield store
    elif kind == "AsyncSqliteStore":
        async with AsyncSqliteStore.from_conn_string(str(directory / "store.db")) as store:
            await store.setup()
            yield store


def test_it_has_at_most_twelve_lines():
    assert len([line for line in RECIPE.splitlines() if line.strip()]) <= 12


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("kind", "recipe", "called"),
    [
        ("InMemoryStore", "async", "async"), ("FaissStore", "async", "async"),
        slow("AsyncSqliteStore", "async", "async"), slow("PostgresStore", "async", "async"),
        ("InMemoryStore", "sync", "async"), slow("AsyncSqliteStore", "sync", "async"),
        slow("PostgresStore", "sync", "async"), ("SqliteStore", "sync", "sync"), slow("FaissStore", "sync", "sync"),
    ],
)  # fmt: skip
async def test_it_is_exact_through_forks_and_rewinds(kind, recipe, called, tmp_path):
    """Its sync twins too, in an asynchronous run, and called by sync code inside a running loop."""
    async with opened(kind, tmp_path) as store:
        walk = Walk(build(store, in_sync(RECIPE) if recipe == "sync" else RECIPE), 7)
        assert not (await walk.play(8) if called == "async" else walk.play_sync(6))


def test_so_are_its_sync_twins_without_a_loop(tmp_path):
    with FaissStore.open(tmp_path / "store.db") as store:
        assert not Walk(build(store, in_sync(RECIPE)), 10).play_sync(4)


@pytest.mark.slow
async def test_its_sync_twins_are_exact_on_postgresql():
    with sync_postgres_store(INDEX) as store:
        assert not await asyncio.to_thread(Walk(build(store, in_sync(RECIPE)), 8).play_sync, 12)
