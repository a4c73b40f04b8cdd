"""What the companion is told beside its memory: the time, how long it has been, what went wrong."""

from datetime import UTC, datetime, timedelta

import pytest
from companion_thread import Companion
from fake_openai import FakeOpenAI, status
from langgraph.store.memory import InMemoryStore
from scripted import call, say, sections_of

from questbook.graphs.errors import ModelError
from questbook.notebooks import parse_fields


def about(talk):
    system = sections_of(talk.model.asked("companion")[-1])
    return parse_fields(system.split("<about>\n")[1].split("\n</about>")[0])


async def go_away(talk, **away):
    then = (datetime.now(UTC) - timedelta(**away)).isoformat(timespec="seconds")
    await talk.app.aupdate_state(talk.config, {"opened_at": then}, as_node="condense")


async def test_the_prompt_tells_the_time_the_turns_and_what_is_archived(model):
    talk = Companion(model, timezone="Pacific/Kiritimati")
    await talk.say("hi", say("ok", call("archival_memory_insert", content="A note.")))
    await talk.say("on")
    told = about(talk)
    assert told["now"].startswith(f"{datetime.now(UTC) + timedelta(hours=14):%A, %Y-%m-%d}")
    assert (told["earlier_turns"], told["archival_memory_entries"]) == (1, 1)
    assert told["you_last_spoke"] == "just now"


async def test_after_a_break_it_knows_how_long_it_was(model):
    talk = Companion(model)
    await talk.say("hi")
    assert "you_last_spoke" not in about(talk), "they have not spoken before"
    await go_away(talk, days=3)
    await talk.say("hi again")
    assert about(talk)["you_last_spoke"] == "3 days ago"
    later = Companion(model, store=talk.store)
    await go_away(talk, days=9)
    await later.say("hello")
    assert about(later)["you_last_spoke"] == "just now", "the head says when the last turn was, not an edit"


async def test_offline_it_greets_by_how_long_it_was():
    talk = Companion()
    assert "not talked before" in await talk.say("Hello")
    await talk.say("My name is Ann")
    await go_away(talk, days=2)
    assert await talk.say("Good morning") == "Hello, Ann! We last spoke 2 days ago."


async def test_what_a_search_finds_has_its_time_in_the_persons_zone_and_its_age(model):
    talk = Companion(model, timezone="Pacific/Kiritimati")
    await talk.say("The heron sleeps.", say("ok", call("archival_memory_insert", content="Herons sleep.")))
    searches = [call("conversation_search", query="heron"), call("archival_memory_search", query="heron")]
    await talk.say("find it", say("", *searches), say("There."))
    local = datetime.now(UTC) + timedelta(hours=14)
    for result in talk.results[-2:]:
        assert f'"said_at": "{local:%Y-%m-%d} ' in result.text
        assert '"age": "just now"' in result.text


async def test_an_exception_of_a_tool_goes_back_to_the_model_cut_at_a_thousand_characters(model):
    class Away(InMemoryStore):
        async def abatch(self, ops):
            raise ConnectionError("x" * 5000)

    talk = Companion(model, store=InMemoryStore())
    await talk.say("hi")
    talk.app.store = Away()
    await talk.say("find", say("", call("archival_memory_search", query="heron")), say("I cannot."))
    assert talk.results[-1].text.endswith("nothing was changed: " + "x" * 1000)
    assert talk.reply == "I cannot."


async def test_a_window_that_is_too_small_is_told_and_not_asked_again(monkeypatch):
    said = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    with FakeOpenAI() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
        server.queue(status(400, message=said, code="context_length_exceeded"))
        talk = Companion()
        with pytest.raises(ModelError, match="maximum context length"):
            await talk.say("hi", model="openai:gpt-4o-mini")
        assert len(server.requests) == 1
    assert talk.values["messages"][-1].text == "hi"
