"""The whole machine on the real OpenAI client, against a loopback server that misbehaves as servers do."""

import pytest
from conftest import MIRA, Game
from fake_openai import KEY, call, cut, hang, hang_midstream, say, status
from langchain_core.messages import AIMessageChunk, HumanMessage
from program import one_line_of, start

from questbook.graphs.errors import ModelError

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


@pytest.mark.slow
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


def test_the_sync_api_on_the_real_client_twice(server):
    from langgraph.checkpoint.memory import InMemorySaver

    from questbook.graphs.dungeon_master.graph import build_graph

    app = build_graph().compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "sync"}}
    for words in ("hello", "hello again"):
        out = app.invoke({"messages": [HumanMessage(words)]}, config, context={"model": MODEL})
        assert out["messages"][-1].text == "Who are you?"


@pytest.mark.slow
def test_a_wrong_key_is_one_line_and_the_message_is_answered_later(server, tmp_path):
    server.queue(status(401))
    place = {"OPENAI_BASE_URL": server.url, "NO_PROXY": "127.0.0.1"}
    run = start(tmp_path, "play", "--model", MODEL, words="I'm Mira\n", OPENAI_API_KEY="sk-wrong-key", **place)
    assert run.returncode == 2
    assert "OPENAI_API_KEY" in one_line_of(run)
    assert b"sk-wrong-key" not in run.stderr + run.stdout
    again = start(tmp_path, "play", "--model", MODEL, OPENAI_API_KEY="sk-right", **place)
    assert again.returncode == 0, again.stderr
    assert b"Who are you?" in again.stdout
    assert any("I'm Mira" in str(body["messages"]) for body in server.requests[1:])


def test_a_missing_key_is_one_line_with_how_to_play_without(tmp_path):
    run = start(tmp_path, "play", "--model", MODEL, words="hello\n")
    line = one_line_of(run)
    assert (run.returncode, "OPENAI_API_KEY" in line, "offline" in line or "--model" in line) == (2, True, True)
