"""What an application gives its companion: own tools for core memory, sections that are lists, a re-ranker."""

from unittest.mock import AsyncMock

import pytest
from companion_thread import Companion, note
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from scripted import call, say, sections_of

from questbook import CoreNotebook
from questbook.graphs.companion.graph import build_graph
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.companion.tools import HEARTBEAT, tools_for
from questbook.memory.ltm.config import LtmConfig
from questbook.memory.ltm.memories import recall_messages, remember_message
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.notebooks import DeclarationError
from questbook.notebooks.core_tools import core_tool, edit_core
from questbook.notebooks.errors import EditError

LISTS = {"todo": {"value": ["milk", "eggs"], "description": "What is to be bought."}, "human": ""}


def tick(value: str, item: str) -> str:
    """Tick off an item of a list."""
    if item not in value:
        raise EditError(f"item: {item!r} is not in the section.")
    return value.replace(item, f"[done] {item}")


def test_a_section_may_be_a_list_and_each_line_of_an_edit_is_an_item():
    page = CoreNotebook.of(LISTS)
    assert '"value": ["milk", "eggs"]' in page.render()
    page = edit_core(page, "core_memory_append", {"label": "todo", "content": "rice\nbeans"}).page
    page = edit_core(page, "core_memory_insert", {"label": "todo", "content": "tea", "line": 0}).page
    page = edit_core(page, "core_memory_remove", {"label": "todo", "content": "eggs"}).page
    assert page.sections["todo"].value == ["tea", "milk", "rice", "beans"]
    page = edit_core(
        page, "core_memory_replace", {"label": "todo", "old_content": "rice", "new_content": "wild rice"}
    ).page
    assert CoreNotebook.load(page.as_json()).sections["todo"].value == ["tea", "milk", "wild rice", "beans"]
    page = edit_core(page, "core_memory_rethink", {"label": "todo", "new_content": ""}).page
    assert (page.sections["todo"].value, page.sections["todo"].used) == ([], 0)
    page = page.apply({"sections": {"todo": {"value": ["a\nb", " ", "c"]}}}).page
    assert page.sections["todo"].value == ["a b", "c"], "an item is one line"
    small = CoreNotebook.of({"todo": {"value": ["milk"], "limit": 10}})
    with pytest.raises(EditError, match="would use 19 of 10"):
        edit_core(small, "core_memory_append", {"label": "todo", "content": "marmalade"})
    assert (
        edit_core(CoreNotebook(), "core_memory_append", {"label": "human", "content": "x"}).page.sections["human"].value
        == "x"
    )


def test_a_function_becomes_a_tool_that_edits_a_section():
    tool = core_tool(tick)
    assert tool.schema["function"]["description"] == "Tick off an item of a list."
    assert tool.schema["function"]["parameters"]["required"] == ["label", "item"]
    page = edit_core(CoreNotebook.of(LISTS), "tick", {"label": "todo", "item": "milk"}, [tool]).page
    assert page.sections["todo"].value == ["[done] milk", "eggs"]
    with pytest.raises(EditError, match=r"'jam' is not in the section\. Nothing was changed"):
        edit_core(page, "tick", {"label": "todo", "item": "jam"}, [tool])
    with pytest.raises(EditError, match="item"):
        edit_core(page, "tick", {"label": "todo", "thing": "milk"}, [tool])
    with pytest.raises(EditError, match=r"no tool 'fly'; those of core memory are core_memory_append, .*, tick\."):
        edit_core(page, "fly", {}, [tool])

    def nameless(text: str) -> str:
        """Do it."""

    def silent(value: str) -> str:
        return value

    def untyped(value: str, item) -> str:
        """Do it."""

    for wrong in (nameless, silent, untyped):
        with pytest.raises(DeclarationError, match=wrong.__name__):
            core_tool(wrong)


def test_every_tool_offers_another_go_and_what_is_off_the_record_can_be_noted_with_none():
    context = build_graph(core_tools=[tick]).context_schema.of({})
    tools = [tool["function"] for tool in tools_for(CompanionState(messages=[HumanMessage("Hello")]), context)]
    assert (tools[0]["name"], tools[-1]["name"]) == ("core_memory_append", "tick")
    assert all(HEARTBEAT in tool["parameters"]["properties"] for tool in tools)
    private = tools_for(CompanionState(messages=[HumanMessage("Don't remember this: I am Ann.")]), context)
    searches = {"archival_memory_search", "conversation_search", "conversation_search_date"}
    assert {tool["function"]["name"] for tool in private} == {"core_memory_remove", *searches}


async def test_the_companion_has_the_applications_own_tools(model):
    app = build_graph(core_tools=[tick]).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config, context = {"configurable": {"thread_id": "t"}}, {"model": "scripted", "core": LISTS}
    wrong, right = call("tick", label="todo", item="jam"), call("tick", label="todo", item="milk")
    model.queue("companion", say("", wrong), say("Done.", right))
    values = await app.ainvoke({"messages": [("user", "I have milk.")]}, config, context=context)
    assert values["core"]["sections"]["todo"]["value"] == ["[done] milk", "eggs"]
    assert values["messages"][-1].text == "Done."
    assert any("'jam' is not in the section" in message.text for message in values["messages"])
    private = say("", call("tick", label="todo", item="eggs")), say("No.")
    model.queue("companion", *private)
    values = await app.ainvoke({"messages": [("user", "Don't remember this: I have eggs.")]}, config, context=context)
    assert values["core"]["sections"]["todo"]["value"] == ["[done] milk", "eggs"]


async def test_an_own_tool_edits_a_shared_section_for_assistants_that_lack_it(model):
    store, shared = InMemoryStore(), {"todo": {"value": ["milk"], "shared": "todo"}}
    app = build_graph(core_tools=[tick]).compile(checkpointer=InMemorySaver(), store=store)
    model.queue("companion", say("Done.", call("tick", label="todo", item="milk")))
    said = {"messages": [("user", "I have milk.")]}
    await app.ainvoke(said, {"configurable": {"thread_id": "t"}}, context={"model": "scripted", "core": shared})
    other = Companion(model, store=store, campaign="other", core=shared)
    await other.say("Hello")
    assert other.core.sections["todo"].value == ["[done] milk"]


async def test_about_says_how_full_the_sections_and_the_window_are(model):
    talk = Companion(model)
    await talk.say("Hello", say("Hi.", note("Name: Ann")))
    await talk.say("Again")
    about = sections_of(model.asked("companion")[-1]).partition("<about>")[2]
    assert "human 9 of 2,000" in about
    assert "of 4,000, then older turns go into" in about
    await talk.say("And again", buffer="unbounded")
    assert "4,000" not in sections_of(model.asked("companion")[-1]).partition("conversation_tokens")[2]


async def shout_last(question, records):
    return sorted((record for record in records if "dull" not in record.text), key=lambda record: record.text)


async def test_a_reranker_orders_what_is_recalled_and_may_leave_out():
    store = InMemoryStore()
    for key, text in enumerate(["zinc boat", "a boat", "a dull boat", "m boat"]):
        await store.aput(("r",), str(key), {"text": text})
    best = await recall(store, ("r",), Query("boat", rerank=shout_last, limit=2))
    assert [record.text for record in best] == ["a boat", "m boat"]
    best = await recall(store, ("r",), Query("boat", rerank=shout_last, reranked=1))
    assert len(best) >= 3, "those behind follow in their own order"


async def failing(question, records):
    raise KeyError("a secret")


async def test_a_reranker_may_return_what_is_read_once():
    async def turned(question, records):
        return reversed(records)

    store = InMemoryStore()
    for key in "ab":
        await store.aput(("r",), key, {"text": f"{key} boat"})
    assert len(await recall(store, ("r",), Query("boat", rerank=turned))) == 2


@pytest.mark.parametrize("rerank", [failing, lambda question, records: list(records), AsyncMock(return_value=[None])])
async def test_a_reranker_that_fails_costs_its_order_and_a_remark_but_no_memory(rerank, caplog, model):
    store = InMemoryStore()
    await store.aput(("r",), "1", {"text": "a boat"})
    assert [record.text for record in await recall(store, ("r",), Query("boat", rerank=rerank))] == ["a boat"]
    assert "rerank failed" in caplog.text
    app = build_graph(rerank=rerank).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config, context = {"configurable": {"thread_id": "t"}}, {"model": "scripted", "buffer": "turns", "buffer_turns": 0}
    for words in ("My boat is red.", "I sing in Bergen.", "Which colour has my boat?"):
        state = await app.ainvoke({"messages": [("user", words)]}, config, context=context)
    notices = [notice["text"] for notice in state["notices"]]
    assert any("could not be put in the one" in text for text in notices)
    assert not any("a secret" in text for text in notices)
    assert "My boat is red." in sections_of(model.asked("companion")[-1])


async def test_the_companion_takes_a_reranker(model):
    asked = []

    async def only_bees(question, records):
        asked.append(question)
        return [record for record in records if "bees" in record.text]

    app = build_graph(rerank=only_bees).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config, context = {"configurable": {"thread_id": "t"}}, {"model": "scripted", "buffer": "turns", "buffer_turns": 0}
    for words in ("Anna keeps bees in Bergen.", "Anna sings in Bergen.", "What does Anna do in Bergen?"):
        await app.ainvoke({"messages": [("user", words)]}, config, context=context)
    prompt = sections_of(model.asked("companion")[-1])
    assert asked[-1] == "What does Anna do in Bergen?"
    assert "keeps bees" in prompt
    assert "sings" not in prompt


async def test_any_number_of_memories_may_be_fetched():
    store = InMemoryStore()
    config = LtmConfig.of(
        {
            "ltm_writes": {"min_message_length": 0},
            "ltm_reads": {"max_cosine_distance": 2.0, "num_memories_to_fetch": 200},
        }
    )
    for number in range(230):
        await remember_message(store, "Miku", "Anon", f"boat number {number} is called {number * 7}", config)
    assert len(await recall_messages(store, "Miku", "boat", config)) == 200
    huge = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2.0, "num_memories_to_fetch": 10**9}})
    assert len(await recall_messages(store, "Miku", "boat", huge)) == 230
