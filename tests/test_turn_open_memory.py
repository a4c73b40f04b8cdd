"""The rest of a memory can be opened: searches show what fits their budget, and `key` and `page` read all of it."""

import json
import re

import pytest
from answering import Talk
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from long_talk import NEEDLE, essay, sentences_of
from scripted import call, say

from questbook import LastTurns
from questbook.graphs.settings import Settings
from questbook.graphs.turn.recall import open_memory
from questbook.graphs.turn.state import TurnState
from questbook.memory.errors import BadQueryError
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key

QUESTION = "Where does the spare cellar key hang?"
NO_MEMORY = "There is no memory with the id"


class Assistant:
    """One thread of the companion, or of an agent with the middleware, whose model searches."""

    def __init__(self, machine, companion):
        self.companion = companion if machine == "companion" else None
        self.tool = "search_memory"
        if self.companion:
            self.companion.settings |= {"buffer": "turns", "buffer_turns": 1, "max_reply_chars": 40_000}
            self.tool = "conversation_search"
        else:
            self.talk = Talk(tools=True, buffer=LastTurns(1))

    async def say(self, words, reply="Good."):
        await (self.companion.say(words, say(reply)) if self.companion else self.talk.say(words, None, reply))

    async def search(self, words="Look it up.", **args):
        """Return what the tool answers."""
        calls = say("", call(self.tool, **args))
        if self.companion:
            await self.companion.say(words, calls, say("Done."))
            return self.companion.results[-1].text
        result = await self.talk.say(words, None, calls, "Done.")
        return [message.text for message in result["messages"] if message.type == "tool"][-1]

    async def read(self, key):
        """Open all pages; return what they say, and their number."""
        first = await self.search(key=key)
        pages = int(re.match(r"\S+, page 1 of (\d+): ", first)[1])
        texts = [first, *[await self.search(key=key, page=page) for page in range(2, pages + 1)]]
        assert all(f", page {number} of {pages}: " in text for number, text in enumerate(texts, 1))
        return [json.loads(text.partition(": ")[2]) for text in texts]


@pytest.fixture(params=["companion", "middleware"])
def assistant(request, companion):
    return Assistant(request.param, companion)


@pytest.mark.parametrize("length", [5_000, pytest.param(25_000, marks=pytest.mark.slow)])
async def test_a_search_shows_what_answers_and_the_rest_is_read_page_by_page(assistant, length):
    reply = essay(length)
    await assistant.say("Tell me all about the house.", reply)
    await assistant.say("Thanks.")
    found = await assistant.search(query=QUESTION)
    assert NEEDLE in found
    assert "Tell me all about the house." in found
    assert "…" in found
    assert len(found) < 4 * 800 + 100, "the budget of a prompt's memories"
    pages = await assistant.read(1)
    assert -(-len(reply) // 3_000) <= len(pages) <= -(-len(reply) // 2_500)
    assert pages[0]["user"] == "Tell me all about the house."
    read = [sentence for page in pages for sentence in sentences_of(page["assistant"].strip("… "))]
    assert read == sentences_of(reply), "each sentence once, in order"
    assert all(len(page["assistant"]) <= 3_010 for page in pages)
    assert all(len(page["assistant"]) >= 2_000 for page in pages[:-1])


async def test_a_page_that_there_is_not_is_refused_with_how_many_there_are(assistant):
    await assistant.say("Tell me all about the house.", essay(5_000))
    assert "send 1 to 2" in await assistant.search(key="1", page=3)
    assert "send 1 to 2" in await assistant.search(key="1", page=0)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["7", "0", "-1", "elsewhere-1-exchange-0", "9" * 5_000, "a\0b", "²"])
async def test_a_key_that_names_nothing_is_refused(assistant, key):
    await assistant.say("My boat is called Heron.")
    assert NO_MEMORY in await assistant.search(key=key)


async def test_a_turn_that_has_no_place_yet_and_what_is_no_turn_open_nothing_and_a_key_is_read_as_models_write_it():
    """In the place of a turn that could not be written may lie the record of another future."""
    store, keys = InMemoryStore(), [record_key("a", turn, "exchange") for turn in range(5)]
    for turn in (1, 2, 3):
        said = {"kind": "exchange", "player": f"Boat {turn} is red.", "reply": "Good."} | Stamp("a", turn).to_json()
        await store.aput(("boats",), keys[turn], said)
    state = TurnState(turn=4, timeline=[("a", 4)], remembered_through=2)
    runtime = Runtime(context=Settings(user="ann"), store=store)
    for key in ("3", "4", "0", "-1", "²", "9" * 5_000, keys[3], "", " "):
        with pytest.raises(BadQueryError, match=NO_MEMORY):
            await open_memory(state, runtime, [("boats",)], key, 1)
    for key in ("2", " 2 ", "2\0", keys[2], f" {keys[2]}\n"):
        opened = await open_memory(state, runtime, [("other",), ("boats",)], key, 1)
        assert opened == f'{keys[2]}, page 1 of 1: {{"turn": 2, "age": "at an unknown time", ' + (
            '"user": "Boat 2 is red.", "assistant": "Good."}'
        )


async def test_the_turn_that_is_under_way_cannot_be_opened(assistant):
    await assistant.say("My boat is called Heron.")
    assert NO_MEMORY in await assistant.search("Two.", key="2")
    assert "Two." in await assistant.search("Three.", key="2")


async def test_a_turn_that_the_person_asked_not_to_remember_cannot_be_opened(assistant):
    await assistant.say("Please do not remember this: my pin is 4711.", "All right, 4711 stays out.")
    assert NO_MEMORY in await assistant.search(key="1")


@pytest.mark.parametrize("field", [{"kind": "secret"}, {"known_by": ["Oda"]}, {"withheld": True}])
async def test_what_the_viewer_may_not_know_cannot_be_opened(field):
    talk = Talk(tools=True)
    await talk.say("My boat is called Heron.")
    [item] = talk.store.search(("ann", "agent~3a;agent", "exchanges"))
    open_it = say("", call("search_memory", key=item.key))
    assert "Heron" in tool_text(await talk.say("Two.", None, open_it, "Done."))
    await talk.store.aput(item.namespace, item.key, item.value | field)
    assert NO_MEMORY in tool_text(await talk.say("Three.", None, open_it, "Done."))


def tool_text(result):
    return [message.text for message in result["messages"] if message.type == "tool"][-1]


async def test_a_key_of_an_abandoned_branch_opens_nothing_on_the_other(companion):
    companion.settings |= {"buffer": "turns", "buffer_turns": 1}
    await companion.say("Hello.", say("Hello."))
    await companion.say("My boat is called Heron.", say(essay(5_000)))
    key = next(record for record in companion.store.search(("adventurer", "companion", "exchanges"), limit=9)
               if record.value["turn"] == 2).key  # fmt: skip
    await companion.history.undo()
    await companion.say("My boat is called Egret.", say("Fine."))
    await companion.say("Open it.", say("", call("conversation_search", key=key)), say("None."))
    assert NO_MEMORY in companion.results[-1].text
    await companion.say("Open it.", say("", call("conversation_search", key=2)), say("Egret."))
    assert "Egret" in companion.results[-1].text
    assert "Heron" not in companion.results[-1].text


async def test_a_key_of_another_user_opens_nothing():
    store = InMemoryStore()
    await Talk(store, user="bob").say("My boat is called Heron.", None, essay(5_000))
    [item] = store.search(("bob", "agent~3a;agent", "exchanges"))
    ann = Talk(store, tools=True, thread={"configurable": {"thread_id": "2"}})
    await ann.say("Hello.")
    for key in (item.key, "bob", "1"):
        answer = tool_text(await ann.say("Open it.", None, say("", call("search_memory", key=key)), "None."))
        assert "Heron" not in answer
    assert NO_MEMORY in tool_text(
        await ann.say("Open it.", None, say("", call("search_memory", key=item.key)), "None.")
    )


async def test_a_line_of_another_thread_names_its_key_where_something_is_left_out_and_a_tool_opens_it():
    store = InMemoryStore()
    first = Talk(store)
    await first.say("Tell me all about the house.", None, essay(5_000))
    await first.say("And the bird?", None, "The heron sleeps.")
    [item] = [item for item in store.search(("ann", "agent~3a;agent", "exchanges")) if item.value["turn"] == 1]
    other, without = (
        Talk(store, tools=tools, thread={"configurable": {"thread_id": name}})
        for tools, name in ((True, "2"), (False, "3"))
    )
    await other.say(QUESTION)
    assert f'"key": "{item.key}"' in other.model.remembered
    assert NEEDLE in other.model.remembered
    await without.say(QUESTION)
    assert NEEDLE in without.model.remembered
    assert '"key"' not in without.model.remembered, "no tool takes it"
    await other.say("Which bird sleeps?")
    [line] = [line for line in other.model.remembered.splitlines() if "heron" in line]
    assert '"key"' not in line, "nothing is left out"
    page = tool_text(await other.say("Open.", None, say("", call("search_memory", key=item.key, page=2)), "Done."))
    assert page.startswith(f"{item.key}, page 2 of 2: ")


async def test_a_line_of_the_own_thread_names_its_turn_alone():
    talk = Talk(tools=True, buffer=LastTurns(1))
    await talk.say("Tell me all about the house.", None, essay(5_000))
    await talk.say("Thanks.")
    await talk.say(QUESTION)
    [line] = [json.loads(line) for line in talk.model.remembered.splitlines() if NEEDLE in line]
    assert (line["turn"], "key" in line) == (1, False)


async def test_a_note_of_this_turn_and_a_fact_are_opened_by_their_keys():
    talk = Talk(tools=True)
    text = essay(800)[:990]
    keep = say("", call("manage_memory", action="create", content=text))
    result = await talk.say("Note it.", None, keep, "Noted.")
    assert "Kept as note-" in tool_text(result)
    [item] = talk.store.search(("ann", "agent~3a;agent", "facts"))
    opened = tool_text(await talk.say("Open.", None, say("", call("search_memory", key=item.key)), "Done."))
    assert json.loads(opened.partition(": ")[2])["fact"] == text
    end = say("", call("manage_memory", action="end", id=item.key))
    look = say("", call("search_memory", key=item.key))
    assert NO_MEMORY in tool_text(await talk.say("Forget it.", None, end, look, "Done."))


@pytest.mark.slow
async def test_five_long_results_share_the_budget_and_each_shows_what_fits(companion):
    companion.settings |= {"buffer": "turns", "buffer_turns": 1}
    for number in range(6):
        await companion.say(f"Tell me about house {number}.", say(essay(5_000, f"House {number} has a blue boiler.")))
    await companion.say("Find.", say("", call("conversation_search", query="Who has a blue boiler?")), say("Done."))
    found = companion.results[-1].text
    lines = found.splitlines()[1:]
    assert len(lines) == 5
    assert sum(len(line) + 1 for line in lines) <= 4 * 800
    assert len(re.findall(r"House \d has a blue boiler\.", found)) == 5
    by_day = say("", call("conversation_search_date", start_date="today", end_date="today"))
    await companion.say("List.", by_day, say("Done."))
    listed = companion.results[-1].text.splitlines()[1:]
    assert [json.loads(line)["turn"] for line in listed] == [1, 2, 3, 4, 5]
    assert sum(len(line) + 1 for line in listed) <= 4 * 800


async def test_a_search_of_one_side_shows_that_side_alone(companion):
    companion.settings |= {"buffer": "turns", "buffer_turns": 1}
    await companion.say(essay(5_000, "My boat is called Heron."), say(essay(5_000)))
    for role, words, others in (("user", "Heron", NEEDLE), ("assistant", NEEDLE, "Heron")):
        look = call("conversation_search", query=f"boat Heron {NEEDLE}", roles=[role])
        await companion.say("Find.", say("", look), say("Done."))
        [line] = [one for one in companion.results[-1].text.splitlines() if '"turn": 1,' in one]
        assert words in line
        assert others not in line


async def test_a_long_entry_of_the_archive_shows_what_fits_and_is_read_in_pages(companion):
    text = essay(19_000)
    look, second = (call("archival_memory_search", query=QUESTION), call("archival_memory_search", query=""))
    keep = call("archival_memory_insert", content=text, tags=["house"])
    await companion.say("Note.", say("", keep), say("", look), say("Kept."))
    waiting = json.loads(companion.results[-1].text.splitlines()[1])
    opened = call("archival_memory_search", key=waiting["key"], page=2)
    assert NEEDLE in waiting["text"]
    await companion.say("Find.", say("", look), say("Found."))
    found = json.loads(companion.results[-1].text.splitlines()[1])
    assert NEEDLE in found["text"]
    assert len(found["text"]) < 4 * 800
    assert found["tags"] == ["house"]
    read = []
    for page in range(1, 8):
        await companion.say("Open.", say("", call("archival_memory_search", key=found["key"], page=page)), say("Done."))
        read += sentences_of(json.loads(companion.results[-1].text.partition(": ")[2])["archive"].strip("… "))
    assert read == sentences_of(text)
    again = call("archival_memory_insert", content=text + " Again.")
    await companion.say("Note.", say("", again), say("", second), say("", opened), say("Kept."))
    assert "waiting 0, page 2 of 7: " in companion.results[-1].text, "an entry of this turn"


async def test_the_archive_of_an_abandoned_turn_cannot_be_opened(companion):
    await companion.say("Hello.", say("Hello."))
    await companion.say("Note.", say("", call("archival_memory_insert", content=essay(5_000))), say("Kept."))
    [item] = companion.store.search(("adventurer", "companion", "archive"))
    look = say("", call("archival_memory_search", key=item.key))
    await companion.say("Open.", look, say("Done."))
    assert "page 1 of 2" in companion.results[-1].text
    await companion.history.undo()
    await companion.history.undo()
    await companion.say("Open.", look, say("Done."))
    assert NO_MEMORY in companion.results[-1].text
