"""Bringing over what LangChain's FAISS vector store saved, without running anything that its pickle holds."""

import os
import pickle
import struct
import sys
from datetime import UTC, datetime

import pytest
from langchain_core.documents import Document
from langgraph.store.memory import InMemoryStore
from saved_faiss import save

from questbook import FaissStore, HashEmbeddings, add_lore
from questbook.graphs.terminal.cli import main
from questbook.memory.embeddings.embedders import KnownVectors
from questbook.memory.errors import UnreadableDocumentError
from questbook.memory.lore.collection import list_lore
from questbook.memory.lore.langchain_index import import_langchain_faiss, read_langchain_vectors, read_texts
from questbook.memory.timeline.namespaces import campaign_namespace

SAID = ["The owlbear sleeps in the mill.", "Giants built the tower."]
PLACES = ("u", "docs")


@pytest.fixture
def folder(tmp_path):
    """A folder as LangChain itself writes it."""
    first = {"source": "books/bestiary.pdf", "page": 2, "read": datetime(2026, 3, 1, tzinfo=UTC)}
    second = {"tags": {"old"}, "deep": {"a": [1, None]}}
    save(tmp_path / "saved", Document(SAID[0], metadata=first), Document(SAID[1], metadata=second))
    return tmp_path / "saved"


async def test_texts_and_metadata_come_over_into_any_store_once(folder):
    store = InMemoryStore()
    for _ in range(2):
        assert await import_langchain_faiss(store, PLACES, folder) == 2
    items = {item.value["text"]: item for item in await store.asearch(PLACES)}
    assert set(items) == set(SAID)
    read = {"source": "books/bestiary.pdf", "page": 2, "read": "2026-03-01T00:00:00+00:00"}
    assert items[SAID[0]].value["metadata"] == read
    assert items[SAID[1]].value["metadata"] == {"tags": ["old"], "deep": {"a": [1, None]}}


class Refusing(HashEmbeddings):
    """An embedder that costs too much to be asked for what is known."""

    def embed_documents(self, texts):
        assert not set(texts) & set(SAID)
        return super().embed_documents(texts)


async def test_vectors_of_the_same_embedder_are_taken_over(folder, tmp_path):
    vectors = read_langchain_vectors(folder)
    assert set(vectors) == set(SAID)
    assert vectors[SAID[0]] == pytest.approx(HashEmbeddings().embed_query(SAID[0]), abs=1e-6)
    embed = KnownVectors(Refusing(), vectors)
    async with FaissStore.open(tmp_path / "m.db", {"embed": embed, "fields": ["text"], "lexical": False}) as store:
        await import_langchain_faiss(store, PLACES, folder)
        assert (await store.asearch(PLACES, query="owlbear in a mill", limit=1))[0].value["text"] == SAID[0]


async def test_as_lore_it_is_one_file_that_is_cited_listed_and_added_once(folder):
    store = InMemoryStore()
    assert [done.outcome async for done in add_lore(store, "ann", "isle", [folder])] == ["added"]
    assert [done.outcome async for done in add_lore(store, "ann", "isle", [folder])] == ["unchanged"]
    assert [(file.name, file.pieces) for file in await list_lore(store, "ann", "isle")] == [("index.pkl", 2)]
    pieces = [item.value for item in await store.asearch(campaign_namespace("ann", "isle", "lore"))]
    places = {(piece["text"], piece.get("page", 0), piece.get("section", "")) for piece in pieces}
    assert places == {(SAID[0], 3, "bestiary.pdf"), (SAID[1], 0, "")}


async def test_a_pickle_alone_in_a_directory_is_no_lore(folder):
    (folder / "index.faiss").unlink()
    (folder / "notes.md").write_text("The inn is closed.")
    results = [done async for done in add_lore(InMemoryStore(), "ann", "isle", [folder])]
    assert [(done.path.name, done.outcome) for done in results] == [("notes.md", "added")]


def test_the_command_brings_texts_and_vectors_over(folder, capsys, monkeypatch):
    monkeypatch.setattr("questbook.graphs.terminal.cli.signal.signal", lambda *_: None)
    assert main(["lore", "add", str(folder), "--vectors"]) == 0
    out = capsys.readouterr().out
    assert "2 vectors are taken over" in out
    assert "index.pkl: added, 2 pieces" in out


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


class Builds:
    """Calls a function of Python's own with what it likes."""

    def __reduce__(self):
        return eval, ("__import__('os').getpid()",)


@pytest.mark.parametrize("place", ["docstore", "metadata", "text", "keys", "whole"])
def test_code_in_the_pickle_is_named_and_not_run(folder, tmp_path, place):
    proof = tmp_path / "proof"
    saved, keys = pickle.loads((folder / "index.pkl").read_bytes())
    evil, first = Evil(proof), keys[0]
    documents = saved._dict
    if place == "docstore":
        documents["evil"] = evil
    elif place == "metadata":
        documents[first].metadata["evil"] = evil
    elif place == "text":
        documents[first].__dict__["page_content"] = evil
    elif place == "keys":
        keys[7] = evil
    whole = evil if place == "whole" else (saved, keys)
    (folder / "index.pkl").write_bytes(pickle.dumps(whole))
    with pytest.raises(UnreadableDocumentError, match=r"(posix|nt)\.system, which is not loaded"):
        read_texts((folder / "index.pkl").read_bytes())
    assert not proof.exists()


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Builds()),
        b"cos\nsystem\n(S'true'\ntR.",
        b"c__builtin__\neval\n(S'1'\ntR.",
        b"\x80\x04\x8c\x16langchain_core.runnables\x8c\x0eRunnableLambda\x93.",
        b"clangchain_core.documents.base\nDocument.evil\n.",
        b"\x80\x02\x82\x01.",  # a registered extension
        b"P1\n.",  # a persistent id
        b"\x80\x04N" + b"r" + struct.pack("<I", 2**31 - 1) + b".",  # a memo of two thousand million places
        b"\x80\x04\x8d" + struct.pack("<Q", 2**50) + b"x.",
        pickle.dumps(({}, {})),
        pickle.dumps((set(), {0: "a"})),
        b"",
        b"\x00" * 100,
        b"not a pickle",
    ],
    ids=range(14),
)
def test_anything_else_is_refused_with_a_reason(data):
    with pytest.raises(UnreadableDocumentError):
        read_texts(data)


def test_rows_that_are_no_numbers_are_refused(folder):
    saved, keys = pickle.loads((folder / "index.pkl").read_bytes())
    with pytest.raises(UnreadableDocumentError, match="save_local"):
        read_texts(pickle.dumps((saved, keys | {"one": keys[0]})))


def test_one_text_that_is_named_a_million_times_is_refused(folder):
    saved, keys = pickle.loads((folder / "index.pkl").read_bytes())
    documents, first = saved._dict, keys[0]
    documents[first].__dict__["page_content"] = "x" * 100_000
    for number in range(2, 400):
        keys[number] = first
    with pytest.raises(UnreadableDocumentError, match="many times as long"):
        read_texts(pickle.dumps((saved, keys)))


async def test_metadata_that_is_too_much_or_no_json_is_refused(folder):
    saved, keys = pickle.loads((folder / "index.pkl").read_bytes())
    shared: list = []
    for _ in range(60):
        shared = [shared, shared]  # 2 to the 60 lists, if each is counted
    for value, reason in ((shared, "too large or too deep"), (frozenset([b"x"]), "holds a bytes, which is no JSON")):
        saved._dict[keys[0]].metadata["odd"] = value
        (folder / "index.pkl").write_bytes(pickle.dumps((saved, keys)))
        with pytest.raises(UnreadableDocumentError, match=reason):
            await import_langchain_faiss(InMemoryStore(), PLACES, folder)


@pytest.mark.parametrize("protocol", range(3, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_older_protocols_are_read(folder, protocol):
    saved = pickle.loads((folder / "index.pkl").read_bytes())
    assert [text.text for text in read_texts(pickle.dumps(saved, protocol=protocol))] == SAID


def test_an_index_that_does_not_belong_to_the_texts_is_refused_and_another_kind_gives_no_vectors(folder):
    index = folder / "index.faiss"
    whole = index.read_bytes()
    index.write_bytes(b"IwFl" + whole[4:])
    assert read_langchain_vectors(folder) == {}
    wide, long = struct.pack("<i", 2**31 - 1), struct.pack("<q", 2**62)
    damaged = whole[:-1], whole[:20], whole + b"1234", whole[:4] + wide + whole[8:], whole[:8] + long + whole[16:]
    for data in damaged:
        index.write_bytes(data)
        with pytest.raises(UnreadableDocumentError, match="index of vectors"):
            read_langchain_vectors(folder)
    index.unlink()
    with pytest.raises(UnreadableDocumentError, match="No such file"):
        read_langchain_vectors(folder)


def test_langchain_community_is_not_needed_to_read_it(folder, monkeypatch):
    data = (folder / "index.pkl").read_bytes()
    for name in [name for name in sys.modules if name.startswith("langchain_community")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "langchain_community", None)
    assert [text.text for text in read_texts(data)] == SAID
