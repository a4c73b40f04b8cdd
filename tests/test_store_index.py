"""What of a value is indexed: the whole of it unless fields are named, and what becomes of a file when they change."""

from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from letters import Letters
from stores import execute, keys

from questbook import EmbedderChangedError, Exchange, FaissStore, HashEmbeddings, Query, recall, remember
from questbook.graphs.local.databases import open_store
from questbook.memory.embeddings.embedders import identify
from questbook.memory.embeddings.loading import load_embeddings
from questbook.memory.errors import EmbeddingError, StoreConfigError

CAT = {"title": "Felines", "body": "Biscuit is a tabby.", "tags": ["home"]}


def open_with(path, fields, **options):
    return FaissStore.open(path, {"embed": Letters(), "fields": fields}, **options)


def test_without_an_index_the_whole_value_is_found(path):
    with FaissStore.open(path) as store:
        store.put(("a",), "cat", CAT)
        store.put(("a",), "dog", {"content": {"says": "Rex barks at night."}})
        for query, key in (("Biscuit", "cat"), ("felines", "cat"), ("barks at night", "dog")):
            [best] = store.search(("a",), query=query, limit=1)
            assert (best.key, best.score > 0) == (key, True)


def test_without_fields_it_scores_as_langgraphs_store_does(path):
    theirs = InMemoryStore(index={"embed": Letters(), "dims": Letters.dims})
    with FaissStore.open(path, {"embed": Letters(), "lexical": False}) as ours:
        for store in (ours, theirs):
            store.put(("a",), "cat", CAT)
            store.put(("a",), "body", CAT, index=["body"])
            store.put(("a",), "none", CAT, index=False)
        found = [{item.key: item.score for item in store.search(("a",), query="tabby")} for store in (ours, theirs)]
    assert found[0] == pytest.approx(found[1])


def test_a_put_of_which_nothing_is_indexed_is_warned_of_once(path, caplog):
    with FaissStore.open(":memory:", None) as store:
        store.put(("a",), "k", {"content": "x"})
    with open_with(path, ["text"]) as store:
        store.put(("a",), "seen", {"text": "x"})
        store.put(("a",), "flag", {"on": True}, index=False)
        assert caplog.messages == []
        store.put(("a",), "lost", {"content": "x", "id": 1})
        store.put(("a",), "more", {"content": "x"})
    [message] = caplog.messages
    assert "'lost' in ('a',)" in message
    assert "['text']" in message
    assert "['content', 'id']" in message


def test_other_fields_make_words_and_vectors_anew(path):
    with open_with(path, ["title"]) as store:
        store.put(("a",), "cat", CAT)
        store.put(("a",), "own", CAT, index=["tags[*]"])
        assert store.search(("a",), query="Felines")[0].score == pytest.approx(1.0)
    with open_with(path, ["body"]) as store:
        [best] = store.search(("a",), query="Biscuit is a tabby.", limit=1)
        assert (best.key, best.score) == ("cat", pytest.approx(1.0))
        assert store.search(("a",), query="home", limit=1)[0].key == "own", "its own paths stay"
    with FaissStore.open(path, {"embed": None, "fields": ["title"]}) as store:
        assert keys(store.search(("a",), query="felines", limit=1)) == ["cat"]


def test_other_fields_alone_make_vectors_anew_where_the_words_stay(path):
    words = {"embed": Letters(), "lexical": {"body": 1.0}}
    with FaissStore.open(path, {**words, "fields": ["title"]}) as store:
        store.put(("a",), "cat", CAT)
    with pytest.raises(EmbedderChangedError, match=r'of \["title"\].*of \["body"\].*reembed=True'):
        FaissStore.open(path, {**words, "fields": ["body"]}, reembed=False)
    with FaissStore.open(path, {**words, "fields": ["body"]}) as store:
        assert store.search(("a",), query="Biscuit is a tabby.")[0].score == pytest.approx(1.0)


@pytest.mark.parametrize(("fields", "anew"), [(["text"], 0), (["text", "more"], 0), (None, 3)])
def test_a_file_of_version_0_2_did_not_name_its_fields(path, fields, anew):
    with open_with(path, ["text"]) as store:
        for n in range(3):
            store.put(("a",), str(n), {"text": f"thing {n}"})
    execute(path, "DELETE FROM meta WHERE key = 'fields'")
    done = []
    with open_with(path, fields, progress=lambda n, _: done.append(n)) as store:
        assert store.search(("a",), query="thing 1", limit=1)[0].key == "1"
    assert max(done, default=0) == anew
    with open_with(path, fields, reembed=False):
        pass  # from now on the file knows


@pytest.mark.parametrize("kind", ["faiss", "memory"])
async def test_of_a_record_only_the_text_is_indexed_where_a_store_indexes_whole_values(kind, path):
    store = FaissStore.open(path) if kind == "faiss" else InMemoryStore(index={"embed": HashEmbeddings(), "dims": 512})
    timeline = await remember(store, ("a",), {"player": "My cat is Biscuit.", "reply": "Lovely."})
    timeline = await remember(store, ("a",), Exchange(text="It rains."), timeline=timeline)
    [cat, _] = await store.asearch(("a",), query="My cat is Biscuit.\nLovely.")
    assert (cat.value["turn"], cat.score) == (1, pytest.approx(1.0))
    [best, *_] = await recall(store, ("a",), Query("What is my cat called?", timeline=timeline))
    assert best.key == cat.key


def test_an_embedder_in_a_file_is_loaded_as_langgraph_json_names_it(tmp_path, monkeypatch):
    (tmp_path / "vectors.py").write_text(
        "from questbook import HashEmbeddings\n"
        "model = HashEmbeddings(64)\n"
        "def embed(texts):\n    return model.embed_documents(texts)\n"
        "async def aembed(texts):\n    return model.embed_documents(texts)\n"
        "number = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    for name in ("./vectors.py:model", "vectors.py:embed", f"{tmp_path}/vectors.py:aembed"):
        with FaissStore.open(tmp_path / "store.db", {"embed": name, "dims": 64}) as store:
            store.put(("a",), "k", {"text": name})
            assert store.search(("a",), query=name)[0].score > 0.5
    assert identify(load_embeddings("./vectors.py:embed")) == "embed"
    assert identify(load_embeddings("./vectors.py:aembed")) == "aembed"
    with pytest.raises(EmbeddingError, match=r"vectors\.py has no embedder and no embedding function 'number'.*3"):
        load_embeddings("./vectors.py:number")
    with pytest.raises(EmbeddingError, match=r"vectors\.py has no embedder and no embedding function 'missing'.*None"):
        load_embeddings("./vectors.py:missing")
    with pytest.raises(EmbeddingError, match=r"vectors\.py:embed:x: there is no such file"):
        load_embeddings("./vectors.py:embed:x")
    with pytest.raises(EmbeddingError, match=r"gone\.py:embed: there is no such file"):
        load_embeddings("./gone.py:embed")
    (tmp_path / "broken.py").write_text("1/0")
    with pytest.raises(EmbeddingError, match=r"broken\.py:embed: ZeroDivisionError"):
        load_embeddings("./broken.py:embed")


async def test_the_games_store_takes_an_index_and_a_time_to_live(tmp_path):
    index = {"embed": Letters(), "fields": ["content"]}
    ttl = {"default_ttl": 0.0001, "omit_expired": True, "sweep_interval_minutes": 1}
    async with open_store(tmp_path / "store.db", index=index, ttl=ttl) as store:
        await store.aput(("a",), "lasting", {"content": "Felines"}, ttl=None)
        await store.aput(("a",), "short", {"content": "x"})
        assert store.index_config["fields"] == ["content"]
        assert (await store.asearch(("a",), query="Felines"))[0].score == pytest.approx(1.0)
        assert store.ttl_config == ttl


def test_words_and_vectors_of_a_value_are_those_of_its_fields_or_of_the_puts_own(path):
    index = {"embed": Letters(), "fields": ["title", "title", "body"], "lexical": {"title": 1.0, "tags[*]": 0.5}}
    with FaissStore.open(path, index) as store:
        store.put(("a",), "all", CAT)
        store.put(("a",), "own", CAT, index=["tags[*]"])
        store.put(("a",), "none", CAT, index=False)
        assert store.index_config["fields"] == ["title", "body"]
        assert store.index_config["dims"] == Letters.dims
    assert execute(path, "SELECT key, vectors, texts FROM items ORDER BY key") == [
        ("all", 2, 1),
        ("none", 0, 0),
        ("own", 1, 1),
    ]
    assert execute(path, "SELECT * FROM texts ORDER BY rowid") == [("1xfelines", "1xhome", ""), ("", "1xhome", "")]


def test_settings_of_an_empty_store_are_those_that_it_is_opened_with_last(path):
    for fields, dims in ((["title"], 64), (["body"], 32)):
        with FaissStore.open(path, {"embed": HashEmbeddings(dims), "fields": fields}, reembed=False) as store:
            assert store.search(("a",), query="x") == []
    with FaissStore.open(path, {"embed": HashEmbeddings(32), "fields": ["body"]}, reembed=False) as store:
        store.put(("a",), "cat", CAT)
        assert store.search(("a",), query="tabby")[0].key == "cat"
    meta = dict(execute(path, "SELECT key, value FROM meta"))
    assert (meta["embedder"], meta["fields"], meta["lexical"]) == (
        "hash-1:32 with 32 dimensions",
        '["body"]',
        '["body"]',
    )


def test_a_store_whose_file_was_indexed_otherwise_meanwhile_says_so_before_it_writes_or_asks(path):
    with FaissStore.open(path, {"embed": HashEmbeddings(64), "fields": ["title"]}) as store:
        store.put(("a",), "cat", CAT)
        with FaissStore.open(path, {"embed": HashEmbeddings(32), "fields": ["body"]}):
            pass
        says = r"another process has changed what .*store\.db is indexed with from .*: open it again, with the same"
        with pytest.raises(EmbedderChangedError, match=says):
            store.put(("a",), "dog", CAT)
        with pytest.raises(EmbedderChangedError, match=says):
            store.search(("a",), query="x")
        assert [item.key for item in store.search(("a",))] == ["cat"], "what needs no index is read"
        assert store.get(("a",), "dog") is None


def test_an_embedder_says_what_its_cosine_is_worth_unless_the_settings_do(path):
    for index, weight in (
        ({"embed": HashEmbeddings(64)}, 0.25),
        ({"embed": HashEmbeddings(64), "weights": {"dense": 2}}, 2.0),
    ):
        assert FaissStore(path, index=index)._index.settings.weights == {"dense": weight, "lexical": 1.0}
    assert FaissStore(path, index={"embed": Letters()})._index.settings.weights == {"dense": 1.0, "lexical": 1.0}
    ranks = [
        FaissStore(path, index=index).ranks_words
        for index in (None, {}, {"lexical": False}, {"weights": {"lexical": 0}})
    ]
    assert ranks == [False, True, False, False]


@pytest.mark.parametrize("synchronous", ["off", "FULL", "", None])
def test_how_a_store_waits_for_the_disk_is_full_or_normal(path, synchronous):
    with pytest.raises(StoreConfigError, match=f"synchronous must be 'full' or 'normal', got {synchronous!r}"):
        FaissStore.open(path, synchronous=synchronous)


@pytest.mark.parametrize("limit", ["cache_bytes", "exact_limit"])
def test_a_limit_of_a_store_is_refused_when_it_is_made(path, limit):
    with pytest.raises(StoreConfigError, match=f"{limit}: got '1G'; expected a whole number from 0"):
        FaissStore(path, **{limit: "1G"})


def test_a_store_in_ram_leaves_nothing_behind():
    with FaissStore.open(":memory:") as store:
        store.put(("a",), "k", {"text": "x"})
        file = Path(execute(store._database.path, "PRAGMA database_list")[0][2])
        assert file.exists()
    assert not file.parent.exists()
