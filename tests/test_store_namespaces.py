"""Namespaces, as LangGraph's InMemoryStore lists and matches them."""

import pytest
from langgraph.store.base import InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp
from langgraph.store.memory import InMemoryStore
from stores import keys

from questbook import FaissStore


@pytest.fixture
def store(make_store):
    return make_store(vectors=False)


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


NAMESPACES = [
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("b", "a", "f"),
    ("users", "123"),
    ("users", "456", "settings"),
    ("admin", "users", "789"),
    ("ab",),
    ("a-b", "x"),
]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"prefix": ("a", "b")},
        {"prefix": ["a", "b"]},
        {"suffix": ("f",)},
        {"prefix": ("a",), "suffix": ("f",)},
        {"prefix": ("a", "b"), "max_depth": 3},
        {"max_depth": 1},
        {"max_depth": 2, "limit": 2, "offset": 1},
        {"prefix": ("a", "b"), "limit": 2},
        {"prefix": ("a", "b"), "offset": 2},
        {"prefix": ("a", "*", "f")},
        {"suffix": ("*", "f")},
        {"prefix": ("*", "users")},
        {"prefix": ("*",)},
        {"suffix": ("b", "*", "*")},
        {"prefix": ("nonexistent",)},
        {"prefix": ("users", "123")},
        {"suffix": ("users", "*")},
        {"limit": 3, "offset": 9},
        {"limit": 3, "offset": 99},
    ],
    ids=repr,
)
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


def test_conditions_given_as_operations(store):
    for place in NAMESPACES:
        store.put(place, "k", {})
    conditions = (MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("f",)))
    assert store.batch([ListNamespacesOp(match_conditions=conditions)]) == [[("a", "b", "f"), ("a", "c", "f")]]
