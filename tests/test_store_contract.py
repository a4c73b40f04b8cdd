"""What LangGraph promises of every store, held against its InMemoryStore and ours alike."""

import asyncio

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, Item, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from letters import Letters
from stores import keys

from questbook import FaissStore, StoreError
from questbook.memory.store import rows


@pytest.fixture
def store(make_store):
    return make_store(vectors=False)


def test_put_get_update_delete(store):
    place = ("test", "documents")
    store.put(place, "doc", {"title": "One"})
    item = store.get(place, "doc")
    assert isinstance(item, Item)
    assert (item.namespace, item.key, item.value) == (place, "doc", {"title": "One"})
    assert item.created_at.tzinfo is not None
    store.put(place, "doc", {"title": "Two"})
    assert store.get(place, "doc").value == {"title": "Two"}
    assert store.get(place, "doc").updated_at >= item.updated_at
    assert store.get(("test", "other"), "doc") is None
    store.delete(place, "doc")
    assert store.get(place, "doc") is None
    store.delete(place, "doc")


def test_results_of_a_batch_stand_in_the_order_of_its_operations(store):
    store.put(("test", "foo"), "key1", {"data": "value1"})
    store.put(("test", "bar"), "key2", {"data": "value2"})
    results = store.batch(
        [
            GetOp(("test", "foo"), "key1"),
            PutOp(("test", "bar"), "key2", {"data": "value3"}),
            SearchOp(("test",), filter={"data": "value1"}),
            ListNamespacesOp(),
            GetOp(("test",), "key3"),
            GetOp(("test", "bar"), "key2"),
        ]
    )
    assert results[0].value == {"data": "value1"}
    assert results[1] is None
    assert keys(results[2]) == ["key1"]
    assert set(results[3]) == {("test", "foo"), ("test", "bar")}
    assert results[4] is None
    assert results[5].value == {"data": "value2"}, "reads see the store as it was before the batch"
    assert store.get(("test", "bar"), "key2").value == {"data": "value3"}


def test_the_last_put_of_a_batch_wins(store):
    puts = [
        PutOp(("a",), key, value) for key, value in [("k", {"n": 1}), ("k", {"n": 2}), ("gone", {}), ("gone", None)]
    ]
    assert store.batch(puts) == [None] * 4
    assert store.get(("a",), "k").value == {"n": 2}
    assert store.get(("a",), "gone") is None


def test_unknown_operations_are_refused_and_an_empty_batch_is_nothing(store):
    assert store.batch([]) == []
    with pytest.raises(ValueError, match="Unknown operation"):
        store.batch([("get", "this")])


@pytest.mark.parametrize(
    "key", ["", " ", "a.b/c", "../x", "🐉", "'; DROP TABLE items; --", "nul\x00nul", "\n", "%", "\ud800"]
)
def test_odd_keys_are_keys_like_any_other(store, key):
    store.put(("odd",), key, {"k": 1})
    store.put(("odd",), key + "x", {"k": 2})
    assert store.get(("odd",), key).value == {"k": 1}
    assert store.get(("odd",), key).key == key
    assert sorted(keys(store.search(("odd",)))) == sorted([key, key + "x"])
    store.delete(("odd",), key)
    assert keys(store.search(("odd",))) == [key + "x"]


def test_values_come_back_as_they_went_in(store):
    value = {"text": "“quoted” 🐉 \u0000 \ud800", "n": 2**70, "f": 0.1, "on": True, "inf": float("inf")}
    value["deep"] = {"list": [1, [2, {"x": None}]], "": ""}
    store.put(("v",), "k", value)
    assert store.get(("v",), "k").value == value


async def test_everything_concurrent_and_asynchronous(make_store):
    store = make_store(["text"])
    colors, things = ["red", "blue", "green", "yellow", "purple"], ["apple", "car", "house", "book", "phone"]
    docs = [
        (f"doc{n}", {"text": f"{colors[n % 5]} {things[n % 5]}", "color": colors[n % 5], "n": n}) for n in range(50)
    ]
    await asyncio.gather(*(store.aput(("test",), key, value) for key, value in docs))
    await asyncio.gather(*(store.adelete(("test",), key) for key, _ in docs[:25]))
    await asyncio.gather(*(store.aput(("test",), key, value) for key, value in docs))
    asked = [("apple", {"color": "red"}), ("car", {"color": "blue"}), ("house", {"n": {"$gt": 25}})]
    found = await asyncio.gather(*(store.asearch(("test",), query=query, filter=where) for query, where in asked))
    assert [len(items) for items in found] == [10, 10, 10]
    assert all(item.value["color"] == "red" for item in found[0])
    assert (await store.alist_namespaces()) == [("test",)]


async def test_synchronous_calls_inside_a_running_loop_work(make_store):
    store = make_store(["text"])
    store.put(("a",), "k", {"text": "hello"})
    await store.aput(("a",), "l", {"text": "world"})
    assert store.get(("a",), "l").value == {"text": "world"}
    assert store.search(("a",), query="hello")[0].key == "k"
    assert await asyncio.to_thread(store.list_namespaces) == store.list_namespaces() == [("a",)]
    assert (await store.aget(("a",), "k")).value == {"text": "hello"}


async def test_inside_a_loop_an_asynchronous_embedder_needs_asynchronous_calls(make_store):
    async def embed(texts):
        return Letters().embed_documents(texts)

    store = make_store(["text"], embed=embed)
    with pytest.raises((ValueError, StoreError), match="async"):
        store.put(("a",), "k", {"text": "hello"})
    await store.aput(("a",), "k", {"text": "hello"})
    assert [item.key for item in await store.asearch(("a",), query="hello")] == ["k"]


def test_search_filters_by_equal_values(store):
    store.put(("t", "docs"), "doc1", {"author": "Alice", "tags": ["important"], "deep": {"a": {"b": 1}, "c": 2}})
    store.put(("t", "docs"), "doc2", {"author": "Bob", "tags": ["draft"], "on": True})
    store.put(("t", "images"), "img1", {"author": "Alice", "tags": ["final", "draft"], "on": False, "none": None})
    assert keys(store.search(("t",), filter={"author": "Alice"})) == ["doc1", "img1"]
    assert keys(store.search(("t",), filter={"author": {"$eq": "Alice"}})) == ["doc1", "img1"]
    assert keys(store.search(("t",), filter={"author": {"$ne": "Alice"}})) == ["doc2"]
    assert keys(store.search(("t",), filter={"author": "Alice", "tags": ["important"]})) == ["doc1"]
    assert keys(store.search(("t",), filter={"tags": ["draft"]})) == ["doc2"]
    assert keys(store.search(("t",), filter={"on": True})) == ["doc2"]
    assert keys(store.search(("t",), filter={"on": False})) == ["img1"]
    assert keys(store.search(("t",), filter={"deep": {"a": {"b": 1}}})) == ["doc1"]
    assert keys(store.search(("t",), filter={"none": None})) == ["doc1", "doc2", "img1"]
    assert keys(store.search(("t",), filter={"on": {"$ne": True}})) == ["doc1", "img1"]


def test_search_filters_by_order(store):
    for key, score in [("a", 2), ("b", 9), ("c", 10), ("d", 11), ("e", 9.5), ("f", -3)]:
        store.put(("s",), key, {"score": score})

    def scores(condition):
        return sorted(item.value["score"] for item in store.search(("s",), filter={"score": condition}))

    assert scores({"$gte": 10}) == [10, 11]
    assert scores({"$gt": 9}) == [9.5, 10, 11]
    assert scores({"$lt": 9.5}) == [-3, 2, 9]
    assert scores({"$lte": 9}) == [-3, 2, 9]
    assert scores({"$gt": 2, "$lt": 10}) == [9, 9.5]
    assert scores({"$lt": float("inf")}) == [-3, 2, 9, 9.5, 10, 11]
    assert scores({"$eq": float("nan")}) == []
    assert scores({"$lt": 10**100}) == [-3, 2, 9, 9.5, 10, 11]
    with pytest.raises(ValueError, match="Unsupported operator"):
        scores({"$near": 1})


def test_search_without_a_query_pages_through_everything_once(store):
    for n in range(25):
        store.put(("p", str(n % 3)), f"k{n}", {"n": n})
    pages = [keys(store.search(("p",), limit=10, offset=start)) for start in (0, 10, 20, 30)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert len({key for page in pages for key in page}) == 25
    assert all(item.score is None for item in store.search(("p",)))
    assert len(store.search(("p",), filter={"n": {"$gte": 10}}, limit=10, offset=10)) == 5
    assert store.search(("p",), limit=0) == []


def test_search_by_meaning_with_filters(make_store):
    store = make_store(["text"])
    for n, (text, score) in enumerate(
        [("red apple", 4.5), ("red car", 3.0), ("green apple", 4.0), ("blue car", 3.5)], 1
    ):
        store.put(("test",), f"doc{n}", {"text": text, "color": text.split()[0], "score": score})
    assert keys(store.search(("test",), query="apple", filter={"color": "red"})) == ["doc1", "doc2"]
    assert keys(store.search(("test",), query="car", filter={"color": "red"})) == ["doc2", "doc1"]
    assert keys(store.search(("test",), query="blue blue car", filter={"score": {"$gt": 3.2}}))[0] == "doc4"
    assert keys(store.search(("test",), query="apple", filter={"score": {"$gte": 4.0}, "color": "green"})) == ["doc3"]


@pytest.mark.parametrize(
    "query", ["", None, "test " * 100, '"test" AND (', "NEAR(", "NOT test", "text: test", "^test", "a+b", "--", "c0:x"]
)
def test_odd_queries_find_what_is_there(make_store, query):
    store = make_store(["text"])
    store.put(("test",), "doc", {"text": "test document"})
    assert keys(store.search(("test",), query=query)) == ["doc"]


def test_every_field_is_a_vector_and_the_best_counts(make_store):
    store = make_store(["key0", "key1", "key3"])
    store.put(("test",), "doc1", {"key1": "xxx", "key2": "yyy", "key3": "zzz"})
    store.put(("test",), "doc2", {"key0": "uuu", "key1": "vvv", "key2": "www", "key3": "xxx"})
    found = store.search(("test",), query="xxx")
    assert sorted(keys(found)) == ["doc1", "doc2"]
    assert min(item.score for item in found) > 0.99
    found = store.search(("test",), query="uuu")
    assert keys(found) == ["doc2", "doc1"]
    assert found[0].score > found[1].score
    assert max(item.score for item in store.search(("test",), query="www")) < 0.9, "key2 is not indexed"


def test_a_put_may_name_its_own_paths(make_store):
    store = make_store(["key17"])
    store.put(("test",), "doc3", {"key0": "aaa", "key1": "bbb", "key2": "ccc"}, index=["key0", "key1"])
    store.put(("test",), "doc4", {"key0": "eee", "key1": "bbb", "key3": ["ggg", "iii"]}, index=["key1", "key3[*]"])
    assert keys(store.search(("test",), query="aaa"))[0] == "doc3"
    assert keys(store.search(("test",), query="ggg"))[0] == "doc4"
    assert keys(store.search(("test",), query="iii"))[0] == "doc4"
    assert max(item.score for item in store.search(("test",), query="ccc")) < 0.9
    store.put(("test",), "doc5", {"key0": "hhh"}, index=False)
    assert all(item.score is None for item in store.search(("test",)))
    found = store.search(("test",), query="hhh")
    assert keys(found)[2:] == ["doc5"], "items without a vector follow those that have one"
    assert found[2].score is None


@pytest.mark.parametrize("place", [(), ("the", "thing.about"), ("some", ""), ("langgraph", "foo"), ("nul\x00",)])
async def test_invalid_namespaces_are_refused(store, place):
    with pytest.raises(InvalidNamespaceError):
        store.put(place, "k", {})
    with pytest.raises(InvalidNamespaceError):
        await store.aput(place, "k", {})


async def test_langgraph_is_a_fine_label_further_down_and_past_the_public_methods(store):
    for place in [("foo", "langgraph"), ("langgraph", "foo")]:
        await store.abatch([PutOp(place, "k", {"v": 1})])
        assert (await store.aget(place, "k")).value == {"v": 1}
        assert keys(await store.asearch(place)) == ["k"]
        await store.adelete(place, "k")
        assert store.get(place, "k") is None


PATHS = "a/b/c a/b/d/e a/b/d/i a/b/f a/c/f b/a/f users/123 users/456/settings admin/users/789 ab a-b/x"
NAMESPACES = [tuple(path.split("/")) for path in PATHS.split()]
PREFIXES = [("a", "b"), ["a", "b"], ("a", "*", "f"), ("*", "users"), ("*",), ("nonexistent",), ("users", "123")]
SUFFIXES = [("f",), ("*", "f"), ("b", "*", "*"), ("users", "*")]
CUTS = [{"max_depth": 1}, {"max_depth": 2, "limit": 2, "offset": 1}, *({"limit": 3, "offset": at} for at in (9, 99))]
BOTH = [{"prefix": ("a", "b"), **cut} for cut in ({"max_depth": 3}, {"limit": 2}, {"offset": 2}, {"suffix": ("f",)})]
ASKED = [{}, *CUTS, *BOTH, *({"prefix": labels} for labels in PREFIXES), *({"suffix": labels} for labels in SUFFIXES)]


@pytest.mark.parametrize("asked", ASKED, ids=repr)
def test_list_namespaces(asked):
    mine, theirs = FaissStore.open(":memory:", index=None), InMemoryStore()
    with mine:
        for store in (mine, theirs):
            for place in NAMESPACES:
                store.put(place, "k", {})
        assert mine.list_namespaces(**asked) == theirs.list_namespaces(**asked)


def test_a_wildcard_in_a_name_is_only_a_name(store):
    for label in ("star*", "starX", "user_1", "userX1", "a%b", "axxb", "q?m", "br[ack]et", "line\n", "line"):
        store.put((label,), "k", {"v": label})
        store.put((label, "child"), "k", {"v": label})
    for label in ("star*", "user_1", "a%b", "q?m", "br[ack]et", "line", "line\n"):
        assert {item.namespace for item in store.search((label,))} == {(label,), (label, "child")}
        assert set(store.list_namespaces(prefix=(label,))) == {(label,), (label, "child")}


def test_prefixes_end_where_labels_end_and_know_case(store):
    for place in [("foo",), ("foo", "child"), ("foobar",), ("foobar", "baz"), ("foo2",), ("Foo",)]:
        store.put(place, "k", {})
    assert {item.namespace for item in store.search(("foo",))} == {("foo",), ("foo", "child")}
    assert {item.namespace for item in store.search(("Foo",))} == {("Foo",)}
    assert store.search(("fo",)) == []
    assert len(store.search(())) == 6
    assert set(store.list_namespaces(suffix=("baz",))) == {("foobar", "baz")}


@pytest.mark.parametrize("how", [{}, {"query": "x"}, {"filter": {"n": {"$gte": 0}}}])
def test_of_our_store_a_page_before_the_first_is_the_first_and_one_of_nothing_is_empty(path, how):
    with FaissStore.open(path) as store:
        for n in range(3):
            store.put(("a",), str(n), {"text": "x", "n": n})
        assert [item.key for item in store.search(("a",), **how, limit=2, offset=-5)] == ["0", "1"]
        assert [item.key for item in store.search(("a",), **how, limit=2, offset=2)] == ["2"]
        assert [store.search(("a",), **how, limit=limit) for limit in (0, -1)] == [[], []]
        assert store.search(("a",), **how, offset=3) == []
        assert store.search(("b",), **how) == []


def test_of_our_store_namespaces_are_listed_from_the_first_and_no_more_than_asked_for(path):
    with FaissStore.open(path) as store:
        for name in ("c", "a", "b"):
            store.put((name, "x"), "k", {"n": 1})
        assert store.list_namespaces(limit=2, offset=-1) == [("a", "x"), ("b", "x")]
        assert store.list_namespaces(limit=-1) == store.list_namespaces(limit=0) == []
        assert store.list_namespaces(max_depth=1, limit=2, offset=1) == [("b",), ("c",)]
        store.put(("long", "x"), "k", {"n": 1})
        assert store.list_namespaces(prefix="long") == [("long", "x")], "a text is one label"


def test_more_items_than_one_statement_names_are_got_by_their_keys(store):
    store.batch([PutOp(("a",), str(n), {"n": n}) for n in range(0, 140, 2)])
    found = store.batch([GetOp(("a",), str(n)) for n in range(140)])
    assert [item and item.value["n"] for item in found] == [None if n % 2 else n for n in range(140)]


def test_of_our_store_an_update_is_later_than_what_it_updates_and_keeps_when_it_was_made(path, monkeypatch):
    monkeypatch.setattr(rows, "now", lambda: 1_700_000_000_000_000)  # all within one tick of the clock
    with FaissStore.open(path) as store:
        store.put(("a",), "k", {"n": 0})
        first = before = store.get(("a",), "k")
        for n in range(1, 4):
            store.put(("a",), "k", {"n": n})
            after = store.get(("a",), "k")
            assert after.created_at == first.created_at
            assert after.updated_at > before.updated_at
            before = after
