"""The store in trouble: killed writers, several processes at once, forks, a full disk."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from beside import run_beside
from stores import execute

from questbook import FaissStore

pytestmark = pytest.mark.slow  # each starts programs of its own

# Two hundred lives, forked so that none imports anything: each writes items, and says after each put that it has
# returned, until it is killed. Of each is printed what it said last.
WRITERS = """
import os, random, signal, sys, time
import questbook.memory.store.namespace_cache
from langgraph.store.base import PutOp
from questbook import FaissStore

def write(path, name, said):
    store, n = FaissStore.open(path), 0
    while True:
        if n % 5 == 4:
            store.batch([PutOp(("a",), f"{name}-{n}-{m}", {"text": f"batch {n} part {m}"}) for m in range(3)])
        else:
            store.put(("a",), f"{name}-{n}", {"text": f"{name} wrote number {n}"})
        if n % 7 == 6:
            store.put(("a",), f"{name}-{n - 6 if (n - 6) % 5 != 4 else n - 5}", {"text": f"updated {n}"})
        os.write(said, f"{n} ".encode())
        n += 1

path, rng = sys.argv[1], random.Random(2)
for life in range(200):
    heard, said = os.pipe()
    if not (child := os.fork()):
        write(path, f"w{life}", said)
    os.close(said)
    numbers = os.read(heard, 100)  # it has begun
    time.sleep(rng.random() * 0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(heard, 1000):
        numbers += more
    os.close(heard)
    print(f"w{life}", int(numbers.split()[-1]))
"""


def check_sound(path):
    """Every row has its vector and its words, and nothing has none."""
    assert execute(path, "PRAGMA integrity_check") == [("ok",)]
    execute(path, "INSERT INTO texts(texts) VALUES ('integrity-check')")
    [(items,)] = execute(path, "SELECT count(*) FROM items")
    assert execute(path, "SELECT coalesce(sum(items), 0) FROM namespaces") == [(items,)]
    assert execute(path, "SELECT count(*) FROM texts") == [(items,)]
    assert execute(path, "SELECT count(*), count(DISTINCT item) FROM vectors") == [(items, items)]
    ids = "SELECT count(*) FROM items LEFT JOIN vectors ON vectors.id = first_vector WHERE vectors.item IS NOT items.id"
    assert execute(path, ids) == [(0,)], "an item without its vector"


def test_two_hundred_killed_writers_lose_nothing_that_returned(path):
    promised = {name: int(last) for name, last in map(str.split, run_beside(WRITERS, path).splitlines())}
    assert len(promised) == 200
    assert max(promised.values()) > 5, "no life was long enough"
    with FaissStore.open(path) as store:
        for name, last in promised.items():
            for n in range(last + 1):
                wanted = [f"{name}-{n}-{m}" for m in range(3)] if n % 5 == 4 else [f"{name}-{n}"]
                assert all(store.get(("a",), key) for key in wanted), f"{name}-{n} had returned and is lost"
        keys = {item.key for item in store.search(("a",), limit=10**6)}
        for key in keys:
            if key.count("-") == 2:
                batch = key.rsplit("-", 1)[0]
                assert {f"{batch}-{m}" for m in range(3)} <= keys, f"{batch} is there by half"
        found = store.search(("a",), query="wrote number", limit=10**6)
        assert {item.key for item in found} == keys
    check_sound(path)


def test_processes_write_at_once_and_lose_nothing(tmp_path):
    path = tmp_path / "store.db"
    code = """
import sys
from questbook import FaissStore
path, name = sys.argv[1:]
with FaissStore.open(path) as store:
    for n in range(20):
        store.put(("a", name), str(n), {"text": f"{name} number {n}"})
        store.put(("shared",), "one", {"text": f"{name} {n}"})
        store.put(("shared",), f"{name}-{n}", {"text": f"shared {n}"})
        assert store.search(("a", name), query=f"number {n}", limit=1)[0].key == str(n)
"""
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda n: run_beside(code, path, f"p{n}"), range(3)))
    with FaissStore.open(path) as store:
        assert len(store.search(("a",), query="number", limit=1000)) == 60
        assert len(store.search(("shared",), limit=1000)) == 61, "one key, one item"
    check_sound(path)


def test_sixty_four_threads(tmp_path):
    store = FaissStore.open(tmp_path / "store.db")

    def work(name):
        for n in range(3):
            store.put(("a", str(name % 4)), f"{name}-{n}", {"text": f"thread {name} wrote {n}"})
            store.put(("same",), "key", {"text": f"{name} {n}"})
            found = store.search(("a",), query=f"thread {name} wrote {n}", limit=400)
            assert f"{name}-{n}" in {item.key for item in found}
            assert store.get(("a", str(name % 4)), f"{name}-{n}").value["text"] == f"thread {name} wrote {n}"

    with ThreadPoolExecutor(64) as threads:
        list(threads.map(work, range(64)))
    assert len(store.search(("a",), query="thread", limit=1000)) == 64 * 3
    store.close()
    check_sound(tmp_path / "store.db")


def test_a_store_survives_a_fork(tmp_path):
    code = """
import os, sys
from questbook import FaissStore
store = FaissStore.open(sys.argv[1])
store.put(("a",), "before", {"text": "x"})
store.search(("a",), query="x")
child = os.fork()
if child == 0:
    store.put(("a",), "child", {"text": "y"})
    assert len(store.search(("a",), query="x")) == 2
    store.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
store.put(("a",), "after", {"text": "z"})
assert len(store.search(("a",), query="x")) == 3
store.close()
"""
    run_beside(code, tmp_path / "store.db")
    with FaissStore.open(tmp_path / "store.db") as store:
        assert {item.key for item in store.search(("a",))} == {"before", "child", "after"}


def test_a_process_ends_although_its_store_was_never_closed(tmp_path):
    code = """
import sys
from questbook import FaissStore
store = FaissStore.open(sys.argv[1], ttl={"sweep_interval_minutes": 1})
store.start_ttl_sweeper()
store.put(("a",), "k", {"text": "x"})
store.search(("a",), query="x")
"""
    run_beside(code, tmp_path / "store.db")
    with FaissStore.open(tmp_path / "store.db") as store:
        assert store.get(("a",), "k").value == {"text": "x"}


def test_a_full_disk_is_named_and_writes_nothing(tmp_path):
    code = """
import resource, signal, sys
from questbook import FaissStore, StoreUnavailableError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = FaissStore.open(sys.argv[1])
store.put(("a",), "before", {"text": "x"})
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
written = 0
try:
    for n in range(1000):
        store.put(("a",), f"k{n}", {"text": "long " * 2000})
        written += 1
except StoreUnavailableError as error:
    print(written, str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert len(store.search(("a",), limit=10000)) == written + 1
store.put(("a",), "after", {"text": "y"})
store.close()
"""
    said = run_beside(code, tmp_path / "store.db")
    assert "cannot read or write" in said
    assert "room on its disk" in said
    check_sound(tmp_path / "store.db")


def test_another_process_that_holds_the_file_is_waited_for(tmp_path):
    path = tmp_path / "store.db"
    with FaissStore.open(path) as store:
        holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.5, holder.execute, ["ROLLBACK"])
        release.start()
        store.put(("a",), "k", {"text": "x"})
        assert not holder.in_transaction, "it was written while another held the file"
        assert store.get(("a",), "k").value == {"text": "x"}
        release.join()
        holder.close()
