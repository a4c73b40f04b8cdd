"""The file of a store: made where it is asked for, private, refused if it is none of ours, and what damage does."""

import stat

import pytest
from stores import execute

from questbook import FaissStore, HashEmbeddings, StoreUnavailableError
from questbook.memory.errors import CorruptStoreError, StoreConfigError
from questbook.memory.store import database, rows
from questbook.memory.store.database import APPLICATION_ID
from questbook.memory.store.database_file import (
    find_damage,
    list_keys,
    read_embedder,
    read_header,
    read_item,
    records,
)


def test_a_directory_holds_the_file_and_files_are_private(tmp_path):
    with FaissStore.open(tmp_path) as store:
        store.put(("a",), "k", {"text": "secret"})
        store.search(("a",), query="secret")
        assert (tmp_path / "store.sqlite3").exists()
        assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}


def test_a_file_that_another_process_is_making_longer_is_known_by_its_header(path):
    with FaissStore.open(path) as store:
        store.put(("a",), "k", {"text": "long " * 5_000})
    whole = read_header(path)
    path.write_bytes(path.read_bytes()[: 4 * whole.page_size])
    assert read_header(path) == whole


def test_what_may_not_be_written_is_named(as_nobody):
    def check(directory):
        FaissStore.open(directory / "there.db").close()
        (directory / "there.db").chmod(0o400)
        with pytest.raises(StoreUnavailableError, match=r"there\.db.*Permission denied.*mend its permissions"):
            FaissStore.open(directory / "there.db")
        directory.chmod(0o500)
        with pytest.raises(StoreUnavailableError, match=r"x\.db.*Permission denied.*expected.*choose another path"):
            FaissStore.open(directory / "x.db")

    as_nobody(check)


@pytest.mark.parametrize("place", ["dta/x.db", "file/x.db"])
def test_a_path_that_cannot_be_is_named_and_nothing_is_made(tmp_path, place):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        StoreUnavailableError, match=rf"{place}.* directory; expected.*choose another path.*make"
    ) as caught:
        FaissStore.open(tmp_path / place)
    assert "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_path_may_begin_with_the_sign_of_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with FaissStore.open("~/m.db", None) as store:
        store.put(("a",), "k", {"n": 1})
    assert (tmp_path / "m.db").is_file()


async def test_a_store_stays_with_its_file_when_the_program_goes_to_another_directory(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    store = FaissStore.open("m.db", None)
    monkeypatch.chdir(tmp_path / "other")
    await store.aput(("a",), "k", {"n": 1})
    await store.aclose()
    assert list((tmp_path / "other").iterdir()) == []
    with FaissStore.open("../m.db", None) as other:
        assert other.get(("a",), "k").value == {"n": 1}


@pytest.mark.parametrize(
    "content",
    [b"this is no database" * 100, b"SQLite format 3\x00" + b"\x07" * 5000, b"x", b"SQLite format 3\0", bytes(4096)],
)
def test_a_file_that_is_no_store_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(CorruptStoreError, match=r"store\.db.*expected.*(path|copy)") as caught:
        FaissStore.open(path)
    assert path.read_bytes() == content
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE theirs (x)", "CREATE VIEW theirs AS SELECT 1 AS x", "PRAGMA application_id = 7"],
    ids=["several pages", "one page", "its own mark"],
)
def test_another_database_is_refused_and_left_alone(path, statement):
    execute(path, statement)
    before = path.read_bytes()
    with pytest.raises(CorruptStoreError, match="found another SQLite database; it was left untouched: choose another"):
        FaissStore.open(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(path):
    FaissStore.open(path).close()
    execute(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreConfigError, match="upgrade"):
        FaissStore.open(path)


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
    ["UPDATE vectors SET vector = x'00' WHERE item = 4294967297", "DELETE FROM vectors WHERE item = 4294967297"],
)
def test_a_damaged_vector_stops_no_search(dragons, damage):
    execute(dragons, damage)
    with FaissStore.open(dragons) as store:
        found = {item.key: item.score for item in store.search(("a",), query="dragon")}
        assert found.pop("bad") is None, "its words still find it"
        assert list(found) == ["good"]
        store.put(("a",), "bad", {"text": "bad dragon"})
        assert {item.score is None for item in store.search(("a",), query="dragon")} == {False}


@pytest.mark.parametrize("value", ["'{'", "CAST(x'7b22ff227d' AS TEXT)"])
def test_a_damaged_value_is_named_and_stops_no_search(dragons, caplog, value):
    execute(dragons, f"UPDATE items SET value = {value} WHERE key = 'bad'")
    assert "the item bad in a says something else" in find_damage(dragons)
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


@pytest.mark.parametrize("value", ["'{'", "CAST(x'7b22ff227d' AS TEXT)", "'7'", "x'00'"])
@pytest.mark.parametrize("index", [{"embed": HashEmbeddings(16)}, {"lexical": {"text": 1.0, "note": 1.0}}])
def test_a_damaged_value_does_not_keep_a_store_from_other_vectors_and_words(dragons, caplog, value, index):
    execute(dragons, f"UPDATE items SET value = {value} WHERE key = 'bad'")
    with FaissStore.open(dragons, {"embed": HashEmbeddings(32), "fields": ["text"], **index}) as store:
        assert [item.key for item in store.search(("a",), query="dragon")] == ["good"]
        assert [item.key for item in store.search(("a",))] == ["good"]
    assert "left out of a search" in caplog.text


def test_a_value_whose_words_changed_is_not_served(dragons, caplog):
    execute(dragons, "UPDATE items SET value = replace(value, 'dragon', 'drag0n') WHERE key = 'bad'")
    assert "the item bad in a says something else than was written" in find_damage(dragons)
    with FaissStore.open(dragons) as store:
        assert [item.key for item in store.search(("a",), query="dragon")] == ["good"]
        assert [item.key for item in store.search(("a",))] == ["good"]
        assert "says something else than was written; put or delete it" in caplog.text
        with pytest.raises(CorruptStoreError, match="says something else than was written"):
            store.get(("a",), "bad")
        store.put(("a",), "bad", {"text": "bad dragon"})
        assert store.get(("a",), "bad").value == {"text": "bad dragon"}
    assert find_damage(dragons) == ""


def test_a_file_of_version_1_is_taken_over_and_gets_checksums_as_it_is_written(dragons):
    execute(dragons, "ALTER TABLE items DROP COLUMN checksum")
    execute(dragons, "PRAGMA user_version = 1")
    assert find_damage(dragons) == ""
    with FaissStore.open(dragons) as store:
        assert len(store.search(("a",), query="dragon")) == 2
        store.put(("a",), "bad", {"text": "a dragon"})
    assert execute(dragons, "SELECT key, checksum IS NULL FROM items ORDER BY key") == [("bad", 0), ("good", 1)]
    assert execute(dragons, "PRAGMA user_version") == [(2,)]
    # A process of version 1 that has had the file open all the while.
    execute(dragons, """UPDATE items SET value = '{"text":"an old dragon"}' WHERE key = 'bad'""")
    with FaissStore.open(dragons) as store:
        assert store.get(("a",), "bad").value == {"text": "an old dragon"}


@pytest.mark.parametrize("name", ["what?.db", "a#b.db", "100%41.db", "a b&mode=ro.db", "é ü.db"])
def test_a_path_may_have_any_characters(tmp_path, name):
    path = tmp_path / name
    with FaissStore.open(path) as store:
        store.put(("ann", "facts"), "k", {"text": "a dragon"})
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert read_header(path).application_id == APPLICATION_ID
    assert records(path, "ann", "facts", "k") == {("ann", "facts"): {"text": "a dragon"}}
    assert (read_item(path, ("ann", "facts"), "k"), find_damage(path)) == ({"text": "a dragon"}, "")
    with FaissStore.open(path) as store:
        assert [item.key for item in store.search(("ann",), query="dragon")] == ["k"]


def test_a_file_is_asked_for_what_it_holds_without_its_store(path):
    assert (records(path, None, "facts", "k"), list_keys(path, ("a",)), read_item(path, ("a",), "k")) == ({}, [], None)
    assert (read_embedder(path), find_damage(path)) == ("", "")
    with FaissStore.open(path, {"embed": HashEmbeddings(64)}) as store:
        for place in (
            ("ann", "facts"),
            ("ben", "facts"),
            ("ann", "facts", "more"),
            ("an*", "facts"),
            ("gone", "facts"),
        ):
            store.put(place, "k", {"of": list(place)})
        store.put(("ann", "factsheet"), "k", {"n": 1})
        store.delete(("gone", "facts"), "k")
    of = {first: {(first, "facts"): {"of": [first, "facts"]}} for first in ("an*", "ann", "ben")}
    assert [*records(path, None, "facts", "k").items()] == [item for first in of for item in of[first].items()]
    assert records(path, "ben", "facts", "k") == of["ben"]
    assert records(path, "an*", "facts", "k") == of["an*"]
    assert records(path, None, "fact?", "k") == records(path, None, "facts", "other") == {}
    assert sorted(list_keys(path, ("ann", "facts"))) == [(("ann", "facts"), "k"), (("ann", "facts", "more"), "k")]
    assert list_keys(path, ("an*",)) == [(("an*", "facts"), "k")], "a star in a name is a star"
    assert read_item(path, ("ben", "facts"), "k") == {"of": ["ben", "facts"]}
    assert read_item(path, ("ben", "facts"), "other") is None
    assert read_embedder(path) == "hash-1:64 with 64 dimensions"


def test_what_another_program_makes_of_the_file_meanwhile_is_refused_too(path, monkeypatch):
    read = database.read_header

    def then_theirs(file):
        header = read(file)
        execute(path, "CREATE TABLE theirs (x)")
        return header

    monkeypatch.setattr(database, "read_header", then_theirs)
    with pytest.raises(CorruptStoreError, match="another SQLite database"):
        FaissStore.open(path)
    assert execute(path, "SELECT name FROM sqlite_master") == [("theirs",)]


def test_what_a_search_leaves_out_is_told_to_who_asks_for_it(dragons):
    execute(dragons, "UPDATE items SET value = '{' WHERE key = 'bad'")
    with FaissStore.open(dragons) as store:
        for how in ({"query": "dragon"}, {}, {"query": "dragon", "filter": {"text": {"$ne": "x"}}}):
            token = rows.remarks.set([])
            assert [item.key for item in store.search(("a",), **how)] == ["good"]
            told = rows.remarks.get()
            rows.remarks.reset(token)
            assert told
            assert all("the item 'bad' in ('a',) is damaged" in one for one in told)


@pytest.mark.parametrize("value", ['{"a":1} x', "[1]", "7", "null", '"text"', ""])
def test_a_row_that_is_no_object_or_not_it_alone_is_damaged(dragons, value):
    execute(dragons, f"UPDATE items SET value = '{value}', checksum = NULL WHERE key = 'bad'")
    with FaissStore.open(dragons) as store:
        with pytest.raises(CorruptStoreError, match=r"the item 'bad' in \('a',\) is damaged: expected a JSON object"):
            store.get(("a",), "bad")
        assert [item.key for item in store.search(("a",), filter={"text": {"$ne": 1}})] == ["good"]
