from __future__ import annotations

import asyncio
import gc
import sys
from types import SimpleNamespace

import pytest
from blockbuster import blockbuster_ctx
from fake_openai import KEY, FakeOpenAI, say
from langchain_core.messages import HumanMessage

from questbook.graphs.errors import SettingsError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import load_chat_model

MODEL = "openai:gpt-4o-mini"
HELLO = [HumanMessage("I knock.")]


def test_the_same_settings_give_the_same_model_and_another_key_another(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
):
    model = load_chat_model(MODEL)
    assert load_chat_model(MODEL) is load_chat_model(MODEL.partition(":")[2]) is model, "the provider is inferred"
    assert load_chat_model(MODEL, temperature=1.0) is not model
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-key-altogether")
    assert load_chat_model(MODEL) is not model


def test_a_connection_is_waited_for_no_longer_than_ten_seconds(server: FakeOpenAI):
    waits = [load_chat_model(MODEL, timeout=seconds).request_timeout for seconds in (60.0, 3.0)]
    assert [(wait.connect, wait.read) for wait in waits] == [(10.0, 60.0), (3.0, 3.0)]


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_a_cached_model_works_in_one_event_loop_after_another(server: FakeOpenAI):
    model = load_chat_model(MODEL, max_retries=0)

    async def twice() -> list[str]:
        return [(await ask(model, HELLO, model_name=MODEL)).text for _ in range(2)]

    server.queue(*(say(str(n)) for n in range(6)))
    assert [asyncio.run(twice()) for _ in range(3)] == [["0", "1"], ["2", "3"], ["4", "5"]]


def test_a_cached_model_works_in_two_event_loops_at_once(server: FakeOpenAI):
    model = load_chat_model(MODEL, max_retries=0)
    server.responder = lambda _: say("Yes, both of you. " * 5, delay=0.01)

    async def several() -> list[str]:
        return [
            answer.text for answer in await asyncio.gather(*(ask(model, HELLO, model_name=MODEL) for _ in range(4)))
        ]

    async def both() -> list[list[str]]:
        return await asyncio.gather(*(asyncio.to_thread(asyncio.run, several()) for _ in range(2)))

    assert asyncio.run(both()) == [["Yes, both of you. " * 5] * 4] * 2


def test_a_missing_key_is_named_with_a_way_out():
    with pytest.raises(SettingsError, match=r"set OPENAI_API_KEY .*model 'offline'") as caught:
        load_chat_model(MODEL)
    assert "\n" not in str(caught.value)
    with pytest.raises(SettingsError, match="set OPENAI_API_KEY"):
        load_chat_model("gpt-4o-mini")


async def test_a_server_of_ones_own_needs_no_key(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch):
    for nothing in (None, "", "  "):
        if nothing is None:
            monkeypatch.delenv("OPENAI_API_KEY")
        else:
            monkeypatch.setenv("OPENAI_API_KEY", nothing)
        server.queue(say("Welcome."))
        assert (await ask(load_chat_model(MODEL), HELLO, model_name=MODEL)).text == "Welcome."
    assert set(server.keys) == {"not-needed"}


async def test_a_key_with_a_line_break_behind_it_is_trimmed_and_one_inside_it_refused(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY + "\n")
    server.queue(say("Yes."))
    await ask(load_chat_model(MODEL), HELLO, model_name=MODEL)
    assert server.keys == [KEY]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-one\nsk-two")
    with pytest.raises(SettingsError, match="OPENAI_API_KEY") as caught:
        load_chat_model(MODEL)
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("foo:bar", "'foo:bar': unknown provider. Expected provider:name"),
        ("my-own-model", "unknown provider. Expected provider:name"),
        ("openai:", "expected provider:name"),
        (":gpt-4o", "expected provider:name"),
        (" ", "expected provider:name"),
        ("anthropic:claude-sonnet-4-5", "pip install langchain-anthropic"),
        ("claude-sonnet-4-5", "pip install langchain-anthropic"),
    ],
)
def test_names_that_cannot_be_loaded_say_what_is_expected(name: str, says: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "langchain_anthropic", None)  # as if it were not installed, wherever this runs
    with pytest.raises(SettingsError) as caught:
        load_chat_model(name)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_base_url_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:11434")
    with pytest.raises(SettingsError, match=r"OPENAI_BASE_URL.*http://localhost"):
        load_chat_model(MODEL)


async def test_asking_does_not_block_the_event_loop(server: FakeOpenAI):
    with blockbuster_ctx():  # what `langgraph dev` watches with
        model = await asyncio.to_thread(load_chat_model, MODEL)
        server.queue(say("One."), say("Two."))
        assert (await ask(model, HELLO, model_name=MODEL)).text == "One."
        assert (await ask(model, HELLO, model_name=MODEL)).text == "Two."


@pytest.mark.parametrize("name", ["offline", " Offline "])
def test_offline_is_the_storyteller_with_its_seed(name: str, monkeypatch: pytest.MonkeyPatch):
    stand_in = SimpleNamespace(OfflineStoryteller=lambda seed: f"storyteller {seed}")
    monkeypatch.setitem(sys.modules, "questbook.graphs.offline.storyteller", stand_in)
    assert load_chat_model(name, seed=7, timeout=1.0) == "storyteller 7"


async def test_those_who_ask_a_server_at_once_share_a_client_that_stays_open():
    import openai

    from questbook.graphs.models.openai_client import LoopClient

    client = LoopClient(timeout=openai.Timeout(5))
    first, stopped, other = (asyncio.ensure_future(client._client()) for _ in range(3))
    await asyncio.sleep(0)
    stopped.cancel()
    shared = await asyncio.gather(first, other)
    gc.collect()
    await asyncio.sleep(0.01)
    assert shared[0] is shared[1] is await client._client()
    assert not shared[0].is_closed
