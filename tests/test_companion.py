"""The companion: a tool loop that edits core memory within the turn, on any model."""

import pytest
from companion_thread import EXCHANGES, Companion, note
from fake_openai import call as http_call
from fake_openai import say as http_say
from scripted import call, malformed, say, sections_of

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.graph import graph
from questbook.graphs.errors import ModelError
from questbook.graphs.history.history import History


def test_the_graph_is_what_langgraph_json_names():
    nodes = {"recall", "respond", "use_tools", "remember", "condense"}
    assert nodes <= set(graph.get_graph().nodes)
    assert set(graph.get_input_jsonschema()["properties"]) == {"messages"}


async def test_a_reply_with_an_edit_is_one_question_to_the_model(companion):
    assert await companion.say("I'm Ann", say("Hello Ann!", note("Name: Ann"))) == "Hello Ann!"
    assert companion.human == "Name: Ann"
    assert len(companion.model.asked("companion")) == 1
    shapes = [(m.type, bool(getattr(m, "tool_calls", None))) for m in companion.values["messages"]]
    assert shapes == [("human", False), ("ai", True), ("tool", False), ("ai", False)]
    await companion.say("And?")
    assert "Name: Ann" in sections_of(companion.model.asked("companion")[-1])


async def test_the_prompt_shows_each_section_with_used_and_limit(companion):
    await companion.say("hi")
    system = sections_of(companion.model.asked("companion")[0])
    assert '<core_memory>\npersona: {"description"' in system
    assert '"used": 0, "limit": 2000, "value": ""' in system
    assert "<about>\nnow: " in system


async def test_an_edit_without_words_is_asked_again(companion):
    assert await companion.say("I'm Ann", say("", note("Name: Ann")), say("Hello Ann!")) == "Hello Ann!"
    prompts = companion.model.asked("companion")
    assert len(prompts) == 2
    assert "Name: Ann" in prompts[1][0].text, "core memory is up to date within the turn"
    assert "now uses 9 of 2,000 characters" in prompts[1][-1].text


async def test_heartbeat_gives_another_go_after_words_and_an_edit(companion):
    await companion.say("I'm Ann", say("One moment.", note("Name: Ann", request_heartbeat=True)), say("Done."))
    assert companion.reply == "Done."
    exchange = (await companion.store.asearch(EXCHANGES))[0].value
    assert exchange["reply"] == "One moment.\n\nDone."


async def test_a_failed_call_goes_back_to_the_model_and_changes_nothing(companion):
    wrong = call("core_memory_replace", label="human", old_content="Bob", new_content="Al")
    await companion.say("I'm Al", say("Noted.", wrong), say("I had no name to correct."))
    assert companion.results[0].status == "error"
    assert "is not in the section" in companion.results[0].text
    assert companion.human == ""
    assert companion.reply == "I had no name to correct."
    assert companion.values["notices"] == []


async def test_arguments_that_are_no_json_and_unknown_tools_are_told(companion):
    await companion.say(
        "x", malformed("core_memory_append", '{"label": "hum'), say("a", call("send_message")), say("b")
    )
    assert ["no JSON object" in r.text or "There is no tool" in r.text for r in companion.results] == [True, True]


async def test_calls_of_one_message_are_done_in_order(companion):
    fix = call("core_memory_replace", label="human", old_content="Anne", new_content="Ann")
    await companion.say("I'm Ann", say("Hi", note("Anne"), fix, note("Likes tea")))
    assert companion.human == "Ann\nLikes tea"


async def test_of_too_many_calls_at_once_the_first_ten_are_done(companion):
    await companion.say("I like tea", say("Noted.", *(note(f"Tea {n}") for n in range(12))), say("Enough."))
    assert companion.human.splitlines() == [f"Tea {n}" for n in range(10)]
    assert ["more than 10 calls at once" in result.text for result in companion.results] == [False] * 10 + [True] * 2


async def test_rounds_are_bounded_and_the_model_is_told(companion):
    search = say("", call("archival_memory_search", query="x"))
    await companion.say(
        "x", search, search, say("Enough.", call("archival_memory_search", query="x")), max_tool_rounds=2
    )
    assert companion.reply == "Enough."
    assert "No more tools in this turn" in companion.results[-1].text
    with pytest.raises(ModelError, match="keeps calling tools"):
        await companion.say("x", *[search] * 3, max_tool_rounds=2)


async def test_a_new_thread_goes_on_with_core_memory_and_knows_how_long_it_has_been(companion):
    await companion.say("I'm Ann", say("Hi", note("Name: Ann")))
    later = Companion(companion.model, companion.saver, companion.store)
    await later.say("hello again")
    assert later.human == "Name: Ann"
    assert later.values["turn"] == 2
    assert later.values["away"] == "just now"
    assert "you_last_spoke" in sections_of(companion.model.asked("companion")[-1])


async def test_undo_and_retry_take_core_memory_along(companion):
    await companion.say("hello")
    await companion.say("I'm Ann", say("Hi", note("Name: Ann")))
    history = History(companion.app, companion.config, CompanionContext.of(companion.settings))
    config, context = await history.retry()
    companion.model.queue("companion", say("Hi there", note("Name: Anna")))
    await companion.app.ainvoke(None, config, context=context.model_copy(update={"model": "scripted"}))
    assert companion.human == "Name: Anna"
    await history.undo()
    assert companion.human == ""
    found = await history.difference("main", "")
    assert [(change.page, change.path) for change in found.pages] == [("core", ("human",))]


async def test_over_an_openai_compatible_server_with_tools_streamed(server):
    append = http_call("core_memory_append", {"label": "human", "content": "Name: Ann"})
    companion = Companion()
    companion.settings |= {"model": "openai:gpt-4o-mini", "facts": False}
    server.queue(http_say("Hello Ann!") + append)
    assert await companion.say("I am Ann") == "Hello Ann!"
    assert companion.human == "Name: Ann"
    server.queue(http_call("conversation_search", {"query": "Ann"}), http_say("You said so."))
    assert await companion.say("Who am I?") == "You said so."
    names = {tool["function"]["name"] for tool in server.requests[0]["tools"]}
    assert {"core_memory_rethink", "archival_memory_search", "conversation_search_date"} <= names
    assert "Showing 1–1 of 1" in server.requests[-1]["messages"][-1]["content"]
