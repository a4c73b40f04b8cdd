"""What other stores got wrong, each with the right outcome here.

The first part are LangGraph's SqliteStore's (research: peers.md, 3), the second the LTM extension's
(opengpts-and-ltm.md, 2).
"""

from pathlib import Path

import pytest
from langgraph.store.base import PutOp

from questbook import FaissStore, HashEmbeddings

ROOT = Path(__file__).parent.parent


@pytest.fixture
def store(tmp_path):
    index = {"embed": HashEmbeddings(64), "dims": 64, "fields": ["text"]}
    with FaissStore.open(tmp_path / "store.db", index) as store:
        yield store


def test_shrinking_a_list_leaves_no_vector_of_what_was_in_it(tmp_path):
    with FaissStore.open(tmp_path / "s.db", {"embed": HashEmbeddings(64), "fields": ["facts[*]"]}) as store:
        store.put(("a",), "k", {"facts": ["the king is alive", "the sword is hidden in the well"]})
        assert store.search(("a",), query="the sword is hidden in the well")[0].score == pytest.approx(1.0)
        store.put(("a",), "k", {"facts": ["the king is alive"]})
        assert store.search(("a",), query="the sword is hidden in the well")[0].score < 0.8


def test_ltm_a_vector_without_its_row_breaks_no_search(tmp_path):
    import sqlite3

    with FaissStore.open(tmp_path / "s.db") as store:
        store.put(("a",), "gone", {"text": "the dragon sleeps"})
        store.put(("a",), "kept", {"text": "the dragon wakes"})
    raw = sqlite3.connect(tmp_path / "s.db")
    raw.execute("DELETE FROM items WHERE key = 'gone'")
    raw.commit()
    raw.close()
    with FaissStore.open(tmp_path / "s.db") as store:
        assert [i.key for i in store.search(("a",), query="the dragon sleeps")] == ["kept"]


def test_ltm_a_row_and_its_vector_come_together_or_not_at_all(store, monkeypatch):
    from questbook.memory.store import rows

    real = rows.apply_write
    writes = []

    def failing(connection, write):
        real(connection, write)
        writes.append(write)
        if len(writes) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(rows, "apply_write", failing)
    with pytest.raises(KeyboardInterrupt):
        store.batch([PutOp(("a",), str(n), {"text": f"memory {n}"}) for n in range(3)])
    monkeypatch.setattr(rows, "apply_write", real)
    assert store.search(("a",), query="memory") == []
    assert store.search(("a",)) == []
    assert store.list_namespaces() == []
