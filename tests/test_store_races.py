"""Searches side by side: threads whose transactions began at other times, and the queries of one batch."""

import random
import threading

import faiss
import numpy as np
import pytest
from langgraph.store.base import PutOp, SearchOp
from letters import Letters

from questbook import FaissStore, HashEmbeddings
from questbook.memory.store import rows, search
from questbook.memory.store.vectors import NamespaceVectors, compare_exactly

SPACE, DEEP = ("u",), ("campaign", "facts")
EMBED = HashEmbeddings(64)


def opened(tmp_path, **settings):
    return FaissStore.open(tmp_path / "store.db", {"embed": EMBED, "dims": 64, "fields": ["text"], **settings})


@pytest.fixture
def slowly(monkeypatch):
    """Run a search in another thread, up to where its transaction has begun; what is returned lets it go on."""
    began, go = threading.Event(), threading.Event()
    under = rows.namespaces_under

    def waiting(connection, prefix):
        found = under(connection, prefix)
        if threading.current_thread().name == "slow":
            began.set()
            assert go.wait(20)
        return found

    def start(search):
        monkeypatch.setattr(rows, "namespaces_under", waiting)
        thread = threading.Thread(name="slow", target=search)
        thread.start()
        assert began.wait(20)

        def finish():
            go.set()
            thread.join(20)

        return finish

    return start


def test_words_that_a_slow_thread_looks_up_are_not_taken_for_those_of_now(tmp_path, slowly):
    with opened(tmp_path, weights={"dense": 0.0, "lexical": 1.0}) as store, opened(tmp_path) as other:
        for number in range(5):
            other.put(SPACE, f"k{number}", {"text": f"dragon {number}"})
        store.search(SPACE, query="dragon")
        finish = slowly(lambda: store.search(SPACE, query="wolf", filter={"text": {"$ne": "nothing"}}))
        other.put(SPACE, "new", {"text": "wolf king"})
        store.search(SPACE, query="moon")
        finish()
        assert store.search(SPACE, query="wolf", limit=1)[0].key == "new"


def test_values_that_a_slow_thread_filters_are_not_taken_for_those_of_now(tmp_path, slowly):
    with opened(tmp_path) as store, opened(tmp_path) as other:
        for number in range(5):
            other.put(SPACE, f"k{number}", {"text": f"dragon {number}", "age": 0})
        store.search(SPACE, query="dragon", filter={"age": 0})
        slow = []
        finish = slowly(lambda: slow.extend(store.search(SPACE, query="dragon", filter={"age": 0})))
        other.put(SPACE, "k3", {"text": "dragon 3", "age": 1})
        assert {item.key for item in store.search(SPACE, query="dragon", filter={"age": 0})} == {"k0", "k1", "k2", "k4"}
        finish()
        assert {item.key: item.value["age"] for item in slow} == dict.fromkeys(("k0", "k1", "k2", "k4"), 0)
        assert [item.key for item in store.search(SPACE, query="dragon", filter={"age": 1})] == ["k3"]


def test_what_comes_between_two_searches_of_one_batch_changes_neither(tmp_path, monkeypatch):
    with opened(tmp_path) as store:
        store.batch([PutOp(SPACE, word, {"text": word}) for word in ("dragon", "wolf")])
        both = [SearchOp(SPACE, query="dragon"), SearchOp(SPACE, query="wolf")]
        expected, score = store.batch(both), search.score_words

        def beside_a_write(matched):
            monkeypatch.undo()
            store.put(SPACE, "moon", {"text": "moon"})
            assert store.search(SPACE, query="moon", limit=1)[0].key == "moon"
            return score(matched)

        monkeypatch.setattr(search, "score_words", beside_a_write)
        assert store.batch(both) == expected


def test_what_was_dropped_while_a_search_read_it_is_not_counted_as_kept(tmp_path, monkeypatch):
    with opened(tmp_path) as store:
        store.put(SPACE, "k", {"text": "dragon"})
        compare = NamespaceVectors.compare

        def dropping(*args):
            store._cache.clear()
            return compare(*args)

        monkeypatch.setattr(NamespaceVectors, "compare", dropping)
        assert [item.key for item in store.search(SPACE, query="dragon")] == ["k"]
        assert store.cached_bytes == 0


def test_a_prefix_may_be_a_list_each_time(tmp_path):
    with opened(tmp_path) as store:
        store.put(SPACE, "k", {"text": "a dragon"})
        assert [len(store.search(["u"], query="dragon")) for _ in range(5)] == [1] * 5


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 1_700])
def test_several_queries_have_the_cosines_of_each_to_the_last_bit(count):
    numbers = np.random.default_rng(count)
    index = faiss.IndexFlatIP(24)
    if count:
        index.add(numbers.standard_normal((count, 24), dtype=np.float32))
    queries = [numbers.standard_normal(24, dtype=np.float32) for _ in range(3)]
    for query, scores in zip(queries, compare_exactly(index, queries), strict=True):
        alone = np.empty(count, np.float32)
        if count:  # in one pass over all
            pointer = faiss.swig_ptr
            faiss.fvec_inner_products_ny(pointer(alone), pointer(query), index.get_xb(), 24, count)
        assert scores.tolist() == alone.tolist()


def test_searches_of_one_batch_find_what_each_finds_alone(tmp_path):
    said = random.Random(2)
    words = ["dragon", "harbour", "lantern", "oath", "ember", "tower", "silver", "wolf"]
    values = [{"text": " ".join(said.choices(words, k=5)), "n": n % 2} for n in range(700)]
    index = {"embed": Letters(), "dims": Letters.dims, "fields": ["text"]}
    with FaissStore.open(tmp_path / "store.db", index) as store:
        store.batch([PutOp((*DEEP, "deep")[: 2 + (n % 5 == 0)], str(n), value) for n, value in enumerate(values)])
        ops = [
            SearchOp(space, query=query, filter=only, limit=15)
            for space in (DEEP, (*DEEP, "deep"), ())
            for query in ("the dragon's oath", "a silver tower", None)
            for only in (None, {"n": 1})
        ]
        found = store.batch([*ops, PutOp(DEEP, "later", {"text": "the dragon's oath"})])[:-1]
        store.delete(DEEP, "later")
        assert found == [store.batch([op])[0] for op in ops]
