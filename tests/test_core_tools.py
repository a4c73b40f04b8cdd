"""The tools of the archive and of the conversation: what they do, and what they say when a call does not fit."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from langgraph.store.memory import InMemoryStore

from questbook.memory.archive.archive import entry, entry_ops, search_archive
from questbook.memory.archive.conversation import search_conversation
from questbook.memory.archive.days import Days, days_of, zone_of
from questbook.memory.archive.page import page_of
from questbook.memory.errors import BadQueryError
from questbook.memory.store.index_config import DEFAULT_INDEX
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key

ARCHIVE = ("ann", "home", "archive")
TALKS = ("ann", "home", "exchanges")


# Pages and days.


def test_pages_say_n_of_total():
    found = list(range(12))
    assert page_of(found, 1, 5).heading == "Showing 1–5 of 12 (page 1 of 3)."
    assert page_of(found, 3, 5).items == [10, 11]
    assert page_of(found, 3, 5).heading == "Showing 11–12 of 12 (page 3 of 3)."
    assert page_of([], 1, 5).heading == "Nothing was found: 0 of 0."
    for number in (0, 4, -1):
        with pytest.raises(BadQueryError, match="send 1 to 3"):
            page_of(found, number, 5)


def test_days_are_whole_inclusive_and_the_persons_own():
    now = datetime(2026, 3, 14, 12, tzinfo=ZoneInfo("America/New_York"))
    days = days_of("2026-03-14", "2026-03-14", now)
    assert days.hold("2026-03-14T04:00:00+00:00"), "midnight in New York"
    assert days.hold("2026-03-15T03:59:59+00:00"), "its last second"
    assert not days.hold("2026-03-14T03:59:59+00:00")
    assert not days.hold("2026-03-15T04:00:00+00:00")
    assert not days.hold("")
    assert days_of("now", "today", now) == days
    assert days_of("yesterday", None, now).first.day == 13
    assert days_of("2026-03-15T03:00:00Z", None, now).first.day == 14
    assert days_of(None, " ", now).hold("")
    for bad, said in (("soon", "YYYY-MM-DD"), ("2026-02-30", "2026-03-14, which is today")):
        with pytest.raises(BadQueryError, match=said):
            days_of(bad, None, now)
    with pytest.raises(BadQueryError, match="before it begins"):
        days_of("2026-03-02", "2026-03-01", now)


def test_a_timezone_has_an_iana_name():
    assert zone_of("Europe/Berlin") == ZoneInfo("Europe/Berlin")
    assert zone_of("")
    for bad in ("Mars/Base", "../etc/passwd", "Europe"):
        with pytest.raises(BadQueryError, match="IANA"):
            zone_of(bad)


# Archive.


@pytest.fixture
def store():
    return InMemoryStore(index={**DEFAULT_INDEX, "dims": DEFAULT_INDEX["embed"].dims})


async def put_away(store, branch, turn, *texts, tags=(), said_at="2026-03-14T12:00:00+00:00"):
    timeline = [(branch, turn)]
    entries = [entry(text, tags) for text in texts]
    await store.abatch(entry_ops(ARCHIVE, entries, timeline, turn, {"said_at": said_at}))


async def test_archive_ranks_all_that_is_seen_and_pages_it(store):
    await put_away(store, "a", 1, "The boiler was mended by Olsen", "The cat is called Miso")
    await put_away(store, "a", 2, *(f"Shopping list number {n}" for n in range(11)))
    first = await search_archive(store, ARCHIVE, "who mended the boiler", timeline=[("a", 2)])
    assert first.heading == "Showing 1–5 of 13 (page 1 of 3)."
    assert first.items[0]["text"] == "The boiler was mended by Olsen"
    pages = [await search_archive(store, ARCHIVE, "boiler", timeline=[("a", 2)], page=n) for n in (1, 2, 3)]
    texts = [found["text"] for page in pages for found in page.items]
    assert len(texts) == len(set(texts)) == 13
    newest = await search_archive(store, ARCHIVE, " ", timeline=[("a", 2)])
    assert [found["text"] for found in newest.items][:2] == ["Shopping list number 10", "Shopping list number 9"]


async def test_archive_sees_only_its_own_timeline_and_what_waits(store):
    await put_away(store, "a", 1, "Common past: the key is under the mat")
    await put_away(store, "b", 2, "Other future: the key was lost")
    mine = [("a", 1), ("c", 2)]
    waiting = [entry("The key was found again")]
    page = await search_archive(store, ARCHIVE, "key", timeline=mine, waiting=waiting)
    assert [found["text"] for found in page.items] == [
        "The key was found again",
        "Common past: the key is under the mat",
    ]
    unfit = await search_archive(store, ARCHIVE, "mat", timeline=mine, waiting=waiting)
    assert unfit.items[0]["text"].startswith("Common past")
    assert (await search_archive(None, ARCHIVE, "key", timeline=mine, waiting=waiting)).total == 1


async def test_archive_filters_by_tags_and_days(store):
    await put_away(store, "a", 1, "one", tags=["Home", "urgent"], said_at="2026-03-14T12:00:00+00:00")
    await put_away(store, "a", 2, "two", tags=["home"], said_at="2026-03-15T12:00:00+00:00")

    async def texts(**only):
        page = await search_archive(store, ARCHIVE, "", timeline=[("a", 2)], **only)
        return [found["text"] for found in page.items]

    assert await texts(tags=["HOME"]) == ["two", "one"]
    assert await texts(tags=["home", "urgent"], every_tag=True) == ["one"]
    assert await texts(tags=["urgent", "other"]) == ["one"]
    day = datetime(2026, 3, 15, tzinfo=UTC).date()
    assert await texts(days=Days(day, None, UTC)) == ["two"]


def test_an_entry_is_neither_blank_nor_endless():
    for bad in ("  ", "x" * 20_001):
        with pytest.raises(BadQueryError, match="content"):
            entry(bad)
    assert entry("x", [" b ", "a", "", "b"])["tags"] == ["a", "b"]


# Conversation.


async def talk(store, branch, turn, player, reply, said_at):
    record = {"player": player, "reply": reply, "text": f"{player}\n{reply}", "said_at": said_at}
    await store.aput(TALKS, record_key(branch, turn, "exchange"), record | Stamp(branch, turn).to_json())


async def test_conversation_is_searched_by_words_roles_and_days_on_this_timeline(store):
    await talk(store, "a", 1, "My dog is Rex", "A fine name", "2026-03-13T23:30:00+00:00")
    await talk(store, "a", 2, "It rains", "Take Rex for a short walk", "2026-03-14T12:00:00+00:00")
    await talk(store, "b", 3, "Rex ran away", "Oh no", "2026-03-14T13:00:00+00:00")
    timeline = [("a", 2), ("c", 3)]

    async def turns(query="", **only):
        page = await search_conversation(store, TALKS, query, timeline=timeline, **only)
        return [found["turn"] for found in page.items]

    assert sorted(await turns("rex")) == [1, 2]
    assert await turns("rex", roles=["user"]) == [1]
    assert await turns("rex", before=2) == [1]
    assert await turns("ran away") == []
    assert await turns() == [1, 2]
    berlin = ZoneInfo("Europe/Berlin")
    assert await turns(days=days_of("2026-03-14", "2026-03-14", datetime(2026, 3, 20, tzinfo=berlin))) == [1, 2]
    assert await turns(days=days_of("2026-03-14", "2026-03-14", datetime(2026, 3, 20, tzinfo=UTC))) == [2]
    for roles in ([], ["tool"]):
        with pytest.raises(BadQueryError, match="user, assistant"):
            await turns(roles=roles)


async def test_conversation_pages_cover_more_than_one_read_of_the_store(store):
    for turn in range(1, 521):
        await talk(store, "a", turn, f"word {turn}", "yes", "2026-03-14T12:00:00+00:00")
    page = await search_conversation(store, TALKS, timeline=[("a", 520)], page=104)
    assert [found["turn"] for found in page.items] == [516, 517, 518, 519, 520]
    assert page.heading == "Showing 516–520 of 520 (page 104 of 104)."
