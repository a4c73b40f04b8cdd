"""What FaissStore promises beyond LangGraph's contract: durability, several users of one file, an expiry."""

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import blockbuster
import pytest
from beside import run_beside
from langgraph.store.base import PutOp
from stores import execute

from questbook import FaissStore, HashEmbeddings, StoreUnavailableError
from questbook.memory.errors import StoreClosedError
from questbook.memory.store import database, rows

EXAMPLE = Path(__file__).parent.parent / "examples" / "store_only.py"
TEXT = {"embed": HashEmbeddings(), "fields": ["text"]}


def test_what_was_put_is_there_after_reopening_with_its_times(path):
    with FaissStore.open(path) as store:
        store.put(("a", "b"), "k", {"text": "an egg"})
        first = store.get(("a", "b"), "k")
        store.put(("a", "b"), "k", {"text": "the dragon sleeps under the hill"})
        item = store.get(("a", "b"), "k")
    assert (item.created_at, item.updated_at > first.updated_at) == (first.created_at, True)
    assert abs((datetime.now(UTC) - first.created_at).total_seconds()) < 60
    with FaissStore.open(path) as store:
        assert store.get(("a", "b"), "k") == item
        found = store.search(("a",), query="dragon hill")
        assert found[0].key == "k"
        assert found[0].score > 0.3


def test_a_closed_store_says_so(path):
    store = FaissStore.open(path)
    store.close()
    store.close()
    for use in (lambda: store.put(("a",), "k", {}), lambda: store.get(("a",), "k"), lambda: store.search(("a",))):
        with pytest.raises(StoreClosedError):
            use()


async def test_the_event_loop_is_never_blocked(path):
    with blockbuster.blockbuster_ctx():
        async with FaissStore.open(path) as store:
            await store.aput(("a",), "k", {"text": "the dragon sleeps"}, ttl=1)
            assert (await store.aget(("a",), "k")).key == "k"
            assert (await store.asearch(("a",), query="dragon"))[0].key == "k"
            assert await store.alist_namespaces() == [("a",)]
            await store.adelete(("a",), "k")
        lazy = FaissStore.open(path)
        await lazy.aput(("a",), "k", {"text": "x"})
        await lazy.aclose()


async def test_what_takes_long_to_encode_is_encoded_in_a_thread(path, monkeypatch):
    encode, threads = rows.encode_value, []

    def noted(*args):
        threads.append(threading.current_thread())
        return encode(*args)

    monkeypatch.setattr(rows, "encode_value", noted)
    here = threading.current_thread()
    several = [PutOp(("a",), str(n), {"n": n}) for n in range(300)]
    long = [PutOp(("a",), "k", {"text": "x" * 99_999})]
    async with FaissStore.open(path, None) as store:
        for ops, is_here in [(several[:9], True), (several, False), (long, False)]:
            threads.clear()
            await store.abatch(iter(ops))
            assert {thread is here for thread in threads} == {is_here}
        assert len(await store.asearch(("a",), limit=999)) == 301


def test_several_event_loops_share_one_store(path):
    store = FaissStore.open(path)

    def work(loop):
        async def run():
            await asyncio.gather(*(store.aput(("a",), f"{loop}-{n}", {"text": f"{loop} {n}"}) for n in range(20)))
            return len(await store.asearch(("a",), query="1", limit=100))

        assert asyncio.run(run()) >= 20

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert len(store.search(("a",), query="text", limit=100)) == 80
    store.close()


def test_many_updates_do_not_pile_up(path, monkeypatch):
    monkeypatch.setattr(rows, "_MANY_REMOVALS", 150)
    with FaissStore.open(path, TEXT, synchronous="normal") as one, FaissStore.open(path, TEXT) as two:
        one.put(("a",), "still", {"text": "calm water"})
        for n in range(240):
            one.put(("a",), "k", {"text": f"version {n}"})
            if n % 80 == 0:
                two.search(("a",), query="version")
        found = two.search(("a",), query="version 239")
        assert [item.key for item in found] == ["k", "still"]
        assert found[0].score == pytest.approx(1.0)
    assert execute(path, "SELECT count(*) FROM vectors") == [(2,)]
    assert execute(path, "SELECT count(*) FROM removed")[0][0] <= 150 + 128


@pytest.mark.slow
def test_a_plain_agent_remembers_between_two_runs(path):
    run = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    assert run_beside(run, EXAMPLE, "My cat is called Biscuit", path) == "That is new to me."
    assert run_beside(run, EXAMPLE, "What is my cat called?", path) == "You once told me: My cat is called Biscuit"


def test_a_store_waits_for_the_disk_unless_it_is_told_otherwise(path):
    for options, expected in (({}, 2), ({"synchronous": "full"}, 2), ({"synchronous": "normal"}, 1)):
        with FaissStore.open(path, **options) as opened, FaissStore(path, **options) as made:
            for store in (opened, made):
                with store._database.writing() as connection:
                    assert connection.execute("PRAGMA synchronous").fetchone() == (expected,)


def test_a_compaction_that_another_program_prevents_is_reported(path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with FaissStore.open(path) as store:
        store.put(("a",), "k", {"text": "the silver heron"})
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM items").fetchone()
            store.delete(("a",), "k")
            with pytest.raises(StoreUnavailableError, match="another program is reading it"):
                store.compact()
        store.compact()
