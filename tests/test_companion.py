"""The companion: a tool loop over core memory, archive and conversation, on any model."""

import asyncio
import itertools
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from fake_openai import FakeOpenAI
from fake_openai import call as http_call
from fake_openai import say as http_say
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from scripted import call, malformed, say

from graphs.companion.context import Context
from graphs.companion.graph import build_graph, graph
from graphs.errors import InputError, ModelError, SettingsError
from graphs.history import History
from notebooks import CoreNotebook

ARCHIVE = ("adventurer", "companion", "archive")
TALKS = ("adventurer", "companion", "exchanges")


class Companion:
    """One thread on a scripted model (or the offline one), in RAM."""

    def __init__(self, scripted=None, saver=None, store=None, **settings):
        self.model = scripted
        self.saver, self.store = saver or InMemorySaver(), store or InMemoryStore()
        self.settings = {"model": "scripted" if scripted else "offline", **settings}
        self.config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        self.app = build_graph().compile(checkpointer=self.saver, store=self.store)

    async def say(self, words, *answers, **settings):
        if self.model:
            self.model.queue("companion", *answers)
        update = {"messages": [HumanMessage(words)]} if isinstance(words, str) else words
        await self.app.ainvoke(update, self.config, context={**self.settings, **settings}, durability="sync")
        return self.reply

    @property
    def values(self):
        return self.app.get_state(self.config).values

    @property
    def core(self):
        return CoreNotebook.load(self.values["core"])

    @property
    def human(self):
        return self.core.sections["human"].value

    @property
    def reply(self):
        return self.values["messages"][-1].text

    @property
    def results(self):
        return [m for m in self.values["messages"] if isinstance(m, ToolMessage)]


@pytest.fixture
def companion(model):
    return Companion(model)


def note(text, label="human", **more):
    return call("core_memory_append", label=label, content=text, **more)


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
    assert "Name: Ann" in companion.model.asked("companion")[-1][0].text


async def test_the_prompt_shows_each_section_with_used_and_limit(companion):
    await companion.say("hi")
    system = companion.model.asked("companion")[0][0].text
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
    exchange = (await companion.store.asearch(TALKS))[0].value
    assert exchange["reply"] == "One moment.\nDone."


async def test_a_failed_call_goes_back_to_the_model_and_changes_nothing(companion):
    wrong = call("core_memory_replace", label="human", old_content="Bob", new_content="Al")
    await companion.say("I'm Al", say("Noted.", wrong), say("I had no name to correct."))
    assert companion.results[0].status == "error"
    assert "does not stand in the section" in companion.results[0].text
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


async def test_rounds_are_bounded_and_the_model_is_told(companion):
    search = say("", call("archival_memory_search", query="x"))
    await companion.say(
        "x", search, search, say("Enough.", call("archival_memory_search", query="x")), max_tool_rounds=2
    )
    assert companion.reply == "Enough."
    assert "No more tools in this turn" in companion.results[-1].text
    with pytest.raises(ModelError, match="keeps calling tools"):
        await companion.say("x", *[search] * 3, max_tool_rounds=2)


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


async def test_a_new_thread_goes_on_with_core_memory_and_knows_how_long_it_has_been(companion):
    await companion.say("I'm Ann", say("Hi", note("Name: Ann")))
    later = Companion(companion.model, companion.saver, companion.store)
    await later.say("hello again")
    assert later.human == "Name: Ann"
    assert later.values["turn"] == 2
    assert later.values["away"] == "just now"
    assert "you_last_spoke" in companion.model.asked("companion")[-1][0].text


async def test_undo_and_retry_take_core_memory_along(companion):
    await companion.say("hello")
    await companion.say("I'm Ann", say("Hi", note("Name: Ann")))
    history = History(companion.app, companion.config, Context.of(companion.settings))
    config, context = await history.retry()
    companion.model.queue("companion", say("Hi there", note("Name: Anna")))
    await companion.app.ainvoke(None, config, context=context.model_copy(update={"model": "scripted"}))
    assert companion.human == "Name: Anna"
    await history.undo()
    assert companion.human == ""
    found = await history.differ("main", "")
    assert [(change.page, change.path) for change in found.pages] == [("core", ("human",))]


async def test_sections_are_configured_and_a_wrong_one_is_named(model):
    companion = Companion(model, core={"rules": {"value": "Be brief.", "read_only": True}, "client": {"limit": 300}})
    await companion.say("hi", say("No.", note("x", label="rules")), say("Sorry."))
    assert companion.core.labels == ["rules", "client"]
    assert "read-only" in companion.results[0].text
    with pytest.raises(SettingsError, match=r"core \(QUESTBOOK_CORE\)"):
        Context.of({"core": {"a: b": {}}})
    with pytest.raises(SettingsError, match="IANA"):
        Context.of({"timezone": "Mars/Base"})
    assert Context.of({"campaign": "work"}).campaign == "companion:work"


async def test_a_person_edits_core_memory_by_patch_and_a_bad_edit_changes_nothing(companion):
    await companion.say("hi")
    await companion.app.aupdate_state(
        companion.config, {"core": {"sections": {"human": {"value": "Name: Bo"}}}}, as_node="condense"
    )
    assert companion.human == "Name: Bo"
    with pytest.raises(ValueError, match="was left as it is"):
        await companion.app.aupdate_state(
            companion.config, {"core": {"sections": {"human": {"limit": "x"}}}}, as_node="condense"
        )
    assert companion.human == "Name: Bo"


async def test_sections_are_shared_through_the_store_without_lost_edits(model):
    core = {"persona": "I help.", "house": {"value": "Rules:", "shared": "house", "limit": 50_000}}
    first = Companion(model, core=core)
    model._stock["companion"] = lambda messages: say("ok", note(f"line {next(numbers)}", label="house"))
    numbers = itertools.count()
    others = [Companion(model, store=first.store, core=core, campaign=f"c{n}") for n in range(5)]
    await asyncio.gather(*(one.say("hi") for one in [first, *others]))
    await asyncio.gather(*(one.say("more") for one in [first, *others]))
    model._stock["companion"] = say("Fine.")
    await first.say("read")
    lines = first.core.sections["house"].value.split("\n")
    assert lines[0] == "Rules:"
    assert sorted(lines[1:]) == sorted(f"line {n}" for n in range(12))
    await others[0].say("read")
    assert others[0].core.sections["house"].value == first.core.sections["house"].value


async def test_an_edit_of_a_shared_section_is_checked_against_what_others_wrote(model):
    core = {"house": {"shared": "house", "limit": 30}}
    first = Companion(model, core=core)
    second = Companion(model, store=first.store, core=core, campaign="other")
    await first.say("hi", say("ok", note("Quiet after ten.", label="house")))
    change = call("core_memory_replace", label="house", old_content="ten", new_content="nine")
    await second.say("hi", say("ok", change))
    await first.say("hi", say("ok", note("A long line that does not fit", label="house")), say("No room."))
    assert "would use" in first.results[-1].text
    assert first.core.sections["house"].value == "Quiet after nine."


class Broken(InMemoryStore):
    """A store that fails once it is told to."""

    broken = False

    async def abatch(self, ops):
        if self.broken:
            raise ConnectionError("the store is away")
        return await super().abatch(ops)


async def test_a_store_that_fails_costs_no_reply_and_what_was_archived_catches_up(model):
    companion = Companion(model, store=Broken())
    await companion.say("hello")
    companion.store.broken = True
    keep = call("archival_memory_insert", content="Keep me")
    assert await companion.say("note", say("Kept.", keep)) == "Kept."
    await companion.say("find", say("", call("conversation_search", query="note")), say("I cannot look."))
    assert "conversation_search failed" in companion.results[-1].text
    assert {entry["node"] for entry in companion.values["notices"]} == {"use_tools", "remember"}
    companion.store.broken = False
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


async def test_what_cannot_be_answered_is_refused_before_anything_is_kept(companion):
    with pytest.raises(InputError):
        await companion.say("   ")
    with pytest.raises(InputError):
        await companion.say({"messages": [AIMessage("hello")]})


# The offline assistant.


@pytest.fixture
def offline():
    return Companion()


async def test_offline_it_greets_notes_corrects_and_answers(offline):
    assert "We have not talked before" in await offline.say("Hello")
    await offline.say("My name is Ann and I like tea.")
    assert offline.human == "Name: Ann\nLikes: tea"
    assert await offline.say("Hi!") == "Hello, Ann! We last spoke just now."
    await offline.say("My name is Anna.")
    assert offline.human == "Name: Anna\nLikes: tea"
    assert await offline.say("What is my name?") == "Your name is Anna."
    await offline.say("Forget that I like tea")
    assert offline.human == "Name: Anna"


async def test_offline_it_answers_from_the_archive_and_says_when_it_does_not_know(offline):
    await offline.say("archive: The boiler was mended by Olsen in March.")
    assert "mended by Olsen" in await offline.say("Who mended the boiler?")
    assert "I do not know" in await offline.say("What is the capital of France?")
    assert "The boiler was mended" in await offline.say("What did we talk about today?")
    assert "built-in offline assistant" in await offline.say("Who are you?")


async def test_offline_summaries_are_made_too(offline):
    offline.settings |= {"buffer": "summary", "summary_offset": 0}
    await offline.say("My name is Ann.")
    assert "My name is Ann" in offline.values["summary"]
    assert offline.values["notices"] == []


# On the real OpenAI client.


async def test_over_an_openai_compatible_server_with_tools_streamed(monkeypatch):
    append = http_call("core_memory_append", {"label": "human", "content": "Name: Ann"})
    with FakeOpenAI() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        companion = Companion()
        companion.settings["model"] = "openai:gpt-4o-mini"
        server.queue(http_say("Hello Ann!") + append)
        assert await companion.say("I am Ann") == "Hello Ann!"
        assert companion.human == "Name: Ann"
        server.queue(http_call("conversation_search", {"query": "Ann"}), http_say("You said so."))
        assert await companion.say("Who am I?") == "You said so."
        names = {tool["function"]["name"] for tool in server.requests[0]["tools"]}
        assert {"core_memory_rethink", "archival_memory_search", "conversation_search_date"} <= names
        assert "Showing 1–1 of 1" in server.requests[-1]["messages"][-1]["content"]
