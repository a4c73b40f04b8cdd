"""What the store refuses, it refuses with an error of its own, before anything is searched or written."""

import math

import pytest

from questbook import FaissStore
from questbook.memory.errors import BadQueryError, StoreConfigError, UnstorableValueError


@pytest.fixture
def store(tmp_path):
    with FaissStore.open(tmp_path / "store.db") as opened:
        opened.put(("a",), "k", {"text": "dragon", "n": 1})
        yield opened


def nested(levels, wrap):
    condition = 1
    for _ in range(levels):
        condition = wrap(condition)
    return condition


@pytest.mark.parametrize(
    "wanted",
    [
        "text",
        7,
        [],
        [{"n": 1}],
        {1: 2},
        {"a": {1: 2}},
        {"$or": [{1: 2}]},
        {"n": {"$in": [1]}},
        nested(600, lambda inner: {"a": inner}),
        nested(100_000, lambda inner: {"a": inner}),
        {"a": nested(600, lambda inner: [inner])},
        {"a": {"$eq": nested(600, lambda inner: {"a": inner})}},
        nested(600, lambda inner: {"$or": [{"n": 1}, inner if isinstance(inner, dict) else {}]}),
    ],
    ids=range(13),
)
@pytest.mark.parametrize("query", [None, "dragon"])
async def test_a_filter_that_is_none_is_refused(store, wanted, query):
    with pytest.raises(BadQueryError):
        store.search(("a",), query=query, filter=wanted)
    with pytest.raises(BadQueryError):
        await store.asearch(("a",), query=query, filter=wanted)
    assert [item.key for item in store.search(("a",), query=query, filter={"n": 1})] == ["k"]


def test_a_filter_as_deep_as_any_that_makes_sense_is_none_too_deep(store):
    assert store.search(("a",), filter=nested(40, lambda inner: {"a": inner})) == []
    alternatives = nested(20, lambda inner: {"$or": [{"n": 2}, inner if inner != 1 else {"n": 1}]})
    assert [item.key for item in store.search(("a",), filter=alternatives)] == ["k"]


@pytest.mark.parametrize("minutes", [math.nan, math.inf, -math.inf, 1e300, 1e11, "x", "5", True, [1]])
async def test_a_time_to_live_that_is_none_is_refused(store, minutes):
    with pytest.raises(UnstorableValueError, match="minutes"):
        store.put(("a",), "new", {"text": "tower"}, ttl=minutes)
    with pytest.raises(UnstorableValueError, match="minutes"):
        await store.aput(("a",), "k", {"text": "tower"}, ttl=minutes)
    assert store.get(("a",), "new") is None
    assert store.get(("a",), "k").value["text"] == "dragon"


@pytest.mark.parametrize("minutes", [1e10, 5, 0.01, None])
def test_a_time_to_live_may_be_long(store, minutes):
    store.put(("a",), "new", {"text": "tower"}, ttl=minutes)
    assert store.get(("a",), "new", refresh_ttl=True).value == {"text": "tower"}


@pytest.mark.parametrize(
    "ttl",
    [
        "60",
        {"default_ttl": math.nan},
        {"default_ttl": "x"},
        {"default_ttl": 1e300},
        {"sweep_interval_minutes": math.nan},
        {"sweep_interval_minutes": 0},
        {"sweep_interval_minutes": "x"},
        {"sweep_interval_minutes": 1e300},
    ],
)
def test_settings_of_times_to_live_that_are_none_are_refused(tmp_path, ttl):
    with pytest.raises(StoreConfigError, match=r"ttl|minutes"):
        FaissStore.open(tmp_path / "store.db", ttl=ttl)
    assert not (tmp_path / "store.db").exists()


@pytest.mark.parametrize("minutes", [math.nan, math.inf, -1, 0, 1e9, "x"])
def test_a_sweeper_does_not_start_with_an_interval_that_is_none(store, minutes):
    with pytest.raises(StoreConfigError, match="minutes"):
        store.start_ttl_sweeper(minutes)
    assert store._sweeper._thread is None
