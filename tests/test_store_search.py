"""Search, as LangGraph's InMemoryStore does it: filters, pages, and nearness by meaning."""

import pytest
from stores import keys


@pytest.fixture
def store(make_store):
    return make_store(vectors=False)


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
    assert store.search(("t",), filter={"author": "public' OR '1'='1"}) == []
    assert store.search(("t",), filter={"author') = 'x' OR '1'='1' --": "dummy"}) == []


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
    docs = [
        ("red apple", "red", 4.5),
        ("red car", "red", 3.0),
        ("green apple", "green", 4.0),
        ("blue car", "blue", 3.5),
    ]
    for n, (text, color, score) in enumerate(docs, 1):
        store.put(("test",), f"doc{n}", {"text": text, "color": color, "score": score})
    assert keys(store.search(("test",), query="apple", filter={"color": "red"})) == ["doc1", "doc2"]
    assert keys(store.search(("test",), query="car", filter={"color": "red"})) == ["doc2", "doc1"]
    assert keys(store.search(("test",), query="blue blue car", filter={"score": {"$gt": 3.2}}))[0] == "doc4"
    assert keys(store.search(("test",), query="apple", filter={"score": {"$gte": 4.0}, "color": "green"})) == ["doc3"]


@pytest.mark.parametrize("query", ["", None, "test " * 100, "test!@#$%^&*()", '"test" AND (', "NEAR(", "*", "--"])
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


def test_other_scripts_are_found(make_store):
    store = make_store(["text"])
    texts = ["这是中文", "これは日本語です", "이건 한국어야", "Это русский", "यह रूसी है"]
    for n, text in enumerate(texts):
        store.put(("user_123", "memories"), str(n), {"text": text})
    for n, text in enumerate(texts):
        assert store.search(("user_123", "memories"), query=text)[0].key == str(n)
