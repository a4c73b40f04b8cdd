"""The guard of a reply: what may leave of it while it streams, and that the model is stopped where it must end."""

from __future__ import annotations

import asyncio

import pytest
from conftest import Game
from fake_openai import say as answer
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableGenerator
from langgraph.constants import START, TAG_NOSTREAM
from langgraph.graph import MessagesState, StateGraph
from scripted import say

from questbook.graphs.errors import ModelError
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


@pytest.mark.slow
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


class Giving(Endless):
    """Gives pieces, one behind the other."""

    pieces: list = []

    async def _astream(self, messages, *args, **kwargs):
        for piece in self.pieces:
            yield ChatGenerationChunk(message=piece)


def call_pieces(args, size=50):
    parts = [args[at : at + size] for at in range(0, len(args), size)]
    names = ["roll_dice", *[None] * len(parts)]
    return [
        AIMessageChunk("", tool_call_chunks=[tool_call_chunk(name=name, args=part, id="c", index=0)])
        for name, part in zip(names, parts, strict=False)
    ]


async def test_arguments_of_calls_count_too_and_a_call_that_is_cut_is_a_broken_one():
    long = '{"reason": "' + "x" * 900 + '"}'
    guard = Guard(500)
    message = await ask(Giving(pieces=call_pieces(long)), [HumanMessage("Go.")], model_name="giving", guard=guard)
    assert (guard.problem, message.text, message.tool_calls) == (LENGTH, "", [])
    [broken] = message.invalid_tool_calls
    assert (broken["name"], broken["args"], broken["error"]) == ("roll_dice", long[:200], "too long")
    message = await ask(
        Giving(pieces=call_pieces(long)), [HumanMessage("Go.")], model_name="giving", guard=Guard(2_000)
    )
    assert [made["args"]["reason"] for made in message.tool_calls] == ["x" * 900]
    pieces = [AIMessageChunk("So be it. "), *call_pieces(long)]
    message = await ask(Giving(pieces=pieces), [HumanMessage("Go.")], model_name="giving", guard=Guard(500))
    assert (message.text, message.invalid_tool_calls) == ("So be it. …", []), "beside a text no call is kept"


async def test_what_is_no_message_and_what_is_nothing_are_errors_with_the_models_name_in_short():
    async def words(_):
        yield "Well."

    for model, says in (
        (RunnableGenerator(words), "answered with str, not with a message"),
        (Giving(pieces=[AIMessageChunk(" ")]), "answered with nothing, twice. Try again."),
    ):
        with pytest.raises(ModelError, match=says) as error:
            await ask(model, [HumanMessage("Go.")], model_name="m" * 200)
        assert str(error.value).startswith(f"{'m' * 80} ")


async def test_the_text_of_a_marker_is_what_leaves():
    class Shouting:
        found = False

        def mark(self, text, left, *, ended):
            return text[:left] + text[left:].upper()

        def __call__(self, text, start, *, ended):
            return Verdict(len(text) if ended else max(start, len(text) - 3))

    model = Giving(pieces=[AIMessageChunk("The do"), AIMessageChunk("or opens.")])
    message = await ask(model, [HumanMessage("Go.")], model_name="giving", guard=Guard(500, marker=Shouting()))
    assert message.text == "THE DOOR OPENS."


def pieces_of(*texts, **metadata):
    """An answer in pieces; the last one has metadata."""
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    last = AIMessageChunk("", response_metadata=metadata, usage_metadata=usage)
    return [*map(AIMessageChunk, texts), last]


async def test_both_parts_of_an_answer_that_was_asked_anew_share_the_limit():
    guard = Guard(100, [end_at("#")], lambda _problem, _text: [HumanMessage("Without the mark.")])
    pieces = [AIMessageChunk("word " * 12), AIMessageChunk("more " * 3 + "# and so on.")]
    message = await ask(Giving(pieces=pieces), [HumanMessage("Go.")], model_name="giving", guard=guard)
    assert guard.problem == LENGTH
    assert 75 < len(message.text) <= 103
    assert message.text.startswith("word word")


async def test_an_answer_that_is_cut_keeps_what_it_cost_and_its_id():
    pieces = [*pieces_of("word " * 10), *pieces_of("word " * 30)]
    message = await ask(Giving(pieces=pieces), [HumanMessage("Go.")], model_name="giving", guard=Guard(60))
    assert message.usage_metadata
    assert message.id
    whole = await ask(Giving(pieces=pieces_of("Well.")), [HumanMessage("Go.")], model_name="giving")
    assert (whole.text, whole.usage_metadata["total_tokens"]) == ("Well.", 3)


@pytest.mark.parametrize(("metadata", "whole"), [
    ({"model_provider": "openai"}, False), ({"model_provider": "openai", "finish_reason": "stop"}, True),
    ({"model_provider": "openai", "status": "completed"}, True), ({"model_provider": "ollama"}, True), ({}, True),
])  # fmt: skip
async def test_an_answer_of_the_protocol_that_says_not_how_it_ended_broke_off(metadata, whole):
    asked = ask(Giving(pieces=pieces_of("Well.", **metadata)), [HumanMessage("Go.")], model_name="giving")
    if whole:
        assert (await asked).text == "Well."
    else:
        with pytest.raises(ModelError, match="giving broke off in the middle of the reply"):
            await asked


ROLL = {"type": "function", "function": {"name": "roll_dice", "parameters": {"required": ["expression"]}}}


async def test_calls_that_came_as_text_join_those_that_came_properly_and_leave_the_text():
    text = 'So be it. <tool_call>{"name": "roll_dice", "arguments": {"expression": "1d20"}}</tool_call>'
    broken = '<tool_call>{"name": "roll_dice", "arguments": {"expression": </tool_call>'
    proper = tool_call_chunk(name="roll_dice", args='{"expression": "1d6"}', id="c", index=0)
    unread = tool_call_chunk(name="roll_dice", args='{"expression": ', id="d", index=1)
    pieces = [AIMessageChunk(text + broken), AIMessageChunk("", tool_call_chunks=[proper, unread])]
    message = await ask(Giving(pieces=pieces), [HumanMessage("Go.")], model_name="giving", tools=[ROLL])
    assert message.text == "So be it."
    assert [made["args"]["expression"] for made in message.tool_calls] == ["1d6", "1d20"]
    assert len({made["id"] for made in message.tool_calls}) == 2
    assert [made["name"] for made in message.invalid_tool_calls] == ["roll_dice"] * 2
    assert message.invalid_tool_calls[0]["id"] == "d"


async def test_the_stream_of_a_node_has_what_may_leave_under_the_answers_id_and_no_hidden_call():
    hidden = tool_call_chunk(name="keep_secret", args='{"secret": "x"}', id="c", index=0)
    shown = tool_call_chunk(name="roll_dice", args='{"expression": "1d6"}', id="d", index=1)
    pieces = [AIMessageChunk("Well. "), AIMessageChunk("So.", tool_call_chunks=[hidden, shown])]
    answers = []

    async def narrate(state):
        guard = Guard(1_000, hidden=["keep_secret"])
        model = Giving(pieces=pieces)
        answers.append(await ask(model, [HumanMessage("Go.")], model_name="giving", tools=[ROLL], guard=guard))
        answers.append(await ask(model, [HumanMessage("Go.")], model_name="giving", tags=[TAG_NOSTREAM]))

    graph = StateGraph(MessagesState).add_node("narrate", narrate).add_edge(START, "narrate").compile()
    parts = [part async for part, _ in graph.astream({"messages": []}, stream_mode="messages")]
    answer, silent = answers
    assert "".join(part.text for part in parts) == "Well. So."
    assert {part.id for part in parts} == {answer.id}
    assert [made["name"] for part in parts for made in part.tool_call_chunks] == ["roll_dice"]
    assert [made["name"] for made in answer.tool_calls] == [made["name"] for made in silent.tool_calls]
    assert [made["name"] for made in answer.tool_calls] == ["keep_secret", "roll_dice"]
