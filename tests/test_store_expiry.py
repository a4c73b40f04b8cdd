"""Items that expire: when they are gone, what reading them changes, the sweeper, and settings that are refused."""

import math
import sqlite3
import threading
import time
from types import SimpleNamespace

import pytest

from questbook import FaissStore
from questbook.memory.errors import StoreConfigError, StoreUnavailableError, UnstorableValueError
from questbook.memory.store import rows

NAN = math.nan


@pytest.fixture
def store(path):
    with FaissStore.open(path) as opened:
        opened.put(("a",), "k", {"text": "dragon"})
        yield opened


def ends(path):
    with sqlite3.connect(path) as database:
        return dict(database.execute("SELECT key, expires_at FROM items"))


def wait_until(is_so):
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_reading_starts_the_time_to_live_again_unless_it_is_asked_not_to(path):
    def ends():
        with sqlite3.connect(path) as raw:
            return dict(raw.execute("SELECT key, expires_at FROM items"))

    with FaissStore.open(path, ttl={"default_ttl": 60, "refresh_on_read": True}) as store:
        for key in ("got", "found", "left", "not refreshed"):
            store.put(("a",), key, {"text": key})
        store.put(("a",), "never", {"text": "x"}, ttl=None)
        before = ends()
        assert before["never"] is None
        assert abs(before["got"] / 1e6 - time.time() - 3600) < 60
        store.get(("a",), "got")
        store.get(("a",), "not refreshed", refresh_ttl=False)
        store.search(("a",), filter={"text": "found"})
        after = ends()
    assert {key for key in before if before[key] != after[key]} == {"got", "found"}
    assert all(0 < after[key] - before[key] < 60e6 for key in ("got", "found")), "an hour from the reading on"


@pytest.mark.parametrize("omit", [False, True])
def test_expired_items_are_shown_until_swept_unless_omitted(path, omit):
    with FaissStore.open(path, ttl={"omit_expired": omit}) as store:
        store.put(("a",), "k", {"text": "x"}, ttl=0)
        store.put(("a",), "without a vector", {"n": 1}, ttl=-1, index=False)
        asked = [{"query": "x"}, {}, {"filter": {"text": {"$ne": 7}}}, {"query": "x", "filter": {"text": {"$ne": 7}}}]
        for how in asked:
            assert len(store.search(("a",), **how, refresh_ttl=False)) == (0 if omit else 2), how
        assert (store.get(("a",), "k", refresh_ttl=False) is None) is omit
        assert (store.list_namespaces() == []) is omit
        store.put(("a",), "for ever", {"text": "x"}, ttl=None)
        assert (store.sweep_ttl(), store.sweep_ttl()) == (2, 0)
        assert [item.key for item in store.search(("a",), query="x")] == ["for ever"]


def test_the_sweeper_sweeps_and_stops(path):
    with FaissStore.open(path, ttl={"sweep_interval_minutes": 1}) as store:
        store.put(("a",), "k", {"text": "x"}, ttl=0)
        future = store.start_ttl_sweeper(0.001)
        wait_until(lambda: store.get(("a",), "k", refresh_ttl=False) is None)
        assert store.stop_ttl_sweeper(30)
        assert future.done()
        store.start_ttl_sweeper(0.001).cancel()
        wait_until(lambda: all(thread.name != "questbook-sweeper" for thread in threading.enumerate()))


def test_sweeping_happens_beside_other_writes(path):
    with FaissStore.open(path, ttl={"sweep_interval_minutes": 1 / 6000}) as store:
        store.put(("a",), "k", {"text": "x"}, ttl=0)
        time.sleep(0.02)
        store.put(("a",), "other", {"text": "x"})
        assert store.get(("a",), "k") is None


def test_beside_writes_expired_items_are_swept_once_in_an_interval(path, monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("questbook.memory.store.faiss_store.time", clock)
    with FaissStore.open(path, ttl={"sweep_interval_minutes": 1}) as store:
        for begun in (0, 60):
            store.put(("a",), "k", {"text": "x"}, ttl=0)
            for seconds, there in ((59, True), (60, False)):
                clock.now = begun + seconds
                store.put(("a",), "other", {"text": "x"})
                assert (store.get(("a",), "k", refresh_ttl=False) is not None) == there


def test_a_process_that_lives_for_a_moment_sweeps_with_its_first_write_but_not_what_it_writes(path):
    with FaissStore.open(path) as store:
        store.put(("a",), "k", {"text": "x"}, ttl=0)
        assert store.get(("a",), "k", refresh_ttl=False) is not None
    with FaissStore.open(path) as store:
        assert store.get(("a",), "k", refresh_ttl=False) is not None
        store.put(("a",), "other", {"text": "x"})
        assert store.get(("a",), "k") is None


def test_closing_a_store_ends_its_sweeper(path):
    with FaissStore.open(path) as store:
        future = store.start_ttl_sweeper(1)
    assert future.done()


@pytest.mark.parametrize("minutes", [NAN, math.inf, -math.inf, 1e300, 1e11, "x", "5", True, [1]])
async def test_a_time_to_live_that_is_none_is_refused(store, minutes):
    with pytest.raises(UnstorableValueError, match="minutes"):
        store.put(("a",), "new", {"text": "tower"}, ttl=minutes)
    with pytest.raises(UnstorableValueError, match="minutes"):
        await store.aput(("a",), "k", {"text": "tower"}, ttl=minutes)
    assert [item.value for item in store.search(("a",))] == [{"text": "dragon"}]


@pytest.mark.parametrize("minutes", [1e10, 5, 0.01, None])
def test_a_time_to_live_may_be_long(store, minutes):
    store.put(("a",), "new", {"text": "tower"}, ttl=minutes)
    assert store.get(("a",), "new", refresh_ttl=True).value == {"text": "tower"}


WRONG = [("default_ttl", minutes) for minutes in (NAN, "x", 1e300)]
WRONG += [("sweep_interval_minutes", minutes) for minutes in (NAN, "x", 1e300, 0)] + [("default_tll", 60)]


@pytest.mark.parametrize("ttl", ["60", *({setting: minutes} for setting, minutes in WRONG)], ids=repr)
def test_settings_of_times_to_live_that_are_none_are_refused(path, ttl):
    with pytest.raises(
        StoreConfigError, match=r"ttl must|ttl\['default_tll'\]: expected refresh_on_read|default_ttl|minutes"
    ):
        FaissStore.open(path, ttl=ttl)
    assert not path.exists()


@pytest.mark.parametrize("minutes", [NAN, math.inf, -1, 0, 1e9, "x"])
def test_a_sweeper_does_not_start_with_an_interval_that_is_none(store, minutes):
    with pytest.raises(StoreConfigError, match="minutes"):
        store.start_ttl_sweeper(minutes)
    assert store._sweeper._thread is None


def test_an_item_lives_to_the_end_of_its_time(path, monkeypatch):
    begun = 1_700_000_000_000_000  # microseconds
    with FaissStore.open(path, ttl={"omit_expired": True, "refresh_on_read": False}) as store:
        for passed, there in ((0, True), (59_999_999, True), (60_000_000, False)):
            monkeypatch.setattr(rows, "now", lambda: begun)
            store.put(("a",), "k", {"text": "dragon"}, ttl=1)
            monkeypatch.setattr(rows, "now", lambda now=begun + passed: now)
            assert (store.get(("a",), "k") is not None) == there
            assert bool(store.search(("a",))) == bool(store.search(("a",), query="dragon")) == there
            assert bool(store.list_namespaces()) == there


def test_reading_a_page_starts_the_time_to_live_of_each_of_its_items_again(path):
    with FaissStore.open(path) as store:
        for key in "abc":
            store.put(("a",), key, {"text": "dragon"}, ttl=10)
        before = ends(path)
        store.search(("a",), query="dragon", limit=2)
        assert sorted(key for key, end in ends(path).items() if end > before[key]) == ["a", "b"]


def test_what_never_expires_is_neither_omitted_nor_given_an_end_by_reading(path):
    with FaissStore.open(path, ttl={"default_ttl": 60, "refresh_on_read": True, "omit_expired": True}) as store:
        store.put(("a",), "never", {"text": "x"}, ttl=None)
        store.put(("a",), "soon", {"text": "x"})
        for _ in range(2):
            assert [item.key for item in store.search(("a",), query="x", refresh_ttl=True)] == ["never", "soon"]
        store.put(("a",), "soon", {"text": "x"}, ttl=None)
        with sqlite3.connect(path) as raw:
            assert raw.execute("SELECT expires_at, ttl_minutes FROM items").fetchall() == [(None, None)] * 2


def test_a_sweeper_that_cannot_sweep_says_so_and_goes_on(path, caplog, monkeypatch):
    with FaissStore.open(path) as store:
        swept = []

        def sweep():
            swept.append(True)
            if len(swept) == 1:
                raise StoreUnavailableError("the disk is full")
            return 3

        monkeypatch.setattr(store._sweeper, "_sweep", sweep)
        with caplog.at_level("INFO"):
            future = store.start_ttl_sweeper(0.0001)
            wait_until(lambda: len(swept) > 1)
            assert store.stop_ttl_sweeper(30)
        assert "expired items were not deleted: the disk is full" in caplog.text
        assert "deleted 3 expired items" in caplog.text
        assert future.done()


def test_one_sweeper_is_enough_and_without_one_there_is_nothing_to_stop(store):
    assert store.stop_ttl_sweeper()
    store.start_ttl_sweeper(60)
    first = store._sweeper._thread
    store.start_ttl_sweeper(60)
    assert store._sweeper._thread is first
    assert store.stop_ttl_sweeper(30)
    assert not first.is_alive()


@pytest.mark.parametrize(("ttl", "minutes"), [(None, 5), ({"sweep_interval_minutes": 2}, 2), ({"default_ttl": 9}, 5)])
def test_without_an_interval_expired_items_are_swept_every_five_minutes(path, ttl, minutes):
    with FaissStore.open(path, ttl=ttl) as store:
        assert store._sweeper.seconds == 60 * minutes
