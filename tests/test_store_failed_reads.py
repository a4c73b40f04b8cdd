"""A read that fails costs its search and nothing more: whatever read it is, the next searches find everything."""

import sqlite3
from contextlib import contextmanager

import pytest
from langgraph.store.base import PutOp

from questbook import FaissStore, HashEmbeddings
from questbook.memory.errors import StoreUnavailableError
from questbook.memory.store import vectors, word_index
from questbook.memory.text import words

INDEX = {"embed": HashEmbeddings(dims=16), "fields": ["text"]}
NAMES = ("dragon", "tower", "silver", "river", "knight", "goblin")
ITEMS = 24
_connect = sqlite3.connect


class Reads:
    """Counts the reads of all connections: SELECTs, first rows, seventh rows; `failing` lets one of them fail."""

    def __init__(self):
        self.count = 0
        self._fails_at = 0

    def __call__(self):
        self.count += 1
        if self.count == self._fails_at:
            raise sqlite3.OperationalError("disk I/O error")

    @contextmanager
    def failing(self, number):
        """Let the read of this number fail, counted from 1 from here on."""
        self.count, self._fails_at = 0, number
        try:
            yield
        finally:
            self._fails_at = 0

    def connect(self, *args, **options):
        """Take the place of `sqlite3.connect`."""
        return _connect(*args, **options, factory=self._connections())

    def _connections(self):
        reads = self

        class Cursor(sqlite3.Cursor):
            def execute(self, statement, *given):
                if statement.startswith("SELECT"):
                    reads()
                return super().execute(statement, *given)

            rows = 0

            def __next__(self):
                self.rows += 1
                if self.rows in (1, 7):
                    reads()
                return super().__next__()

            def fetchone(self):
                reads()
                return super().fetchone()

            def fetchall(self):
                reads()
                return super().fetchall()

        class Connection(sqlite3.Connection):
            def execute(self, *given):
                return self.cursor(Cursor).execute(*given)

        return Connection


@pytest.fixture
def reads(monkeypatch):
    counting = Reads()
    monkeypatch.setattr(sqlite3, "connect", counting.connect)
    words._connection.cache_clear()
    words._stem_of.clear()
    yield counting
    words._connection.cache_clear()


def value(n, **more):
    return {"text": f"the {NAMES[n % 6]} of day {n}", "branch": "ab"[n % 2], "n": n, **more}


def fill(store, numbers):
    store.batch([PutOp(("a",), f"k{n}", value(n)) for n in numbers])


def ask(store, **wanted):
    """One search that uses every cache of the namespace."""
    return store.search(("a",), query="the silver dragon", filter={"branch": "a", **wanted}, limit=20)


def answers(store):
    """What several searches give, with and without words, filters and vectors."""
    searches = [
        {"query": "the silver dragon"},
        {"query": "knight of day 7", "filter": {"n": {"$gte": 3}}},
        {"query": "towers", "filter": {"branch": "a"}},
        {"filter": {"branch": "b"}},
        {"filter": {"$or": [{"branch": "a", "n": {"$lt": 9}}, {"new": True}]}},
        {},
    ]
    return [
        [(item.key, item.score and round(item.score, 5)) for item in store.search(("a",), limit=400, **search)]
        for search in searches
    ]


def changed_items(store, attempt):
    store.put(("a",), "k3", value(attempt))
    store.put(("a",), "k4", value(attempt + 1))


def deleted_items(store, attempt):
    store.delete(("a",), "k6")
    store.put(("a",), "k6", value(attempt))
    store.delete(("a",), "k6")


def new_word(store):
    words._stem_of.clear()
    store._cache.clear()


def another_epoch(store, attempt):
    store.delete(("a",), "k9")
    store.compact()
    store.put(("a",), "k9", value(attempt))


def another_process(path, attempt):
    with FaissStore.open(path, INDEX) as other:
        changed_items(other, attempt)
        fill(other, [200 + attempt])


EVENTS = {
    "new items": lambda store, path, attempt: fill(store, range(100 + 2 * attempt, 102 + 2 * attempt)),
    "many new items": lambda store, path, attempt: fill(store, range(100 * attempt, 100 * attempt + 8)),
    "changed items": lambda store, path, attempt: changed_items(store, attempt),
    "deleted items": lambda store, path, attempt: deleted_items(store, attempt),
    "new key": lambda store, path, attempt: None,  # the file is unchanged, but a column is missing
    "new word": lambda store, path, attempt: new_word(store),
    "cold": lambda store, path, attempt: store._cache.clear(),
    "another epoch": lambda store, path, attempt: another_epoch(store, attempt),
    "another process": lambda store, path, attempt: another_process(path, attempt),
}


def small(monkeypatch, name):
    """Let so few items be many that all kinds of indexes are used."""
    if name in ("approximate", "snapshots"):
        monkeypatch.setattr(vectors, "SNAPSHOT_VECTORS", 5)
    monkeypatch.setattr(vectors, "FEW_DEAD", 2)
    monkeypatch.setattr(word_index, "_FEW_NEW", 4)
    return {"exact": {}, "approximate": {"exact_limit": 10}, "from rows": {"cache_bytes": 200}, "snapshots": {}}[
        name
    ] | {"synchronous": "normal"}


QUICK = {"exact": ["new items", "changed items", "new key"], "from rows": [], "snapshots": ["cold"], "approximate": []}
CASES = [
    pytest.param(kind, event, marks=[] if event in QUICK[kind] else pytest.mark.slow)
    for kind in QUICK
    for event in EVENTS
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "event"), CASES)
def test_whatever_read_fails_the_next_searches_find_everything(tmp_path, monkeypatch, reads, kind, event):
    options = small(monkeypatch, kind)
    path = tmp_path / "store.db"
    with FaissStore.open(path, INDEX, **options) as store:
        fill(store, range(ITEMS))
        answers(store)
        attempt = failures = 0
        while failures == attempt:
            attempt += 1
            EVENTS[event](store, path, attempt)
            wanted = {f"key{attempt}": None} if event == "new key" else {}
            try:
                with reads.failing(attempt):
                    ask(store, **wanted)
            except StoreUnavailableError:
                failures += 1
            given = answers(store)
            with FaissStore.open(path, INDEX, **options) as fresh:
                assert given == answers(fresh), f"after read {attempt} failed"
    assert failures >= 4, "there were reads that could fail"


def test_a_read_that_fails_while_the_store_closes_costs_its_snapshot_only(tmp_path, monkeypatch, reads):
    monkeypatch.setattr(vectors, "SNAPSHOT_VECTORS", 5)
    path = tmp_path / "store.db"
    for attempt in range(1, 5):
        store = FaissStore.open(path, INDEX)
        fill(store, range(attempt * 100, attempt * 100 + ITEMS))
        expected = answers(store)
        with reads.failing(attempt):
            store.close()
        with FaissStore.open(path, INDEX) as again:
            assert answers(again) == expected


def test_a_thread_that_waited_while_another_failed_gets_everything(tmp_path, reads):
    with FaissStore.open(tmp_path / "store.db", INDEX) as store:
        fill(store, range(ITEMS))
        expected = answers(store)
        cached = next(iter(store._cache._namespaces.values()))  # what the other thread holds meanwhile
        fill(store, [ITEMS])
        with reads.failing(5), pytest.raises(StoreUnavailableError):
            ask(store)
        assert store._cache.size == 0
        assert cached.size == 0, "emptied in place"
        assert len(answers(store)[0]) == len(expected[0]) + 1
