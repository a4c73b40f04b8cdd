"""How near a memory must be: as the settings say; where they say nothing, what fits what measures the distance."""

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from questbook import FaissStore
from questbook.memory.embeddings.embedders import HashEmbeddings
from questbook.memory.ltm.config import SPELLING_DISTANCE, LtmConfig
from questbook.memory.ltm.memories import recall_messages, remember_message

CAT = "My cat is called Miso, she is nine years old, and she always sleeps on my keyboard whenever I want to work."
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
    await remember_message(by_spelling, "Miku", "Anon", CAT)
    (found,) = await recall_messages(by_spelling, "Miku", ASKED)
    assert 0.6 < found.distance < SPELLING_DISTANCE, "or this text shows nothing"
    assert await recall_messages(by_spelling, "Miku", ASKED, EXAMPLE) == [found]
    assert await recall_messages(by_spelling, "Miku", ASKED, NAMED) == [], "what is named holds"
    assert await recall_messages(by_spelling, "Miku", "Shall we buy a boat?") == []


@pytest.mark.parametrize("kind", ["FaissStore", "vectors in RAM"])
async def test_an_embedder_that_is_not_ours_has_the_distance_of_the_example(kind, tmp_path):
    index = {"dims": 2, "embed": Turned(), "fields": ["text"]}
    store = FaissStore.open(tmp_path / "memory.db", index) if kind == "FaissStore" else InMemoryStore(index=index)
    await remember_message(store, "Miku", "Anon", CAT)
    assert await recall_messages(store, "Miku", ASKED) == []
    wide = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 0.71}})
    (found,) = await recall_messages(store, "Miku", ASKED, wide)
    assert found.distance == pytest.approx(0.7)
    if kind == "FaissStore":
        store.close()
