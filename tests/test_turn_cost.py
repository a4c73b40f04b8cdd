"""What a turn costs, in counts: clocks differ from machine to machine, and calls do not."""

import asyncio
import json
import random
import string
import sys
import threading
from pathlib import Path
from typing import TypedDict

import pytest
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph import END, START
from langgraph.store.base import GetOp, SearchOp
from langgraph.store.memory import InMemoryStore

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from postgres import migrated_database
from statements import Statements
from tables import Tables

import questbook.graphs.models.chat_models
from questbook import FaissStore, HashEmbeddings
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.facts import FACT_WORDS
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game
from questbook.graphs.local.homes import home_at
from questbook.graphs.turn import state
from questbook.graphs.turn.channels import Checked
from questbook.graphs.turn.node import Machine
from questbook.memory.embeddings import embedders
from questbook.memory.facts.fact import facts_tool
from questbook.memory.store import rows
from questbook.memory.store.any_store import JointReads
from questbook.memory.store.filters import FilterIndex
from questbook.memory.store.word_index import Postings
from questbook.memory.text.words import count_tokens
from questbook.notebooks import StateNotebook

BATCHES = 17
"""Batches of the store in a turn with memories, notes and two facts; 34 when this was written."""
STATEMENTS = 30
"""Statements of PostgreSQL in a turn of the same, as terminal and page play; 43 when this was written."""
REFLECTING = 40
"""The same in a turn that ends with a reflection, one of some 24; 63 when this was written."""
READS = 7
"""Times that the whole state is read and checked in a turn without dice and summary: four nodes, three edges."""


class Counter:
    def __init__(self, monkeypatch, place, name):
        self.calls, inner = 0, getattr(place, name)

        def counted(*args, **kwargs):
            self.calls += 1
            return inner(*args, **kwargs)

        monkeypatch.setattr(place, name, counted)


async def test_a_turn_asks_the_store_and_reads_the_state_so_many_times(tmp_path, monkeypatch):
    model = Tables()
    monkeypatch.setattr(questbook.graphs.models.chat_models, "load_chat_model", lambda *_, **__: model)
    batches, reads = Counter(monkeypatch, FaissStore, "abatch"), Counter(monkeypatch, state, "refusals_in")
    home, counts = FileHome(tmp_path / "home"), []
    home.locks.mkdir(parents=True)
    settings = Context(model="tables", user="u", campaign="c", buffer_tokens=600, reflection="off")
    async with open_game(settings, home) as game:
        for turn in range(1, 10):
            model.turn[0], batches.calls, reads.calls = turn, 0, 0
            async for _ in game.send(model.tale.player(turn)):
                pass
            counts.append((batches.calls, reads.calls))
    assert 12 < max(asked for asked, _ in counts) <= BATCHES, "each has its way to a thread and back"
    assert min(read for _, read in counts[1:]) == READS, "by pydantic"


@pytest.mark.slow
async def test_a_turn_on_postgresql_makes_at_most_30_statements(tmp_path, monkeypatch):
    """As the server counts them, default settings; `-s` prints them."""
    model, url = Tables(), migrated_database()
    monkeypatch.setattr(questbook.graphs.models.chat_models, "load_chat_model", lambda *_, **__: model)
    statements, counts = Statements(url), {"reflecting": [], "others": []}
    context, home = Context(model="tables", user="u", campaign="c", seed=1), home_at(url, str(tmp_path))
    async with open_game(context, home, holds=True) as game:
        for turn in range(1, 41):
            model.turn[0], asked = turn, len(model.jobs)
            statements.take()
            async for _ in game.send(model.tale.player(turn)):
                pass
            assert not await game.wait_for_upkeep(60)
            counts["reflecting" if "Questions" in model.jobs[asked:] else "others"].append(len(statements.take()))
    print(f"\nstatements of PostgreSQL in each of 40 turns: {counts}")
    assert 15 < max(counts["others"]) <= STATEMENTS, "each is a way to the server and back"
    assert len(counts["reflecting"]) == 1
    assert max(counts["reflecting"]) <= REFLECTING


async def test_reads_of_one_moment_are_one_batch_and_those_that_follow_another():
    batches = []

    class Recording(InMemoryStore):
        async def abatch(self, ops):
            batches.append(len(ops := list(ops)))
            return await super().abatch(ops)

    store = Recording()
    for key in "abc":
        await store.aput(("n",), key, {"is": key, "next": chr(ord(key) + 1)})
    batches.clear()
    reads = JointReads.of(store)
    assert JointReads.of(reads) is reads

    async def follow(key, steps):
        for _ in range(steps):
            key = (await reads.aget(("n",), key)).value["next"]
        return key

    async def deeper(key):  # comes a few ticks of the loop later
        return (await asyncio.gather(follow(key, 1)))[0]

    assert await asyncio.gather(follow("a", 2), follow("b", 1), deeper("c")) == ["c", "c", "d"]
    assert batches == [3, 1]


async def test_an_error_of_joint_reads_reaches_all_of_them_and_the_next_ones_work():
    class Failing(InMemoryStore):
        fails = True

        async def abatch(self, ops):
            if self.fails:
                raise OSError("disk full")
            return await super().abatch(ops)

    store = Failing()
    reads = JointReads.of(store)
    results = await asyncio.gather(*(reads.aget(("n",), key) for key in "ab"), return_exceptions=True)
    assert [str(error) for error in results] == ["disk full", "disk full"]
    store.fails = False
    assert await reads.abatch([GetOp(("n",), "a")]) == [None]


async def test_an_edge_runs_in_the_callers_thread():
    class Seen(TypedDict):
        thread: int

    threads = []

    def route(seen):
        threads.append(threading.get_ident())
        return END

    builder = Machine(Seen)
    builder.add_node("step", lambda _: {})
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", route, [END, "step"])
    graph = builder.compile(name="seen")
    await graph.ainvoke({"thread": 0})
    graph.invoke({"thread": 0})
    assert threads == [threading.get_ident()] * 2


def test_tokens_of_a_text_are_counted_as_langchain_counts_those_of_a_message():
    chance = random.Random(1)
    texts = ["".join(chance.choices(string.printable + "äж漢", k=length)) for length in range(60)]
    assert [count_tokens(text) for text in texts] == [count_tokens_approximately([text]) for text in texts]


def test_the_tools_of_the_notes_take_half_of_the_tokens_that_they_took():
    assert count_tokens(json.dumps([StateNotebook.tool(), facts_tool(FACT_WORDS)])) <= 700, "1,441 before"


@pytest.mark.parametrize("only", [{"kind": "nothing"}, {"$or": [{"kind": "a"}, {"kind": "b"}]}])
async def test_a_search_whose_filter_allows_nothing_looks_for_no_words(tmp_path, monkeypatch, only):
    async with FaissStore.open(tmp_path / "m.db") as store:
        await store.aput(("n",), "k", {"text": "Goran keeps the mill.", "kind": "trait"})
        looked_up = Counter(monkeypatch, Postings, "find")
        assert await store.asearch(("n",), query="the mill", filter=only) == []
        assert looked_up.calls == 0
        assert len(await store.asearch(("n",), query="the mill", filter={"kind": "trait"})) == 1


async def test_searches_of_one_batch_look_up_the_words_of_a_text_once(tmp_path, monkeypatch):
    async with FaissStore.open(tmp_path / "m.db") as store:
        for kind in ("trait", "event"):
            await store.aput(("n",), kind, {"text": "Goran keeps the mill.", "kind": kind})
        looked_up = Counter(monkeypatch, Postings, "find")
        searches = [SearchOp(("n",), filter={"kind": kind}, query="mill") for kind in ("trait", "event")]
        assert [[item.key for item in items] for items in await store.abatch(searches)] == [["trait"], ["event"]]
        assert looked_up.calls == 1


async def test_searches_of_one_batch_apply_a_filter_that_they_share_once(tmp_path, monkeypatch):
    async with FaissStore.open(tmp_path / "m.db") as store:
        for kind in ("trait", "event"):
            await store.aput(("n",), kind, {"text": "Goran keeps the mill.", "kind": kind})
        applied, kind = Counter(monkeypatch, FilterIndex, "apply"), {"kind": "trait"}
        searches = [SearchOp(("n",), filter=kind, query=query) for query in ("mill", "Goran", None)]
        assert [[item.key for item in items] for items in await store.abatch(searches)] == [["trait"]] * 3
        assert applied.calls == 1


def test_what_an_edge_has_applied_to_a_copy_is_not_applied_again():
    applied = []

    def append(current, write):
        applied.append(write)
        return [*current, write]

    channel = Checked(list, append, list).from_checkpoint([])
    first, second = {"n": 1}, {"n": 1}
    channel.copy().update([first])
    assert channel.update([first])
    assert (channel.get(), len(applied)) == ([first], 1)
    channel.copy().update([second])
    channel.update([first])
    assert (channel.get(), len(applied)) == ([first, first], 3), "another write, though an equal one"


def test_a_text_that_is_searched_with_and_then_stored_is_hashed_once(monkeypatch):
    hashed = Counter(monkeypatch, embedders, "_features")
    embed = HashEmbeddings(64)
    query = embed.embed_query("a fact that no other test has")
    assert embed.embed_documents(["a fact that no other test has"]) == [query]
    assert hashed.calls == 1
    query[0] = 9.0
    assert embed.embed_query("a fact that no other test has") != query, "a list of its own for each caller"
    assert len(HashEmbeddings(32).embed_query("a fact that no other test has")) == 32


async def test_an_item_that_is_read_again_is_decoded_once_and_each_caller_has_a_value_of_its_own(tmp_path, monkeypatch):
    deep = value = {}
    for _ in range(200):
        value["in"] = value = {"list": [[1]]}
    async with FaissStore.open(tmp_path / "m.db") as store:
        await store.aput(("n",), "k", {"turns": [3, 4], "noted": {"patch": {"gold": 1}}, "rolls": [{"total": 7}]})
        await store.aput(("n",), "deep", deep)
        decoded = Counter(monkeypatch, rows, "_decode")
        for read in range(3):
            item = await store.aget(("n",), "k")
            assert item.value == {"turns": [3, 4], "noted": {"patch": {"gold": 1}}, "rolls": [{"total": 7}]}
            item.value["turns"].append(read)
            item.value["noted"]["patch"]["gold"] = item.value["rolls"][0]["total"] = 99
        assert decoded.calls == 1
        await store.aput(("n",), "k", {"turns": [5]})
        assert (await store.aget(("n",), "k")).value == {"turns": [5]}
        assert (await store.aget(("n",), "deep")).value == deep
