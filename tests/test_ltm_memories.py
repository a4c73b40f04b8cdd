"""What a character remembers and recalls, as the LTM extension did (L1 to L27 in docs/coverage.md), and by hand."""

import asyncio
import math
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from companion_thread import Companion
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from scripted import say
from stores import stores_of

from questbook import FaissStore, HashEmbeddings
from questbook.memory.embeddings.embedders import KnownVectors
from questbook.memory.errors import EmbeddingError, NoSuchMemoryError, StoreConfigError
from questbook.memory.ltm.config import SPELLING_DISTANCE, LtmConfig
from questbook.memory.ltm.memories import (
    MEMORIES,
    add_memory,
    delete_character,
    delete_memories,
    edit_memory,
    find_memory,
    list_characters,
    list_memories,
    pick_memory,
    recall_messages,
    remember_message,
)
from questbook.memory.ltm.prompt import memory_block
from questbook.memory.timeline.namespaces import character_name, character_namespace
from questbook.memory.timeline.records import Stamp

NOW = datetime(2026, 7, 10, 12, tzinfo=UTC)
BOATS = "I grew up by the sea, in a small town where my father repaired boats and my mother taught the piano."
CAT = "My cat is called Miso, she is nine years old, and she always sleeps on my keyboard whenever I want to work."
TRAIN = "Next week I take the night train to Vienna, because my younger sister is getting married there on Saturday."
EVERYTHING = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2.0, "num_memories_to_fetch": 10}})
SHORT = LtmConfig.of({"ltm_writes": {"min_message_length": 0}, "ltm_reads": {"max_cosine_distance": 2.0}})
TWO = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2.0}})


async def tell(store, *texts, character="Miku", speaker="Anon", config=None, **more):
    for number, text in enumerate(texts):
        at = NOW - timedelta(days=len(texts) - number)
        await remember_message(store, character, speaker, text, config, **{"said_at": at, **more})


async def recalled(store, message, config=EVERYTHING, character="Miku", **more):
    return [memory.text for memory in await recall_messages(store, character, message, config, **more)]


class Failing(HashEmbeddings):
    """Embeds no document while `fails` is set."""

    fails = False

    def embed_documents(self, texts):
        if self.fails:
            raise OSError("the embedder is gone")
        return super().embed_documents(texts)


class Angles(Embeddings):
    """A text that begins with a number points in that direction, in degrees; one with two is that vector.

    What it was asked with is kept.
    """

    dims = 2
    asked: list[str] = []

    def embed_documents(self, texts):
        return [self._vector(text) for text in texts]

    def embed_query(self, text):
        self.asked.append(text)
        return self._vector(text)

    @staticmethod
    def _vector(text):
        first, second, *_ = [*text.split(), "", ""]
        if first.isdecimal() and second.isdecimal():
            return [float(first), float(second)]
        angle = math.radians(float(first) if first[:1].isdecimal() else 0.0)  # a store may ask with words for the size
        return [math.cos(angle), math.sin(angle)]


store = stores_of("faiss", "memory")
angles = stores_of("faiss", "memory", embed=Angles())


async def test_l01_any_embedder_with_the_cosine(angles):
    await tell(angles, "0 east", "120 west", config=SHORT)
    found = await recall_messages(angles, "Miku", "60 the message", EVERYTHING)
    assert [round(memory.distance, 5) for memory in found] == [0.5, 0.5]


async def test_l02_the_nearest_first_and_no_more_than_there_are(angles):
    await tell(angles, *(f"{angle} memory{angle}" for angle in (80, 10, 50, 30, 0)), config=SHORT)
    assert await recalled(angles, "0 message", TWO) == ["0 memory0", "10 memory10"]
    assert await recalled(angles, "0 message") == [f"{angle} memory{angle}" for angle in (0, 10, 30, 50, 80)]


async def test_l02_of_a_character_and_of_everyone_the_nearest_comes_first_whoever_has_it(angles):
    await tell(angles, "40 of Miku", "70 of Miku", config=SHORT)
    await tell(angles, "10 of everyone", "55 of everyone", "85 of Miku", config=SHORT, character="*")
    await tell(angles, "80 of everyone", "20 OF MIKU", config=SHORT, character="*")
    found = await recall_messages(angles, "Miku", "0 message", EVERYTHING)
    assert [memory.text[:2] for memory in found] == ["10", "20", "40", "55", "70", "80", "85"]
    assert [round(math.degrees(math.acos(1 - memory.distance))) for memory in found] == [10, 20, 40, 55, 70, 80, 85]


async def test_l10_the_distance_is_that_of_the_nearest_of_those_that_say_the_same(angles):
    for said in ("60 boats are in", "Well, 60 boats are in", "60 BOATS are in!"):  # the second points to 0
        await add_memory(angles, "Miku", said, speaker="Ada")
    found = await recall_messages(angles, "Miku", "0 message", EVERYTHING)
    assert [(memory.times, round(memory.distance, 5)) for memory in found] == [(3, 0.0)]


async def test_l04_only_what_is_nearer_than_the_distance_and_exactly_it_is_not(angles):
    await tell(angles, "0 same", "59.9 nearer", "60 exactly", "90 far", config=SHORT)
    half = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 0.4999999, "num_memories_to_fetch": 9}})
    assert await recalled(angles, "0 message", half) == ["0 same", "59.9 nearer"]
    none = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 0.0}})
    assert await recalled(angles, "0 message", none) == []


async def test_l05_so_many_are_fetched_and_cut_when_shown_but_kept_whole(store):
    long = CAT + " And then" * 500
    await tell(store, long, BOATS, TRAIN)
    reads = {"memory_length_cutoff_in_chars": 20, "num_memories_to_fetch": 1, "max_cosine_distance": 2}
    config = LtmConfig.of({"ltm_reads": reads})
    (found,) = await recall_messages(store, "Miku", CAT[:60], config)
    assert found.text == long
    assert f'"{long[:20]}"' in memory_block([found], config, name1="Anon", name2="Miku", now=NOW)
    assert LtmConfig().ltm_reads.num_memories_to_fetch == 2
    assert LtmConfig().ltm_reads.memory_length_cutoff_in_chars == 1000
    assert await recalled(store, CAT, LtmConfig.of({"ltm_reads": {"num_memories_to_fetch": 0}})) == []


async def test_l06_a_turn_does_not_recall_itself_also_when_it_is_run_again(store):
    await tell(store, BOATS)
    await remember_message(store, "Miku", "Anon", CAT)
    assert await recalled(store, CAT) == [BOATS]


async def test_l07_messages_of_both_that_are_long_enough(store):
    assert len(BOATS) >= 100 > len(BOATS[:99])
    assert await remember_message(store, "Miku", "Anon", BOATS[:99] + "   \n") is None
    assert await remember_message(store, "Miku", "Anon", BOATS) is not None
    assert await remember_message(store, "Miku", "Miku", f"Miku: {CAT[:99]}") is None, "the name is not what was said"
    assert await remember_message(store, "Miku", "Miku", f"Miku: {CAT}") is not None
    found = await recall_messages(store, "Miku", "hello", EVERYTHING)
    assert {(memory.speaker, memory.text) for memory in found} == {("Anon", BOATS), ("Miku", CAT)}


async def test_l08_a_reply_is_remembered_at_once_and_a_rejected_one_is_out_of_sight(store):
    rejected, kept = "Miku thinks that boats are dangerous. " * 3, "Miku loves boats, the small ones most. " * 3
    await remember_message(store, "Miku", "Miku", rejected, stamp=Stamp("first", 1).to_json(), said_at=NOW)
    await remember_message(store, "Miku", "Miku", kept, stamp=Stamp("second", 1).to_json(), said_at=NOW)
    assert await recalled(store, "boats", timeline=[("second", 1)]) == [kept.strip()]
    assert await recalled(store, "boats", timeline=[("second", 0)]) == [], "before that turn neither was said"
    await remember_message(store, "Miku", "Anon", TRAIN, said_at=NOW)
    assert TRAIN in await recalled(store, "boats", timeline=[("second", 0)]), "what carries no branch is always seen"


async def test_l10_what_says_the_same_is_recalled_once_with_its_last_time_and_how_often(store):
    await tell(store, CAT, BOATS, CAT.upper(), "Well, " + CAT.replace(",", " –"))
    await remember_message(store, "Miku", "Miku", CAT, said_at=NOW)
    found = {memory.text: memory for memory in await recall_messages(store, "Miku", "my cat", EVERYTHING)}
    assert set(found) == {CAT, BOATS}
    assert (found[CAT].times, found[CAT].speaker, found[CAT].said_at[:10]) == (4, "Miku", "2026-07-10")
    assert found[BOATS].times == 1


async def test_l10_what_only_looks_alike_is_not_the_same(store):
    variants = [CAT, CAT.replace("nine", "ten"), CAT.replace("she is", "she is not"), CAT.replace("my key", "her key")]
    await tell(store, *variants)
    assert set(await recalled(store, "my cat")) == set(variants)


async def test_l10_the_few_places_go_to_different_memories(store):
    await tell(store, CAT, CAT.replace("nine", "ten"), CAT.replace("nine", "eleven"), BOATS)
    found = await recalled(store, "How old is my cat Miso?", TWO)
    assert BOATS in found
    assert len(found) == 2


async def test_l21_visible_now_or_from_the_next_session(store):
    await tell(store, BOATS, session="monday")
    await tell(store, CAT, session="tuesday")
    reads = {"visible": "next_session", "max_cosine_distance": 2, "num_memories_to_fetch": 9}
    later = LtmConfig.of({"ltm_reads": reads})
    assert set(await recalled(store, "x", session="tuesday")) == {BOATS, CAT}
    assert await recalled(store, "x", later, session="tuesday") == [BOATS]
    assert set(await recalled(store, "x", later, session="wednesday")) == {BOATS, CAT}
    assert await recalled(store, "x", session="tuesday", in_prompt=[CAT]) == [BOATS], "what the prompt has anyway"


@pytest.mark.slow
async def test_l21_what_may_not_be_seen_does_not_crowd_out_what_may(angles):
    await tell(angles, *(f"0 this session {n}" for n in range(300)), config=SHORT, session="now")
    await tell(angles, "40 long ago", config=SHORT, session="then")
    later = LtmConfig.of({"ltm_reads": {"visible": "next_session"}})
    assert await recalled(angles, "0 message", later, session="now") == ["40 long ago"]


async def test_l27_a_hundred_other_memories_do_not_hide_the_one_that_fits(store):
    await tell(store, CAT)
    junk = "the weather was neither good nor bad that day. " * 3
    await tell(store, *(f"Junk number {n}: {junk}" for n in range(100)))
    config = LtmConfig.of({"ltm_reads": {"num_memories_to_fetch": 1, "max_cosine_distance": 0.9}})
    assert await recalled(store, "How old is Miso, my cat?", config) == [CAT]


async def test_the_length_of_a_vector_does_not_count(angles):
    for text in ("300 400 far out", "1 0 near", "0 9 across"):
        await remember_message(angles, "Miku", "Anon", text, SHORT)
    found = await recall_messages(angles, "Miku", "2 0 the message", EVERYTHING)
    distances = {memory.text: round(memory.distance, 5) for memory in found}
    assert distances == {"1 0 near": 0.0, "300 400 far out": 0.4, "0 9 across": 1.0}


async def test_l03_the_embedder_is_asked_with_the_message_alone_its_line_breaks_alike(angles):
    await remember_message(angles, "Miku", "Anon", "1 0 near", SHORT)
    Angles.asked.clear()
    for message in ("  3 4 a\nb \r\n", "3 4 a\r\n\r\n\r\n\r\nb", "3 4 a\n\nb"):
        await recall_messages(angles, "Miku", message, SHORT, session="now", in_prompt=["something else"])
    assert set(Angles.asked) == {"3 4 a\n\nb"}
    assert await recalled(angles, "  \n ", SHORT) == []


async def test_in_a_talk_it_is_asked_with_what_the_person_says_now(model, angles):
    settings = {"ltm_reads": {"max_cosine_distance": 2.0}, "ltm_writes": {"min_message_length": 0}}
    talk = Companion(model, store=angles, ltm_config=settings)
    await talk.say("1 0 first", say("5 5 said"))
    Angles.asked.clear()
    await talk.say("0 1 second")
    assert set(Angles.asked) == {"0 1 second"}


ASKED = "Where does my cat sleep?"


async def test_a_time_that_is_a_text_is_refused():
    store, says = InMemoryStore(), r"said_at: got '2024-01-01'; expected a datetime, such as datetime.now"
    with pytest.raises(ValueError, match=says):
        await remember_message(store, "Miku", "Anon", CAT, said_at="2024-01-01")
    with pytest.raises(ValueError, match=says):
        await add_memory(store, "Miku", CAT, "Anon", said_at="2024-01-01")


by_spelling = stores_of("faiss", "memory", "memory without vectors")


async def test_by_spelling_the_example_reaches_what_shares_words(by_spelling):
    await remember_message(by_spelling, "Miku", "Anon", CAT)
    (found,) = await recall_messages(by_spelling, "Miku", ASKED)
    if hasattr(by_spelling, "embeddings") and by_spelling.embeddings:
        by_spelling.embeddings = KnownVectors(by_spelling.embeddings, {})  # as while vectors are brought here
        assert await recall_messages(by_spelling, "Miku", ASKED) == [found]
    assert 0.6 < found.distance < SPELLING_DISTANCE, "or this text shows nothing"
    assert await recall_messages(by_spelling, "Miku", ASKED, LtmConfig()) == [found]
    named = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 0.6}})
    assert await recall_messages(by_spelling, "Miku", ASKED, named) == [], "what is named holds"
    assert await recall_messages(by_spelling, "Miku", "Shall we buy a boat?") == []


async def test_an_embedder_that_is_not_ours_has_the_distance_of_the_example(angles):
    await remember_message(angles, "Miku", "Anon", f"{math.degrees(math.acos(0.3))} {CAT}")
    assert await recall_messages(angles, "Miku", "0 degrees") == []
    wide = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 0.71}})
    (found,) = await recall_messages(angles, "Miku", "0 degrees", wide)
    assert found.distance == pytest.approx(0.7)


async def test_l18_a_memory_of_its_own_for_each_character_and_each_user(store):
    await tell(store, BOATS, character="Miku", user="ada")
    await tell(store, CAT, character="Rin", user="ada")
    await tell(store, TRAIN, character="Miku", user="bob")
    assert await recalled(store, "x", user="ada") == [BOATS]
    assert await recalled(store, "x", user="ada", character="Rin") == [CAT]
    assert await recalled(store, "x", user="bob") == [TRAIN]
    assert await recalled(store, "x") == [], "the shared Miku of all users is another one"
    await tell(store, CAT, character="MIKU")
    assert await recalled(store, "x", character="miku") == [CAT]
    assert await list_characters(store, "ada") == {"miku": 1, "rin": 1}
    for spelling in ("  hatsune MIKU ", "Hatsune_Miku", "Hatsune\u00a0Miku"):
        assert character_name(spelling) == "hatsune_miku"


@pytest.mark.parametrize("name", ["../evil", "a/b", "", "..", ".", "C:\\x", "*", "langgraph", "\x00", "characters"])
async def test_l19_a_name_is_no_path(store, name):
    await tell(store, CAT, character=name, user="ada")
    await tell(store, BOATS, character="miku", user="ada")
    assert CAT in await recalled(store, "my cat", character=name, user="ada")
    place = character_namespace(name, MEMORIES, user="ada")
    assert len(place) == 4
    assert all(label and "." not in label and "/" not in label for label in place)
    assert len(await list_memories(store, character_namespace("miku", MEMORIES, user="ada"))) == 1


async def test_l20_what_is_everyones_is_recalled_by_each_character(store):
    await add_memory(store, "*", BOATS, speaker="Anon", user="ada")
    await tell(store, CAT, user="ada")
    assert set(await recalled(store, "x", user="ada")) == {BOATS, CAT}
    assert await recalled(store, "x", user="ada", character="Rin") == [BOATS]
    assert await recalled(store, "x", user="bob") == []


async def test_l22_l23_message_and_vector_are_written_together_or_not_at_all(tmp_path):
    embedder = Failing()
    async with FaissStore.open(tmp_path / "memory.db", {"embed": embedder, "fields": ["text"]}) as store:
        await tell(store, BOATS)
        embedder.fails = True
        with pytest.raises(EmbeddingError):
            await remember_message(store, "Miku", "Anon", CAT)
        embedder.fails = False
        assert await recalled(store, "my cat") == [BOATS]
        assert len(await list_memories(store, character_namespace("Miku", MEMORIES, user=None))) == 1


async def test_l25_everything_of_a_character_can_be_destroyed_and_it_goes_on(store):
    await tell(store, BOATS, CAT, user="ada")
    await tell(store, TRAIN, character="Rin", user="ada")
    assert await delete_character(store, "Miku", "ada") == 2
    assert await delete_character(store, "Nobody", "ada") == 0
    assert await recalled(store, "x", user="ada") == []
    assert await recalled(store, "x", user="ada", character="Rin") == [TRAIN]
    await tell(store, CAT, user="ada")
    assert await recalled(store, "x", user="ada") == [CAT]


async def test_bug_1_two_processes_lose_nothing(tmp_path):
    path = tmp_path / "memory.db"
    async with FaissStore.open(path) as one, FaissStore.open(path) as two:
        told = [f"{n}: {CAT}" for n in range(20)]
        await asyncio.gather(*(tell((one, two)[n % 2], text) for n, text in enumerate(told)))
        many = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2, "num_memories_to_fetch": 50}})
        assert set(await recalled(one, "my cat", many)) == set(await recalled(two, "my cat", many)) == set(told)


async def test_bug_2_a_record_without_a_vector_breaks_no_query(store):
    await tell(store, CAT)
    await store.aput(character_namespace("Miku", MEMORIES, user=None), "bare", {"text": BOATS}, index=False)
    assert CAT in await recalled(store, "my cat")


async def test_remembering_twice_is_once_and_a_record_is_never_written_again(store, monkeypatch):
    first = await remember_message(store, "Miku", "Anon", CAT, key="main-1-memory-0", said_at=NOW)
    again = await remember_message(store, "Miku", "Anon", BOATS, key="main-1-memory-0", said_at=NOW)
    assert first == again == "main-1-memory-0"
    assert await recalled(store, "x") == [CAT]
    times = NOW, NOW.replace(tzinfo=None)
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC-13")  # of this machine, which does not count
        time.tzset()
        keys = {await remember_message(store, "Miku", "Anon", CAT, said_at=at) for at in times}
    time.tzset()
    assert len(keys) == 1


PLACE = character_namespace("Miku", MEMORIES, user="ada")


async def fill(store, *texts):
    return [await add_memory(store, "Miku", text, speaker="Ada", user="ada") for text in texts]


async def test_l24_what_is_added_is_counted_listed_and_recalled_with_its_distance(store):
    told = {"Ada has a cat called Miso.", "Ada lives in Oslo."}
    await fill(store, *told)
    assert {item.value["text"] for item in await list_memories(store, PLACE)} == told
    found = await recall_messages(store, "Miku", "Where does Ada live?", EVERYTHING, user="ada")
    assert {memory.text: 0 <= memory.distance < 2 for memory in found} == dict.fromkeys(told, True)
    assert await list_characters(store, "ada") == {"miku": 2}
    assert await list_characters(store, "bob") == await list_characters(store) == {}


async def test_what_is_edited_is_found_by_its_new_words_and_says_so(store):
    (key,) = await fill(store, "Ada lives in Oslo.")
    assert await edit_memory(store, PLACE, key[:6], "Ada lives in Bergen.") == key
    (item,) = await store.asearch(PLACE, query="Ada in Bergen")
    assert (item.value["text"], item.value["speaker"]) == ("Ada lives in Bergen.", "Ada")
    assert datetime.fromisoformat(item.value["edited_at"]) > NOW.replace(year=2020)
    assert item.value["by"] == "hand"
    assert item.score > 0.3


async def test_of_several_keys_all_are_deleted_or_none(store):
    one, two = await fill(store, "one thing", "another thing")
    with pytest.raises(NoSuchMemoryError, match="nonsense"):
        await delete_memories(store, PLACE, [one, "nonsense"])
    assert len(await list_memories(store, PLACE)) == 2
    gone = await delete_memories(store, PLACE, [one, one[:8], two])
    assert {item.value["text"] for item in gone} == {"one thing", "another thing"}
    assert await list_memories(store, PLACE) == []


async def test_a_beginning_that_several_keys_have_names_none(store):
    for key in ("abcd1", "abcd2", "xyz"):
        await store.aput(PLACE, key, {"text": key})
    with pytest.raises(NoSuchMemoryError, match="2 memories"):
        await find_memory(store, PLACE, "abcd")
    assert (await find_memory(store, PLACE, "abcd2")).key == "abcd2"
    with pytest.raises(NoSuchMemoryError, match="at least 4"):
        await find_memory(store, PLACE, "x")


async def test_a_memory_needs_words(store):
    with pytest.raises(StoreConfigError):
        await add_memory(store, "Miku", " \n", speaker="Ada")
    (key,) = await fill(store, "something")
    with pytest.raises(StoreConfigError):
        await edit_memory(store, PLACE, key, "")
    assert (await find_memory(store, PLACE, key)).value["text"] == "something"


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("abcdef01", "abcdef01"), ("abcdef", "abcdef01"), ("abcd", "2 memories have keys that begin with 'abcd'"),
        ("xy", "xy"), ("x", "No memory has the key 'x'"), ("zzzz", "No memory has the key 'zzzz'"),
        ("", "No memory has the key ''"),
        ("12-fact-0.trlm", "abcdefgh-12-fact-0"), ("12-fa", "abcdefgh-12-fact-0"),
    ],
)  # fmt: skip
def test_a_memory_is_named_by_its_key_or_a_beginning_that_no_other_has(key, found):
    items = [SimpleNamespace(key=one) for one in ("abcdef01", "abcdxx01", "xy", "xyzzy", "abcdefgh-12-fact-0")]
    items = [one for one in items if not (key.startswith("abcd") and "-" in one.key)]
    if " " in found:
        with pytest.raises(NoSuchMemoryError, match=found) as caught:
            pick_memory(items, key)
        assert "give a whole key, or at least 4 characters of its beginning" in str(caught.value)
    else:
        assert pick_memory(items, key).key == found


async def test_of_memories_that_say_the_same_the_latest_is_shown_with_the_nearest_distance(store):
    for day, speaker in ((3, "Bo"), (9, "Ann"), (5, "Cy")):
        at = datetime(2026, 3, day, tzinfo=UTC)
        await add_memory(store, "Miku", "The boats are in.", speaker=speaker, said_at=at)
    [found] = await recall_messages(
        store, "Miku", "Are the boats in the harbour?", LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2}})
    )
    assert (found.speaker, found.said_at[:10], found.times) == ("Ann", "2026-03-09", 3)


async def test_memories_are_listed_the_latest_first_and_counted_by_character(store):
    for day in (3, 9, 5):
        await add_memory(
            store, "Miku", f"Day {day}.", speaker="Ann", user="ann", said_at=datetime(2026, 3, day, tzinfo=UTC)
        )
    await add_memory(store, "Ada.B", "Hello.", speaker="Ann", user="ann")
    await store.aput((*character_namespace("Miku", MEMORIES, user="ann"), "below"), "k", {"text": "of another kind"})
    items = await list_memories(store, character_namespace("Miku", MEMORIES, user="ann"))
    assert [item.value["text"] for item in items] == ["Day 9.", "Day 5.", "Day 3."]
    assert await list_characters(store, "ann") == {"ada.b": 1, "miku": 3}
    assert await list_characters(store) == await list_characters(store, "bo") == {}
