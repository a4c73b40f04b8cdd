"""Memories looked through and changed by hand."""

import pytest
from langgraph.store.memory import InMemoryStore

from questbook import FaissStore
from questbook.memory.errors import NoSuchMemoryError, StoreConfigError
from questbook.memory.ltm.characters import MEMORIES, memories_for
from questbook.memory.ltm.config import LtmConfig
from questbook.memory.ltm.curation import add, characters, delete, edit, find, listed, searched
from questbook.memory.timeline.namespaces import character_namespace

PLACE = character_namespace("Miku", MEMORIES, user="ada")
ALL = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2.0, "num_memories_to_fetch": 10}})


@pytest.fixture
async def store(tmp_path):
    async with FaissStore.open(tmp_path / "memory.db") as opened:
        yield opened


async def fill(store, *texts):
    return [await add(store, "Miku", text, speaker="Ada", user="ada") for text in texts]


async def test_what_is_added_is_listed_found_and_recalled(store):
    await fill(store, "Ada has a cat called Miso.", "Ada lives in Oslo.")
    assert {item.value["text"] for item in await listed(store, PLACE)} == {
        "Ada has a cat called Miso.",
        "Ada lives in Oslo.",
    }
    assert (await searched(store, PLACE, "which cat?"))[0].value["text"] == "Ada has a cat called Miso."
    found = await memories_for(store, "Miku", "Where does Ada live?", ALL, user="ada")
    assert {memory.text for memory in found} == {"Ada has a cat called Miso.", "Ada lives in Oslo."}
    assert await characters(store, "ada") == {"miku": 2}
    assert await characters(store, "bob") == await characters(store) == {}


async def test_what_is_edited_is_found_by_its_new_words_and_says_so(store):
    (key,) = await fill(store, "Ada lives in Oslo.")
    assert await edit(store, PLACE, key[:6], "Ada lives in Bergen.") == key
    (item,) = await searched(store, PLACE, "Bergen")
    assert (item.value["text"], item.value["speaker"]) == ("Ada lives in Bergen.", "Ada")
    assert item.value["edited_at"]
    assert item.score > 0.3


async def test_of_several_keys_all_are_deleted_or_none(store):
    one, two = await fill(store, "one thing", "another thing")
    with pytest.raises(NoSuchMemoryError, match="nonsense"):
        await delete(store, PLACE, [one, "nonsense"])
    assert len(await listed(store, PLACE)) == 2
    gone = await delete(store, PLACE, [one, one[:8], two])
    assert {item.value["text"] for item in gone} == {"one thing", "another thing"}
    assert await listed(store, PLACE) == []


async def test_a_beginning_that_several_keys_have_names_none():
    store = InMemoryStore()
    for key in ("abcd1", "abcd2", "xyz"):
        await store.aput(PLACE, key, {"text": key})
    with pytest.raises(NoSuchMemoryError, match="2 memories"):
        await find(store, PLACE, "abcd")
    assert (await find(store, PLACE, "abcd2")).key == "abcd2"
    with pytest.raises(NoSuchMemoryError, match="at least 4"):
        await find(store, PLACE, "x")


async def test_a_memory_needs_words(store):
    with pytest.raises(StoreConfigError):
        await add(store, "Miku", " \n", speaker="Ada")
    (key,) = await fill(store, "something")
    with pytest.raises(StoreConfigError):
        await edit(store, PLACE, key, "")
    assert (await find(store, PLACE, key)).value["text"] == "something"
