"""Archival memory and the conversation, searched by meaning, words, tags, roles and days."""

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from questbook.graphs.companion.context import find_timezone
from questbook.memory.archive.archive import (
    ArchiveQuery,
    ConversationQuery,
    add_entry,
    cut_page,
    entry_writes,
    fit_excerpts,
    new_entry,
    read_days,
    search_archive,
    search_conversation,
    waiting_entries,
)
from questbook.memory.embeddings.embedders import HashEmbeddings
from questbook.memory.errors import BadQueryError
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key

ARCHIVE = ("ann", "home", "archive")
EXCHANGES = ("ann", "home", "exchanges")


def test_pages_say_n_of_total():
    found = list(range(12))
    assert cut_page(found, 1, 5).heading == "Showing 1–5 of 12 (page 1 of 3)."
    assert cut_page(found, 3, 5).items == [10, 11]
    assert cut_page(found, 3, 5).heading == "Showing 11–12 of 12 (page 3 of 3)."
    assert cut_page([], 1, 5).heading == "Nothing was found: 0 of 0."
    for number in (0, 4, -1):
        with pytest.raises(BadQueryError, match="send 1 to 3"):
            cut_page(found, number, 5)


def test_days_are_whole_inclusive_and_the_persons_own():
    now = datetime(2026, 3, 14, 12, tzinfo=ZoneInfo("America/New_York"))
    days = read_days("2026-03-14", "2026-03-14", now)
    assert days.contains("2026-03-14T04:00:00+00:00"), "midnight in New York"
    assert days.contains("2026-03-15T03:59:59+00:00"), "its last second"
    assert not days.contains("2026-03-14T03:59:59+00:00")
    assert not days.contains("2026-03-15T04:00:00+00:00")
    assert not days.contains("")
    assert read_days("now", "today", now) == days
    assert read_days("yesterday", None, now).first.day == 13
    assert read_days("2026-03-15T03:00:00Z", None, now).first.day == 14
    assert read_days(None, " ", now).contains("")
    for bad, said in (("soon", "YYYY-MM-DD"), ("2026-02-30", "2026-03-14, which is today")):
        with pytest.raises(BadQueryError, match=said):
            read_days(bad, None, now)
    with pytest.raises(BadQueryError, match="end: got 2026-03-01, which is before start, 2026-03-02"):
        read_days("2026-03-02", "2026-03-01", now)


def test_a_timezone_has_an_iana_name():
    assert find_timezone("Europe/Berlin") == ZoneInfo("Europe/Berlin")
    assert find_timezone("")
    for bad in ("Mars/Base", "../etc/passwd", "Europe"):
        with pytest.raises(BadQueryError, match="IANA"):
            find_timezone(bad)


def test_the_timezone_without_a_name_is_the_machines_own(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC-13")
        time.tzset()
        zone = find_timezone("")
    time.tzset()
    assert zone.utcoffset(None) == timedelta(hours=13)


# Archive.


@pytest.fixture
def store():
    embedder = HashEmbeddings()
    return InMemoryStore(index={"embed": embedder, "dims": embedder.dims})


async def put_away(store, branch, turn, *texts, tags=(), said_at="2026-03-14T12:00:00+00:00"):
    entries = [new_entry(text, tags) for text in texts]
    await store.abatch(entry_writes(ARCHIVE, [one | {"said_at": said_at} for one in entries], [(branch, turn)], turn))


async def archived(store, text="", timeline=(("a", 9),), waiting=(), **query):
    page = await search_archive(store, ARCHIVE, ArchiveQuery(text, **query), timeline=timeline, waiting=waiting)
    return [entry["text"] for entry in page.items]


class Topics(Embeddings):
    """Knows which texts are about the sea, and nothing of their words."""

    def embed_documents(self, texts):
        return [
            [1.0, 0.0] if any(word in text.lower() for word in ("boat", "vessel")) else [0.0, 1.0] for text in texts
        ]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


FILLER = [f"Shopping list number {n}" for n in range(11)]


async def test_the_archive_ranks_by_meaning_where_no_word_is_shared():
    store = InMemoryStore(index={"embed": Topics(), "dims": 2, "fields": ["text"]})
    await put_away(store, "a", 1, "Olsen sold the boat")
    await put_away(store, "a", 2, *FILLER)
    assert (await archived(store, "who has my vessel"))[0] == "Olsen sold the boat"


async def test_all_that_fits_by_meaning_is_found_in_the_archive_and_in_the_conversation():
    store, said = InMemoryStore(index={"embed": Topics(), "dims": 2, "fields": ["text"]}), "2026-03-14T12:00:00+00:00"
    boats = ["Olsen sold the boat", "A boat needs paint"]
    await put_away(store, "a", 1, *boats)
    await put_away(store, "a", 2, *FILLER)
    assert sorted((await archived(store, "who has my vessel"))[:2]) == sorted(boats)
    for turn, words in enumerate([*boats, *FILLER], 1):
        await talk(store, "a", turn, words, "Good", said)
    query = ConversationQuery("who has my vessel")
    page = await search_conversation(store, EXCHANGES, query, timeline=[("a", 20)])
    assert {1, 2} <= {exchange["turn"] for exchange in page.items}
    for turn in range(14, 26):
        await talk(store, "a", turn, f"Boat number {turn}", "Good", said)
    page = await search_conversation(store, EXCHANGES, query, timeline=[("a", 30)])
    assert page.total == 10, "of those without a word in common the nearest ten"
    of_none = InMemoryStore()
    await talk(of_none, "a", 1, "A boat needs paint", "Good", said)
    assert not (await search_conversation(of_none, EXCHANGES, query, timeline=[("a", 1)])).items


async def test_the_archive_ranks_by_words_in_a_store_without_vectors():
    store = InMemoryStore()
    await put_away(store, "a", 1, "The boiler was mended by Olsen")
    await put_away(store, "a", 2, *FILLER)
    assert (await archived(store, "who mended the boiler"))[0] == "The boiler was mended by Olsen"


async def test_the_archive_ranks_by_words_what_recall_leaves_out(store):
    await put_away(store, "a", 1, "tea " + "and other things of the household " * 20)
    await put_away(store, "a", 2, *(f"tea {n}" for n in range(66)))
    await put_away(store, "a", 3, *FILLER)
    ranked = await archived(store, "tea", size=100)
    assert ranked[66].startswith("tea and other things"), "after the 66 that fit better, before the 11 that do not fit"
    assert sorted(ranked[67:]) == sorted(FILLER)


async def test_the_archive_pages_all_that_matches_and_lists_the_newest_first_without_a_text(store):
    await put_away(store, "a", 1, "The boiler was mended by Olsen", "The cat is called Miso")
    await put_away(store, "a", 2, *FILLER)
    pages = [await archived(store, "boiler", page=number) for number in (1, 2, 3)]
    assert [len(page) for page in pages] == [5, 5, 3]
    assert len({text for page in pages for text in page}) == 13
    assert await archived(store, " ", size=2) == ["Shopping list number 10", "Shopping list number 9"]


async def test_the_archive_shows_its_own_timeline_and_what_waits(store):
    await put_away(store, "a", 1, "Common past: the key is under the mat")
    await put_away(store, "b", 2, "Other future: the key was lost")
    here = {"timeline": [("a", 1), ("c", 2)], "waiting": [new_entry("The key was found again")]}
    past = "Common past: the key is under the mat"
    assert await archived(store, "key", **here) == ["The key was found again", past]
    assert await archived(store, "mat", **here) == [past, "The key was found again"], "it shares no word"
    assert await archived(None, "key", **here) == ["The key was found again"]


async def test_of_the_archive_what_the_turn_in_progress_and_later_ones_wrote_is_not_searched(store):
    for turn in (1, 2, 3):
        await put_away(store, "a", turn, f"Key number {turn}")
    for text, before, found in (("", 3, 2), ("key", 3, 2), ("key", 1, 0), ("key", None, 3)):
        page = await search_archive(store, ARCHIVE, ArchiveQuery(text), timeline=[("a", 3)], before=before)
        assert sorted(entry["turn"] for entry in page.items) == [*range(1, found + 1)]


async def test_the_archive_takes_tags_in_any_case(store):
    await put_away(store, "a", 1, "one", tags=["Home", "urgent"])
    assert await archived(store, tags=["HOME"]) == ["one"]


async def test_one_text_as_tags_no_results_on_a_page_and_a_timeline_without_a_turn_are_refused():
    store = InMemoryStore()
    for make in (lambda: new_entry("x", "dog"), lambda: ArchiveQuery(tags="dog")):
        with pytest.raises(BadQueryError, match=r"tags: got 'dog'; expected a list of texts, such as \['dog'\]"):
            make()
    with pytest.raises(BadQueryError, match=r"timeline: got an empty one; expected .* \[\('main', 1\)\]"):
        await add_entry(store, ARCHIVE, "x", timeline=[])
    for search, query in ((search_archive, ArchiveQuery(size=0)), (search_conversation, ConversationQuery(size=0))):
        with pytest.raises(BadQueryError, match="size: got 0; expected 1 or more"):
            await search(store, ARCHIVE, query, timeline=[("main", 1)])


def test_an_entry_is_neither_blank_nor_endless():
    for bad in ("  ", "x" * 20_001):
        with pytest.raises(BadQueryError, match="content"):
            new_entry(bad)
    assert new_entry("x", [" b ", "a", "", "b"])["tags"] == ["a", "b"]


# Conversation.


async def talk(store, branch, turn, player, reply, said_at):
    record = {"player": player, "reply": reply, "text": f"{player}\n{reply}", "said_at": said_at}
    await store.aput(EXCHANGES, record_key(branch, turn, "exchange"), record | Stamp(branch, turn).to_json())


async def test_conversation_is_searched_by_words_roles_and_days_on_this_timeline(store):
    await talk(store, "a", 1, "My dog is Rex", "A fine name", "2026-03-13T23:30:00+00:00")
    await talk(store, "a", 2, "It rains", "Take Rex for a short walk", "2026-03-14T12:00:00+00:00")
    await talk(store, "b", 3, "Rex ran away", "Oh no", "2026-03-14T13:00:00+00:00")
    timeline = [("a", 2), ("c", 3)]

    async def turns(text="", before=None, **query):
        page = await search_conversation(
            store, EXCHANGES, ConversationQuery(text, **query), timeline=timeline, before=before
        )
        return [exchange["turn"] for exchange in page.items]

    assert sorted(await turns("rex")) == [1, 2]
    assert await turns("rex", roles=["user"]) == [1]
    assert await turns("rex", before=2) == [1]
    assert await turns("ran away") == []
    assert await turns() == [1, 2]
    berlin = ZoneInfo("Europe/Berlin")
    assert await turns(days=read_days("2026-03-14", "2026-03-14", datetime(2026, 3, 20, tzinfo=berlin))) == [1, 2]
    assert await turns(days=read_days("2026-03-14", "2026-03-14", datetime(2026, 3, 20, tzinfo=UTC))) == [2]
    for roles in ([], ["tool"]):
        with pytest.raises(BadQueryError, match="user, assistant"):
            await turns(roles=roles)


async def test_conversation_ranks_the_best_fitting_first_and_leaves_out_what_is_withheld(store):
    said_at = "2026-03-14T12:00:00+00:00"
    await talk(store, "a", 1, "The garden has a well and a wall and much else", "Yes", said_at)
    await talk(store, "a", 2, "The well of the garden is a well", "Yes", said_at)
    await talk(store, "a", 3, "well", "garden", said_at)
    withheld = await store.aget(EXCHANGES, record_key("a", 3, "exchange"))
    await store.aput(EXCHANGES, withheld.key, withheld.value | {"withheld": True})
    page = await search_conversation(store, EXCHANGES, ConversationQuery("garden well"), timeline=[("a", 3)])
    assert [exchange["turn"] for exchange in page.items] == [2, 1]


async def test_conversation_pages_cover_more_than_one_read_of_the_store(store):
    for turn in range(1, 521):
        await talk(store, "a", turn, f"word {turn}", "yes", "2026-03-14T12:00:00+00:00")
    page = await search_conversation(store, EXCHANGES, ConversationQuery(page=104), timeline=[("a", 520)])
    assert [exchange["turn"] for exchange in page.items] == [516, 517, 518, 519, 520]
    assert page.heading == "Showing 516–520 of 520 (page 104 of 104)."


def test_the_numbers_of_a_page_and_the_longest_entry():
    assert (cut_page([], 1, 5).first, cut_page([], 1, 5).pages, cut_page([7], 1, 5).first) == (0, 1, 1)
    assert cut_page(range(10), 2, 5).heading == "Showing 6–10 of 10 (page 2 of 2)."
    with pytest.raises(BadQueryError, match="page: got 3; there are 2 pages with 10 results: send 1 to 2"):
        cut_page(range(10), 3, 5)
    assert len(new_entry("x" * 20_000)["text"]) == 20_000
    with pytest.raises(BadQueryError, match=r"content: has 20,001 characters of at most 20,000; send it in parts\."):
        new_entry("x" * 20_001)


@pytest.mark.parametrize(
    ("tags", "every", "found"),
    [
        ([], False, True), (["home"], False, True), (["home", "boat"], False, True), (["home", "boat"], True, False),
        (["home", "URGENT "], True, True), (["boat"], False, False), ([" "], True, True),
    ],
)  # fmt: skip
def test_an_entry_has_one_of_the_tags_or_all_of_them(tags, every, found):
    assert ArchiveQuery(tags=tags, every_tag=every).matches(new_entry("x", ["Home", "urgent"])) is found


@pytest.mark.parametrize(
    ("first", "last", "time", "inside"),
    [
        (None, None, "no time", True), ("2026-03-14", None, "no time", False), ("2026-03-14", None, "2026-03-14", True),
        ("2026-03-14", None, "2026-03-13T23:30:00", True), (None, "2026-03-14", "2026-03-14T22:59:59", True),
        (None, "2026-03-14", "2026-03-14T23:00:00", False), (None, "2026-03-14", "2026-03-14T23:00:00+02:00", True),
    ],
)  # fmt: skip
def test_a_time_without_an_offset_is_utc_and_an_end_may_be_open(first, last, time, inside):
    now = datetime(2026, 3, 20, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    assert read_days(first, last, now).contains(time) is inside


async def test_a_side_that_said_nothing_is_no_result_for_its_role(store):
    await talk(store, "a", 1, "My dog is Rex", "", "2026-03-13T23:30:00+00:00")
    await talk(store, "a", 2, " ", "Rex is a fine name", "2026-03-14T12:00:00+00:00")
    for roles, turns in ((["user"], [1]), (["assistant"], [2]), (["user", "assistant"], [1, 2])):
        page = await search_conversation(store, EXCHANGES, ConversationQuery(roles=roles), timeline=[("a", 2)])
        assert [exchange["turn"] for exchange in page.items] == turns
    assert "assistant" not in page.items[0]
    await talk(store, "a", 3, "Is it late?", "It is noon", "2026-03-14T12:00:00+00:00")
    for role, words in (("user", "Is it late?"), ("assistant", "It is noon")):
        page = await search_conversation(
            store, EXCHANGES, ConversationQuery(words, roles=[role]), timeline=[("a", 3)], before=4
        )
        assert page.items[0] == {"turn": 3, "said_at": "2026-03-14T12:00:00+00:00", role: words}


async def test_an_entry_by_hand_is_stored_once_and_beside_other_texts(store):
    line = [("a", 3)]
    first = await add_entry(store, ARCHIVE, "The key is under the mat.", ["home"], timeline=line)
    assert await add_entry(store, ARCHIVE, "The key is under the mat.", timeline=line) == first
    assert await add_entry(store, ARCHIVE, "The well is dry.", timeline=line) != first
    assert sorted(await archived(store)) == ["The key is under the mat.", "The well is dry."]
    value = (await store.aget(ARCHIVE, first)).value
    assert (value["by"], value["turn"], value["branch"], value["kind"]) == ("hand", 3, "a", "archive")


async def test_each_record_has_its_share_and_one_that_has_too_little_shows_its_first_words():
    long = " ".join(f"word{n}" for n in range(60)) + "."
    items = [{"text": long}, {"text": "The lamp is red."}, {"text": long}]
    costs = lambda record: len(record.excerpt.split())  # noqa: E731
    first, second, third = await fit_excerpts(items, "lamp", 90, costs)
    assert (first.excerpt, second.excerpt) == (" ".join(f"word{n}" for n in range(15)) + " …", "The lamp is red.")
    assert third.excerpt == long, "what those before it have left"
    shown = await fit_excerpts(items, "lamp", 70, costs)
    assert sum(map(costs, shown)) <= 70 < sum(map(costs, [first, second, third]))
    for one in await fit_excerpts([{"text": long}] * 2, "lamp", 0, costs):
        assert one.excerpt == first.excerpt


def test_waiting_entries_have_keys_that_no_record_has():
    assert waiting_entries([{"text": "a"}, {"text": "b"}]) == {"waiting 0": {"text": "a"}, "waiting 1": {"text": "b"}}
