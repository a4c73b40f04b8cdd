"""What the LTM extension kept and recalled (L1 to L8, L10, L21, L27 in docs/coverage.md), and how near it must be."""

import math

import pytest
from companion_thread import Companion
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from ltm_talk import BOATS, CAT, EVERYTHING, NOW, SHORT, TRAIN, recalled, tell
from scripted import say
from stores import stores_of

from questbook import FaissStore
from questbook.memory.embeddings.embedders import HashEmbeddings
from questbook.memory.ltm.config import SPELLING_DISTANCE, LtmConfig
from questbook.memory.ltm.memories import recall_messages, remember_message
from questbook.memory.ltm.prompt import memory_block
from questbook.memory.timeline.records import Stamp


class Angles(Embeddings):
    """A text that begins with a number points in that direction, in degrees: distances are known exactly."""

    dims = 2

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        number = text.split()[0]
        angle = math.radians(float(number) if number[0].isdecimal() else 0.0)  # the store asks with words for the size
        return [math.cos(angle), math.sin(angle)]


store = stores_of("faiss", "memory")


angles = stores_of("faiss", "memory", embed=Angles())


async def test_l01_any_embedder_with_the_cosine(angles):
    await tell(angles, "0 east", "120 west", config=SHORT)
    found = await recall_messages(angles, "Miku", "60 the message", EVERYTHING)
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
    rejected, kept = (
        "Miku thinks that boats are terribly dangerous. " * 3,
        "Miku loves boats, the small ones most. " * 3,
    )
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
    two = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2.0}})
    found = await recalled(store, "How old is my cat Miso?", two)
    assert BOATS in found
    assert len(found) == 2


async def test_l21_visible_now_or_from_the_next_session(store):
    await tell(store, BOATS, session="monday")
    await tell(store, CAT, session="tuesday")
    later = LtmConfig.of(
        {"ltm_reads": {"visible": "next_session", "max_cosine_distance": 2, "num_memories_to_fetch": 9}}
    )
    assert set(await recalled(store, "x", session="tuesday")) == {BOATS, CAT}
    assert await recalled(store, "x", later, session="tuesday") == [BOATS]
    assert set(await recalled(store, "x", later, session="wednesday")) == {BOATS, CAT}
    assert await recalled(store, "x", session="tuesday", in_prompt=[CAT]) == [BOATS], "what the prompt has anyway"


async def test_l21_what_may_not_be_seen_does_not_crowd_out_what_may(angles):
    await tell(angles, *(f"0 this session {n}" for n in range(300)), config=SHORT, session="now")
    await tell(angles, "40 long ago", config=SHORT, session="then")
    later = LtmConfig.of({"ltm_reads": {"visible": "next_session"}})
    assert await recalled(angles, "0 message", later, session="now") == ["40 long ago"]


async def test_l27_a_hundred_other_memories_do_not_hide_the_one_that_fits(store):
    await tell(store, CAT)
    await tell(
        store, *(f"Junk number {n}: " + "the weather was neither good nor bad that day. " * 3 for n in range(100))
    )
    config = LtmConfig.of({"ltm_reads": {"num_memories_to_fetch": 1, "max_cosine_distance": 0.9}})
    assert await recalled(store, "How old is Miso, my cat?", config) == [CAT]


ALL = LtmConfig.of(
    {"ltm_writes": {"min_message_length": 0}, "ltm_reads": {"max_cosine_distance": 2.0, "num_memories_to_fetch": 50}}
)


class Lengths(Embeddings):
    """A text that begins with two numbers is that vector; what it was asked with is kept."""

    asked: list[str] = []

    def embed_documents(self, texts):
        return [self._vector(text) for text in texts]

    def embed_query(self, text):
        self.asked.append(text)
        return self._vector(text)

    @staticmethod
    def _vector(text):
        first, second, *_ = [*text.split(), "1", "1"]
        return [float(first), float(second)] if first.isdecimal() and second.isdecimal() else [1.0, 0.0]


@pytest.fixture(params=["FaissStore", "InMemoryStore"])
async def two(request, tmp_path):
    index = {"dims": 2, "embed": Lengths(), "fields": ["text"]}
    if request.param == "InMemoryStore":
        yield InMemoryStore(index=index)
    else:
        async with FaissStore.open(tmp_path / "memory.db", index) as opened:
            yield opened


async def test_the_length_of_a_vector_does_not_count(two):
    for text in ("300 400 far out", "1 0 near", "0 9 across"):
        await remember_message(two, "Miku", "Anon", text, ALL)
    found = await recall_messages(two, "Miku", "2 0 the message", ALL)
    assert [(memory.text, round(memory.distance, 5)) for memory in found] == [
        ("1 0 near", 0.0),
        ("300 400 far out", 0.4),
        ("0 9 across", 1.0),
    ]


async def test_the_embedder_is_asked_with_the_message_alone_its_line_breaks_alike(two):
    await remember_message(two, "Miku", "Anon", "1 0 near", ALL)
    Lengths.asked.clear()
    for message in ("  3 4 a\nb \r\n", "3 4 a\r\n\r\n\r\n\r\nb", "3 4 a\n\nb"):
        await recall_messages(two, "Miku", message, ALL, session="now", in_prompt=["something else"])
    assert set(Lengths.asked) == {"3 4 a\n\nb"}


async def test_in_a_talk_it_is_asked_with_what_the_person_says_now(model, two):
    settings = {"ltm_reads": {"max_cosine_distance": 2.0}, "ltm_writes": {"min_message_length": 0}}
    talk = Companion(model, store=two, ltm_config=settings)
    await talk.say("1 0 first", say("5 5 said"))
    Lengths.asked.clear()
    await talk.say("0 1 second")
    assert set(Lengths.asked) == {"0 1 second"}


MISO = "My cat is called Miso, she is nine years old, and she always sleeps on my keyboard whenever I want to work."


ASKED = "Where does my cat sleep?"


EXAMPLE = LtmConfig()


NAMED = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 0.6}})


class Turned(Embeddings):
    """A memory lies 0.7 from what is asked."""

    def embed_documents(self, texts):
        return [[0.3, 0.91**0.5] for _ in texts]

    def embed_query(self, text):
        return [1.0, 0.0] if text == ASKED else [0.3, 0.91**0.5]


@pytest.fixture(params=["FaissStore", "vectors in RAM", "without vectors"])
async def by_spelling(request, tmp_path):
    if request.param == "FaissStore":
        async with FaissStore.open(tmp_path / "memory.db") as opened:
            yield opened
    elif request.param == "vectors in RAM":
        yield InMemoryStore(index={"dims": 512, "embed": HashEmbeddings(), "fields": ["text"]})
    else:
        yield InMemoryStore()


async def test_by_spelling_the_example_reaches_what_shares_words(by_spelling):
    await remember_message(by_spelling, "Miku", "Anon", MISO)
    (found,) = await recall_messages(by_spelling, "Miku", ASKED)
    assert 0.6 < found.distance < SPELLING_DISTANCE, "or this text shows nothing"
    assert await recall_messages(by_spelling, "Miku", ASKED, EXAMPLE) == [found]
    assert await recall_messages(by_spelling, "Miku", ASKED, NAMED) == [], "what is named holds"
    assert await recall_messages(by_spelling, "Miku", "Shall we buy a boat?") == []


@pytest.mark.parametrize("kind", ["FaissStore", "vectors in RAM"])
async def test_an_embedder_that_is_not_ours_has_the_distance_of_the_example(kind, tmp_path):
    index = {"dims": 2, "embed": Turned(), "fields": ["text"]}
    store = FaissStore.open(tmp_path / "memory.db", index) if kind == "FaissStore" else InMemoryStore(index=index)
    await remember_message(store, "Miku", "Anon", MISO)
    assert await recall_messages(store, "Miku", ASKED) == []
    wide = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 0.71}})
    (found,) = await recall_messages(store, "Miku", ASKED, wide)
    assert found.distance == pytest.approx(0.7)
    if kind == "FaissStore":
        store.close()
