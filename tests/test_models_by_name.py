from __future__ import annotations

import asyncio
import gc
import sys
from contextlib import aclosing
from types import SimpleNamespace
from typing import ClassVar

import pytest
from blockbuster import blockbuster_ctx
from fake_openai import KEY, FakeOpenAI, hang_midstream, say, status
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import HumanMessage

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import FatalModelError, ModelError, SettingsError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import _load, bind_tools, chat_model, load_chat_model
from questbook.graphs.settings import NotingContext

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


@pytest.mark.parametrize("stand_in", ["storyteller", "assistant"])
def test_the_stand_in_is_the_one_that_is_asked_for(stand_in):
    assert load_chat_model("OFFLINE", seed=3, offline=stand_in)._llm_type == f"offline-{stand_in}"
    assert load_chat_model("offline", seed=3, offline=stand_in).seed == 3


async def test_two_campaigns_tell_two_tales_and_the_same_one_the_same():
    def settings(**given):
        return Context(**{"model": "offline", "user": "ann", "campaign": "isle"} | given)

    seeds = [
        (await chat_model(settings(**given))).seed
        for given in ({}, {}, {"campaign": "cave"}, {"user": "bob"}, {"seed": 0}, {"seed": 5})
    ]
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) == 5
    assert seeds[4:] == [0, 5]
    own = settings().model_copy(update={})
    assert (await chat_model(own)).seed == seeds[0]


async def test_a_model_is_loaded_as_the_settings_say_and_one_of_their_own_is_not_loaded(monkeypatch):
    asked = []

    def load(name, **given):
        asked.append(name)
        return given

    monkeypatch.setattr("questbook.graphs.models.chat_models.load_chat_model", load)
    settings = {"model": "x:y", "seed": 7, "temperature": 0.0, "model_timeout": 9}
    for kind, offline in ((Context, "storyteller"), (NotingContext, "assistant")):
        given = await chat_model(kind.of({"user": "ann"} | settings))
        assert given == {"seed": 7, "temperature": 0.0, "timeout": 9.0, "offline": offline}

    class Own(Context):
        CHAT_MODEL: ClassVar = GenericFakeChatModel(messages=iter([]))

    assert await chat_model(Own()) is Own.CHAT_MODEL
    assert asked == ["x:y"] * 2


def test_a_model_that_cannot_call_tools_is_named_with_what_it_is_asked_to_call():
    model = GenericFakeChatModel(messages=iter([]))
    tools = [{"type": "function", "function": {"name": name}} for name in ("roll_dice", "Facts")]
    says = r"other:x \(GenericFakeChatModel\) cannot call tools, and is asked to call roll_dice, Facts\. Take a model"
    with pytest.raises(FatalModelError, match=says):
        bind_tools(model, tools, Context(model="other:x"))
    assert bind_tools(model, [], Context(model="other:x")) is model


def caused_by(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ValueError("set GROQ_API_KEY"), "Model 'groq:x' needs a key: set GROQ_API_KEY, or choose the model 'offline'"),
        (ValueError("groq_api_key is missing"), "needs a key: set GROQ_API_KEY, or"),
        (ValueError("Unable to infer model provider"), "unknown provider. Expected provider:name, such as openai:gpt"),
        (ValueError("odd\nthing"), "Model 'groq:x' cannot be set up: ValueError: odd thing."),
        (
            ImportError("no", name="langchain_groq.chat"),
            "package that is not installed: pip install langchain-groq; or",
        ),
        (ImportError("no"), "pip install langchain-groq; or choose the model 'offline'"),
        (caused_by(ImportError("no", name="x"), ImportError("no", name="own_groq")), "pip install own-groq; or"),
    ],
)
def test_what_a_providers_package_raises_is_one_line_that_says_what_to_do(error, says, monkeypatch):
    def fail(*_, **__):
        raise error from error.__cause__

    _load.cache_clear()
    monkeypatch.setattr("langchain.chat_models.init_chat_model", fail)
    with pytest.raises(SettingsError) as caught:
        load_chat_model("groq:x")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_provider_is_given_the_settings_and_its_name_as_langchain_spells_it(monkeypatch):
    given = []
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda *args, **more: given.append((args, more)))
    _load.cache_clear()
    load_chat_model(" Google-GenAI : gemini:1 ", temperature=0.0, timeout=7.0, max_retries=1)
    load_chat_model("x:y")
    waits = {"timeout": 7.0, "max_retries": 1}
    assert given[0] == (("gemini:1",), {"model_provider": "google_genai", **waits, "temperature": 0.0})
    assert given[1] == (("y",), {"model_provider": "x", "timeout": 120.0, "max_retries": 2})
    _load.cache_clear()


@pytest.mark.parametrize(("key", "fits"), [("sk one", False), ("sk-ö", False), ("sk-\x07", False), ("  sk-one ", True)])
def test_a_key_holds_no_blanks_and_other_characters_that_no_key_has(key, fits, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    if fits:
        assert load_chat_model(MODEL).openai_api_key.get_secret_value() == key.strip()
        return
    with pytest.raises(SettingsError, match="OPENAI_API_KEY: it holds blanks, line breaks or other characters"):
        load_chat_model(MODEL)


async def test_a_server_that_does_not_know_the_question_of_use_is_asked_without_and_still_streams(server: FakeOpenAI):
    def answer(request):
        if "stream_options" in request:
            return status(400, message="Unknown field: stream_options")
        return say("The gate opens.")

    server.responder = answer
    told = await ask(load_chat_model(MODEL, max_retries=0), HELLO, model_name=MODEL)
    assert told.text == "The gate opens."
    assert [("stream_options" in request, request["stream"]) for request in server.requests] == [
        (True, True),
        (False, True),
    ]


async def test_asked_without_it_the_reply_still_comes_piece_by_piece(server: FakeOpenAI):
    server.queue(status(422, message="stream_options is no field"), hang_midstream())
    async with aclosing(load_chat_model(MODEL, max_retries=0, timeout=3.0).astream(HELLO)) as pieces:
        assert [piece.text async for piece in limited(pieces)] != []


async def limited(pieces):
    """Yield what comes until the first words."""
    async for piece in pieces:
        if piece.text:
            yield piece
            return


async def test_a_refusal_of_something_else_is_not_asked_again(server: FakeOpenAI):
    server.queue(status(400, message="no such model"))
    with pytest.raises(ModelError, match="no such model"):
        await ask(load_chat_model(MODEL, max_retries=0), HELLO, model_name=MODEL)
    assert len(server.requests) == 1
