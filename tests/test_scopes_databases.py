"""Scopes on PostgreSQL and on SQLite: what threads share is what it is on the stores in memory.

The plays and their oracles are those of the tests of `UserTimeline` and of an agent's scopes, run on other stores.
"""

import asyncio
import re
import sqlite3
from contextlib import asynccontextmanager

import pytest
import test_agent_scopes as scopes
import test_timeline_users as timelines
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.postgres import AsyncPostgresStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore
from postgres import OPTIONS, new_database, postgres_store

from questbook import Count, HashEmbeddings, Notebook, build_agent, every_turn
from questbook.memory.store.any_store import with_async_methods

pytestmark = pytest.mark.slow
INDEX = {"embed": HashEmbeddings(), "dims": HashEmbeddings().dims, "fields": ["text"]}
SQLITE_INDEX = INDEX if hasattr(sqlite3.Connection, "enable_load_extension") else None  # vectors are an extension


@asynccontextmanager
async def sync_sqlite_store(path):
    with SqliteStore.from_conn_string(path, index=SQLITE_INDEX) as store:
        store.setup()
        yield store


@pytest.fixture(params=["postgres", "sqlite"])
async def store(request, tmp_path):
    async with postgres_store(INDEX) if request.param == "postgres" else sync_sqlite_store(tmp_path / "s.db") as store:
        yield store


@pytest.fixture
def make_store(store):
    return lambda *_, **__: with_async_methods(store)


@pytest.fixture(params=["postgres", "sqlite"])
async def database(request, tmp_path):
    """A checkpointer and a store in one database."""
    if request.param == "postgres":
        uri = await asyncio.to_thread(new_database)
        saver = AsyncPostgresSaver.from_conn_string(uri)
        store = AsyncPostgresStore.from_conn_string(uri + OPTIONS, index=INDEX)
    else:
        saver = AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db"))
        store = AsyncSqliteStore.from_conn_string(str(tmp_path / "s.db"), index=SQLITE_INDEX)
    async with saver as opened, store as opened_store:
        await opened.setup()
        await opened_store.setup()
        yield opened, opened_store


for play in (
    scopes.test_a_shared_page_is_what_the_oracle_says_under_random_rewinds,
    scopes.test_scope_thread_and_scope_campaign_of_what_was_said,
    timelines.test_a_random_play_of_three_threads_each_of_two_users_shows_what_the_oracle_says,
    timelines.test_all_records_of_a_user_in_the_order_in_which_they_were_said,
    timelines.test_facts_of_a_slot_that_many_threads_changed,
    timelines.test_what_forks_took_back_crowds_nothing_out,
):
    globals()[play.__name__] = play


class PetsNotebook(Notebook):
    """The pets of the person, whichever thread they are named in."""

    UPDATE = every_turn
    SCOPE = "user"
    LIMIT = 30_000

    pets: dict[str, str] = {}
    visits: Count = 0


class Noting(BaseChatModel):
    """Notes the pet that a turn names, and answers with the memories that the prompt has."""

    notes: bool = False

    @property
    def _llm_type(self):
        return "noting"

    def bind_tools(self, tools, **_):
        return self.model_copy(update={"notes": bool(tools)})

    def _generate(self, messages, stop=None, run_manager=None, **_):
        text = "\n".join(message.text for message in messages)
        answer = AIMessage(" ".join(["I see.", *re.findall(r"called (name\d+)", text)]))
        if self.notes:
            pets = [{f"pet{pet}": f"name{pet}"} for pet in re.findall(r"pet (\d+) is called", text)[-1:]]
            noted = [{"name": "PetsNotebook", "args": {"pets": pet, "visits": {"$add": 1}}, "id": "1"} for pet in pets]
            answer = AIMessage("" if pets else "no change", tool_calls=noted)
        return ChatResult(generations=[ChatGeneration(message=answer)])


class Threads:
    """Threads of users of one agent, which name pets."""

    def __init__(self, saver, store):
        self.app = build_agent([PetsNotebook], model=Noting()).compile(checkpointer=saver, store=store)

    async def say(self, thread, words, user="ann", **where):
        config = {"configurable": {"thread_id": thread, "user": user, **where}}
        values = await self.app.ainvoke({"messages": [("user", words)]}, config)
        assert values["notices"] == []
        return values

    async def name(self, number, thread=None, **where):
        return await self.say(thread or f"t{number}", f"My pet {number} is called name{number}.", **where)

    async def pets(self, thread, **where):
        """What a thread that says nothing new has on its page, and what it recalls of pet 137."""
        values = await self.say(thread, "What is my pet 137 called?", **where)
        page = values["pets"]
        assert page["visits"] == len(page["pets"]), "each turn that is on the page is counted once"
        return {int(name[3:]) for name in page["pets"]}, values["messages"][-1].text


async def test_two_hundred_threads_side_by_side_and_new_ones_know_one_user(store):
    threads = Threads(InMemorySaver(), store)
    named = {number for number in range(200) if number % 4 == 1}
    for start in range(0, 200, 20):  # at once, as the threads of a busy app are
        turns = [
            threads.name(number) if number in named else threads.say(f"t{number}", f"Bread costs {number} pence.")
            for number in range(start, start + 20)
        ]
        await asyncio.gather(*turns)
    await threads.name(999, user="bob")
    page, recalled = await threads.pets("new")
    assert page == named
    assert "name137" in recalled.split()
    assert (await threads.pets("t0"))[0] == named
    assert (await threads.pets("new-of-bob", user="bob"))[0] == {999}
    back = {number for number in named if 100 <= number < 140}
    for number in back:  # each goes back to its beginning, and names another
        config = {"configurable": {"thread_id": f"t{number}", "user": "ann"}}
        first = [state async for state in threads.app.aget_state_history(config)][-1]
        place = first.config["configurable"]["checkpoint_id"]
        await threads.name(number + 200, f"t{number}", checkpoint_id=place)
    page, recalled = await threads.pets("newer")
    assert page == named - back | {number + 200 for number in back}
    assert "name137" not in recalled.split()
    assert (await threads.pets("t199"))[0] == page


async def test_forks_in_one_database_with_its_checkpointer(database):
    threads = Threads(*database)
    await asyncio.gather(*(threads.name(number, f"t{number % 4}-{number}") for number in range(8)))
    config = {"configurable": {"thread_id": "t0-0", "user": "ann"}}
    before = (await threads.app.aget_state(config)).config["configurable"]["checkpoint_id"]
    await threads.name(137, "t0-0")
    assert (await threads.pets("new"))[0] == {*range(8), 137}
    # Two runs from one checkpoint at the same time: each is a future of its own, and the later one is the thread.
    await asyncio.gather(*(threads.name(number, "t0-0", checkpoint_id=before) for number in (20, 21)))
    own, recalled = await threads.pets("t0-0")
    assert own in ({*range(8), 20}, {*range(8), 21})
    assert "name137" not in recalled.split()
    assert (await threads.pets("newest"))[0] == own
