"""Whose a memory is and how it is kept (L18 to L20, L22 to L25 in docs/coverage.md), and what the extension lost."""

import asyncio

import pytest
from faulty_embedder import Failing
from ltm_talk import BOATS, CAT, EVERYTHING, NOW, TRAIN, recalled, tell
from stores import stores_of

from questbook import FaissStore
from questbook.memory.errors import EmbeddingError
from questbook.memory.ltm.config import LtmConfig
from questbook.memory.ltm.memories import (
    MEMORIES,
    add_memory,
    delete_character,
    list_characters,
    list_memories,
    recall_messages,
    remember_message,
)
from questbook.memory.timeline.namespaces import character_name, character_namespace

store = stores_of("faiss", "memory")


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


async def test_l24_counts_and_what_was_recalled_can_be_shown(store):
    await tell(store, BOATS, CAT, user="ada")
    assert await list_characters(store, "ada") == {"miku": 2}
    found = await recall_messages(store, "Miku", "my cat", EVERYTHING, user="ada")
    assert all(0 <= memory.distance < 2 for memory in found)


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


async def test_bug_2_a_record_without_a_vector_breaks_no_query(tmp_path):
    async with FaissStore.open(tmp_path / "memory.db") as store:
        await tell(store, CAT)
        place = character_namespace("Miku", MEMORIES, user=None)
        await store.aput(place, "bare", {"text": BOATS}, index=False)
        assert CAT in await recalled(store, "my cat")


async def test_bug_9_a_change_of_case_is_no_other_character(store):
    await tell(store, CAT, character="MIKU")
    assert await recalled(store, "my cat", character="miku") == [CAT]


async def test_remembering_twice_is_once_and_a_record_is_never_written_again(store):
    first = await remember_message(store, "Miku", "Anon", CAT, key="main-1-memory-0", said_at=NOW)
    again = await remember_message(store, "Miku", "Anon", BOATS, key="main-1-memory-0", said_at=NOW)
    assert first == again == "main-1-memory-0"
    assert await recalled(store, "x") == [CAT]
    naive = NOW.replace(tzinfo=None)
    assert await remember_message(store, "Miku", "Anon", CAT, said_at=naive) == await remember_message(
        store, "Miku", "Anon", CAT, said_at=NOW
    )
