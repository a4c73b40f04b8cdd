"""A thread whose transaction began before a write leaves nothing old in RAM for those that began after it."""

import threading

import pytest

from questbook import FaissStore, HashEmbeddings
from questbook.memory.store import rows
from questbook.memory.store.any_store import items_under

SPACE = ("u",)
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


def test_a_prefix_may_be_a_list_each_time(tmp_path):
    with opened(tmp_path) as store:
        store.put(SPACE, "k", {"text": "a dragon"})
        assert [len(store.search(["u"], query="dragon")) for _ in range(5)] == [1] * 5


async def test_what_a_store_gives_in_short_pages_is_gone_through_to_the_end(tmp_path):
    class Short(FaissStore):
        async def abatch(self, ops):
            return await super().abatch([op._replace(limit=min(op.limit, 100)) for op in ops])

    async with Short.open(tmp_path / "store.db") as store:
        for number in range(250):
            store.put(SPACE, str(number), {"n": number})
        assert len([item async for item in items_under(store, SPACE)]) == 250
