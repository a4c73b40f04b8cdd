"""Several programs on one file: whatever this process opens, looks at or copies, it keeps SQLite's locks on it."""

import errno
import os
import signal
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from beside import count_rows, keeps_wal, run_beside, start_beside

from questbook import FaissStore
from questbook.memory.errors import ImportFailedError, StoreUnavailableError
from questbook.memory.ltm.extension_files import read_database
from questbook.memory.store.database_file import create_file, list_keys, read_files, read_header, read_item, records

PUT = """
import sys
from questbook import FaissStore
with FaissStore.open(sys.argv[1]) as store:
    store.put(("beside",), "k", {"text": "put by another process"})
"""
KEYS = """
import sys
from questbook import FaissStore
with FaissStore.open(sys.argv[1]) as store:
    print(*(item.key for item in store.search(("a",), limit=100)), *(item.key for item in store.search(("beside",))))
"""
# Opens two stores of one file, then puts an item for each line that it is sent, and says so.
TWO_STORES = """
import sys
from questbook import FaissStore
stores = [FaissStore.open(sys.argv[1]), FaissStore.open(sys.argv[1])]
for number, _ in enumerate(sys.stdin):
    stores[0].put(("a",), str(number), {"text": "said"})
    print(number, flush=True)
"""


def import_it(path):
    """Name a file of ours for one of another program."""
    with pytest.raises(ImportFailedError, match="no database of the extension"):
        read_database(path)


def numbers(until):
    return [str(number) for number in range(until)]


def test_what_two_stores_of_a_process_put_outlives_another_process_that_ends(path):
    with FaissStore.open(path) as store, FaissStore.open(path):
        store.put(("a",), "0", {"text": "first"})
        assert keeps_wal(path), "deleted under an open store"
        for number in range(1, 21):
            store.put(("a",), str(number), {"text": "said"})
        assert count_rows(path, "items") == 21
    assert count_rows(path, "items") == 21


@pytest.mark.slow
def test_a_killed_process_loses_nothing_that_it_acknowledged(path):
    with start_beside(TWO_STORES, path, file="-c") as process:

        def put():
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        assert put() == "0"
        run_beside(PUT, path)
        assert [put() for _ in range(20)] == numbers(21)[1:]
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    assert sorted(run_beside(KEYS, path).split()) == sorted([*numbers(21), "k"])


@pytest.mark.parametrize(
    "look",
    [
        create_file, read_header, lambda path: FaissStore.open(path).close(),
        lambda path: FaissStore.open(path.parent / "link").close(),
        lambda path: list(read_files(path.parent.glob(f"{path.name}*"))),
        lambda path: (records(path, None, "a", "k"), read_item(path, ("a",), "k"), list_keys(path, ("a",))), import_it,
    ],
)  # fmt: skip
def test_looking_at_an_open_file_keeps_its_locks(path, look):
    (path.parent / "link").symlink_to(path)
    with FaissStore.open(path) as store:
        store.put(("a",), "k", {"text": "first"})
        assert keeps_wal(path)
        look(path)
        assert keeps_wal(path)


def test_threads_that_create_one_file_at_once_make_one_private_file(path):
    with ThreadPoolExecutor(8) as threads:
        stores = list(threads.map(lambda _: FaissStore.open(path), range(8)))
    stores[0].put(("a",), "k", {})
    assert all(store.get(("a",), "k") for store in stores)
    assert keeps_wal(path)
    assert {file.name for file in path.parent.iterdir()} == {path.name, f"{path.name}-wal", f"{path.name}-shm"}
    for store in stores:
        store.close()


def test_a_link_to_no_file_creates_it(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real.db")
    FaissStore.open(tmp_path / "link").close()
    assert stat.S_IMODE((tmp_path / "real.db").stat().st_mode) == 0o600


def test_a_file_system_without_hard_links_has_stores_too(path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("questbook.memory.store.database_file.os.link", refuse)
    with FaissStore.open(path) as store:
        store.put(("a",), "k", {})
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreUnavailableError, match=r"pipe.*Invalid argument.*choose another path"):
        FaissStore.open(tmp_path / "pipe")


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_nothing_appears_beside_a_foreign_database_that_is_looked_at(tmp_path, mode):
    file = tmp_path / "theirs.db"
    with sqlite3.connect(file) as theirs:
        theirs.execute(f"PRAGMA journal_mode = {mode}")
        theirs.execute("PRAGMA application_id = 77")
        theirs.execute("CREATE TABLE theirs (x)")
    theirs.close()
    before = file.read_bytes()
    assert read_header(file) == (77, 4096)
    assert (list(tmp_path.iterdir()), file.read_bytes()) == ([file], before)


def test_a_new_store_whose_first_page_is_still_in_the_wal_is_ours(path):
    with FaissStore.open(path) as store:
        store.put(("a",), "0", {"text": "first"})
        with sqlite3.connect(path) as reader:  # keeps the latest first page from being copied, and no other page
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM items").fetchone()
            store.put(("a",), "1", {"text": "word " * 9_000})
            with sqlite3.connect(path) as other:
                other.execute("PRAGMA wal_checkpoint(PASSIVE)")
            other.close()
            assert path.stat().st_size > 4096
            assert path.read_bytes()[68:72] == bytes(4), "as this test needs it"
            with FaissStore.open(path) as second:
                assert second.get(("a",), "1")
        reader.close()


def test_files_are_read_in_blocks_a_missing_one_is_empty_and_what_fails_is_said(tmp_path):
    first, second, odd = tmp_path / "first", tmp_path / "second", tmp_path / os.fsdecode(b"odd \xff\n")
    first.write_bytes(b"x" * 10)
    odd.write_bytes(b"y")
    blocks = list(read_files([first, second, odd], 4))
    assert blocks == [(first, b"x" * 4), (first, b"x" * 4), (first, b"xx"), (odd, b"y")]
    assert next(read_files([first], 4)) == (first, b"xxxx"), "and who reads no further leaves no process"
    with pytest.raises(OSError, match="Is a directory"):
        list(read_files([tmp_path]))


def test_a_forked_process_reads_through_a_connection_of_its_own(path, monkeypatch):
    with FaissStore.open(path) as store:
        store.put(("a",), "k", {"text": "put before the fork"})
        store.search(("a",), query="fork")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                opened, connect = [], sqlite3.connect
                note = lambda file, **how: opened.append(str(file)) or connect(file, **how)  # noqa: E731
                monkeypatch.setattr(sqlite3, "connect", note)
                status = store.get(("a",), "k") is None or str(path) not in opened
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert store.get(("a",), "k").value == {"text": "put before the fork"}
