"""A store whose file is damaged or may not be written: what is wrong is named, the rest is found."""

import sqlite3

import pytest

from questbook import FaissStore, StoreUnavailableError
from questbook.memory.errors import CorruptStoreError


@pytest.fixture
def dragons(path):
    """The file of a store with two items, "bad" and "good"."""
    with FaissStore.open(path) as store:
        for key in ("bad", "good"):
            store.put(("a",), key, {"text": f"{key} dragon"})
    return path


def test_a_damaged_page_is_named_and_left_as_it_is(path):
    with FaissStore.open(path) as store:
        for n in range(200):
            store.put(("a",), str(n), {"text": f"memory {n} " * 20})
    content = bytearray(path.read_bytes())
    for page in range(4, len(content) // 4096, 2):
        content[page * 4096 : page * 4096 + 4096] = b"\xff" * 4096
    path.write_bytes(content)

    def read_everything():
        with FaissStore.open(path) as store:
            store.search(("a",), query="memory", limit=200)
            store.search(("a",), limit=200)

    with pytest.raises(CorruptStoreError, match=r"store\.db is damaged: expected.*left as it is"):
        read_everything()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET vector = x'00' WHERE item = 4294967297",
        "DELETE FROM vectors WHERE item = 4294967297",
    ],
)
def test_a_damaged_vector_stops_no_search(dragons, damage):
    raw = sqlite3.connect(dragons)
    assert raw.execute(damage).rowcount == 1
    raw.commit()
    raw.close()
    with FaissStore.open(dragons) as store:
        found = {item.key: item.score for item in store.search(("a",), query="dragon")}
        assert found.pop("bad") is None, "its words still find it"
        assert list(found) == ["good"]
        store.put(("a",), "bad", {"text": "bad dragon"})
        assert {item.score is None for item in store.search(("a",), query="dragon")} == {False}


def test_a_damaged_value_is_named_and_stops_no_search(dragons, caplog):
    raw = sqlite3.connect(dragons)
    raw.execute("UPDATE items SET value = '{' WHERE key = 'bad'")
    raw.commit()
    raw.close()
    with FaissStore.open(dragons) as store:
        assert [item.key for item in store.search(("a",), query="dragon")] == ["good"]
        assert [item.key for item in store.search(("a",), filter={"text": {"$ne": "x"}})] == ["good"]
        assert "'bad' in ('a',) is damaged" in caplog.text
        with pytest.raises(
            CorruptStoreError, match=r"'bad' in \('a',\) is damaged: expected a JSON object.*put or delete it"
        ):
            store.get(("a",), "bad")
        store.delete(("a",), "bad")
        assert store.get(("a",), "bad") is None


def test_a_file_that_may_not_be_written_is_named(as_nobody):
    def check(directory):
        path = directory / "store.db"
        FaissStore.open(path).close()
        path.chmod(0o400)
        with pytest.raises(StoreUnavailableError, match=r"store\.db.*Permission denied.*expected"):
            FaissStore.open(path)

    as_nobody(check)
