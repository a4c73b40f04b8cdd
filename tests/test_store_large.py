"""Large namespaces, filters, pages, budgets, expiry and batching."""

import asyncio

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp

from questbook import FaissStore
from questbook.memory.store import search


class Clustered(Embeddings):
    """Points around a few dozen centres, as embeddings of real text are; the text is the point's number."""

    dims = 24

    def __init__(self):
        rng = np.random.default_rng(3)
        self.centres = rng.normal(size=(40, self.dims))

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        number = int(text.split()[-1])
        rng = np.random.default_rng(number)
        return (self.centres[number % 40] + 0.4 * rng.normal(size=self.dims)).tolist()


INDEX = {"embed": Clustered(), "fields": ["text"]}
COUNT = 2_500


def fill(store, count=COUNT, space=("a",)):
    for start in range(0, count, 1000):
        values = (
            (n, {"text": f"number {n}", "kind": f"k{n % 7}", "n": n}) for n in range(start, min(count, start + 1000))
        )
        store.batch([PutOp(space, str(n), value) for n, value in values])


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "store.db"
    with FaissStore.open(path, INDEX) as store:
        fill(store)
    return path


def top(store, query, **how):
    return [item.key for item in store.search(("a",), query=query, **how)]


@pytest.mark.slow
def test_large_namespaces_are_searched_approximately_and_well(large):
    index = {**INDEX, "lexical": False}
    with FaissStore.open(large, index) as exact, FaissStore.open(large, index, exact_limit=1_000) as approximate:
        same = 0
        for n in range(60):
            expected, found = top(exact, f"{n * 41 + 5}"), top(approximate, f"{n * 41 + 5}")
            same += len(set(expected) & set(found))
        assert same >= 0.99 * 600
        assert approximate.cached_bytes < exact.cached_bytes, "an approximate index has a byte for each dimension"
        approximate.put(("a",), "new", {"text": "the number 123456"})
        assert approximate.search(("a",), query="123456")[0].key == "new"
        approximate.put(("a",), "new", {"text": "the number 7"})
        assert approximate.search(("a",), query="123456")[0].key != "new"
        approximate.delete(("a",), "new")
        assert "new" not in top(approximate, "7")
        rare = approximate.search(("a",), query="77", filter={"n": {"$gte": COUNT - 3}})
        assert sorted(item.key for item in rare) == [str(COUNT - 3), str(COUNT - 2), str(COUNT - 1)]
        some = approximate.search(("a",), query="77", filter={"kind": "k3"}, limit=20)
        best = exact.search(("a",), query="77", filter={"kind": "k3"}, limit=20)
        assert len({i.key for i in some} & {i.key for i in best}) >= 19
        everything = approximate.search(("a",), query="77", limit=COUNT + 10)
        assert len({item.key for item in everything}) == COUNT


class Scattered(Clustered):
    """Points without centres; a question is like no stored text."""

    dims = 16

    def embed_query(self, text):
        seed = int(text.split()[-1]) + 10**6 * text.startswith("far")
        return np.random.default_rng(seed).normal(size=self.dims).tolist()


def test_questions_that_are_like_no_stored_text_find_the_nearest_too(tmp_path):
    index = {"embed": Scattered(), "dims": 16, "fields": ["text"], "lexical": False}
    with FaissStore.open(tmp_path / "s.db", index) as exact:
        fill(exact)
        with FaissStore.open(tmp_path / "s.db", index, exact_limit=1_000) as approximate:
            for n in range(60):
                assert set(top(approximate, f"far {n}")) == set(top(exact, f"far {n}"))


def test_words_are_found_in_approximate_namespaces_with_their_cosine(large):
    with FaissStore.open(large, INDEX, exact_limit=1_000) as store:
        hit = store.search(("a",), query="number 2345", limit=1)[0]
        assert hit.key == "2345"
        assert hit.score == pytest.approx(1.0, abs=1e-4)


def test_pages_of_large_namespaces_do_not_repeat(large):
    for limit in (10**6, 1_000):
        with FaissStore.open(large, INDEX, exact_limit=limit) as store:
            pages = [top(store, "number 5", limit=10, offset=start) for start in range(0, 60, 10)]
            assert len({key for page in pages for key in page}) == 60


def test_a_budget_of_bytes_is_kept(tmp_path):
    with FaissStore.open(tmp_path / "s.db", INDEX, cache_bytes=40_000) as store:
        for n in range(20):
            fill(store, 120, ("a", str(n)))
        for n in range(20):
            assert len(store.search(("a", str(n)), query="number 7", limit=5)) == 5
            assert 0 < store.cached_bytes <= 40_000
        assert [i.key for i in store.search(("a",), query="number 119", limit=1)] == ["119"]
        assert store.cached_bytes <= 40_000


def test_a_namespace_that_exceeds_the_budget_is_read_from_disk(large):
    with FaissStore.open(large, INDEX) as store, FaissStore.open(large, INDEX, cache_bytes=10_000) as small:
        for n in (5, 77, 1234):
            assert top(small, f"number {n}") == top(store, f"number {n}")
        assert small.cached_bytes <= 10_000


async def test_one_tick_is_embedded_in_one_call(tmp_path):
    calls, asked = [], []

    class Listening(Clustered):
        async def aembed_documents(self, texts):
            calls.append(list(texts))
            return self.embed_documents(texts)

        async def aembed_query(self, text):
            asked.append(text)
            return self.embed_query(text)

    async with FaissStore.open(tmp_path / "s.db", {"embed": Listening(), "fields": ["text"]}) as store:
        await asyncio.gather(
            *(store.aput(("a",), str(n), {"text": f"number {n % 10}"}) for n in range(20)),
            *(store.asearch(("a",), query=f"number {n % 2}") for n in range(6)),
        )
        assert [sorted(call) for call in calls] == [sorted(f"number {n}" for n in range(10))]
        assert sorted(asked) == ["number 0", "number 1"]
        assert len(await store.asearch(("a",), limit=50)) == 20


async def test_a_cancelled_caller_takes_nobody_with_it(tmp_path):
    class Slow(Clustered):
        async def aembed_documents(self, texts):
            await asyncio.sleep(0.1)
            return self.embed_documents(texts)

    async with FaissStore.open(tmp_path / "s.db", {"embed": Slow(), "fields": ["text"]}) as store:
        tasks = [asyncio.create_task(store.aput(("a",), str(n), {"text": f"number {n}"})) for n in range(3)]
        await asyncio.sleep(0.02)
        tasks[0].cancel()
        await asyncio.gather(*tasks[1:])
        assert {item.key for item in await store.asearch(("a",))} == {"1", "2"}


async def test_failures_are_everybodys_who_shared_the_call(tmp_path):
    class Broken(Clustered):
        async def aembed_documents(self, texts):
            raise ConnectionError("no network")

    async with FaissStore.open(tmp_path / "s.db", {"embed": Broken(), "fields": ["text"]}) as store:
        results = await asyncio.gather(
            *(store.aput(("a",), str(n), {"text": f"number {n}"}) for n in range(3)), return_exceptions=True
        )
        assert ["no network" in str(result) for result in results] == [True] * 3
        assert await store.asearch(("a",)) == []


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        ({"n": {"$lt": 3}}, range(3)),
        ({"n": 2499}, [2499]),
        ({"kind": "k3"}, range(3, COUNT, 7)),
        ({"kind": "none"}, []),
    ],
)
def test_filters_are_exact_however_few_fit(large, where, fits):
    with FaissStore.open(large, INDEX) as store:
        everything = [key for key in top(store, "number 11", limit=COUNT) if int(key) in fits]
        for _ in ("read", "remembered"):
            assert top(store, "number 11", filter=where, limit=50) == everything[:50]
        assert len(everything) == len(fits)


def test_an_approximate_search_with_a_filter_brings_as_many_as_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "_COMPARE_EACH", 10)  # as if more than 2,000 items did
    with FaissStore.open(tmp_path / "s.db", {**INDEX, "lexical": False}, exact_limit=20) as store:
        fill(store, 420)
        found = store.search(("a",), query="77", filter={"kind": "k3"}, limit=60)
    assert sorted(item.value["n"] for item in found) == list(range(3, 420, 7))


@pytest.mark.parametrize("how", [{"cache_bytes": 1}, {"exact_limit": 20}, {}])
def test_of_several_vectors_of_an_item_the_best_counts_however_it_is_searched(tmp_path, how):
    index = {"embed": Clustered(), "fields": ["a", "b"], "lexical": False}
    with FaissStore.open(tmp_path / "s.db", index, **how) as store:
        store.batch([PutOp(("a",), str(n), {"a": f"{n}", "b": f"{1000 + n}"}) for n in range(60)])
        for n in (7, 31):
            for query in (f"{n}", f"{1000 + n}"):
                found = store.search(("a",), query=query, limit=60)
                assert (found[0].key, found[0].score) == (str(n), pytest.approx(1.0, abs=1e-4))
                assert len({item.key for item in found}) == 60
        store.put(("a",), "7", {"a": "2007"})
        assert store.search(("a",), query="1007")[0].score < 0.99, "its old vectors are gone"


def test_what_only_words_find_comes_with_what_only_meaning_finds_in_approximate_namespaces(large):
    query = "2345 or 9999999"  # a rare word, and the meaning of no stored text
    with FaissStore.open(large, INDEX) as exact, FaissStore.open(large, INDEX, exact_limit=1_000) as approximate:
        expected, found = (store.search(("a",), query=query, limit=40) for store in (exact, approximate))
    assert found[0].key == "2345"
    assert [item.key for item in found] == [item.key for item in expected]
    assert [item.score for item in found] == pytest.approx([item.score for item in expected], abs=1e-4)
