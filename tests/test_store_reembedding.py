"""A file knows its embedder; another one makes its vectors anew."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from stores import execute

from questbook import EmbedderChangedError, FaissStore, HashEmbeddings
from questbook.memory.errors import EmbeddingError
from questbook.memory.store import reembedding


class Counted(HashEmbeddings):
    """Fails after some texts, if told to."""

    def __init__(self, dims, last=None):
        super().__init__(dims)
        self.last, self.texts = last, 0

    def embed_documents(self, texts):
        self.texts += len(texts)
        if self.last is not None and self.texts > self.last:
            raise RuntimeError("quota exceeded")
        return super().embed_documents(texts)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(reembedding, "ITEMS_AT_ONCE", 10)
    path = tmp_path / "store.db"
    with opened(path, HashEmbeddings(32)) as store:
        for n in range(45):
            store.put(("a", str(n % 3)), str(n), {"text": f"memory of day {n}", "other": f"thing {n}"})
        store.put(("a", "0"), "hidden", {"text": "not indexed"}, index=False)
        store.put(("a", "0"), "paths", {"text": "x", "tags": ["gold coin", "silver"]}, index=["tags[*]"])
    return path


def opened(path, embed, **options):
    return FaissStore.open(path, {"embed": embed, "fields": ["text"]}, **options)


def check(store):
    assert store.search(("a",), query="memory of day 17", limit=1)[0].key == "17"
    assert store.search(("a",), query="memory of day 17", limit=1)[0].score == pytest.approx(1.0)
    assert next(i for i in store.search(("a",), query="silver", limit=99) if i.key == "paths").score == pytest.approx(
        1.0
    )
    assert next(i for i in store.search(("a",), query="silver", limit=99) if i.key == "hidden").score is None


def test_three_embedders_one_after_another(path):
    seen = []
    for dims in (64, 48, 128, 32):
        seen.clear()
        with opened(path, HashEmbeddings(dims), progress=lambda done, total: seen.append((done, total))) as store:
            check(store)
            created = store.get(("a", "1"), "1")
            assert created.updated_at == created.created_at, "a new vector is no update"
        assert seen[-1] == (47, 47)
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    lengths = execute(path, "SELECT count(*), min(length(vector)), max(length(vector)) FROM vectors")
    assert lengths == [(47, 128, 128)]
    assert execute(path, "SELECT name FROM sqlite_master WHERE name LIKE 'next%'") == []


def test_it_can_be_refused(path):
    with pytest.raises(EmbedderChangedError, match=r"hash-1:32 with 32.*hash-1:64 with 64.*reembed=True"):
        opened(path, HashEmbeddings(64), reembed=False)
    with opened(path, HashEmbeddings(32), reembed=False) as store:
        check(store)


def test_a_failure_half_way_leaves_the_old_and_is_taken_up_again(path):
    broken = Counted(64, last=25)
    with pytest.raises(EmbeddingError, match="quota exceeded"):
        opened(path, broken)
    with opened(path, HashEmbeddings(32)) as store:
        check(store)
        store.put(("a", "0"), "0", {"text": "changed meanwhile"})
        store.put(("a", "9"), "new", {"text": "new meanwhile"})
        store.delete(("a", "1"), "1")
    mended = Counted(64)
    with opened(path, mended) as store:
        check(store)
        assert store.search(("a",), query="changed meanwhile")[0].key == "0"
        assert store.search(("a",), query="new meanwhile")[0].score == pytest.approx(1.0)
        assert store.search(("a",), query="memory of day 1", limit=99)[0].key != "1"
    assert mended.texts < 40, "what had been made was kept"


def test_what_is_written_meanwhile_gets_its_vector_too(path):
    with opened(path, HashEmbeddings(32)) as old:

        def write(done, total):
            if done == 20:
                old.put(("a", "0"), "0", {"text": "changed meanwhile"})

        with opened(path, HashEmbeddings(64), progress=write) as store:
            check(store)
            assert store.search(("a",), query="changed meanwhile")[0].score == pytest.approx(1.0)


def test_a_third_embedder_does_not_take_up_the_work_of_the_second(path):
    with pytest.raises(EmbeddingError):
        opened(path, Counted(64, last=25))
    with opened(path, HashEmbeddings(128)) as store:
        check(store)
        assert store.index_config["dims"] == 128


def test_two_processes_share_the_work(path):
    with ThreadPoolExecutor(2) as threads:
        stores = list(threads.map(lambda _: opened(path, HashEmbeddings(64)), range(2)))
    for store in stores:
        check(store)
        store.close()


def test_a_store_that_was_left_behind_says_so(path):
    old = opened(path, HashEmbeddings(32))
    check(old)
    with opened(path, HashEmbeddings(64)):
        for use in (lambda: old.put(("a",), "k", {"text": "x"}), lambda: old.search(("a",), query="x")):
            with pytest.raises(EmbedderChangedError, match="another process has changed"):
                use()
    old.close()


def test_what_was_written_without_an_embedder_gets_its_vectors(tmp_path):
    path = tmp_path / "bare.db"
    with FaissStore.open(path, None) as store:
        store.put(("a",), "k", {"text": "the dragon sleeps"})
    with FaissStore.open(path, {"embed": HashEmbeddings(32)}, reembed=False) as store:  # nothing is replaced
        assert store.search(("a",), query='{"text": "the dragon sleeps"}')[0].score == pytest.approx(1.0)
