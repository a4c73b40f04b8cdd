"""PostgreSQL: the example of docs/postgres.md, what a model writes, and what `forget` leaves in the tables."""

import asyncio
import runpy
from pathlib import Path

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.store.postgres import PostgresStore
from postgres import new_database
from scripted import say
from test_sync import PLAYED, conversation, move
from test_unstorable_words import spoilt

from questbook import forget
from questbook.graphs.errors import ForgettingError

ROOT = Path(__file__).parent.parent
EXAMPLE = runpy.run_path(str(ROOT / "examples" / "postgres.py"))
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def uri():
    return new_database()


def in_tables(uri, words):
    """Names of the tables with a row that holds words in any column."""
    with psycopg.connect(uri, autocommit=True) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return sorted(
            table
            for (table,) in tables
            for row in connection.execute(f"SELECT * FROM {table}").fetchall()
            if any(words in (part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part)) for part in row)
        )


async def test_the_example_plays_forks_and_forgets(uri):
    async with EXAMPLE["opened"](uri) as (saver, store):
        said = await EXAMPLE["play"](saver, store)
        assert said[0].startswith("I'm Mira")
        assert said[1] == "I ask for the [forgotten]"
        assert set(said[2:]) == {"I walk north", "I go south"}
        told = await EXAMPLE["chat"](saver, store)
        assert "red" in told
        assert "blue" not in told
    assert in_tables(uri, "ilver Heron") == []
    assert {"store", "checkpoints"} <= set(in_tables(uri, "lamp")) | set(in_tables(uri, "isle"))


async def test_words_go_from_every_table_and_the_game_goes_on(uri, game):
    async with EXAMPLE["opened"](uri) as (saver, store):
        game.saver = saver
        game.keep_in(store)
        await game.begin()
        game.model.queue("quest", say("The heron Quixanna lands on Quixanna's rock."))
        game.model.queue("condense", say("Quixanna landed."))
        await game.play("I feed Quixanna", buffer_tokens=200)
        assert set(in_tables(uri, "uixanna")) >= {"checkpoint_blobs", "checkpoint_writes", "store"}
        removal = await forget(store, "adventurer", words="Quixanna", checkpointer=saver)
        assert removal.items > 0
        assert removal.checkpoints > 0
        assert in_tables(uri, "uixanna") == []
        await game.play("I go on")
        state = await game.app.aget_state(game.config)
        assert (state.values["turn"], state.values["remembered_through"]) == (3, 3)
        await forget(store, "adventurer", checkpointer=saver)
        assert (await game.app.aget_state(game.config)).values == {}
        assert await store.asearch(("adventurer",)) == []


async def test_what_a_model_writes_beside_the_rules_of_unicode_is_remembered(uri, game):
    async with EXAMPLE["opened"](uri) as (saver, store):
        game.saver = saver
        game.keep_in(store)
        await game.begin()
        game.model.queue("quest", say(spoilt("The road goes on and on. " * 20)))
        game.model.queue("condense", say(spoilt("They walked on.")))
        await game.play("I walk on", buffer_tokens=200)
        state = await game.app.aget_state(game.config)
        assert state.values["remembered_through"] == 2
        assert state.values["notices"] == []


def test_sync_savers_and_stores_serve_sync_history_and_forget_says_what_it_needs(uri, model):
    with PostgresSaver.from_conn_string(uri) as saver, PostgresStore.from_conn_string(uri) as store:
        saver.setup()
        store.setup()
        with conversation(model, saver, store) as app:
            assert sorted(move(app, model)) == sorted(PLAYED)
        with pytest.raises(ForgettingError, match="with AsyncPostgresSaver to forget in it"):
            asyncio.run(forget(store, "ann", checkpointer=saver))
        asyncio.run(forget(store, "ann"))
        assert store.search(("ann",)) == []
