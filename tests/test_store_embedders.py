"""What a store may embed with, what it asks of it, and what becomes of a batch when that fails."""

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp

from questbook import EmbedderChangedError, FaissStore, HashEmbeddings, StoreError
from questbook.memory.errors import UnstorableValueError

GOOD = object()  # hash vectors


class Scripted(Embeddings):
    """Hash vectors, with a record of the calls and a way to fail."""

    def __init__(self, dims=32):
        self.dims = dims
        self.calls = []
        self.documents = self.query = GOOD

    def embed_documents(self, texts):
        self.calls.append(list(texts))
        if isinstance(self.documents, Exception):
            raise self.documents
        return HashEmbeddings(32).embed_documents(texts) if self.documents is GOOD else self.documents

    def embed_query(self, text):
        return HashEmbeddings(32).embed_query(text) if self.query is GOOD else self.query


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
    [
        *(RuntimeError("no quota"), None, 7, "abc", [None] * 2, ["abc"] * 2, [[]] * 2, [[0.0] * 32]),
        *([["a"] * 32] * 2, [[None] * 32] * 2, [[float("nan")] * 32] * 2, [[1.0] * 31] * 2, iter([[1.0] * 32] * 2)),
    ],
)
async def test_an_embedding_failure_is_loud_and_writes_nothing(path, answer):
    embed = Scripted()
    with FaissStore.open(path, {"embed": embed, "fields": ["text"]}) as store:
        store.put(("p",), "k0", {"text": "before"})
        embed.documents = answer
        with pytest.raises(StoreError):
            store.batch(puts(2))
        with pytest.raises(StoreError):
            await store.abatch(puts(2))
        embed.documents = GOOD
        assert [item.value for item in store.search(("p",))] == [{"text": "before"}]


@pytest.mark.parametrize("query", [None, 7, "abc", [], [None] * 32, [math.nan] * 32])
def test_an_embedder_that_returns_no_vector_for_a_query_is_refused(path, query):
    embed = Scripted()
    with FaissStore.open(path, {"embed": embed, "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "dragon"})
        embed.query = query
        with pytest.raises(StoreError):
            store.search(("a",), query="dragon")
        embed.query = GOOD
        assert [item.key for item in store.search(("a",), query="dragon")] == ["k"]
    embed.query, embed.dims = query, None  # its dimension is found out with a query
    with pytest.raises(StoreError):
        FaissStore.open(path.with_name("new.db"), {"embed": embed, "fields": ["text"]}).search(("a",), query="x")


def test_documents_are_embedded_as_documents_and_queries_as_queries(path):
    class TwoFaced(Scripted):
        def embed_query(self, text):
            return [1.0] + [0.0] * 31

        def embed_documents(self, texts):
            return [[0.0, 1.0] + [0.0] * 30 for _ in texts]

    with FaissStore.open(path, {"embed": TwoFaced(), "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "same"})
        assert store.search(("a",), query="same")[0].score == pytest.approx(0.0)


@pytest.mark.parametrize("is_asynchronous", [False, True])
@pytest.mark.parametrize("how", [{"dims": 16}, {}])
def test_functions_serve_as_embedders(path, is_asynchronous, how):
    def embed(texts):
        return HashEmbeddings(16).embed_documents(texts)

    async def aembed(texts):
        return embed(texts)

    index = {"embed": aembed if is_asynchronous else embed, "fields": ["text"], **how}
    with FaissStore.open(path, index) as store:
        store.put(("a",), "k", {"text": "x y z"})
        assert store.search(("a",), query="x y z")[0].score == pytest.approx(1.0)

        async def inside():
            await store.aput(("a",), "l", {"text": "u v w"})
            return await store.asearch(("a",), query="u v w")

        assert asyncio.run(inside())[0].score == pytest.approx(1.0)


def test_an_asynchronous_function_is_always_called_in_one_event_loop_as_its_client_needs(path):
    loops = []

    async def embed(texts):
        loops.append(asyncio.get_running_loop())
        return HashEmbeddings(16).embed_documents(texts)

    def index():
        loops.clear()
        return {"embed": embed, "fields": ["text"]}

    with FaissStore.open(path, index()) as store:
        for key in "abc":
            store.put(("a",), key, {"text": key})
        store.search(("a",), query="a")
    assert len(loops) == 5
    assert len(set(loops)) == 1
    assert loops[0].is_running(), "it is kept for later calls"

    async def play(store):
        await store.aput(("a",), "k", {"text": "x"})
        await asyncio.to_thread(store.close)
        assert set(loops) == {asyncio.get_running_loop()}

    asyncio.run(play(FaissStore.open(path.with_name("outside.db"), index())))  # opened before there was a loop
    with FaissStore.open(path.with_name("old.db"), {"embed": "hash", "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "of another embedder"})

    async def enter():
        async with FaissStore.open(path.with_name("old.db"), index()) as store:
            assert len(loops) == 2, "the dimension, and the old text"
            await play(store)

    asyncio.run(enter())


def test_a_batch_is_embedded_in_one_call_and_the_index_described_as_langgraph_does(path):
    embed = Scripted()
    with FaissStore.open(path, {"embed": embed, "dims": 32, "fields": ["text"]}) as store:
        store.batch(puts(20))
        assert [len(call) for call in embed.calls] == [20]
        assert store.embeddings is embed
        assert store.index_config["dims"] == 32
        assert store.index_config["embed"] is embed


def test_a_field_that_is_named_twice_is_embedded_once(path):
    embed = Scripted()
    with FaissStore.open(path, {"embed": embed, "fields": ["text", "text"]}) as store:
        store.batch(puts(1))
    with FaissStore.open(path, {"embed": embed, "fields": ["text"]}) as store:
        assert embed.calls == [["text 0"]]
        assert store.index_config["fields"] == ["text"]


def test_wrong_dimensions_are_caught_when_opening(path):
    with pytest.raises(EmbedderChangedError, match="32"):
        FaissStore.open(path, {"embed": Scripted(), "dims": 33})
    silent = HashEmbeddings(32).embed_documents  # a function does not say how long its vectors are
    with pytest.raises(EmbedderChangedError, match="32 dimensions"):
        FaissStore.open(path, {"embed": silent, "dims": 64})
    with FaissStore.open(path, {"embed": silent}) as store:
        assert store.index_config["dims"] == 32


async def test_a_store_that_many_open_at_once_lets_its_embedder_use_the_threads_of_the_loop(tmp_path):
    async def embed(texts):
        await asyncio.to_thread(len, texts)
        return HashEmbeddings(16).embed_documents(texts)

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    store = FaissStore.open(tmp_path / "memory.db", {"embed": embed, "fields": ["text"]})
    async with asyncio.timeout(20):
        await asyncio.gather(*(store.aput(("a",), f"k{n}", {"text": "hello"}) for n in range(8)))
    assert len(await store.asearch(("a",))) == 8
    await store.aclose()
