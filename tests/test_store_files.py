"""The file of a store: made where it is asked for, private, and refused by name if it is none of ours."""

import sqlite3
import stat

import pytest

from questbook import FaissStore, StoreUnavailableError
from questbook.memory.errors import CorruptStoreError, StoreConfigError


def test_a_directory_holds_the_file(tmp_path):
    with FaissStore.open(tmp_path) as store:
        store.put(("a",), "k", {})
    assert (tmp_path / "store.sqlite3").exists()


def test_a_mistyped_path_makes_no_directory(tmp_path):
    with pytest.raises(StoreUnavailableError, match=r"dta/x\.db.*No such file or directory.*make the directory"):
        FaissStore.open(tmp_path / "dta" / "x.db")
    assert list(tmp_path.iterdir()) == []


def test_files_are_private(path):
    with FaissStore.open(path) as store:
        store.put(("a",), "k", {"text": "secret"})
        store.search(("a",), query="secret")
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_an_unwritable_directory_is_named(as_nobody):
    def check(directory):
        directory.chmod(0o500)
        with pytest.raises(StoreUnavailableError, match=r"x\.db.*Permission denied.*expected.*choose another path"):
            FaissStore.open(directory / "x.db")

    as_nobody(check)


def test_a_path_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailableError, match=r"file/x\.db.*expected.*choose another path") as caught:
        FaissStore.open(tmp_path / "file" / "x.db")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\x00" + b"\x07" * 5000, b"x"])
def test_a_file_that_is_no_store_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(CorruptStoreError, match=r"store\.db.*expected.*(path|copy)") as caught:
        FaissStore.open(path)
    assert path.read_bytes() == content
    assert "\n" not in str(caught.value)


def test_another_database_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(CorruptStoreError, match="another SQLite database"):
        FaissStore.open(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(path):
    FaissStore.open(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(StoreConfigError, match="upgrade"):
        FaissStore.open(path)
