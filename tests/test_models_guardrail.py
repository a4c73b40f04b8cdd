"""The guard of a reply: what may leave of it while it streams, and that the model is stopped where it must end."""

from __future__ import annotations

import asyncio

import pytest
from conftest import Game
from fake_openai import say as answer
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from scripted import say

from questbook.graphs.models.answer import LENGTH, Guard, Verdict, ask

# The collector may meet a stream of the synchronous client while its own thread still closes it.
pytestmark = pytest.mark.filterwarnings(
    "ignore:(?s).*async generator already executing:pytest.PytestUnraisableExceptionWarning"
)


class Endless(BaseChatModel):
    """Writes until somebody stops it."""

    written: list[str] = []
    closed: list[bool] = []
    word: str = "and on "

    @property
    def _llm_type(self):
        return "endless"

    def _generate(self, *args, **kwargs) -> ChatResult:
        raise NotImplementedError

    def bind_tools(self, tools, **kwargs):
        return self

    async def _astream(self, messages, *args, **kwargs):
        try:
            while len(self.written) < 50_000:
                self.written.append(self.word)
                yield ChatGenerationChunk(message=AIMessageChunk(self.word))
                await asyncio.sleep(0)
        finally:
            self.closed.append(True)


def hold_after(mark):
    """Hold back what stands behind a mark."""

    def check(text, start, *, ended):
        at = text.find(mark, start)
        return Verdict(len(text) if ended or at < 0 else at)

    return check


def end_at(mark, problem="mark"):
    def check(text, start, *, ended):
        at = text.find(mark, start)
        return Verdict(len(text)) if at < 0 else Verdict(at, problem)

    return check


async def test_an_answer_that_never_ends_is_cut_and_the_model_is_stopped():
    model, guard = Endless(), Guard(1_000)
    message = await ask(model, [HumanMessage("Go on.")], model_name="endless", guard=guard)
    await asyncio.sleep(0)
    assert guard.problem == LENGTH
    assert message.text == guard.text
    assert 900 < len(message.text) <= 1_000
    assert set(message.text.removesuffix("…").split()) == {"and", "on"}, "it ends at a word"
    assert len(model.written) < 200
    assert model.closed == [True]


@pytest.mark.parametrize(("guard", "limit"), [(Guard(500), 500), (None, 200_000)])
async def test_without_a_blank_it_is_cut_where_the_limit_is(guard, limit):
    message = await ask(Endless(word="x" * 99), [HumanMessage("Go on.")], model_name="endless", guard=guard)
    assert message.text == "x" * (limit - 1) + "…"


async def test_what_a_check_holds_back_leaves_at_the_end(model):
    guard = Guard(1_000, [hold_after("#")])
    model.queue("condense", say("Five # six seven."))
    texts = [text async for text in guard.stream(model, [HumanMessage("Count.")], {})]
    assert "".join(texts) == guard.text == "Five # six seven."
    assert texts[-1] == "# six seven."


async def test_what_ends_the_answer_first_says_why():
    guard = Guard(1_000, [end_at("@", "later"), end_at("#", "earlier")])
    message = await ask(
        Endless(word="One # two @ three."), [HumanMessage("Count.")], model_name="scripted", guard=guard
    )
    assert (guard.problem, message.text) == ("earlier", "One …")


async def test_a_check_ends_the_answer_and_it_is_asked_anew_once(model):
    asked = []

    def again(problem, text):
        asked.append((problem, text))
        return [HumanMessage("Without the mark.")]

    model.queue("condense", say("The door # opens."), say("The door stays shut."))
    guard = Guard(1_000, [end_at("#")], again)
    message = await ask(model, [HumanMessage("I knock.")], model_name="scripted", guard=guard)
    assert asked == [("mark", "The door ")]
    assert message.text == "The door …\n\nThe door stays shut."
    assert [m.text for m in model.calls[-1][1]] == ["I knock.", "Without the mark."]
    model.queue("condense", say("The door # opens."), say("The # door."))
    guard = Guard(1_000, [end_at("#")], again)
    message = await ask(model, [HumanMessage("I knock.")], model_name="scripted", guard=guard)
    assert (guard.problem, message.text) == ("mark", "The door …\n\nThe …")


@pytest.mark.parametrize(("times", "told"), [(40, []), (4_000, ["The reply was cut after 500 characters."])])
async def test_a_reply_has_a_limit_which_is_a_setting(new_game, times, told):
    words = "A reply. " * times
    game = new_game(max_reply_chars=500)
    await game.begin()
    game.model.queue("quest", say(words))
    values = await game.play("I listen.")
    assert words.startswith(game.reply.removesuffix("…" * len(told)))
    assert min(len(words), 480) <= len(game.reply) <= 500
    assert [notice["text"] for notice in values["notices"]] == told
    assert all(notice["detail"] == "Setting QUESTBOOK_MAX_REPLY_CHARS." for notice in values["notices"])
    assert values["remembered_through"] == 2, "the game goes on"


async def test_the_default_is_20_000_characters_and_the_interview_has_it_too(game):
    game.model.queue("interview", say("Who are you? " * 3_000))
    values = await game.play("hello")
    assert 19_900 < len(game.reply) <= 20_000
    assert "cut after 20,000 characters" in values["notices"][-1]["text"]


@pytest.mark.parametrize("sync", [False, True], ids=["ainvoke", "invoke"])
async def test_the_providers_connection_is_closed(server, sync):
    """The words come slowly: had the stream been read to its end, the test would take a minute."""
    game = Game(None, model="openai:gpt-4o-mini", max_reply_chars=200)
    server.queue(answer("word " * 2_000, delay=0.03))
    asked = ({"messages": [HumanMessage("hello")]}, game.config)
    async with asyncio.timeout(50):
        if sync:
            values = await asyncio.to_thread(game.app.invoke, *asked, context=game.settings)
        else:
            values = await game.app.ainvoke(*asked, context=game.settings)
    assert len(values["messages"][-1].text) <= 200


async def test_what_is_streamed_is_what_is_kept(new_game):
    game = new_game(max_reply_chars=300)
    await game.begin()
    game.model.queue("quest", say("On and on. " * 100))
    pieces = []
    stream = game.app.astream(
        {"messages": [HumanMessage("I walk.")]}, game.config, context=game.settings, stream_mode="messages"
    )
    async for message, metadata in stream:
        if metadata["langgraph_node"] == "run_quest" and message.type == "AIMessageChunk":
            pieces.append((message.id, message.text))
    assert "".join(text for _, text in pieces) == game.reply
    assert {name for name, _ in pieces} == {game.values["messages"][-1].id}
