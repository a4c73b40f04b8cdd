"""What LangGraph promises of every store, held against its InMemoryStore and ours alike."""

import asyncio

import pytest
from langgraph.store.base import GetOp, Item, ListNamespacesOp, PutOp, SearchOp
from letters import Letters
from stores import keys

from questbook import StoreError


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
    assert (
        store.batch(
            [
                PutOp(("a",), "k", {"n": 1}),
                PutOp(("a",), "k", {"n": 2}),
                PutOp(("a",), "gone", {"n": 1}),
                PutOp(("a",), "gone", None),
            ]
        )
        == [None] * 4
    )
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
    value = {
        "text": "“quoted” 🐉 \u0000 \ud800",
        "n": 2**70,
        "f": 0.1,
        "deep": {"list": [1, [2, {"x": None}]], "": ""},
        "on": True,
        "inf": float("inf"),
    }
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
