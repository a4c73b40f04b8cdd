"""What the companion finds again: its archive, what was said, and what is recalled before a reply."""

import re
from functools import partial

import pytest
from companion_thread import ARCHIVE, EXCHANGES, Companion
from faulty_stores import Broken
from langgraph.checkpoint.memory import InMemorySaver
from scripted import call, say, words_of

from questbook.graphs.companion.context import CompanionContext
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
    assert '"key": ' not in companion.results[1].text, "all of it is shown"
    assert '"said_at": "' in companion.results[1].text, "also while it waits to be stored"
    await companion.say("again", say("", call("archival_memory_search", query="boiler", page=2)), say("No."))
    assert "there are 1 pages with 1 results" in companion.results[-1].text


async def test_what_an_abandoned_future_archived_is_not_found(companion):
    await companion.say("hello")
    await companion.say("note", say("Kept.", call("archival_memory_insert", content="A secret plan")))
    history = History(companion.app, companion.config, CompanionContext.of(companion.settings))
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
    assert "Heron" not in str(words_of(companion.model.asked("companion")[-2])), (
        "it was not in the conversation any more"
    )


async def search(companion, tool, **args):
    """Let the model call a tool; return the lines of its result below the heading."""
    await companion.say("look it up", say("", call(tool, **args)), say("Done."))
    return companion.results[-1].text.splitlines()[1:]


@pytest.fixture
async def dated(companion):
    """A companion whose three turns, of three days, each stored an entry in the archive."""
    for number, tags in ((1, ["house", "winter"]), (2, ["house"]), (3, ["garden"])):
        keep = call("archival_memory_insert", content=f"Note {number} on tea", tags=tags)
        await companion.say(f"Tea number {number}, please", say("", keep), say(f"Served cup {number}."))
    for place in (ARCHIVE, EXCHANGES):
        for item in await companion.store.asearch(place):
            day = {"said_at": f"2026-03-{13 + item.value['turn']}T12:00:00+00:00"}
            await companion.store.aput(place, item.key, item.value | day)
    return companion


async def numbers(companion, tool, **args):
    """Return which of the three a search finds."""
    return sorted(
        int(re.search(r"(?:number|Note|cup) (\d)", line)[1]) for line in await search(companion, tool, **args)
    )


FOUND = [
    ("archival_memory_search", {}, [1, 2, 3]),
    ("archival_memory_search", {"tags": ["house"]}, [1, 2]),
    ("archival_memory_search", {"tags": ["winter", "garden"]}, [1, 3]),
    ("archival_memory_search", {"tags": ["house", "winter"], "match": "all"}, [1]),
    ("archival_memory_search", {"start": "2026-03-15"}, [2, 3]),
    ("archival_memory_search", {"end": "2026-03-15"}, [1, 2]),
    ("conversation_search", {"end": "2026-03-16"}, [1, 2, 3]),  # without those of this test, which are of today
    ("conversation_search", {"start": "2026-03-15", "end": "2026-03-16"}, [2, 3]),
    ("conversation_search_date", {"start_date": "2026-03-14", "end_date": "2026-03-16"}, [1, 2, 3]),
    ("conversation_search_date", {"start_date": "2026-03-15", "end_date": "2026-03-15"}, [2]),
    ("conversation_search_date", {"start_date": "2026-03-10", "end_date": "2026-03-13"}, []),
    ("archival_memory_search", {"tags": None, "match": None, "key": None, "page": None}, [1, 2, 3]),  # as left out
    ("conversation_search", {"roles": None, "start": None, "end": "2026-03-16"}, [1, 2, 3]),
]


async def test_a_search_obeys_what_the_model_asks_for(dated):
    for tool, args, found in FOUND:
        query = {} if tool == "conversation_search_date" else {"query": "tea"}
        assert await numbers(dated, tool, **query, **args) == found, (tool, args)


async def test_an_archive_search_ranks_by_its_query_and_shows_the_tags(dated):
    found = await search(dated, "archival_memory_search", query="note 1")
    assert "Note 1" in found[0]
    assert "winter" in found[0]


async def test_searches_show_the_page_they_are_asked_for(dated):
    dated.settings |= {"search_results": 2}
    for tool, args in (
        ("archival_memory_search", {"query": "tea"}),
        ("conversation_search", {"query": "tea", "end": "2026-03-16"}),
        ("conversation_search_date", {"start_date": "2026-03-14", "end_date": "2026-03-16"}),
    ):
        first, second = [await numbers(dated, tool, page=page, **args) for page in (1, 2)]
        assert (len(first), len(second), sorted(first + second)) == (2, 1, [1, 2, 3])


async def test_conversation_search_obeys_roles(dated):
    both = await search(dated, "conversation_search", query="tea", end="2026-03-14")
    assert "Tea number 1" in both[0]
    assert "Served cup 1" in both[0]
    user = await search(dated, "conversation_search", query="tea", end="2026-03-14", roles=["user"])
    assert "Tea number 1" in user[0]
    assert "Served" not in user[0]
    assert await search(dated, "conversation_search", query="tea", end="2026-03-14", roles=["assistant"]) == []
    assert await numbers(dated, "conversation_search", query="cup", end="2026-03-16", roles=["assistant"]) == [1, 2, 3]


async def test_conversation_search_date_takes_days_of_the_users_timezone(companion):
    companion.settings |= {"timezone": "Pacific/Kiritimati"}  # 14 hours ahead of UTC
    await companion.say("hello there")
    [item] = await companion.store.asearch(EXCHANGES)
    late = {"said_at": "2026-03-14T11:00:00+00:00"}  # an hour into the 15th there
    await companion.store.aput(EXCHANGES, item.key, item.value | late)
    tool = "conversation_search_date"
    assert await search(companion, tool, start_date="2026-03-14", end_date="2026-03-14") == []
    [line] = await search(companion, tool, start_date="2026-03-15", end_date="2026-03-15")
    assert "hello there" in line
    assert "2026-03-15 01:00" in line


async def test_a_search_understands_today_and_says_how_to_write_a_day(companion):
    await companion.say("hello there")
    find = partial(search, companion, "conversation_search_date", end_date="today")
    assert "hello there" in (await find(start_date="today"))[0]
    assert await find(start_date="last week") == []
    assert companion.results[-1].text.startswith("start_date: got 'last week'; expected a day as YYYY-MM-DD")
    assert await search(companion, "conversation_search_date", start_date="today", end_date="31.3.") == []
    assert companion.results[-1].text.startswith("end_date: got '31.3.'; expected a day")
    assert await find(start_date="today") != []
    assert await search(companion, "conversation_search_date", start_date="today", end_date="yesterday") == []
    assert companion.results[-1].text.startswith("end_date: got ")
    assert await search(companion, "conversation_search", query="tea", end="31.3.") == []
    assert companion.results[-1].text.startswith("end: got '31.3.'")


@pytest.mark.parametrize(("tool", "args", "problem"), [
    ("conversation_search", {"query": " "},
     "query: got a blank text; send words, or a key, or list days with conversation_search_date."),
    ("conversation_search", {"key": "77"}, "There is no memory with the id '77'. Take a key or a turn from a line of"),
    ("archival_memory_search", {"match": "some"}, "match: got 'some'"),
    ("archival_memory_search", {"words": "tea"}, "words: "),
    ("conversation_search", {"query": "tea", "roles": ["cook"]}, "roles: "),
    ("conversation_search", {"query": "tea", "page": "two"}, "page: got 'two'"),
])  # fmt: skip
async def test_a_search_that_makes_no_sense_is_answered_why(companion, tool, args, problem):
    await companion.say("hello")
    assert await search(companion, tool, **args) == []
    assert companion.results[-1].status == "error"
    assert problem in companion.results[-1].text


async def test_a_blank_query_of_the_archive_lists_the_newest_entries(dated):
    found = await search(dated, "archival_memory_search", query=" ")
    assert [re.search(r"Note (\d)", line)[1] for line in found] == ["3", "2", "1"]


async def test_a_store_that_fails_costs_no_reply_and_what_was_archived_catches_up(model):
    companion = Companion(model, store=Broken())
    await companion.say("hello")
    companion.store.error = ConnectionError("the store is away")
    keep = call("archival_memory_insert", content="Keep me")
    assert await companion.say("note", say("Kept.", keep)) == "Kept."
    more = call("archival_memory_insert", content="Keep me, too")
    await companion.say("find", say("", call("conversation_search", query="note"), more), say("I cannot look."))
    assert "conversation_search failed" in companion.results[-2].text
    assert {entry["node"] for entry in companion.values["notices"]} == {"recall", "use_tools", "remember"}
    companion.store.error = None
    late = {"archived": [one | {"said_at": "2026-01-01T10:00:00+00:00"} for one in companion.values["archived"]]}
    await companion.app.aupdate_state(companion.config, late, as_node="condense")
    await companion.say("now")
    kept = [item.value for item in await companion.store.asearch(ARCHIVE)]
    assert sorted((entry["text"], entry["turn"]) for entry in kept) == [("Keep me", 2), ("Keep me, too", 3)]
    times = {entry["said_at"] for entry in kept}
    assert times == {"2026-01-01T10:00:00+00:00"}, "when it was archived, not when it was written"
    assert companion.values["archived"] == []
    assert len(await companion.store.asearch(EXCHANGES)) == 4


async def test_without_a_store_it_talks_and_says_what_it_cannot(model):
    app = build_graph().compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    model.queue("companion", say("", call("conversation_search", query="x")), say("I cannot search."))
    values = await app.ainvoke({"messages": [("user", "hi")]}, config, context={"model": "scripted"})
    assert "There is no store here" in values["messages"][-2].text
    assert [entry["node"] for entry in values["notices"]] == ["remember"]
