"""Memories looked through and changed by hand."""

import pytest
from langgraph.store.memory import InMemoryStore

from questbook import FaissStore
from questbook.memory.errors import NoSuchMemoryError, StoreConfigError
from questbook.memory.ltm.config import LtmConfig
from questbook.memory.ltm.memories import (
    MEMORIES,
    add_memory,
    delete_memories,
    edit_memory,
    find_memory,
    list_characters,
    list_memories,
    recall_messages,
)
from questbook.memory.timeline.namespaces import character_namespace

PLACE = character_namespace("Miku", MEMORIES, user="ada")
ALL = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2.0, "num_memories_to_fetch": 10}})


@pytest.fixture
async def store(tmp_path):
    async with FaissStore.open(tmp_path / "memory.db") as opened:
        yield opened


async def fill(store, *texts):
    return [await add_memory(store, "Miku", text, speaker="Ada", user="ada") for text in texts]


async def test_what_is_added_is_listed_found_and_recalled(store):
    await fill(store, "Ada has a cat called Miso.", "Ada lives in Oslo.")
    assert {item.value["text"] for item in await list_memories(store, PLACE)} == {
        "Ada has a cat called Miso.",
        "Ada lives in Oslo.",
    }
    assert (await store.asearch(PLACE, query="which cat?"))[0].value["text"] == "Ada has a cat called Miso."
    found = await recall_messages(store, "Miku", "Where does Ada live?", ALL, user="ada")
    assert {memory.text for memory in found} == {"Ada has a cat called Miso.", "Ada lives in Oslo."}
    assert await list_characters(store, "ada") == {"miku": 2}
    assert await list_characters(store, "bob") == await list_characters(store) == {}


async def test_what_is_edited_is_found_by_its_new_words_and_says_so(store):
    (key,) = await fill(store, "Ada lives in Oslo.")
    assert await edit_memory(store, PLACE, key[:6], "Ada lives in Bergen.") == key
    (item,) = await store.asearch(PLACE, query="Bergen")
    assert (item.value["text"], item.value["speaker"]) == ("Ada lives in Bergen.", "Ada")
    assert item.value["edited_at"]
    assert item.score > 0.3


async def test_of_several_keys_all_are_deleted_or_none(store):
    one, two = await fill(store, "one thing", "another thing")
    with pytest.raises(NoSuchMemoryError, match="nonsense"):
        await delete_memories(store, PLACE, [one, "nonsense"])
    assert len(await list_memories(store, PLACE)) == 2
    gone = await delete_memories(store, PLACE, [one, one[:8], two])
    assert {item.value["text"] for item in gone} == {"one thing", "another thing"}
    assert await list_memories(store, PLACE) == []


async def test_a_beginning_that_several_keys_have_names_none():
    store = InMemoryStore()
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
