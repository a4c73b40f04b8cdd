"""What the companion finds again: its archive, what was said, and what is recalled before a reply."""

from datetime import UTC, datetime, timedelta

from companion_thread import ARCHIVE, TALKS, Companion
from faulty_stores import Broken
from langgraph.checkpoint.memory import InMemorySaver
from scripted import call, say

from questbook.graphs.companion.context import Context
from questbook.graphs.companion.graph import build_graph
from questbook.graphs.history.history import History


async def test_the_archive_is_written_with_the_turn_and_found_in_the_same_one(companion):
    keep = call("archival_memory_insert", content="The boiler was mended by Olsen", tags=["house"])
    look = call("archival_memory_search", query="who mended the boiler", tags=["house"])
    await companion.say("note", say("", keep), say("", look), say("Olsen."))
    assert "Showing 1–1 of 1 (page 1 of 1)." in companion.results[1].text
    assert "Olsen" in companion.results[1].text
    [kept] = await companion.store.asearch(ARCHIVE)
    assert kept.value["turn"] == 1
    assert kept.value["thread"] == companion.config["configurable"]["thread_id"]
    assert (companion.values["archived"], companion.values["archive_count"]) == ([], 1)
    assert '"turn": ' not in companion.results[1].text
    await companion.say("again", say("", call("archival_memory_search", query="boiler", page=2)), say("No."))
    assert "there are 1 pages with 1 results" in companion.results[-1].text


async def test_what_an_abandoned_future_archived_is_not_found(companion):
    await companion.say("hello")
    await companion.say("note", say("Kept.", call("archival_memory_insert", content="A secret plan")))
    history = History(companion.app, companion.config, Context.of(companion.settings))
    await history.undo()
    await companion.say("find", say("", call("archival_memory_search", query="secret plan")), say("Nothing."))
    assert "0 of 0" in companion.results[-1].text
    assert companion.values["archive_count"] == 0
    await companion.say("talks", say("", call("conversation_search", query="note")), say("Nothing."))
    assert "0 of 0" in companion.results[-1].text


async def test_conversation_search_finds_what_left_the_buffer_but_not_this_turn(companion):
    companion.settings |= {"buffer": "turns", "buffer_turns": 1}
    await companion.say("My boat is called Heron")
    for number in range(4):
        await companion.say(f"filler {number}")
    await companion.say("what boat?", say("", call("conversation_search", query="boat")), say("Heron."))
    told = companion.results[-1].text
    assert "Showing 1–1 of 1" in told
    assert "Heron" in told
    assert "what boat" not in told
    assert "Heron" not in str(companion.model.asked("companion")[-2][1:]), "it was not in the conversation any more"


async def test_conversation_search_date_takes_days_of_the_users_timezone(companion):
    await companion.say("hello there", timezone="Pacific/Kiritimati")
    today = datetime.now(UTC) + timedelta(hours=14)
    ask = call("conversation_search_date", start_date=f"{today:%Y-%m-%d}", end_date="today")
    await companion.say("today?", say("", ask), say("Yes."), timezone="Pacific/Kiritimati")
    assert "hello there" in companion.results[-1].text
    assert f"{today:%Y-%m-%d}" in companion.results[-1].text
    wrong = call("conversation_search_date", start_date="last week", end_date="now")
    await companion.say("when?", say("", wrong), say("No."))
    assert "expected a day as YYYY-MM-DD" in companion.results[-1].text


async def test_memories_of_turns_beyond_the_prompt_are_recalled_before_the_reply(companion):
    companion.settings |= {"buffer": "summary", "summary_offset": 0, "summarizer": "extractive"}
    await companion.say("My sister Lia plays the cello")
    await companion.say("It is windy")
    await companion.say("What does my sister play?")
    system = companion.model.asked("companion")[-1][0].text
    memories = system.split("<memories>")[1].split("</memories>")[0]
    assert "cello" in memories
    assert [m.text for m in companion.model.asked("companion")[-1][1:]] == ["What does my sister play?"]
    assert "cello" in companion.values["summary"]


async def test_recall_goes_by_the_weights_and_notes_what_was_used_where_they_ask_for_it(model):
    ada = Companion(model, buffer="turns", buffer_turns=1, weights={"scoring": "generative_agents"})
    for words in ("my cat is called Oda", "the weather is fine", "I bake bread"):
        await ada.say(words, say("I see."))
    await ada.say("what is my cat called?", say("Oda."))
    used = await ada.store.asearch(("adventurer", "companion", "accesses"), limit=9)
    first = next(item.key for item in await ada.store.asearch(TALKS, limit=9) if item.value["turn"] == 1)
    assert first in max(used, key=lambda item: item.value["turn"]).value["accessed"]


async def test_a_store_that_fails_costs_no_reply_and_what_was_archived_catches_up(model):
    companion = Companion(model, store=Broken())
    await companion.say("hello")
    companion.store.error = ConnectionError("the store is away")
    keep = call("archival_memory_insert", content="Keep me")
    assert await companion.say("note", say("Kept.", keep)) == "Kept."
    await companion.say("find", say("", call("conversation_search", query="note")), say("I cannot look."))
    assert "conversation_search failed" in companion.results[-1].text
    assert {entry["node"] for entry in companion.values["notices"]} == {"use_tools", "remember"}
    companion.store.error = None
    await companion.say("now")
    [kept] = await companion.store.asearch(ARCHIVE)
    assert (kept.value["text"], kept.value["turn"]) == ("Keep me", 2)
    assert companion.values["archived"] == []
    assert len(await companion.store.asearch(TALKS)) == 4


async def test_without_a_store_it_talks_and_says_what_it_cannot(model):
    app = build_graph().compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    model.queue("companion", say("", call("conversation_search", query="x")), say("I cannot search."))
    values = await app.ainvoke({"messages": [("user", "hi")]}, config, context={"model": "scripted"})
    assert "There is no store here" in values["messages"][-2].text
    assert [entry["node"] for entry in values["notices"]] == ["remember"]


async def test_a_long_result_is_cut_and_says_so(companion):
    await companion.say("note", say("ok", call("archival_memory_insert", content="word " * 2000)))
    await companion.say("find", say("", call("archival_memory_search", query="word")), say("Long."))
    assert len(companion.results[-1].text) < 2000
    assert "8,500 characters more" in companion.results[-1].text
