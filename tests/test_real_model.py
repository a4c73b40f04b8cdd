"""The whole machine on the real OpenAI client, against a loopback server that misbehaves as servers do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MIRA, Game
from fake_openai import KEY, call, cut, hang, hang_midstream, say, status
from langchain_core.messages import AIMessageChunk, HumanMessage

from questbook.graphs.errors import ModelError

ROOT = Path(__file__).parent.parent
MODEL = "openai:gpt-4o-mini"


def job(body):
    tools = {tool["function"]["name"] for tool in body.get("tools", [])}
    jobs = {"CharacterNotebook": "interview", "roll_dice": "quest", "StateNotebook": "update"}
    return next((jobs[name] for name in tools if name in jobs), "condense")


def stock(body):
    return {"interview": say("Who are you?"), "quest": say("The wind turns."), "update": say("no change")}.get(
        job(body), say("They walked on.")
    )


@pytest.fixture
def server(server):
    server.responder = stock
    return server


@pytest.fixture
def real(server):
    return Game(None, model=MODEL, model_timeout=3.0, update_timeout=3.0)


async def begin(game, server):
    server.queue(call("CharacterNotebook", MIRA))
    await game.play("I'm Mira, a halfling rogue from the docks; I want my sister back.")
    assert game.reply == "The wind turns."


async def test_a_game_with_tool_calls_in_pieces_and_streaming(real, server):
    await begin(real, server)
    server.queue(
        say("You hold your breath.") + call("roll_dice", {"expression": "1d20+3", "reason": "Stealth", "dc": 12}),
        say("You slip past the guard without a sound."),
        call("StateNotebook", {"location": "the vault", "facts": {"guard": "sleeps at noon"}}),
    )
    heard = []
    stream = real.app.astream(
        {"messages": [HumanMessage("I sneak past")]}, real.config, context=real.settings, stream_mode="messages"
    )
    async for chunk, metadata in stream:
        if isinstance(chunk, AIMessageChunk) and metadata["langgraph_node"] == "run_quest":
            heard.append(chunk.text)
    assert "".join(heard) == "You hold your breath.You slip past the guard without a sound."
    assert len(heard) > 6
    assert real.values["quest"]["location"] == "the vault"
    assert real.values["rolls"][0]["reason"] == "Stealth"
    sent = [body for body in server.requests if job(body) == "quest"][-1]["messages"]
    roles = [message["role"] for message in sent]
    assert roles[0] == "system"
    assert roles[-2:] == ["assistant", "tool"]
    assert sent[-1]["tool_call_id"] == sent[-2]["tool_calls"][0]["id"]


async def test_parallel_calls_are_all_answered(real, server):
    await begin(real, server)
    server.queue(
        call("roll_dice", {"expression": "1d20", "reason": "a"})
        + call("roll_dice", {"expression": "2d6", "reason": "b"}),
        say("Both fall."),
    )
    await real.play("I gamble")
    assert [roll["reason"] for roll in real.values["rolls"]] == ["a", "b"]
    assert real.reply == "Both fall."


async def test_malformed_arguments_are_sent_back_and_mended(real, server):
    await begin(real, server)
    server.queue(
        call("roll_dice", '{"expression": "1d20", "reason'),
        call("roll_dice", {"expression": "1d20", "reason": "luck"}),
        say("Luck it is."),
        call("StateNotebook", '{"gold": 1'),
        call("StateNotebook", {"gold": 12}),
    )
    await real.play("I try my luck")
    assert real.reply == "Luck it is."
    assert len(real.values["rolls"]) == 1
    assert real.values["quest"]["gold"] == 12, "a cut-off 1 is never taken for a 12"


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        ([status(401)], "key"),
        ([status(500)] * 3, "500"),
        ([status(429, headers={"Retry-After": "0"})] * 3, "429|rate"),
        ([cut(after=2)], "broke|cut|connection"),
        pytest.param([hang()], "too long|time", marks=pytest.mark.slow),
        pytest.param([hang_midstream(after=2)], "too long|time", marks=pytest.mark.slow),
    ],
    ids=["401", "500", "429", "cut", "hang", "hang in mid-stream"],
)
async def test_a_reply_that_fails_keeps_the_message_and_can_be_retried(real, server, trouble, says):
    await begin(real, server)
    server.queue(*trouble)
    with pytest.raises(ModelError, match=f"(?i){says}") as error:
        await real.play("I open the chest")
    assert "\n" not in str(error.value)
    assert KEY not in str(error.value)
    assert real.values["messages"][-1].text == "I open the chest"
    assert real.next == ("run_quest",)
    server.queue(say("It is full of herons."))
    await real.play(None)
    assert real.reply == "It is full of herons."
    assert real.values["turn"] == 2


async def test_a_run_stopped_before_its_dice_does_not_poison_the_thread(real, server):
    await begin(real, server)
    server.queue(say("You hold your breath.") + call("roll_dice", {"expression": "1d20", "reason": "luck"}))
    stop = {"interrupt_before": ["roll_dice"]}
    await real.app.ainvoke({"messages": [HumanMessage("I sneak")]}, real.config, context=real.settings, **stop)
    await real.play("No, I wait")
    assert real.reply == "The wind turns."
    await real.play("And on")
    assert real.values["turn"] == 4


async def test_429_with_retry_after_is_waited_out(real, server):
    await begin(real, server)
    server.queue(status(429, headers={"Retry-After": "0"}), say("Patience pays."))
    await real.play("I wait")
    assert real.reply == "Patience pays."


@pytest.mark.parametrize(
    "trouble",
    [[status(500)] * 3, [cut(after=1)], [hang()]],
    ids=["500", "cut", "hang"],
)
async def test_an_update_that_fails_never_costs_the_reply(real, server, trouble):
    await begin(real, server)
    server.queue(say("The door opens."), *trouble)
    await real.play("I knock")
    assert real.reply == "The door opens."
    assert real.next == ()
    assert "not updated" in real.values["notices"][-1]["text"]
    server.queue(say("Inside."), call("StateNotebook", {"location": "inside"}))
    await real.play("I go in")
    assert real.values["quest"]["location"] == "inside"
    assert real.values["noted_through"] == 3


def test_the_sync_api_on_the_real_client_twice(server):
    from langgraph.checkpoint.memory import InMemorySaver

    from questbook.graphs.dungeon_master.graph import build_graph

    app = build_graph().compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "sync"}}
    for words in ("hello", "hello again"):
        out = app.invoke({"messages": [HumanMessage(words)]}, config, context={"model": MODEL})
        assert out["messages"][-1].text == "Who are you?"


def questbook(server, words, home, **environment):
    return subprocess.run(
        [sys.executable, "-m", "questbook.graphs.terminal", "play", "--model", MODEL],
        input=words,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "QUESTBOOK_HOME": str(home),
            "NO_PROXY": "127.0.0.1",
            **environment,
        },
    )


@pytest.mark.slow
def test_a_wrong_key_is_one_line_and_the_message_is_answered_later(server, tmp_path):
    server.queue(status(401))
    run = questbook(server, "I'm Mira\n", tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-wrong-key")
    assert run.returncode == 2
    assert len(run.stderr.strip().splitlines()) == 1
    assert "OPENAI_API_KEY" in run.stderr
    assert "Traceback" not in run.stderr + run.stdout
    assert "sk-wrong-key" not in run.stderr + run.stdout
    again = questbook(server, "", tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-right")
    assert again.returncode == 0, again.stderr
    assert "Who are you?" in again.stdout
    assert any("I'm Mira" in str(body["messages"]) for body in server.requests[1:])


@pytest.mark.slow
def test_a_missing_key_is_one_line_with_how_to_play_without(tmp_path):
    run = questbook(None, "hello\n", tmp_path)
    assert run.returncode == 2
    assert len(run.stderr.strip().splitlines()) == 1
    assert "OPENAI_API_KEY" in run.stderr
    assert "offline" in run.stderr or "--model" in run.stderr
