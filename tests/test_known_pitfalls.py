"""What other stores and MemGPT got wrong, by their own record or when they were run: here it comes out right."""

import pytest
from langgraph.store.base import PutOp
from stores import execute

from questbook import CoreNotebook, FaissStore, HashEmbeddings, PatchError
from questbook.memory.store import rows
from questbook.notebooks.core_tools import edit_core
from questbook.notebooks.errors import EditError


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
    with FaissStore.open(tmp_path / "s.db") as store:
        store.put(("a",), "gone", {"text": "the dragon sleeps"})
        store.put(("a",), "kept", {"text": "the dragon wakes"})
    execute(tmp_path / "s.db", "DELETE FROM items WHERE key = 'gone'")
    with FaissStore.open(tmp_path / "s.db") as store:
        assert [i.key for i in store.search(("a",), query="the dragon sleeps")] == ["kept"]


def test_ltm_a_row_and_its_vector_come_together_or_not_at_all(store, monkeypatch):
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


SAM = CoreNotebook.of({"human": "", "persona": "I am Sam."})


def refused(page, tool, **args):
    before = page.as_json()
    with pytest.raises(EditError) as caught:
        edit_core(page, tool, args)
    assert page.as_json() == before
    return str(caught.value)


@pytest.mark.parametrize(
    ("tool", "args", "told"),
    [
        ("replace", {"label": "persona", "old_content": "", "new_content": "-"}, "empty text"),
        ("append", {"label": "humon", "content": "x"}, "there are human, persona. Did you mean 'human'?"),
        ("rethink", {"label": "plans", "new_content": "x"}, "There is no section 'plans'"),
    ],
    ids=["between every character", "unknown label", "no such section"],
)
def test_an_edit_that_does_not_fit_changes_nothing_and_says_why(tool, args, told):
    assert told in refused(SAM, f"core_memory_{tool}", **args)


def test_saving_one_section_writes_back_no_stale_copy_of_another():
    # Two writers started from one page; each sends what it changed, and the reducer adds them up.
    mine = {"sections": {"human": {"value": "Ann"}}}
    theirs = {"sections": {"persona": {"value": "I am Kit."}}}
    page = CoreNotebook().apply(mine).page.apply(theirs).page
    assert page.sections["human"].value == "Ann"
    assert page.sections["persona"].value == "I am Kit."


def test_read_only_also_holds_for_delete_rename_and_describe():
    page = CoreNotebook.of({"law": {"value": "fixed", "read_only": True}})
    for tool, args in (
        ("core_memory_append", {"content": "x"}),
        ("core_memory_insert", {"content": "x"}),
        ("core_memory_replace", {"old_content": "fixed", "new_content": "x"}),
        ("core_memory_remove", {"content": "fixed"}),
        ("core_memory_rethink", {"new_content": "x"}),
    ):
        assert "read-only" in refused(page, tool, label="law", **args)
    for fields in (None, {"description": "x"}, {"read_only": False}):
        with pytest.raises(PatchError, match="read-only"):
            page.apply({"sections": {"law": fields}}, by_model=True)


def test_a_slash_in_a_label_is_handled_alike_by_every_tool():
    page = CoreNotebook.of({"travel/plans": "x y"})
    for tool, args in (
        ("core_memory_append", {"content": "z"}),
        ("core_memory_replace", {"old_content": "x", "new_content": "z"}),
        ("core_memory_remove", {"content": "x"}),
        ("core_memory_rethink", {"new_content": "z"}),
    ):
        assert edit_core(page, tool, {"label": "travel/plans", **args}).label == "travel/plans"
        assert "Did you mean 'travel/plans'?" in refused(page, tool, label="/travel/plans", **args)
