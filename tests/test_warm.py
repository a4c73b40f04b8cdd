"""Searches that are answered from RAM alone: the same answers, and never old ones."""

import random
import time
from contextlib import contextmanager

import numpy as np
import pytest
from langgraph.store.base import PutOp
from letters import Letters

from questbook import FaissStore
from questbook.memory.store.row_cache import RowCache

SPACE = ("campaign", "facts")
WORDS = ["dragon", "harbour", "lantern", "oath", "ember", "tower", "silver", "wolf"]
QUERIES = ["the dragon's oath", "a silver lantern at the harbour", "ember and wolf", "nothing of it: zither"]


def index(**settings):
    return {"embed": Letters(), "dims": Letters.dims, "fields": ["text"], **settings}


def text(said, number):
    return f"{number} " + " ".join(said.choices(WORDS, k=6))


def found(store, query, **page):
    return [
        (item.key, item.value, round(item.score, 6)) for item in store.search(SPACE, query=query, **{"limit": 7} | page)
    ]


def warmed(store):
    for number in range(6):
        store.search(SPACE, query=QUERIES[number % 3], limit=20 + number)


@pytest.fixture(params=[{}, {"lexical": False}, {"weights": {"dense": 0.0, "lexical": 1.0}}], ids=str)
def settings(request):
    return request.param


@pytest.fixture(params=[2_048, 20], ids=["objects", "packed"])
def most(request, monkeypatch):
    """How many items are kept as objects; of more, they are kept as the file has them."""
    monkeypatch.setattr("questbook.memory.store.row_cache._MOST", request.param)
    return request.param


@pytest.fixture
def store(tmp_path, settings, most):
    said = random.Random(3)
    with FaissStore.open(tmp_path / "store.db", index(**settings)) as opened:
        for number in range(60):
            opened.put(SPACE, str(number), {"text": text(said, number), "tags": ["a", {"b": number}]})
        yield opened


@pytest.fixture
def without_the_file(store):
    def refused():
        raise AssertionError("the file was asked")

    @contextmanager
    def closed():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store._database, "reading", refused)
            yield

    return closed


@pytest.mark.parametrize(
    "page", [{}, {"offset": 5}, {"limit": 60}, {"limit": 100}, {"offset": 58}, {"limit": 0}], ids=str
)
def test_a_warm_search_finds_what_a_cold_one_finds_and_does_not_ask_the_file(
    store, tmp_path, settings, page, without_the_file
):
    warmed(store)
    with FaissStore.open(tmp_path / "store.db", index(**settings)) as other:
        cold = [found(other, query, **page) for query in QUERIES[:2]]
    with without_the_file():
        assert [found(store, query, **page) for query in QUERIES[:2]] == cold


@pytest.mark.parametrize("here", [True, False])
def test_what_is_written_here_or_elsewhere_is_seen_at_the_next_search(store, tmp_path, settings, here):
    said = random.Random(4)
    with FaissStore.open(tmp_path / "store.db", index(**settings)) as other:
        writer = store if here else other
        for number in range(12):
            warmed(store)
            key = str(said.randrange(70))
            if number % 3 == 2:
                writer.delete(SPACE, key)
            else:
                writer.put(SPACE, key, {"text": text(said, 100 + number)})
            with FaissStore.open(tmp_path / "store.db", index(**settings)) as fresh:
                for query in QUERIES:
                    assert found(store, query) == found(fresh, query), (number, query)
            warmed(store)
            with FaissStore.open(tmp_path / "store.db", index(**settings)) as fresh:
                for query in QUERIES:
                    assert found(store, query) == found(fresh, query), (number, query)


def test_a_new_namespace_under_the_prefix_is_searched_too(store):
    warmed(store)
    store.put((*SPACE, "below"), "new", {"text": "the dragon's oath"})
    assert "new" in [item.key for item in store.search(SPACE, query="the dragon's oath", limit=3)]


def test_whoever_asks_has_values_of_their_own(store):
    warmed(store)
    item = store.search(SPACE, query=QUERIES[1], limit=1)[0]
    kept = {"text": item.value["text"], "tags": ["a", {"b": int(item.key)}]}
    item.value["tags"][1]["b"] = "changed"
    item.value["more"] = True
    assert store.search(SPACE, query=QUERIES[1], limit=1)[0].value == kept


def test_what_expires_is_never_answered_from_ram_alone(tmp_path):
    with FaissStore.open(tmp_path / "store.db", index(), ttl={"omit_expired": True}) as store:
        store.put(SPACE, "soon", {"text": "the dragon's oath"}, ttl=0.0005)
        store.put(SPACE, "stays", {"text": "an oath"})
        warmed(store)
        time.sleep(0.05)
        assert [item.key for item in store.search(SPACE, query=QUERIES[0])] == ["stays"]


def test_an_item_without_a_vector_follows_those_that_have_one(store):
    store.put(SPACE, "unseen", {"text": "the dragon's oath"}, index=False)
    warmed(store)
    assert [item.key for item in store.search(SPACE, query=QUERIES[0], limit=100)][-1] == "unseen"


async def test_asynchronous_searches_are_warm_too(store, without_the_file):
    warmed(store)
    with without_the_file():
        assert len(await store.asearch(SPACE, query=QUERIES[0], limit=4)) == 4


@pytest.mark.parametrize("copies", [0, 9, 40])
def test_of_items_that_are_equally_near_the_older_comes_first_whichever_way_it_is_asked(tmp_path, copies):
    said = random.Random(6)
    with FaissStore.open(tmp_path / "store.db", index(lexical=False)) as store:
        for number in range(60):
            same = number % 60 < copies
            store.put(SPACE, str(number), {"text": QUERIES[0] if same else text(said, number)})
        warmed(store)
        whole = found(store, QUERIES[0], limit=60)
        for limit in (1, 5, 8, 9, 10, 30, 59):
            assert found(store, QUERIES[0], limit=limit) == whole[:limit], limit
            assert found(store, QUERIES[0], limit=10, offset=limit) == whole[limit : limit + 10], limit
        assert [key for key, *_ in whole[:copies]] == [str(number) for number in range(copies)]


@pytest.mark.parametrize("dims", [3, 8, 12, 17, 384, 1536])
def test_the_nearest_are_those_of_the_whole_order_with_the_very_same_cosines(tmp_path, dims):
    rng = np.random.default_rng(dims)
    vectors = rng.standard_normal((500, dims)).tolist()
    table = {
        "embed": lambda texts: [vectors[int(one) if one.isdigit() else 0] for one in texts],
        "dims": dims,
        "fields": ["text"],
    }
    with FaissStore.open(tmp_path / "store.db", table | {"lexical": False}) as store:
        store.batch([PutOp(SPACE, str(number), {"text": str(number)}) for number in range(400)])
        for number in range(400, 500):
            whole = {item.key: item.score for item in store.search(SPACE, query=str(number), limit=400)}
            few = {item.key: item.score for item in store.search(SPACE, query=str(number), limit=10)}
            assert list(few.items()) == list(whole.items())[:10]


def test_more_is_kept_only_within_the_budget(tmp_path):
    said = random.Random(5)
    with FaissStore.open(tmp_path / "store.db", index(), cache_bytes=20_000) as store:
        for number in range(200):
            store.put(SPACE, str(number), {"text": text(said, number)})
        warmed(store)
        assert len(store.search(SPACE, query=QUERIES[0], limit=5)) == 5
        assert store.cached_bytes <= 20_000


def test_what_does_not_fit_the_budget_is_not_read_again_and_again(tmp_path, monkeypatch):
    said, read = random.Random(5), []
    complete = RowCache._complete
    monkeypatch.setattr(RowCache, "_complete", lambda self, *given: read.append(1) or complete(self, *given))
    with FaissStore.open(tmp_path / "store.db", index(), cache_bytes=180_000) as store:
        for number in range(200):
            store.put(SPACE, str(number), {"text": text(said, number), "page": "x" * 300})
        for number in range(30):
            store.search(SPACE, query=QUERIES[number % 3], limit=20 + number)
        assert store.cached_bytes <= 180_000
    assert len(read) == 1


@pytest.mark.parametrize("often", [2, 9])
def test_what_is_written_while_words_are_looked_up_is_counted_once(tmp_path, monkeypatch, often):
    said = random.Random(7)
    monkeypatch.setattr("questbook.memory.store.postings.OFTEN", often)
    with (
        FaissStore.open(tmp_path / "store.db", index()) as store,
        FaissStore.open(tmp_path / "store.db", index()) as other,
    ):
        for number in range(60):
            store.put(SPACE, str(number), {"text": text(said, number)})
        store.search(SPACE, query="nothing", limit=3)
        reading, begun = store._warm._reading, []

        @contextmanager
        def late():
            if not begun:
                begun.append(1)
                other.put(SPACE, "late", {"text": "the dragon's oath, a wolf and a silver lantern"})
            with reading() as connection:
                yield connection

        monkeypatch.setattr(store._warm, "_reading", late)
        for _ in range(6):
            for query in QUERIES:
                with FaissStore.open(tmp_path / "store.db", index()) as fresh:
                    assert found(store, query) == found(fresh, query)
        assert begun


def test_a_query_is_embedded_once_whichever_way_it_is_answered(tmp_path, monkeypatch):
    asked = []
    embed = Letters.embed_query
    monkeypatch.setattr(Letters, "embed_query", lambda self, text: asked.append(text) or embed(self, text))
    with FaissStore.open(tmp_path / "store.db", index(lexical=False)) as store:
        store.put(SPACE, "a", {"text": "an oath"})
        store.put(SPACE, "soon", {"text": "a dragon"}, ttl=60)
        for _ in range(4):
            asked.clear()
            store.search(SPACE, query="oath", limit=1)
            store.search(SPACE, query="dragon")
            assert asked == ["oath", "dragon"]
