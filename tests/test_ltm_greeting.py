"""A greeting that knows how long it has been."""

from datetime import UTC, datetime, timedelta

from langgraph.store.memory import InMemoryStore

from questbook.memory.ltm.curation import delete_memories
from questbook.memory.ltm.greeting import LastTalk, greeting_line, last_talk, note_session
from questbook.memory.ltm.memories import MEMORIES, remember_message
from questbook.memory.timeline.namespaces import character_namespace
from questbook.memory.timeline.records import Stamp

NOW = datetime(2026, 7, 10, 12, tzinfo=UTC)
TOLD = "I am a little afraid of the exam next week, because I have not opened a single one of the books about it."


async def talk(store, session, days, text="", **more):
    at = NOW - timedelta(days=days)
    key = await remember_message(store, "Miku", "Ada", text, user="ada", said_at=at, session=session, **more)
    await note_session(store, "Miku", session, user="ada", now=at, memory=key)
    return key


def line(found):
    return greeting_line(found, name1="Ada", name2="Miku", now=NOW)


async def test_the_first_time_is_the_first_time():
    store = InMemoryStore()
    await talk(store, "now", 0, TOLD)
    assert await last_talk(store, "Miku", user="ada", session="now") == LastTalk()
    assert line(LastTalk()) == "Ada and Miku have not talked before."
    assert await last_talk(store, "Miku", user="bob") == LastTalk(), "another user's Miku"


async def test_how_long_how_often_and_of_what():
    store = InMemoryStore()
    await talk(store, "first", 9, TOLD)
    await talk(store, "second", 5, "short")
    found = await last_talk(store, "Miku", user="ada", session="now")
    assert (found.sessions, found.said_at[:10], found.text) == (2, "2026-07-05", TOLD)
    assert line(found) == (
        f"Ada and Miku have talked 2 times before, last 5 days ago. Of what Ada said then is remembered: “{TOLD}”"
    )


async def test_a_session_counts_once_and_its_last_turn_is_its_time():
    store = InMemoryStore()
    for days in (9, 8, 1):
        await talk(store, "first", days, "short")
    found = await last_talk(store, "Miku", user="ada", session="now")
    assert line(found) == "Ada and Miku have talked once before, last yesterday."


async def test_what_was_deleted_or_taken_back_is_not_brought_up():
    store = InMemoryStore()
    await talk(store, "first", 9, TOLD)
    key = await talk(store, "second", 5, TOLD + " Really.")
    await delete_memories(store, character_namespace("Miku", MEMORIES, user="ada"), [key])
    assert (await last_talk(store, "Miku", user="ada")).text == TOLD
    await talk(store, "third", 4, TOLD + " Undone.", stamp=Stamp("gone", 3).to_json())
    assert (await last_talk(store, "Miku", user="ada", timeline=[("main", 9)])).text == TOLD
    assert (await last_talk(store, "Miku", user="ada", timeline=[("gone", 3)])).text == TOLD + " Undone."
