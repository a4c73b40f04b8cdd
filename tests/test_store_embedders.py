"""What a store may embed with, what it asks of it, and what becomes of a batch when that fails."""

from datetime import UTC, datetime

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp

from questbook import EmbedderChangedError, FaissStore, HashEmbeddings, StoreError
from questbook.memory.errors import EmbeddingError, StoreConfigError, UnstorableValueError


class Scripted(Embeddings):
    """Hash vectors, with a record of the calls and a way to fail."""

    def __init__(self, dims=32, answer=None):
        self.dims = dims
        self.calls = []
        self.answer = answer

    def embed_documents(self, texts):
        self.calls.append(list(texts))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if self.answer is not None else HashEmbeddings(self.dims).embed_documents(texts)

    def embed_query(self, text):
        return HashEmbeddings(self.dims).embed_query(text)


def puts(count, key=None, value=None):
    return [PutOp(("p",), key or f"k{n}", value or {"text": f"text {n}"}) for n in range(count)]


@pytest.mark.parametrize("value", [{"when": datetime.now(UTC)}, {"set": {1}}, {"bytes": b"x"}])
def test_what_is_not_json_is_refused_and_nothing_is_written(path, value):
    with FaissStore.open(path) as store:
        with pytest.raises(UnstorableValueError, match="'k' in"):
            store.batch([*puts(3), *puts(1, key="k", value=value)])
        assert store.search(("p",)) == []


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("no quota"), [[0.0] * 32], [["a"] * 32] * 2, [[float("nan")] * 32] * 2, [[1.0] * 31] * 2],
)
async def test_an_embedding_failure_is_loud_and_writes_nothing(path, answer):
    embed = Scripted()
    with FaissStore.open(path, {"embed": embed, "fields": ["text"]}) as store:
        store.put(("p",), "k0", {"text": "before"})
        embed.answer = answer
        with pytest.raises(StoreError):
            store.batch(puts(2))
        with pytest.raises(StoreError):
            await store.abatch(puts(2))
        embed.answer = None
        assert [item.value for item in store.search(("p",))] == [{"text": "before"}]


def test_documents_are_embedded_as_documents_and_queries_as_queries(path):
    class TwoFaced(Scripted):
        def embed_query(self, text):
            return [1.0] + [0.0] * 31

        def embed_documents(self, texts):
            return [[0.0, 1.0] + [0.0] * 30 for _ in texts]

    with FaissStore.open(path, {"embed": TwoFaced(), "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "same"})
        assert store.search(("a",), query="same")[0].score == pytest.approx(0.0)


def test_a_batch_is_embedded_in_one_call(path):
    embed = Scripted()
    with FaissStore.open(path, {"embed": embed, "fields": ["text"]}) as store:
        store.batch(puts(20))
    assert [len(call) for call in embed.calls] == [20]


@pytest.mark.parametrize("index", [None, {"embed": None, "fields": ["text"]}])
def test_no_embedder_means_no_vectors(path, index):
    with FaissStore.open(path, index) as store:
        store.put(("a",), "k", {"text": "x"})
        assert [(item.key, item.score) for item in store.search(("a",), query="x")] == [("k", None)]


def test_functions_serve_as_embedders(path):
    def embed(texts):
        return HashEmbeddings(16).embed_documents(texts)

    with FaissStore.open(path, {"embed": embed, "dims": 16, "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "x y z"})
        assert store.search(("a",), query="x y z")[0].score == pytest.approx(1.0)


async def test_asynchronous_functions_serve_as_embedders(path):
    async def embed(texts):
        return HashEmbeddings(16).embed_documents(texts)

    async with FaissStore.open(path, {"embed": embed, "dims": 16, "fields": ["text"]}) as store:
        await store.aput(("a",), "k", {"text": "x y z"})
        assert (await store.asearch(("a",), query="x y z"))[0].score == pytest.approx(1.0)


async def test_an_asynchronous_function_cannot_be_waited_for_in_its_own_loop(path):
    async def embed(texts):
        return HashEmbeddings(16).embed_documents(texts)

    async with FaissStore.open(path, {"embed": embed, "dims": 16, "fields": ["text"]}) as store:
        with pytest.raises(EmbeddingError, match="aput"):
            store.put(("a",), "k", {"text": "x"})
        assert await store.asearch(("a",)) == []


def test_an_asynchronous_function_serves_without_a_loop(path):
    async def embed(texts):
        return HashEmbeddings(16).embed_documents(texts)

    with FaissStore.open(path, {"embed": embed, "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "x y z"})
        assert store.search(("a",), query="x y z")[0].score == pytest.approx(1.0)


def test_the_index_is_described_as_langgraph_describes_it(path):
    embed = Scripted()
    with FaissStore.open(path, {"embed": embed, "dims": 32, "fields": ["text"]}) as store:
        assert store.embeddings is embed
        assert store.index_config["dims"] == 32
        assert store.index_config["embed"] is embed


def test_wrong_dimensions_are_caught_when_opening(path):
    with pytest.raises(EmbedderChangedError, match="32"):
        FaissStore.open(path, {"embed": Scripted(), "dims": 33})
    silent = HashEmbeddings(32).embed_documents  # a function does not say how long its vectors are
    with pytest.raises(EmbedderChangedError, match="32 dimensions"):
        FaissStore.open(path, {"embed": silent, "dims": 64})
    with FaissStore.open(path, {"embed": silent}) as store:
        assert store.index_config["dims"] == 32


@pytest.mark.parametrize("index", [{"embed": "hash:x"}, {"embed": "nobody:nothing"}])
def test_unknown_embedders_are_named(path, index):
    with pytest.raises(EmbeddingError, match=index["embed"]):
        FaissStore.open(path, index)


def test_fields_must_be_a_list(path):
    with pytest.raises(StoreConfigError, match="fields"):
        FaissStore.open(path, {"embed": Scripted(), "fields": "text"})
