"""What FaissStore promises beyond LangGraph's contract: durability, errors, several users of one file."""

import asyncio
import sqlite3
import stat
import subprocess
import sys
import threading
from datetime import UTC, datetime

import blockbuster
import pytest
from langchain_core.embeddings import Embeddings

from memory import (
    CorruptStoreError,
    EmbedderChangedError,
    EmbeddingError,
    FaissStore,
    HashEmbeddings,
    StoreClosedError,
    StoreConfigError,
    StoreError,
    StoreUnavailableError,
    UnstorableValueError,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


class Scripted(Embeddings):
    """Hash vectors, with a record of the calls and a way to fail."""

    def __init__(self, dims=32, answer=None):
        self.dims = dims
        self.calls = []
        self.answer = answer

    def embed_documents(self, texts):
        self.calls.append(list(texts))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if self.answer is not None else HashEmbeddings(self.dims).embed_documents(texts)

    def embed_query(self, text):
        return HashEmbeddings(self.dims).embed_query(text)


def test_what_was_put_is_there_after_reopening(path):
    with FaissStore.open(path) as store:
        store.put(("a", "b"), "k", {"text": "the dragon sleeps under the hill"})
        item = store.get(("a", "b"), "k")
    with FaissStore.open(path) as store:
        assert store.get(("a", "b"), "k") == item
        found = store.search(("a",), query="dragon hill")
        assert found[0].key == "k"
        assert found[0].score > 0.3


def test_created_at_survives_an_update_and_updated_at_grows(path):
    with FaissStore.open(path) as store:
        store.put(("a",), "k", {"n": 1})
        first = store.get(("a",), "k")
        for n in range(5):
            store.put(("a",), "k", {"n": n})
        last = store.get(("a",), "k")
    assert last.created_at == first.created_at
    assert last.updated_at > first.updated_at
    assert abs((datetime.now(UTC) - first.created_at).total_seconds()) < 60


def test_a_directory_holds_the_file(tmp_path):
    with FaissStore.open(tmp_path) as store:
        store.put(("a",), "k", {})
    assert (tmp_path / "store.sqlite3").exists()


def test_missing_directories_are_made(tmp_path):
    with FaissStore.open(tmp_path / "deep" / "down" / "x.db") as store:
        store.put(("a",), "k", {})
    assert stat.S_IMODE((tmp_path / "deep" / "down").stat().st_mode) == 0o700


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


def test_a_closed_store_says_so(path):
    store = FaissStore.open(path)
    store.close()
    store.close()
    for use in (
        lambda: store.put(("a",), "k", {}),
        lambda: store.get(("a",), "k"),
        lambda: store.search(("a",)),
    ):
        with pytest.raises(StoreClosedError):
            use()


@pytest.mark.parametrize("value", [{"when": datetime.now(UTC)}, {"set": {1}}, {"bytes": b"x"}])
def test_what_is_not_json_is_refused_and_nothing_is_written(path, value):
    with FaissStore.open(path) as store:
        with pytest.raises(UnstorableValueError, match="'k' in"):
            store.batch([*_puts(3), *_puts(1, key="k", value=value)])
        assert store.search(("p",)) == []


def _puts(count, key=None, value=None):
    from langgraph.store.base import PutOp

    return [PutOp(("p",), key or f"k{n}", value or {"text": f"text {n}"}) for n in range(count)]


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("no quota"), [[0.0] * 32], [["a"] * 32] * 2, [[float("nan")] * 32] * 2, [[1.0] * 31] * 2],
)
async def test_an_embedding_failure_is_loud_and_writes_nothing(path, answer):
    embed = Scripted()
    with FaissStore.open(path, {"embed": embed, "fields": ["text"]}) as store:
        store.put(("p",), "k0", {"text": "before"})
        embed.answer = answer
        with pytest.raises(StoreError):
            store.batch(_puts(2))
        with pytest.raises(StoreError):
            await store.abatch(_puts(2))
        embed.answer = None
        assert [item.value for item in store.search(("p",))] == [{"text": "before"}]


def test_documents_are_embedded_as_documents_and_queries_as_queries(path):
    class TwoFaced(Scripted):
        def embed_query(self, text):
            return [1.0] + [0.0] * 31

        def embed_documents(self, texts):
            return [[0.0, 1.0] + [0.0] * 30 for _ in texts]

    with FaissStore.open(path, {"embed": TwoFaced(), "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "same"})
        assert store.search(("a",), query="same")[0].score == pytest.approx(0.0)


def test_a_batch_is_embedded_in_one_call(path):
    embed = Scripted()
    with FaissStore.open(path, {"embed": embed, "fields": ["text"]}) as store:
        store.batch(_puts(20))
    assert [len(call) for call in embed.calls] == [20]


@pytest.mark.parametrize("index", [None, {"embed": None, "fields": ["text"]}])
def test_no_embedder_means_no_vectors(path, index):
    with FaissStore.open(path, index) as store:
        store.put(("a",), "k", {"text": "x"})
        assert [(item.key, item.score) for item in store.search(("a",), query="x")] == [("k", None)]


def test_functions_serve_as_embedders(path):
    def embed(texts):
        return HashEmbeddings(16).embed_documents(texts)

    with FaissStore.open(path, {"embed": embed, "dims": 16, "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "x y z"})
        assert store.search(("a",), query="x y z")[0].score == pytest.approx(1.0)


async def test_asynchronous_functions_serve_as_embedders(path):
    async def embed(texts):
        return HashEmbeddings(16).embed_documents(texts)

    async with FaissStore.open(path, {"embed": embed, "dims": 16, "fields": ["text"]}) as store:
        await store.aput(("a",), "k", {"text": "x y z"})
        assert (await store.asearch(("a",), query="x y z"))[0].score == pytest.approx(1.0)


async def test_an_asynchronous_function_cannot_be_waited_for_in_its_own_loop(path):
    async def embed(texts):
        return HashEmbeddings(16).embed_documents(texts)

    async with FaissStore.open(path, {"embed": embed, "dims": 16, "fields": ["text"]}) as store:
        with pytest.raises(EmbeddingError, match="aput"):
            store.put(("a",), "k", {"text": "x"})
        assert await store.asearch(("a",)) == []


def test_an_asynchronous_function_serves_without_a_loop(path):
    async def embed(texts):
        return HashEmbeddings(16).embed_documents(texts)

    with FaissStore.open(path, {"embed": embed, "fields": ["text"]}) as store:
        store.put(("a",), "k", {"text": "x y z"})
        assert store.search(("a",), query="x y z")[0].score == pytest.approx(1.0)


def test_the_index_is_described_as_langgraph_describes_it(path):
    embed = Scripted()
    with FaissStore.open(path, {"embed": embed, "dims": 32, "fields": ["text"]}) as store:
        assert store.embeddings is embed
        assert store.index_config["dims"] == 32
        assert store.index_config["embed"] is embed


def test_wrong_dimensions_are_caught_when_opening(path):
    with pytest.raises(EmbedderChangedError, match="32"):
        FaissStore.open(path, {"embed": Scripted(), "dims": 33})
    silent = HashEmbeddings(32).embed_documents  # a function does not say how long its vectors are
    with pytest.raises(EmbedderChangedError, match="32 dimensions"):
        FaissStore.open(path, {"embed": silent, "dims": 64})
    with FaissStore.open(path, {"embed": silent}) as store:
        assert store.index_config["dims"] == 32


@pytest.mark.parametrize("index", [{"embed": "hash:x"}, {"embed": "nobody:nothing"}])
def test_unknown_embedders_are_named(path, index):
    with pytest.raises(EmbeddingError, match=index["embed"]):
        FaissStore.open(path, index)


def test_fields_must_be_a_list(path):
    with pytest.raises(StoreConfigError, match="fields"):
        FaissStore.open(path, {"embed": Scripted(), "fields": "text"})


async def test_the_event_loop_is_never_blocked(path):
    with blockbuster.blockbuster_ctx():
        async with FaissStore.open(path) as store:
            await store.aput(("a",), "k", {"text": "the dragon sleeps"}, ttl=1)
            assert (await store.aget(("a",), "k")).key == "k"
            assert (await store.asearch(("a",), query="dragon"))[0].key == "k"
            assert await store.alist_namespaces() == [("a",)]
            await store.adelete(("a",), "k")
        lazy = FaissStore.open(path)
        await lazy.aput(("a",), "k", {"text": "x"})
        await lazy.aclose()


def test_several_event_loops_share_one_store(path):
    store = FaissStore.open(path)

    def work(loop):
        async def run():
            await asyncio.gather(*(store.aput(("a",), f"{loop}-{n}", {"text": f"{loop} {n}"}) for n in range(20)))
            return len(await store.asearch(("a",), query="1", limit=100))

        assert asyncio.run(run()) >= 20

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.search(("a",), query="text", limit=100)) == 80
    store.close()


def test_two_stores_on_one_file_see_each_other(path):
    with FaissStore.open(path) as one, FaissStore.open(path) as two:
        one.put(("a",), "k1", {"text": "dragon"})
        assert two.search(("a",), query="dragon")[0].key == "k1"
        two.put(("a",), "k2", {"text": "dragon egg"})
        two.put(("a",), "k1", {"text": "knight"})
        assert [item.key for item in one.search(("a",), query="dragon egg", limit=1)] == ["k2"]
        assert one.search(("a",), query="knight", limit=1)[0].score == pytest.approx(1.0)
        one.delete(("a",), "k2")
        assert [item.key for item in two.search(("a",), query="dragon egg")] == ["k1"]


def test_many_updates_do_not_pile_up(path):
    with FaissStore.open(path) as one, FaissStore.open(path) as two:
        one.put(("a",), "still", {"text": "calm water"})
        for n in range(1200):
            one.put(("a",), "k", {"text": f"version {n}"})
            if n % 400 == 0:
                two.search(("a",), query="version")
        found = two.search(("a",), query="version 1199")
        assert [item.key for item in found] == ["k", "still"]
        assert found[0].score == pytest.approx(1.0)
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT count(*) FROM vectors").fetchone() == (2,)
    assert raw.execute("SELECT count(*) FROM removed").fetchone()[0] <= 1001
    raw.close()


def test_expired_items_are_swept_and_reading_keeps_them(path):
    with FaissStore.open(path, ttl={"default_ttl": 60, "omit_expired": True}) as store:
        store.put(("a",), "forever", {"text": "x"}, ttl=None)
        store.put(("a",), "gone", {"text": "x"}, ttl=-1)
        store.put(("a",), "default", {"text": "x"})
        assert store.get(("a",), "gone") is None
        assert {item.key for item in store.search(("a",), query="x")} == {"forever", "default"}
        assert store.sweep_ttl() == 1
        assert {item.key for item in store.search(("a",))} == {"forever", "default"}


def test_importing_costs_neither_numpy_nor_faiss():
    code = (
        "import sys; import memory; assert 'langgraph' not in sys.modules; "
        "import memory.faiss_store; assert not {'numpy', 'faiss'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_what_they_say():
    import memory

    assert sorted(memory.__all__) == memory.__all__
    for name in memory.__all__:
        assert getattr(memory, name).__name__ == name
    with pytest.raises(AttributeError):
        memory.nothing  # noqa: B018
