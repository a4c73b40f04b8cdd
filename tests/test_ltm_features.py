"""What the LTM extension did, feature by feature (L1 to L27 in docs/coverage.md), and its bugs, which are gone."""

import asyncio
import math
from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.store.memory import InMemoryStore

from memory import FaissStore
from memory.characters import MEMORIES, Memory, memories_for, remember_message, spoken
from memory.curation import add, characters, delete_all, listed
from memory.embeddings import HashEmbeddings
from memory.errors import EmbeddingError
from memory.injection import inject, inject_text, memory_block
from memory.ltm_config import LtmConfig
from memory.namespaces import character_name, character_namespace
from memory.timeline import stamp

NOW = datetime(2026, 7, 10, 12, tzinfo=UTC)
BOATS = "I grew up by the sea, in a small town where my father repaired boats and my mother taught the piano."
CAT = "My cat is called Miso, she is nine years old, and she always sleeps on my keyboard whenever I want to work."
TRAIN = "Next week I take the night train to Vienna, because my younger sister is getting married there on Saturday."
EVERYTHING = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2.0, "num_memories_to_fetch": 10}})
SHORT = LtmConfig.of({"ltm_writes": {"min_message_length": 0}, "ltm_reads": {"max_cosine_distance": 2.0}})


class Angles(Embeddings):
    """A text that begins with a number points in that direction, in degrees: distances are known exactly."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        number = text.split()[0]
        angle = math.radians(float(number) if number[0].isdecimal() else 0.0)  # the store asks with words for the size
        return [math.cos(angle), math.sin(angle)]


@pytest.fixture(params=["FaissStore", "InMemoryStore"])
async def store(request, tmp_path):
    if request.param == "InMemoryStore":
        yield InMemoryStore(index={"dims": 512, "embed": HashEmbeddings(), "fields": ["text"]})
    else:
        async with FaissStore.open(tmp_path / "memory.db") as opened:
            yield opened


@pytest.fixture(params=["FaissStore", "InMemoryStore"])
async def angles(request, tmp_path):
    index = {"dims": 2, "embed": Angles(), "fields": ["text"]}
    if request.param == "InMemoryStore":
        yield InMemoryStore(index=index)
    else:
        async with FaissStore.open(tmp_path / "angles.db", index) as opened:
            yield opened


async def tell(store, *texts, character="Miku", speaker="Anon", config=None, **more):
    for number, text in enumerate(texts):
        at = NOW - timedelta(days=len(texts) - number)
        await remember_message(store, character, speaker, text, config, **{"said_at": at, **more})


async def recalled(store, message, config=EVERYTHING, character="Miku", **more):
    return [memory.text for memory in await memories_for(store, character, message, config, **more)]


async def test_l01_any_embedder_with_the_cosine(angles):
    await tell(angles, "0 east", "120 west", config=SHORT)
    found = await memories_for(angles, "Miku", "60 the message", EVERYTHING)
    assert [round(memory.distance, 5) for memory in found] == [0.5, 0.5]


async def test_l02_the_nearest_first_and_no_more_than_there_are(angles):
    await tell(angles, *(f"{angle} memory{angle}" for angle in (80, 10, 50, 30, 0)), config=SHORT)
    two = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2.0}})
    assert await recalled(angles, "0 message", two) == ["0 memory0", "10 memory10"]
    assert await recalled(angles, "0 message") == [f"{angle} memory{angle}" for angle in (0, 10, 30, 50, 80)]


async def test_l03_the_query_is_the_message_alone_and_its_line_breaks_do_not_count(store):
    await tell(store, BOATS, CAT)
    one = LtmConfig.of({"ltm_reads": {"num_memories_to_fetch": 1, "max_cosine_distance": 0.9}})
    assert await recalled(store, "  How old is\n\n\n\nmy cat Miso?\n", one) == [CAT]
    assert await recalled(store, "  \n ", one) == []


async def test_l04_only_what_is_nearer_than_the_distance_and_exactly_it_is_not(angles):
    await tell(angles, "0 same", "59.9 nearer", "60 exactly", "90 far", config=SHORT)
    half = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 0.4999999, "num_memories_to_fetch": 9}})
    assert await recalled(angles, "0 message", half) == ["0 same", "59.9 nearer"]
    none = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 0.0}})
    assert await recalled(angles, "0 message", none) == []


async def test_l05_so_many_are_fetched_and_cut_when_shown_but_kept_whole(store):
    long = CAT + " And then" * 500
    await tell(store, long, BOATS, TRAIN)
    config = LtmConfig.of(
        {"ltm_reads": {"memory_length_cutoff_in_chars": 20, "num_memories_to_fetch": 1, "max_cosine_distance": 2}}
    )
    (found,) = await memories_for(store, "Miku", CAT[:60], config)
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
    found = await memories_for(store, "Miku", "hello", EVERYTHING)
    assert {(memory.speaker, memory.text) for memory in found} == {("Anon", BOATS), ("Miku", CAT)}


async def test_l08_a_reply_is_remembered_at_once_and_a_rejected_one_is_out_of_sight(store):
    rejected, kept = (
        "Miku thinks that boats are terribly dangerous. " * 3,
        "Miku loves boats, the small ones most. " * 3,
    )
    await remember_message(store, "Miku", "Miku", rejected, stamp=stamp("first", 1), said_at=NOW)
    await remember_message(store, "Miku", "Miku", kept, stamp=stamp("second", 1), said_at=NOW)
    assert await recalled(store, "boats", timeline=[("second", 1)]) == [kept.strip()]
    assert await recalled(store, "boats", timeline=[("second", 0)]) == [], "before that turn neither was said"
    await remember_message(store, "Miku", "Anon", TRAIN, said_at=NOW)
    assert TRAIN in await recalled(store, "boats", timeline=[("second", 0)]), "what carries no branch is always seen"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("Miku: I am here.", "I am here."),
        ("miku:  I am here.\r\n\r\n\r\n\r\nStill.", "I am here.\n\nStill."),
        ("I am here.", "I am here."),  # the extension stored nothing
        ("(waves) Miku: I am here.", "(waves) Miku: I am here."),
        ("Hatsune Miku: Not me.", "Hatsune Miku: Not me."),  # a name that ends another one
        ("I said: Miku: sing!", "I said: Miku: sing!"),
    ],
)
def test_l09_the_header_of_a_reply_goes_and_all_else_stays(reply, said):
    assert spoken(reply, "Miku") == said


async def test_l10_what_says_the_same_is_recalled_once_with_its_last_time_and_how_often(store):
    await tell(store, CAT, BOATS, CAT.upper(), "Well, " + CAT.replace(",", " –"))
    await remember_message(store, "Miku", "Miku", CAT, said_at=NOW)
    found = {memory.text: memory for memory in await memories_for(store, "Miku", "my cat", EVERYTHING)}
    assert set(found) == {CAT, BOATS}
    assert (found[CAT].times, found[CAT].speaker, found[CAT].said_at[:10]) == (4, "Miku", "2026-07-10")
    assert found[BOATS].times == 1


async def test_l10_what_only_looks_alike_is_not_the_same(store):
    variants = [CAT, CAT.replace("nine", "ten"), CAT.replace("she is", "she is not"), CAT.replace("my key", "her key")]
    await tell(store, *variants)
    assert set(await recalled(store, "my cat")) == set(variants)


async def test_l10_the_few_places_go_to_different_memories(store):
    await tell(store, CAT, CAT.replace("nine", "ten"), CAT.replace("nine", "eleven"), BOATS)
    two = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2.0}})
    found = await recalled(store, "How old is my cat Miso?", two)
    assert BOATS in found
    assert len(found) == 2


@pytest.mark.parametrize(
    ("said_at", "phrase"),
    [
        (NOW - timedelta(seconds=5), "just now"),
        (NOW - timedelta(hours=3), "earlier today"),
        (NOW - timedelta(days=1), "yesterday"),
        (NOW - timedelta(days=5), "5 days ago"),
        (NOW + timedelta(days=1), "in the future"),
        ("no time", "at an unknown time"),
    ],
)
def test_l11_how_long_ago(said_at, phrase):
    at = said_at if isinstance(said_at, str) else said_at.isoformat()
    block = memory_block([Memory("k", "hi", "Anon", at, 0.1)], LtmConfig(), name1="Anon", name2="Miku", now=NOW)
    assert f"{phrase}, Anon said:" in block


def test_l12_the_memory_template_and_memories_on_lines_of_their_own():
    config = LtmConfig.of(
        {
            "ltm_context": {
                "memory_template": "[{memory_date}|{time_difference}] {memory_name} ({memory_times}): {memory_message}",
                "memory_context_template": "{all_memories}",
            }
        }
    )
    memories = [
        Memory("a", "with {braces}", "Anon", (NOW - timedelta(days=3)).isoformat(), 0.1, 2),
        Memory("b", "second", "Miku", "", 0.2),
    ]
    assert memory_block(memories, config, name1="Anon", name2="Miku", now=NOW) == (
        "[2026-07-07|3 days ago] Anon (2): with {braces}\n[unknown date|at an unknown time] Miku (1): second"
    )


def test_l13_the_context_template_names_both_and_has_no_blank_line():
    block = memory_block([Memory("a", "hi", "Anon", "", 0.1)], LtmConfig(), name1="Anon", name2="Miku", now=NOW)
    assert block.startswith('Miku\'s memory log:\nat an unknown time, Anon said:\n"hi"\n')
    assert "Anon" in block.splitlines()[-1]
    assert "\n\n" not in block
    fixed = LtmConfig.of({"ltm_context": {"memory_context_template": "no fields, {{braces}}"}})
    assert memory_block([Memory("a", "hi", "A", "", 0)], fixed, name1="", name2="", now=NOW) == "no fields, {braces}"


def test_l14_before_the_context():
    assert inject_text("  You are Miku. \n", "\nlog\n ", "BEFORE_NORMAL_CONTEXT") == "log\nYou are Miku."


def test_l15_after_the_context_before_the_first_start():
    after = "AFTER_NORMAL_CONTEXT_BUT_BEFORE_MESSAGES"
    context = "You are Miku.\n<START>\nAnon: hi\n<START>\nAnon: bye"
    assert inject_text(context, "log", after) == "You are Miku.\nlog\n<START>\nAnon: hi\n<START>\nAnon: bye"
    assert inject_text("You are Miku.", "log", after) == "You are Miku.\nlog", "the extension raised an error"


@pytest.mark.parametrize("location", ["BEFORE_NORMAL_CONTEXT", "AFTER_NORMAL_CONTEXT_BUT_BEFORE_MESSAGES"])
def test_l14_l15_in_messages(location):
    config = LtmConfig.of({"ltm_context": {"injection_location": location}})
    memories = [Memory("a", "boats", "Anon", "", 0.1)]
    prompt = [SystemMessage("You are Miku."), HumanMessage("hi")]
    system, human = inject(prompt, memories, config, name1="Anon", name2="Miku", now=NOW)
    assert human is prompt[1]
    assert system.content.index("boats") < system.content.index("You are Miku.") or location.startswith("AFTER")
    assert system.content.startswith("You are Miku.") == location.startswith("AFTER")
    parts = [
        {"type": "text", "text": "Be Miku.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "x"},
    ]
    (system,) = inject([SystemMessage(parts)], memories, config, now=NOW)
    assert [part for part in system.content if part in parts] == parts, "what a cache knows stays as it was"
    assert len(system.content) == 3
    (system,) = inject([SystemMessage([{"type": "text", "text": "a<START>b"}])], memories, config, now=NOW)
    assert ("a\n" in system.content[0]["text"]) == location.startswith("AFTER")
    first, _ = inject([AIMessage("hello")], memories, config, now=NOW)
    assert isinstance(first, SystemMessage)


def test_l16_without_a_hit_nothing_is_touched_and_with_one_only_this_prompt():
    prompt = [SystemMessage("  You are Miku. "), HumanMessage("hi")]
    before = [message.model_copy(deep=True) for message in prompt]
    assert inject(prompt, [], now=NOW) == before
    assert inject_text("  as it is ", "", "BEFORE_NORMAL_CONTEXT") == "  as it is "
    inject(prompt, [Memory("a", "boats", "Anon", "", 0.1)], now=NOW)
    assert prompt == before


def test_l17_everything_wrong_is_said_when_the_settings_are_read():
    from memory.errors import LtmConfigError

    with pytest.raises(LtmConfigError, match="BEFORE_NORMAL_CONTEXT"):
        LtmConfig.of({"ltm_context": {"injection_location": "SOMEWHERE"}})
    assert LtmConfig.of({}) == LtmConfig(), "a missing key has its default"


async def test_l18_a_memory_of_its_own_for_each_character_and_each_user(store):
    await tell(store, BOATS, character="Miku", user="ada")
    await tell(store, CAT, character="Rin", user="ada")
    await tell(store, TRAIN, character="Miku", user="bob")
    assert await recalled(store, "x", user="ada") == [BOATS]
    assert await recalled(store, "x", user="ada", character="Rin") == [CAT]
    assert await recalled(store, "x", user="bob") == [TRAIN]
    assert await recalled(store, "x") == [], "the shared Miku of all users is another one"
    await tell(store, CAT)
    assert await recalled(store, "x") == [CAT]
    assert await characters(store, "ada") == {"miku": 1, "rin": 1}
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
    assert len(await listed(store, character_namespace("miku", MEMORIES, user="ada"))) == 1


async def test_l20_what_is_everyones_is_recalled_by_each_character(store):
    await add(store, "*", BOATS, speaker="Anon", user="ada")
    await tell(store, CAT, user="ada")
    assert set(await recalled(store, "x", user="ada")) == {BOATS, CAT}
    assert await recalled(store, "x", user="ada", character="Rin") == [BOATS]
    assert await recalled(store, "x", user="bob") == []


async def test_l21_visible_now_or_from_the_next_session(store):
    await tell(store, BOATS, session="monday")
    await tell(store, CAT, session="tuesday")
    later = LtmConfig.of(
        {"ltm_reads": {"visible": "next_session", "max_cosine_distance": 2, "num_memories_to_fetch": 9}}
    )
    assert set(await recalled(store, "x", session="tuesday")) == {BOATS, CAT}
    assert await recalled(store, "x", later, session="tuesday") == [BOATS]
    assert set(await recalled(store, "x", later, session="wednesday")) == {BOATS, CAT}
    assert await recalled(store, "x", session="tuesday", besides=[CAT]) == [BOATS], "what the prompt has anyway"


async def test_l21_what_may_not_be_seen_does_not_crowd_out_what_may(angles):
    await tell(angles, *(f"0 this session {n}" for n in range(300)), config=SHORT, session="now")
    await tell(angles, "40 long ago", config=SHORT, session="then")
    later = LtmConfig.of({"ltm_reads": {"visible": "next_session"}})
    assert await recalled(angles, "0 message", later, session="now") == ["40 long ago"]


class Failing(HashEmbeddings):
    fails = False

    def embed_documents(self, texts):
        if self.fails:
            raise OSError("the embedder is gone")
        return super().embed_documents(texts)


async def test_l22_l23_message_and_vector_are_written_together_or_not_at_all(tmp_path):
    embedder = Failing()
    async with FaissStore.open(tmp_path / "memory.db", {"embed": embedder, "fields": ["text"]}) as store:
        await tell(store, BOATS)
        embedder.fails = True
        with pytest.raises(EmbeddingError):
            await remember_message(store, "Miku", "Anon", CAT)
        embedder.fails = False
        assert await recalled(store, "my cat") == [BOATS]
        assert len(await listed(store, character_namespace("Miku", MEMORIES, user=None))) == 1


async def test_l24_counts_and_what_was_recalled_can_be_shown(store):
    await tell(store, BOATS, CAT, user="ada")
    assert await characters(store, "ada") == {"miku": 2}
    found = await memories_for(store, "Miku", "my cat", EVERYTHING, user="ada")
    assert all(0 <= memory.distance < 2 for memory in found)


async def test_l25_everything_of_a_character_can_be_destroyed_and_it_goes_on(store):
    await tell(store, BOATS, CAT, user="ada")
    await tell(store, TRAIN, character="Rin", user="ada")
    assert await delete_all(store, "Miku", "ada") == 2
    assert await delete_all(store, "Nobody", "ada") == 0
    assert await recalled(store, "x", user="ada") == []
    assert await recalled(store, "x", user="ada", character="Rin") == [TRAIN]
    await tell(store, CAT, user="ada")
    assert await recalled(store, "x", user="ada") == [CAT]


async def test_l27_a_hundred_other_memories_do_not_hide_the_one_that_fits(store):
    await tell(store, CAT)
    await tell(
        store, *(f"Junk number {n}: " + "the weather was neither good nor bad that day. " * 3 for n in range(100))
    )
    config = LtmConfig.of({"ltm_reads": {"num_memories_to_fetch": 1, "max_cosine_distance": 0.9}})
    assert await recalled(store, "How old is Miso, my cat?", config) == [CAT]


async def test_bug_1_two_processes_lose_nothing(tmp_path):
    path = tmp_path / "memory.db"
    async with FaissStore.open(path) as one, FaissStore.open(path) as two:
        told = [f"{n}: {CAT}" for n in range(20)]
        await asyncio.gather(*(tell((one, two)[n % 2], text) for n, text in enumerate(told)))
        many = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2, "num_memories_to_fetch": 50}})
        assert set(await recalled(one, "my cat", many)) == set(await recalled(two, "my cat", many)) == set(told)


async def test_bug_2_a_record_without_a_vector_breaks_no_query(tmp_path):
    async with FaissStore.open(tmp_path / "memory.db") as store:
        await tell(store, CAT)
        place = character_namespace("Miku", MEMORIES, user=None)
        await store.aput(place, "bare", {"text": BOATS}, index=False)
        assert CAT in await recalled(store, "my cat")


async def test_bug_4_and_5_no_host_template_is_needed_and_other_text_in_the_context_stays():
    prompt = [SystemMessage("From another extension.\nYou are Miku."), HumanMessage("hi")]
    system, _ = inject(prompt, [Memory("a", "boats", "Anon", "", 0.1)], now=NOW)
    assert "From another extension." in system.content


async def test_bug_9_a_change_of_case_is_no_other_character(store):
    await tell(store, CAT, character="MIKU")
    assert await recalled(store, "my cat", character="miku") == [CAT]


async def test_a_store_without_vectors_is_measured_by_spelling():
    store = InMemoryStore()
    await tell(store, BOATS, CAT, TRAIN)
    config = LtmConfig.of({"ltm_reads": {"num_memories_to_fetch": 1, "max_cosine_distance": 0.9}})
    assert await recalled(store, "How old is my cat Miso?", config) == [CAT]


async def test_remembering_twice_is_once_and_a_record_is_never_written_again(store):
    first = await remember_message(store, "Miku", "Anon", CAT, key="main-1-memory-0", said_at=NOW)
    again = await remember_message(store, "Miku", "Anon", BOATS, key="main-1-memory-0", said_at=NOW)
    assert first == again == "main-1-memory-0"
    assert await recalled(store, "x") == [CAT]
    naive = NOW.replace(tzinfo=None)
    assert await remember_message(store, "Miku", "Anon", CAT, said_at=naive) == await remember_message(
        store, "Miku", "Anon", CAT, said_at=NOW
    )
