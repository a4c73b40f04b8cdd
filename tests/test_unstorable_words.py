"""NUL and lone surrogates, which PostgreSQL refuses, are left out wherever a model's words reach state or store."""

import logging

import pytest
from conftest import EXCHANGES, MIRA
from faulty_stores import Particular, check_words
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from reflecting import FAIR, MILL, ask, conclude, insights, tell
from scripted import call, say

from questbook import Exchange, note_facts, remember
from questbook.graphs.models.answer import storable_message
from questbook.types import check_choice, check_json, check_number, storable


def spoilt(value):
    """The same with NUL and a lone surrogate in every text."""
    if isinstance(value, str):
        return f"\0{value}\ud83d"
    if isinstance(value, dict):
        return {name: spoilt(part) for name, part in value.items()}
    return [spoilt(part) for part in value] if isinstance(value, list) else value


@pytest.fixture
def particular(game):
    game.keep_in(Particular())
    return game


async def walk(game, times=1, **settings):
    for _ in range(times):
        out = await game.play("I walk on", **settings, quest=say(spoilt("The road goes on and on. " * 20)))
        assert out["notices"] == []


def test_values_lose_what_no_database_takes_and_nothing_else():
    whole = {"a": ["x\ty\n", {"é☃🐉": 1}], "b": ("\x1b", None, 1.5), "c": b"\0"}
    assert storable(whole) == whole
    assert storable({"\0a": ["x\ud800\udc00y", ("\udfff",)]}) == {"a": ["xy", ("",)]}


def test_a_message_loses_it_in_all_its_parts():
    message = AIMessage(
        [{"type": "text", "text": "a\0"}, {"type": "reasoning", "reasoning": "\ud800b"}],
        tool_calls=[{"name": "t", "args": {"x": ["\0"]}, "id": "1"}],
        additional_kwargs={"reasoning_content": "c\0"},
        id="kept",
    )
    check_words(storable_message(message).model_dump())
    wrong = [{"name": "t\0", "args": "{\0", "id": "2", "error": "no JSON"}]
    worse = message.model_copy(
        update={"invalid_tool_calls": wrong, "response_metadata": {"x": "\ud800"}, "name": "n\0"}
    )
    check_words(storable_message(worse).model_dump())
    found = ToolMessage("fine", tool_call_id="1", artifact={"raw": ["a\0"]})
    assert storable_message(found).artifact == {"raw": ["a"]}
    assert (storable_message(message).text, storable_message(message).id) == ("a", "kept")
    plain = ToolMessage("fine", tool_call_id="1")
    assert storable_message(plain) is plain


async def test_reply_pages_facts_summary_and_insights_are_stored_without_it(new_game):
    game = new_game(reflection_importance=12)
    game.keep_in(Particular())
    game.model.queue("interview", say(spoilt("Welcome."), call("CharacterNotebook", **spoilt(MIRA))))
    patch = {"scene": spoilt("An inn."), "quests": {spoilt("Find Oda"): {"notes": spoilt("at the mill")}}}
    await game.play("I'm Mira.", update=say("", call("StateNotebook", **patch)))
    game.model.queue("question", ask(spoilt("What does Oda fear?")))
    game.model.queue("conclude", conclude((spoilt("Oda fears the fair."), [MILL["text"], FAIR["text"]])))
    await tell(game, "I ask.", spoilt(MILL), spoilt(FAIR))
    game.model.queue("condense", *[say(spoilt("They walked on."))] * 4)
    await walk(game, 4, buffer_tokens=400)
    assert game.values["remembered_through"] == game.values["turn"] == 6
    assert game.values["quest"]["quests"]["Find Oda"]["notes"] == "at the mill"
    assert game.values["summary"] == "They walked on."
    assert [value["text"] for value in (await insights(game)).values()] == ["Oda fears the fair."]
    for config in game.saver.list(game.config):
        check_words([m.model_dump() for m in config.checkpoint["channel_values"].get("messages", [])])
        check_words(config.checkpoint["channel_values"] | {"messages": []})


async def test_a_reply_of_nothing_else_is_no_reply(particular):
    await particular.begin()
    await particular.play("I look up", quest=[say("\0\0"), say("Rain.")])
    assert particular.reply == "Rain."


async def test_the_reply_is_streamed_without_it(particular):
    await particular.begin()
    particular.model.queue("quest", say(spoilt("Rain falls.")))
    sent = {"messages": [("user", "I look up")]}
    stream = particular.app.astream(
        sent, particular.config, context=particular.settings, stream_mode="messages", durability="sync"
    )
    assert "".join([piece.text async for piece, _ in stream if piece.type == "AIMessageChunk"]) == "Rain falls."


@pytest.fixture
def unlogged():
    """No log: a test's report cannot hold lone surrogates, and its worker would end with it."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


async def test_a_thread_that_was_stuck_recovers(particular, monkeypatch, unlogged):
    game = particular
    with monkeypatch.context() as earlier:  # as it was written before
        for module in ("graphs.models.answer", "graphs.turn.channels", "memory.store.any_store"):
            earlier.setattr(f"questbook.{module}.storable", lambda value: value)
        earlier.setattr("questbook.graphs.turn.state.storable_message", lambda message: message)
        earlier.setattr("questbook.memory.timeline.timeline.storable", lambda value: value)
        await game.begin()
        await game.play("I look up", quest=say(spoilt("Rain falls.")))
        assert (game.values["remembered_through"], game.values["turn"]) == (1, 2)
    await game.play("I wait")
    assert (game.values["remembered_through"], game.values["turn"]) == (3, 3)
    stored = {item.value["turn"]: item.value["reply"] for item in await game.store.asearch(EXCHANGES)}
    assert stored[2] == "Rain falls.?"  # msgpack had made "?" of the surrogate


async def test_the_library_leaves_it_out_for_any_app():
    store = Particular()
    first = await remember(store, ("app",), {"player": "hi\0", "reply": "\ud800hello"}, claims=("claims",))
    again = await remember(store, ("app",), Exchange(text="hi\nhello\0"), turn=1, timeline=first, claims=("claims",))
    assert again != first  # another exchange
    await note_facts(store, ("facts",), [spoilt(MILL)], timeline=first)
    [fact] = await store.asearch(("facts",))
    assert fact.value["text"] == MILL["text"]


async def test_a_person_may_edit_state_with_it(particular):
    await particular.begin()
    update = {"summary": "a\0b", "quest": {"scene": "\ud800An inn."}, "messages": [HumanMessage("\0hi", id="x")]}
    await particular.app.aupdate_state(particular.config, update)
    check_words(particular.values | {"messages": [m.model_dump() for m in particular.values["messages"]]})


@pytest.mark.parametrize(
    ("value", "more", "expected"),
    [
        (0, {}, ""), (-1, {}, "a whole number from 0"), (True, {}, "a whole number from 0"),
        ("3", {}, "a whole number"),
        (1.5, {}, "a whole number from 0"), (None, {}, "a whole number from 0"), (None, {"none": True}, ""),
        (-1, {"none": True}, "a whole number from 0, or None"), (1.5, {"whole": False}, ""),
        (2, {"least": 3}, "from 3"),
        (3, {"least": 3}, ""), (9, {"most": 9}, ""), (10, {"most": 9.0}, "a whole number from 0 to 9."),
        (True, {"whole": False}, "a number from 0."),
    ],
)  # fmt: skip
def test_a_number_that_makes_no_sense_is_refused_with_its_bounds(value, more, expected):
    if not expected:
        check_number("tokens", value, **more)
        return
    with pytest.raises(ValueError, match="tokens: got ") as error:
        check_number("tokens", value, **more)
    assert f"got {value!r}; expected " in str(error.value)
    assert expected in str(error.value)


def test_what_is_none_of_the_choices_is_refused_with_all_of_them():
    for value, choices in (("a", ("a", "b")), (True, (True, False)), (None, ("a", None))):
        check_choice("mode", value, *choices)
    for value, choices in ((1, (True, False)), ("c", ("a", "b")), (0, (True, False))):
        with pytest.raises(ValueError, match=rf"mode: got {value!r}; expected {choices[0]!r} or {choices[1]!r}\."):
            check_choice("mode", value, *choices)
    with pytest.raises(ValueError, match="expected 'a', 'b' or 'c'"):
        check_choice("mode", "d", "a", "b", "c")


@pytest.mark.parametrize("value", [[], "a", {1: 2}, {"a": {1}}, {"a": (1,)}, {"a": object()}, 3])
def test_what_is_no_json_object_is_refused(value):
    for fine in (None, {}, {"project": "blue", "n": [1, None]}):
        check_json("metadata", fine)
    with pytest.raises(ValueError, match=r"metadata: got .*; expected a JSON object, such as {'project': 'blue'}"):
        check_json("metadata", value)
