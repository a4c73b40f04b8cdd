"""Snapshots of a store's vectors: used with the rows since, never trusted, never needed."""

from pathlib import Path

import pytest
from langgraph.store.base import PutOp

from questbook import FaissStore, HashEmbeddings
from questbook.memory.store import vectors
from questbook.memory.store.snapshots import snapshot_path

ROOT = Path(__file__).parent.parent


def answers(path):
    with FaissStore.open(path) as store:
        queries = ("later wyvern", "changed basilisk", "memory of day 4", "memory of day 17")
        return [[(i.key, round(i.score, 5)) for i in store.search(("a",), query=q, limit=99)] for q in queries]


def written(path, monkeypatch):
    """Write a store whose vectors have a snapshot; return its answers."""
    monkeypatch.setattr(vectors, "SNAPSHOT_VECTORS", 10)
    with FaissStore.open(path) as store:
        store.batch([PutOp(("a",), str(n), {"text": f"memory of day {n}"}) for n in range(30)])
        store.search(("a",), query="day")
    return answers(path)


@pytest.fixture
def snapshotted(path, monkeypatch):
    """A store with a snapshot, and rows that came after it."""
    written(path, monkeypatch)
    with FaissStore.open(path) as store:
        store.put(("a",), "later", {"text": "the later wyvern"})
        store.put(("a",), "3", {"text": "the changed basilisk"})
        store.delete(("a",), "4")
    return path


def test_a_snapshot_is_used_with_the_rows_since(snapshotted, monkeypatch):
    expected = answers(snapshotted)
    assert [found[0][0] for found in expected[:2]] == ["later", "3"]
    assert "4" not in {key for key, _ in expected[2]}
    read = []
    monkeypatch.setattr(vectors, "read_snapshot", lambda *given: read.append(given))
    assert answers(snapshotted) == expected, "the same without it"
    assert read


@pytest.mark.parametrize("suffix", [".faiss", ".json", ".ids.npy"])
@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "gone", "garbage"])
@pytest.mark.slow
def test_a_damaged_snapshot_costs_time_only(snapshotted, suffix, damage, monkeypatch):
    expected = answers(snapshotted)
    monkeypatch.setattr(vectors, "SNAPSHOT_VECTORS", 10**9)  # leave it damaged
    file = next(snapshot_path(snapshotted, 1).parent.glob(f"*{suffix}"))
    content = bytearray(file.read_bytes())
    if damage == "gone":
        file.unlink()
    else:
        content[len(content) // 2] ^= 255
        file.write_bytes(
            {"cut": content[: len(content) // 2], "flip": content, "empty": b"", "garbage": b"\x80\x04garbage"}[damage]
        )
    assert answers(snapshotted) == expected


def test_a_snapshot_of_another_database_is_not_used(snapshotted, tmp_path):
    other = tmp_path / "other.db"
    index = {"embed": HashEmbeddings(), "fields": ["text"]}
    with FaissStore.open(other, index) as store:
        for n in range(30):
            store.put(("a",), str(n), {"text": f"something else {n}"})
    snapshot_path(snapshotted, 1).parent.rename(snapshot_path(other, 1).parent)
    with FaissStore.open(other, index) as store:
        assert store.search(("a",), query="something else 7")[0].score == pytest.approx(1.0)


def test_nothing_is_pickled(snapshotted):
    for file in snapshot_path(snapshotted, 1).parent.iterdir():
        assert not file.read_bytes().startswith(b"\x80")
    for source in (ROOT / "memory").rglob("*.py"):
        text = source.read_text()
        assert "import pickle" not in text or source.name == "langchain_index.py"  # its unpickler can do nothing
        assert "pickle.load" not in text
        assert "pickle.dump" not in text
        assert "eval(" not in text


@pytest.mark.parametrize("suffix", [".faiss", ".ids.npy", ".json", ".part"])
def test_a_snapshot_is_not_written_through_a_link(path, tmp_path, monkeypatch, suffix):
    foreign = tmp_path / "foreign"
    foreign.write_text("theirs")
    directory = snapshot_path(path, 1).parent
    directory.mkdir()
    (directory / f"1{suffix}").symlink_to(foreign)
    expected = written(path, monkeypatch)
    assert foreign.read_text() == "theirs"
    assert answers(path) == expected
    assert all(file.stat().st_mode & 0o777 == 0o600 and not file.is_symlink() for file in directory.iterdir())
    assert {file.name for file in directory.iterdir()} == {"1.faiss", "1.ids.npy", "1.json"}


def test_a_directory_that_is_a_link_gets_no_snapshot(path, tmp_path, monkeypatch):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    directory = snapshot_path(path, 1).parent
    directory.symlink_to(foreign)
    expected = written(path, monkeypatch)
    assert list(foreign.iterdir()) == []
    assert answers(path) == expected
    with FaissStore.open(path) as store:
        store.compact()
    assert not directory.is_symlink()
    assert foreign.is_dir()
    assert answers(path) == expected


def test_a_snapshot_that_is_newer_than_a_restored_database_is_not_believed(path, monkeypatch):
    expected = written(path, monkeypatch)
    copy = path.read_bytes()
    monkeypatch.setattr(vectors, "SNAPSHOT_VECTORS", 10)
    with FaissStore.open(path) as store:
        store.batch([PutOp(("a",), str(n), {"text": f"the later wyvern of day {n}"}) for n in range(20, 60)])
        store.search(("a",), query="day")
    for file in path.parent.glob(f"{path.name}-*"):
        file.unlink()
    path.write_bytes(copy)
    assert answers(path) == expected
