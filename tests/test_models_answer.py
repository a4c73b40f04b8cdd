from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from answering import Answering
from fake_openai import KEY, Behaviour, FakeOpenAI, call, cut, hang, hang_midstream, say
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from questbook.graphs.errors import ModelError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import load_chat_model
from questbook.graphs.models.text_calls import check_calls

MODEL = "openai:gpt-4o-mini"
HELLO = [HumanMessage("I knock.")]


@tool
def roll_dice(expression: str) -> str:
    """Roll dice."""
    return expression


async def put(server: FakeOpenAI, *behaviours: Behaviour, **settings: Any) -> AIMessage:
    server.queue(*behaviours)
    model = load_chat_model(MODEL, **{"timeout": 5.0, "max_retries": 0} | settings)
    return await ask(model.bind_tools([roll_dice]), HELLO, model_name=MODEL)


async def refused(server: FakeOpenAI, *behaviours: Behaviour, **settings: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await put(server, *behaviours, **settings)
    line = str(caught.value)
    assert line.startswith(MODEL)
    assert len(line) <= 300
    assert "\n" not in line
    assert KEY not in line
    return caught.value


# What the model says


async def test_text_streams_and_the_request_holds_settings_messages_and_tools(server: FakeOpenAI):
    answer = await put(server, say("The gate opens, slowly."), temperature=0.3)
    assert type(answer) is AIMessage
    assert answer.text == "The gate opens, slowly."
    [request] = server.requests
    assert request["stream"] is True
    assert request["temperature"] == 0.3
    assert request["model"] == "gpt-4o-mini"
    assert request["messages"] == [{"role": "user", "content": "I knock."}]
    assert request["tools"][0]["function"]["name"] == "roll_dice"
    assert server.keys == [KEY]
    await put(server, say("Yes."))
    assert "temperature" not in server.requests[1]


@pytest.mark.parametrize(
    ("made", "read"),
    [
        (call("roll_dice", {"reason": "söme – 龍"}), [("roll_dice", {"reason": "söme – 龍"})]),
        (call("rest", {"n": 1}) + call("roll_dice", {"n": 2}), [("rest", {"n": 1}), ("roll_dice", {"n": 2})]),
        (call("StateNotebook", '{"scene": "one\ntwo"}'), [("StateNotebook", {"scene": "one\ntwo"})]),
        (call("rest", ""), [("rest", {})]),
    ],
    ids=["in pieces", "two in their order", "with a bare line break", "without arguments"],
)
async def test_calls_come_together(server: FakeOpenAI, made: Behaviour, read: list[Any]):
    answer = await put(server, say("Let me see. ") + made)
    assert answer.text == "Let me see. "
    assert [(one["name"], one["args"]) for one in answer.tool_calls] == read
    assert answer.tool_calls[0]["id"] == "call_0"
    assert answer.invalid_tool_calls == []


@pytest.mark.parametrize(
    "broken", ['{"gold": 10', '{"gold": 100,', '{"name": "Mi', "nonsense", "[1, 2]", '"text"', "{'gold': 1}"]
)
@pytest.mark.slow
async def test_malformed_arguments_are_kept_as_they_are_and_never_completed(server: FakeOpenAI, broken: str):
    answer = await put(server, call("roll_dice", {"expression": "d6"}) + call("StateNotebook", broken))
    assert [made["name"] for made in answer.tool_calls] == ["roll_dice"]
    [kept] = answer.invalid_tool_calls
    assert (kept["name"], kept["args"], kept["id"]) == ("StateNotebook", broken, "call_1")
    assert kept["error"].startswith(("Expecting ", "Unterminated ", "expected a JSON object, got "))


async def test_a_blank_answer_is_asked_for_once_more(server: FakeOpenAI):
    answer = await put(server, say(" \n"), say("The gate opens."))
    assert answer.text == "The gate opens."
    assert len(server.requests) == 2


async def test_two_blank_answers_are_an_error(server: FakeOpenAI):
    error = await refused(server, say(), say())
    assert "nothing, twice" in str(error)
    assert not error.fatal
    assert len(server.requests) == 2


# What goes wrong


@pytest.mark.parametrize(("after", "politely"), [(1, False), (4, False), (1, True), (4, True)])
async def test_a_reply_cut_in_mid_stream_is_an_error_that_can_be_retried(
    server: FakeOpenAI, politely: bool, after: int
):
    error = await refused(server, cut(after, politely=politely))
    assert not error.fatal
    assert "broke off" in str(error)
    assert (await put(server, say("Once more."))).text == "Once more."


async def test_a_tool_call_cut_in_mid_stream_is_not_carried_out(server: FakeOpenAI):
    error = await refused(server, cut(6, call("StateNotebook", {"gold": 100}), politely=True))
    assert "broke off" in str(error)


@pytest.mark.parametrize("silence", [hang(), hang_midstream()], ids=["from the start", "in mid-stream"])
async def test_a_hang_ends_and_is_not_repeated(
    server: FakeOpenAI, silence: Behaviour, caplog: pytest.LogCaptureFixture
):
    error = await refused(server, silence, timeout=0.4, max_retries=2)
    assert not error.fatal
    assert "said nothing for too long" in str(error)
    assert len(server.requests) == 1
    assert caplog.text == ""


@pytest.mark.slow
async def test_a_slow_but_living_reply_is_not_a_hang(server: FakeOpenAI):
    begin = time.monotonic()
    answer = await put(server, say("Slow and steady. " * 5, delay=0.1), timeout=1.5)
    assert answer.text == "Slow and steady. " * 5
    assert time.monotonic() - begin > 1.5


async def test_a_server_that_is_not_there_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match=r"cannot be reached.*OPENAI_BASE_URL") as caught:
        await ask(load_chat_model(MODEL, max_retries=0), HELLO, model_name=MODEL)
    assert not caught.value.fatal


async def test_cancelling_is_not_an_error_of_the_model(server: FakeOpenAI):
    task = asyncio.create_task(put(server, hang()))
    while not server.requests:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await put(server, say("Still here."))).text == "Still here."


async def test_ask_bounds_the_wait_for_any_model():
    class Silent(GenericFakeChatModel):
        async def _astream(self, *_: Any, **__: Any) -> Any:
            await asyncio.sleep(30)
            yield None

    with pytest.raises(ModelError, match="said nothing"):
        await ask(Silent(messages=iter([])), HELLO, model_name="other:model", timeout=0.1)


async def test_each_call_has_an_id_of_its_own_and_a_number_that_no_database_takes_is_a_broken_call():
    calls = [
        {"name": "roll_dice", "args": {"dc": dc}, "id": made, "type": "tool_call"}
        for dc, made in ((1, None), (2, ""), (3, "a"), (4, "a"))
    ]
    model = Answering(answers=[AIMessage("", tool_calls=calls)])
    answer = await ask(model, [HumanMessage("Roll.")], model_name="fake")
    ids = [made["id"] for made in answer.tool_calls]
    assert [made["args"]["dc"] for made in answer.tool_calls] == [1, 2, 3, 4]
    assert ids[2] == "a"
    assert len(set(ids)) == 4
    assert all(ids)
    for value in (10**25, float("nan"), [{"x": -(2**63) - 1}], float("inf")):
        fine, [broken] = check_calls([("roll_dice", {"dc": value}, "a")])
        assert not fine
        assert "is no number that a database takes" in str(broken["error"])
    assert len(check_calls([("roll_dice", {"dc": 2**63 - 1, "x": 1e300, "y": True}, "a")])[0]) == 1
