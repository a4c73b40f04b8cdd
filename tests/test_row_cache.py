"""Items that are kept in RAM once they were found: always those of the file, and never the caller's."""

import sqlite3

import pytest

from questbook import FaissStore

SPACE = ("campaign", "exchanges")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    with FaissStore.open(path) as opened:
        opened.put(SPACE, "a", {"text": "the lamp is lit", "who": ["Oda", {"of": "the mill"}], "turn": 1})
        opened.put(SPACE, "b", {"text": "the door is shut", "turn": 2})
        opened.search(SPACE, query="lamp")  # from now on both are in RAM
        yield opened


def found(store, query="lamp"):
    return {item.key: item.value for item in store.search(SPACE, query=query)}


def test_what_a_caller_does_with_a_value_changes_no_other(store):
    (first, *_) = store.search(SPACE, query="lamp", limit=1)
    first.value["text"] = "spoilt"
    first.value["who"][1]["of"] = "spoilt"
    assert found(store)["a"] == {"text": "the lamp is lit", "who": ["Oda", {"of": "the mill"}], "turn": 1}


def test_an_updated_item_is_found_as_it_is_now(store):
    before = store.search(SPACE, query="lamp", limit=1)[0]
    store.put(SPACE, "a", {"text": "the lamp is out"})
    after = store.search(SPACE, query="lamp", limit=1)[0]
    assert after.value == {"text": "the lamp is out"}
    assert after.created_at == before.created_at
    assert after.updated_at >= before.updated_at


def test_a_deleted_item_is_gone_and_a_new_one_of_its_key_is_new(store):
    store.delete(SPACE, "a")
    assert set(found(store)) == {"b"}
    store.put(SPACE, "a", {"text": "a lamp again"})
    assert found(store)["a"] == {"text": "a lamp again"}


def test_another_connections_writes_are_seen(store, path):
    with FaissStore.open(path) as other:
        other.put(SPACE, "a", {"text": "the lamp, by another hand"})
        other.delete(SPACE, "b")
    assert found(store) == {"a": {"text": "the lamp, by another hand"}}


def test_an_item_that_expires_is_not_kept(path):
    with FaissStore.open(path, ttl={"refresh_on_read": True, "omit_expired": True}) as store:
        store.put(SPACE, "a", {"text": "the lamp"}, ttl=10)
        store.search(SPACE, query="lamp")
        (space,) = store._search.shards._loaded
        assert not store._search.shards._loaded[space].rows._items


def test_only_so_many_are_kept(store, monkeypatch):
    monkeypatch.setattr("questbook.memory.store.row_cache._MOST", 3)
    for number in range(9):
        store.put(SPACE, f"n{number}", {"text": f"lamp {number}"})
    assert len(store.search(SPACE, query="lamp", limit=11)) == 11
    (space,) = store._search.shards._loaded
    assert len(store._search.shards._loaded[space].rows._items) == 3


def packed(store):
    (space,) = store._search.shards._loaded
    return store._search.shards._loaded[space].rows._packed


@pytest.fixture
def many(path, monkeypatch):
    monkeypatch.setattr("questbook.memory.store.row_cache._MOST", 3)
    with FaissStore.open(path, ttl={"omit_expired": True}) as opened:
        for number in range(12):
            opened.put(SPACE, f"n{number}", {"text": f"lamp {number}", "of": [number]})
        opened.put(SPACE, "soon", {"text": "lamp"}, ttl=60)
        opened.put(SPACE, "\udc80", {"text": "lamp, strange"})
        for _ in range(3):
            opened.search(SPACE, query="lamp", limit=20)
        yield opened


def test_more_items_are_kept_as_the_file_has_them_but_for_those_that_expire(many):
    assert len(packed(many)._ids) == 13
    items = many.search(SPACE, query="lamp", limit=20)
    assert {item.key: item.value.get("of") for item in items} == {f"n{n}": [n] for n in range(12)} | {
        "soon": None,
        "\udc80": None,
    }
    kept = many.get(SPACE, "n3")
    (same,) = [item for item in items if item.key == "n3"]
    assert (same.value, same.created_at, same.updated_at) == (kept.value, kept.created_at, kept.updated_at)


def test_what_is_packed_is_never_old(many, path):
    with FaissStore.open(path) as other:
        for number in range(0, 12, 3):
            other.put(SPACE, f"n{number}", {"text": f"lamp, changed {number}"})
            many.delete(SPACE, f"n{number + 1}")
            many.put(SPACE, f"m{number}", {"text": f"lamp, new {number}"})
            for query in ("lamp", "changed", "new"):
                here = {item.key: item.value for item in many.search(SPACE, query=query, limit=20)}
                assert here == {item.key: item.value for item in other.search(SPACE, query=query, limit=20)}


def test_what_is_packed_is_read_anew_when_much_of_it_is_gone(many):
    before = packed(many)
    for number in range(8):
        many.delete(SPACE, f"n{number}")
        many.search(SPACE, query="lamp")
    assert packed(many) is not before
    assert {item.key for item in many.search(SPACE, query="lamp", limit=20)} == {
        *(f"n{number}" for number in range(8, 12)),
        "soon",
        "\udc80",
    }


def test_a_damaged_row_is_left_out_of_what_is_packed(many, path, caplog):
    many.close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE items SET value = value || ']' WHERE key = 'n5'")
        raw.execute("UPDATE items SET value = 7 WHERE key = 'n6'")
    raw.close()
    with FaissStore.open(path) as store:
        for _ in range(4):
            keys = {item.key for item in store.search(SPACE, query="lamp", limit=20)}
            assert keys >= {"n4", "n7"}
            assert not keys & {"n5", "n6"}
    assert "is damaged: expected a JSON object" in caplog.text


def test_what_changed_is_noted_only_of_what_was_read_whole(store, monkeypatch):
    monkeypatch.setattr("questbook.memory.store.row_cache._MOST", 1)
    monkeypatch.setattr("questbook.memory.store.row_cache._PACKED", 1)
    for number in range(9):
        store.put(SPACE, "a", {"text": f"lamp {number}"})
        store.search(SPACE, query="lamp")
    (space,) = store._search.shards._loaded
    assert not store._search.shards._loaded[space].rows._changed


def test_what_is_kept_is_counted_and_the_largest_are_not_kept(path):
    with FaissStore.open(path) as store:
        store.put(SPACE, "long", {"text": "lamp " * 8_000})
        store.put(SPACE, "longest", {"text": "lamp", "page": "x" * 100_000})
        store.search(SPACE, query="lamp")
        (space,) = store._search.shards._loaded
        kept = store._search.shards._loaded[space].rows
        assert 40_000 < kept.size < 45_000
        store.put(SPACE, "long", {"text": "lamp"})
        store.search(SPACE, query="lamp")
        assert 0 < kept.size < 2_000


def test_what_lies_deep_in_a_value_is_counted(path):
    with FaissStore.open(path) as store:
        store.put(SPACE, "deep", {"text": "lamp", "of": [[{}] * 100] * 20})
        store.search(SPACE, query="lamp")
        (space,) = store._search.shards._loaded
        assert store._search.shards._loaded[space].rows.size > 100_000
