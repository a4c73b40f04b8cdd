"""Pruning and forgetting on PostgreSQL: what is kept can be read and played on; no table has more."""

import asyncio
import json
import operator
from argparse import Namespace
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from postgres import execute, migrated_database
from stored_bytes import opened
from typing_extensions import TypedDict

from questbook import prune
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import PruningError
from questbook.graphs.forgetting.forget import Forgetting
from questbook.graphs.local.game import open_game
from questbook.graphs.local.homes import home_at
from questbook.graphs.terminal import homes

pytestmark = pytest.mark.slow  # they need a PostgreSQL

AT: Any = {"configurable": {"thread_id": "t"}}
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
COUNT_LOCKS = """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
WHERE locktype = 'advisory' AND datname = current_database()"""  # pg_locks has the locks of all databases
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    said: Annotated[list[str], operator.add]
    page: dict[str, str]


def talk_on(saver):
    def answer(state):
        word, old = state["messages"][-1].text, state["messages"][:-4]  # which no later list has
        return {
            "messages": [AIMessage(f"re {word}"), *(RemoveMessage(id=one.id) for one in old)],
            "said": [word],
            "page": {word: "x"},
        }

    def close(state):
        asked = "ask" in state["said"][-1]
        return {"messages": [AIMessage(f"{interrupt('sure?')} {state['said'][-1]}")]} if asked else {}

    return StateGraph(State).add_sequence([answer, close]).add_edge(START, "answer").compile(checkpointer=saver)


async def talk(app, *words, config=AT):
    for word in words:
        await app.ainvoke({"messages": [HumanMessage(word)]}, config, durability="sync")


async def states(app):
    return {
        one.config["configurable"]["checkpoint_id"]: (one.values, one.next) async for one in app.aget_state_history(AT)
    }


def counts(home):
    return [execute(home.url, f"SELECT count(*) FROM {table}")[0][0] for table in TABLES]


def superfluous(home):
    """Blobs that no checkpoint names and messages that no list names, and what is named and is not there."""
    blobs = {
        (channel, version): (kind, blob and bytes(blob))
        for channel, version, kind, blob in execute(
            home.url, "SELECT channel, version, type, blob FROM checkpoint_blobs"
        )
    }
    named = {
        (name, str(version))
        for (versions,) in execute(home.url, "SELECT checkpoint->'channel_versions' FROM checkpoints")
        for name, version in versions.items()
    }
    lists = [json.loads(blob) for kind, blob in blobs.values() if kind == "listed"]
    listed = {("messages/part", digest) for digests in lists for digest in digests}
    return blobs.keys() - named - listed, listed - blobs.keys()


@pytest.fixture
def home():
    return home_at(migrated_database(), "here")


@pytest.fixture
async def saver(home):
    async with home.open_checkpointer() as saver:
        yield saver


@pytest.fixture
async def forked(saver):
    """Twelve turns; after the fourth another eight."""
    app = talk_on(saver)
    await talk(app, *map(str, range(1, 13)))
    ends = [one async for one in app.aget_state_history(AT) if not one.next and len(one.values.get("said", [])) == 4]
    await talk(app, "5b", config=ends[0].config)
    await talk(app, *(f"{number}b" for number in range(6, 13)))
    return app


async def test_what_is_kept_is_as_it_was_and_only_what_it_needs_stays(home, saver, forked):
    before, rows = await states(forked), counts(home)
    planned = await prune(saver, keep_turns=3, dry_run=True)
    assert counts(home) == rows
    done = await prune(saver, keep_turns=3)
    assert (done._replace(compacted=None), done.skipped) == (planned._replace(compacted=None), {})
    after = await states(forked)
    assert after == {name: before[name] for name in after}
    assert (done.checkpoints, done.kept) == (len(before) - len(after), len(after))
    gone = [was - now for was, now in zip(rows, counts(home), strict=True)]
    assert gone == [done.checkpoints, done.blobs, done.writes]
    assert min(gone) > 10
    assert superfluous(home) == (set(), set())
    ends = [values["said"][-1] for values, following in after.values() if values and not following]
    assert {"12b", "11b", "10b", "12", "4"} <= {*ends}
    assert {"2", "6", "6b"}.isdisjoint(ends)
    again = await prune(saver, keep_turns=3)
    assert (again.checkpoints, again.blobs) == (0, 0)
    await talk(forked, "13b")
    assert [one.text for one in (await forked.aget_state(AT)).values["messages"]][-2:] == ["13b", "re 13b"]
    for name in after:
        await talk(forked, "on", config={"configurable": {"thread_id": "t", "checkpoint_id": name}})
    assert superfluous(home) == (set(), set())


@pytest.mark.slow
async def test_a_question_is_never_cut_and_is_answered_after_it(home, saver):
    app = talk_on(saver)
    await talk(app, "1", "2", "3", "ask")
    assert (await prune(saver, keep_turns=1)).checkpoints > 3
    await app.ainvoke(Command(resume="yes"), AT)
    assert (await app.aget_state(AT)).values["messages"][-1].text == "yes ask"
    assert superfluous(home) == (set(), set())


@pytest.mark.slow
async def test_only_the_named_threads_are_pruned_and_langgraphs_own_saver_is_too(home, saver):
    other = {"configurable": {"thread_id": "u"}}
    async with AsyncPostgresSaver.from_conn_string(home.url) as theirs:
        for number in range(4):
            await talk(talk_on(saver), f"{number}")
            await talk(talk_on(theirs), f"{number}", config=other)
        before = await talk_on(theirs).aget_state(other)
        assert (await prune(saver, threads=["t"], keep_turns=1)).threads == 1
        assert (await prune(theirs, threads=["u"], keep_turns=1)).checkpoints > 3
        assert (await talk_on(theirs).aget_state(other)).values == before.values
    assert superfluous(home) == (set(), set())
    execute(home.url, "ALTER TABLE checkpoint_blobs RENAME TO away")
    with pytest.raises(PruningError, match=r"cannot be read or written: .*Threads that were pruned before stay so"):
        await prune(saver, keep_turns=1)


async def test_the_command_holds_so_many_threads_at_once_and_says_the_sum(home, saver, monkeypatch, capsys):
    for thread in "tuv":
        await talk(talk_on(saver), "1", "2", "3", config={"configurable": {"thread_id": thread}})
    held = []

    async def noted(*given, **named):
        done = await prune(*given, **named)
        [(locks,)] = execute(home.url, COUNT_LOCKS)
        held.append((locks, named.get("dry_run", False)))
        return done

    monkeypatch.setenv("QUESTBOOK_DATABASE", home.url)
    monkeypatch.setattr(homes, "prune_threads", noted)
    monkeypatch.setattr(homes, "_AT_ONCE", 2)
    flags = {"keep_turns": 1, "older_than": None, "campaign": None, "user": None, "yes": True}
    for dry_run in (True, False):
        assert await homes.prune(Context(user="ann"), Namespace(dry_run=dry_run, **flags))
    assert held == [(0, True), (0, True), (2, False), (1, False)]
    would, done = [line for line in capsys.readouterr().out.splitlines() if " of 3 threads, with " in line]
    assert done == would.partition(" would go.")[0] + " deleted."
    assert superfluous(home) == (set(), set())


def holding(home, words):
    """Names of the tables with a row that holds words in any column, also compressed ones."""
    found = set()
    for (table,) in execute(home.url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        for row in execute(home.url, f"SELECT * FROM {table}"):
            kinds = [part for part in row if isinstance(part, str)]
            said = [part if isinstance(part, bytes) else str(part).encode() for part in row]
            said += [
                opened(kind, part)
                for kind in kinds
                if kind.endswith("+zlib")
                for part in row
                if isinstance(part, bytes)
            ]
            if any(words.encode() in part for part in said):
                found.add(table)
    return found


@pytest.mark.slow
async def test_no_table_holds_a_word_that_was_forgotten_and_the_game_goes_on(home):
    context = Context(model="offline", user="ann", seed=6, campaign="isle", buffer_tokens=300)
    async with open_game(context, home) as game:
        for words in (MIRA, "I tell Maren of Quixanna", "look around", "I sing of Quixanna's heron", "go to Gull Quay"):
            async for _ in game.send(words):
                pass
        await game.wait_for_upkeep(30)
        await (await game.history()).undo()
        assert {"checkpoint_blobs", "checkpoint_writes", "store"} <= holding(home, "uixanna")
        graph = await game.load()
        before = [state async for state in graph.aget_state_history(game.config)]
        await Forgetting(graph.store, game.checkpointer, "ann", "isle").forget("Quixanna")
        assert holding(home, "uixanna") == set()
        assert holding(home, "quixanna") == set(), "also as a lexeme"
        after = [state async for state in graph.aget_state_history(game.config)]
        assert [state.config for state in after] == [state.config for state in before], "each can be read"
        async for _ in game.send("I look at the boats."):
            pass
        await game.wait_for_upkeep(30)
        assert (await game.saved_game()).last_reply
        await prune(game.checkpointer, keep_turns=2)
        assert superfluous(home)[1] == set()
    assert await asyncio.to_thread(counts, home)
