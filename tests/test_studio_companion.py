"""The companion on LangGraph's development server, with a model behind a loopback OpenAI server."""

import json

import pytest
from fake_openai import FakeOpenAI, call, say
from langchain_core.messages import convert_to_messages
from scripted import sections_of

from questbook.graphs.turn.turn import FORGOTTEN
from questbook.memory.timeline.namespaces import campaign_namespace

pytestmark = pytest.mark.slow

CAT = "My cat is called Miso, she is nine years old, and she always sleeps on my keyboard whenever I want to work."


@pytest.fixture
def openai(monkeypatch):
    with FakeOpenAI() as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield fake


class Sitting:
    """A thread on the server."""

    def __init__(self, client, thread, model, **context):
        self.client, self.thread, self.model = client, thread, model
        self.context = {"campaign": "studio", "model": "openai:gpt-4o-mini", **context}

    async def say(self, words, *answers, checkpoint=None, **settings):
        self.model.queue(*answers)
        given = {"messages": [{"role": "user", "content": words}]} if words else None
        context = {**self.context, **settings}
        more = {"context": context, "durability": "sync", "checkpoint": checkpoint}
        return await self.client.runs.wait(self.thread, "companion", input=given, raise_error=False, **more)

    async def values(self):
        return (await self.client.threads.get_state(self.thread))["values"]

    async def records(self, what):
        place = list(campaign_namespace("adventurer", "companion:studio", what))
        found = await self.client.store.search_items(place, limit=50)
        return sorted((item["value"] for item in found["items"]), key=lambda value: value["turn"])

    def offered(self):
        return {tool["function"]["name"] for tool in answered(self.model)["tools"]}

    def prompt(self):
        return sections_of(convert_to_messages(answered(self.model)["messages"]))


def answered(model):
    """Return the last request for a reply: notes on facts follow it."""
    return [request for request in model.requests if "You keep the facts" not in str(request["messages"][0])][-1]


async def sit(client, openai, **context):
    thread = await client.threads.create(graph_id="companion")
    return Sitting(client, thread["thread_id"], openai, **context)


async def test_ten_turns_with_tools_forks_and_a_private_turn(openai, studio):
    client = studio.start()
    [assistant] = await client.assistants.search(graph_id="companion")
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    assert {"core", "timezone", "buffer", "max_tool_rounds"} <= set(schemas["context_schema"]["properties"])
    assert list(schemas["input_schema"]["properties"]) == ["messages"]
    talk = await sit(client, openai)
    note = call("core_memory_append", {"label": "human", "content": "Name: Ann"})
    assert (await talk.say("I am Ann.", say("Hello Ann.") + note))["messages"][-1]["content"] == "Hello Ann."
    keep = call("archival_memory_insert", {"content": "The cabin key hangs under the stairs."})
    await talk.say("Keep where the key is.", say("Kept.") + keep)
    search = call("archival_memory_search", {"query": "cabin key"})
    found = await talk.say("Where is it?", say("") + search, say("Under the stairs."))
    assert found["messages"][-1]["content"] == "Under the stairs."
    assert "hangs under the stairs" in str(answered(openai)["messages"])
    wrong = call("core_memory_append", {"label": "nobody", "content": "x"})
    await talk.say("Note x.", say("") + wrong, say("There is no such section."))
    assert "There is no section 'nobody'" in str(answered(openai)["messages"])

    await talk.say("Don't remember this: zwiebel.", say("As you wish.") + note, say("Nothing is kept."))
    assert not {"core_memory_append", "archival_memory_insert"} & talk.offered()
    assert "core_memory_remove" in talk.offered()
    assert 'asked: "not to remember this turn;' in talk.prompt()
    assert (await talk.values())["core"]["sections"]["human"]["value"] == "Name: Ann"
    kept = await talk.records("exchanges")
    assert [value["player"] for value in kept][4] == FORGOTTEN
    assert "zwiebel" not in json.dumps(kept)

    states = await client.threads.get_history(talk.thread, limit=100)
    second = next(state for state in states if state["values"]["turn"] == 2 and not state["next"])
    back = {"checkpoint_id": second["checkpoint"]["checkpoint_id"], "checkpoint_ns": ""}
    other = call("core_memory_append", {"label": "human", "content": "Likes: tea"})
    values = await talk.say("I like tea.", say("Noted.") + other, checkpoint=back)
    assert values["core"]["sections"]["human"]["value"] == "Name: Ann\nLikes: tea"
    assert values["turn"] == 3
    assert len({value["branch"] for value in await talk.records("exchanges")}) == 2
    by_day = call("conversation_search_date", {"start_date": "today", "end_date": "today"})
    values = await talk.say("What did we say?", say("") + by_day, say("This and that."))
    listed = next(m["content"] for m in reversed(values["messages"]) if m["type"] == "tool")
    assert "of 3 (page 1 of 1)" in listed, "of this line: two turns before the fork, and the one after it"
    assert "Where is it?" not in listed

    later = await sit(client, openai)
    values = await later.say("Hello again.", say("Welcome back."))
    assert values["core"]["sections"]["human"]["value"] == "Name: Ann\nLikes: tea"
    assert values["turn"] == 5
    await client.threads.update_state(
        later.thread, {"core": {"sections": {"human": {"value": "Name: Bo"}}}}, as_node="condense"
    )
    await later.say("Who am I?", say("You are Bo."))
    assert '"Name: Bo"' in later.prompt()
    assert "BlockingError" not in (studio.state / "log").read_text()


async def test_settings_of_the_ltm_extension_are_read_from_a_file_by_the_server(openai, studio, tmp_path, monkeypatch):
    config = tmp_path / "ltm_config.json"
    config.write_text('{"ltm_reads": {"num_memories_to_fetch": -1}}')
    monkeypatch.setenv("QUESTBOOK_LTM_CONFIG", str(config))
    client = studio.start()
    stranger = await sit(client, openai, campaign="Chiharu", ltm_config=str(tmp_path / "other.json"))
    refused = await stranger.say("Hello there.")
    assert "a server reads no file that a caller names" in refused["__error__"]["message"]
    talk = await sit(client, openai, campaign="Chiharu", ltm_config=str(config), buffer="turns", buffer_turns=0)
    refused = await talk.say("Hello there.")
    assert "ltm_reads.num_memories_to_fetch is -1" in refused["__error__"]["message"]
    assert openai.requests == []
    config.write_text("{}")
    await talk.say(None, say("Hello."))
    await talk.say(CAT, say("A fine cat."))
    await talk.say("The weather is fine.", say("It is."))
    assert "Miso" not in talk.prompt()
    await talk.say("Where does my cat Miso sleep when I work?", say("On the keyboard."))
    assert talk.prompt().startswith("<character_memories>\nChiharu's memory log:\njust now, adventurer said:")
    wrong = await talk.say("Hi.", ltm_config={"ltm_reads": {"visible": "never"}})
    assert "ltm_reads.visible is 'never'" in wrong["__error__"]["message"]
    assert "BlockingError" not in (studio.state / "log").read_text()
