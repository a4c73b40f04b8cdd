"""LangGraph's development server with a log-in: whose memory it is, is who logged in, before anything a caller says."""

import asyncio
import json
import re
from pathlib import Path

import httpx
import pytest
from issuer import AUDIENCE, issuer_at_work
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError

from questbook.graphs.identity import tokens
from questbook.memory.timeline.namespaces import escape_label

pytestmark = pytest.mark.slow  # one server's start

PAGE = (Path(__file__).parent.parent / "docs" / "scopes.md").read_text("utf-8")
[LOG_IN] = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "@auth.authenticate" in block]
APP = '''
import re

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from questbook import LastTurns, Notebook, TimelineMemoryMiddleware, build_agent


class TicketNotebook(Notebook):
    """What they need help with."""

    problem: str = ""


class Repeating(BaseChatModel):
    _llm_type = "repeating"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        said = " ".join(message.text for message in messages)
        text = " ".join(re.findall('"user": "(.*?)"', said)) or "I remember nothing."
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


desk = build_agent([TicketNotebook], name="desk", model=Repeating()).compile()
lamps = create_agent(Repeating(), [], middleware=[TimelineMemoryMiddleware(buffer=LastTurns(0))])
'''
GRAPHS = ("dungeon_master", "companion", "desk", "lamps")
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
BIRD = "My falcon is called Quixanna."


def name_log_in(studio, auth, graphs):
    path = studio.state / "langgraph.json"
    config = json.loads(path.read_text("utf-8"))
    config["graphs"] |= graphs
    path.unlink()
    path.write_text(json.dumps(config | {"auth": {"path": auth, "disable_studio_auth": True}}), "utf-8")


@pytest.fixture
def server(studio):
    """The server of this checkout with a log-in and with two agents of an app's own."""
    name_log_in(studio, "./log_in.py:auth", {"desk": "./app.py:desk", "lamps": "./app.py:lamps"})
    (studio.state / "log_in.py").write_text(f"{LOG_IN}\nUSERS['secret-of-guests'] = ''\n", "utf-8")
    (studio.state / "app.py").write_text(APP, "utf-8")
    studio.start()
    return studio


class Person:
    """Somebody who logged in."""

    def __init__(self, server, secret, name):
        self.client = get_client(url=server.url, headers={"Authorization": f"Bearer {secret}"})
        self.name, self.threads = name, {}

    async def thread(self, graph):
        if graph not in self.threads:
            self.threads[graph] = (await self.client.threads.create(graph_id=graph))["thread_id"]
        return self.threads[graph]

    async def say(self, graph, words, thread=None, **settings):
        """Return the state after a turn, or the error as the server gives it."""
        message = {"messages": [{"role": "user", "content": words}]}
        thread = thread or await self.thread(graph)
        return await self.client.runs.wait(thread, graph, input=message, raise_error=False, **settings)

    async def memories(self):
        found = await self.client.store.search_items([escape_label(self.name)], limit=200)
        return found["items"]


def settings_of(graph):
    if graph != "dungeon_master":
        return {}
    return {"campaign": "isle", "seed": 1, "reflection": "background", "reflection_importance": 4}


async def tell(ann, bob, graph):
    """Ann tells something; Bob and a guest may not say that they are Ann."""
    context = settings_of(graph)
    for words in (MIRA if graph == "dungeon_master" else "Hello.", BIRD):
        values = await ann.say(graph, words, context=context)
        assert "__error__" not in values, (graph, values)
    for where in ({"context": context | {"user": "ann"}}, {"config": {"configurable": {"user": "ann"}}}):
        refused = await bob.say(graph, "What is my falcon called?", **where)
        assert "Two users are named: 'bob@example.com' by the log-in, 'ann' by" in str(refused), (graph, refused)
    values = await ann.say(graph, "I wait.", context=context | {"user": "ann"})  # that is who she is
    assert "__error__" not in values, (graph, values)
    assert not [one for one in values.get("notices", []) if one["node"] == "reflect"], values


async def ask(ann, bob, graph):
    """Bob does not learn what Ann told, and she does, on a thread that is new."""
    values = await bob.say(graph, MIRA if graph == "dungeon_master" else "My falcon?", context=settings_of(graph))
    assert "__error__" not in values, (graph, values)
    assert "Quixanna" not in str(values), graph
    thread = (await ann.client.threads.create(graph_id=graph))["thread_id"]
    if graph != "dungeon_master":  # a storyteller need not say it
        assert "Quixanna" in str(await ann.say(graph, "What is my falcon called?", thread)), graph
    with pytest.raises(APIStatusError):
        await bob.client.threads.get_state(ann.threads[graph])
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        await bob.say(graph, "Hello.", ann.threads[graph])


async def test_memories_belong_to_who_logged_in(server):
    with pytest.raises(APIStatusError, match="Please log in"):
        await get_client(url=server.url).threads.create()
    ann, bob = Person(server, "secret-of-ann", "ann"), Person(server, "secret-of-bob", "bob@example.com")
    await asyncio.gather(*(tell(ann, bob, graph) for graph in GRAPHS))
    claimed = {"metadata": {"created_by": "system"}, "name": "mine"}
    await ann.client.assistants.create("dungeon_master", **claimed)
    assert "mine" in {each["name"] for each in await ann.client.assistants.search(limit=50)}
    bobs = await bob.client.assistants.search(limit=50)
    assert {each["graph_id"] for each in bobs} >= {*GRAPHS}, "the server's own, which Studio asks for"
    assert "mine" not in {each["name"] for each in bobs}
    assert {item["namespace"][0] for item in await ann.memories()} == {"ann"}
    assert "Quixanna" in str(await ann.memories())
    assert await bob.memories() == [], "what was refused leaves nothing"

    await asyncio.gather(*(ask(ann, bob, graph) for graph in GRAPHS))
    assert "Quixanna" not in str(await bob.memories())
    assert {item["namespace"][0] for item in await bob.memories()} == {"bob@example~2e;com"}
    with pytest.raises(APIStatusError, match=r"another user\. Your memories are below 'bob@example~2e;com'\."):
        await bob.client.store.search_items(["ann"])

    guest = Person(server, "secret-of-guests", "")  # without an identity: as on a server without a log-in
    refused = await asyncio.gather(*(guest.say(graph, "What is my falcon called?") for graph in GRAPHS))
    for graph, values in zip(GRAPHS, refused, strict=True):
        assert "No user is named, and memories are kept apart by user. Name one: with context=" in str(values), graph

    for _ in range(200):  # a run of the server's own, in her name
        if any(item["namespace"][-1] == "reflections" for item in await ann.memories()):
            return
        await asyncio.sleep(0.5)
    raise AssertionError("nothing was reflected on")


async def test_tokens_of_an_issuer_log_in_on_the_server_and_on_its_page(studio):
    name_log_in(studio, "questbook.graphs.identity.langgraph_auth:auth", {})
    with issuer_at_work() as issuer:
        studio.environment |= {tokens.ISSUER: issuer.url, tokens.AUDIENCE: AUDIENCE}
        studio.start()
        ann, bob = (Person(studio, issuer.token(name), f"{name}@{issuer.url}") for name in ("ann", "bob"))
        for words in (MIRA, BIRD):
            values = await ann.say("dungeon_master", words)
            assert "__error__" not in values, values
        assert "Quixanna" in str(await ann.memories())
        own = await ann.client.store.list_namespaces([escape_label(ann.name)])
        assert own["namespaces"]
        assert await bob.memories() == []
        with pytest.raises(APIStatusError):
            await bob.client.threads.get_state(ann.threads["dungeon_master"])
        for prefix in ([escape_label(ann.name)], []):
            with pytest.raises(APIStatusError, match="another user"):
                await bob.client.store.search_items(prefix)
            with pytest.raises(APIStatusError, match="another user"):
                await bob.client.store.list_namespaces(prefix)
        for token, said in (
            (issuer.token("ann", number=1), "not signed by its issuer"),
            (issuer.token("ann", aud="shop"), "for another audience"),
            ("x", "cannot be read"),
        ):
            with pytest.raises(APIStatusError, match=said):
                await Person(studio, token, "ann").client.threads.create()
        async with httpx.AsyncClient(base_url=studio.url) as web:
            page = await web.get("/play/", headers={"authorization": f"Bearer {issuer.token('ann')}"})
            assert "/play/u/ann%40http" in page.text, page.text
            for headers in ({}, {"x-auth-scheme": "langsmith"}):
                assert (await web.get("/play/", headers=headers)).status_code == 401
                assert (await web.post("/threads", headers=headers, json={})).status_code == 401


def test_a_server_whose_log_in_is_set_up_by_half_does_not_start(studio):
    name_log_in(studio, "questbook.graphs.identity.langgraph_auth:auth", {})
    studio.environment |= {tokens.ISSUER: "https://login.example.org"}
    with pytest.raises(AssertionError, match="QUESTBOOK_OIDC_AUDIENCE is missing"):
        studio.start()
