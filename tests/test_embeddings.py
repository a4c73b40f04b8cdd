"""The embedders that come with the store."""

import asyncio
import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from langgraph.store.base import ensure_embeddings

from questbook import HashEmbeddings, load_embeddings
from questbook.memory.embeddings.embedders import BatchEmbedder, KnownVectors, announced_dims, embedder_of, identify
from questbook.memory.errors import EmbedderChangedError, EmbeddingError


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("text", ["The dragon sleeps.", "a\ud800b"])
def test_vectors_have_length_one_and_the_asked_dimension(text):
    vector = HashEmbeddings(128).embed_query(text)
    assert len(vector) == 128
    assert math.hypot(*vector) == pytest.approx(1.0)


def test_shared_words_and_spellings_are_close():
    embed = HashEmbeddings().embed_query
    dragon = embed("The red dragon sleeps under the mountain")
    assert cosine(dragon, embed("red dragons sleeping below a mountain")) > 0.3
    assert cosine(dragon, embed("buy milk and eggs")) < 0.15
    assert cosine(dragon, embed("the RED dragon sleeps, under the mountain!")) == pytest.approx(1.0)
    assert cosine(embed("naïve café"), embed("naive cafe")) == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["", " ", "?!", "🐉"])
def test_texts_without_words_are_the_zero_vector(text):
    assert set(HashEmbeddings().embed_query(text)) == {0.0}


def test_documents_and_queries_are_embedded_alike():
    embed = HashEmbeddings()
    assert embed.embed_documents(["a b", "c"]) == [embed.embed_query("a b"), embed.embed_query("c")]


def test_vectors_are_the_same_on_every_machine():
    expected = [-0.4781, -0.5976, -0.1195, 0.239, -0.239, -0.239, 0.0, 0.4781]
    assert HashEmbeddings(8).embed_query("dragon egg") == pytest.approx(expected, abs=1e-4)


def test_embedders_are_loaded_by_name():
    assert load_embeddings("hash").dims == HashEmbeddings().dims
    assert load_embeddings("hash:64").dims == 64


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hash:many", "expected 'hash' or"),
        ("hash:4", "8 dimensions or more, got 4"),
        ("nobody:nothing", "'nobody:nothing'"),
        ("", "expected hash"),
        ("minlm", "'minlm': expected hash, minilm, FILE.py:NAME, or provider:model"),
        ("openai:text-embedding-3-small", "openai:text-embedding-3-small"),  # its key is missing
    ],
)
def test_names_that_mean_nothing_are_answered_with_what_is_expected(monkeypatch, name, says):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EmbeddingError, match=says):
        load_embeddings(name)


def test_provider_names_go_to_langchain():
    loaded = load_embeddings("openai:text-embedding-3-small", api_key="none")
    assert identify(loaded) == "OpenAIEmbeddings:text-embedding-3-small"
    assert announced_dims(loaded) is None


def test_identities_tell_models_apart():
    def by_hand(texts):
        return texts

    assert identify(HashEmbeddings(64)) != identify(HashEmbeddings(65))
    assert "by_hand" in identify(by_hand)
    assert announced_dims(HashEmbeddings(64)) == 64
    assert announced_dims(by_hand) is None


GOLDEN = [
    [(23, 0.104), (24, 0.104), (35, -0.104), (39, -0.104)],
    [(6, -0.146), (11, 0.146), (18, 0.146), (19, -0.146)],
    [],
    [(1, -0.371), (33, 0.928)],
]


def test_the_vectors_of_hash_never_change():
    """Files keep them for years: a new version must find with them what an old one wrote."""
    texts = ("The silver heron sails at dawn.", "Größe, 東京都, l-77", "")
    short = HashEmbeddings(64).embed_query("a") + [0.0] * 320
    vectors = np.array([*HashEmbeddings(384).embed_documents(list(texts)), short])
    golden = [[(int(n), round(float(v[n]), 3)) for n in np.flatnonzero(v)[:4]] for v in vectors]
    assert golden == GOLDEN


class Plain(HashEmbeddings):
    """An embedder without an identity, with attributes as a provider's has them."""

    identity = None

    def __init__(self, **attributes):
        super().__init__(8)
        del self.dims
        vars(self).update(attributes)


@pytest.mark.parametrize(
    ("attributes", "dims"),
    [
        ({"dims": 3}, 3), ({"dimensions": 4}, 4), ({"dim": 5}, 5), ({"dims": None, "dim": 5}, 5),
        ({"dims": 0, "dim": 5}, 5),
        ({"dims": -1}, None), ({"dims": True}, None), ({"dims": "3"}, None), ({"dims": 3.0}, None), ({}, None),
    ],
)  # fmt: skip
def test_the_dimension_that_an_embedder_says_it_has(attributes, dims):
    assert announced_dims(Plain(**attributes)) == dims


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"model": "m"}, "Plain:m"), ({"model_name": "n"}, "Plain:n"), ({"model": 7, "model_name": "n"}, "Plain:n"),
        ({"model": ""}, "Plain"), ({}, "Plain"), ({"model_id": "i"}, "Plain:i"), ({"deployment": "d"}, "Plain:d"),
        ({"model": "m", "deployment": "d"}, "Plain:m"),
        ({"model": "m", "deployment": "d", "model_fields_set": {"deployment"}}, "Plain:m:d"),
    ],
)  # fmt: skip
def test_an_embedder_without_an_identity_is_known_by_its_class_and_model(attributes, name):
    assert identify(Plain(**attributes)) == name
    assert identify(Plain(underlying_embeddings=Plain(**attributes))) == name, "in LangChain's cache"


def test_a_partial_function_is_known_by_what_it_names():
    def embed(texts, **named):
        return HashEmbeddings(8).embed_documents(texts)

    name = identify(embed)
    assert identify(partial(embed, model="a", dimensions=3)) == f"{name}:dimensions=3:model='a'"
    assert identify(partial(embed, client=object(), api_key="sk-1", timeout=3)) == name, "how it is reached is none"
    assert identify(ensure_embeddings(partial(embed, model="b"))) == f"{name}:model='b'"


def test_the_embedder_of_a_store_is_what_it_made_or_what_its_index_says():
    embed = HashEmbeddings(8)
    assert embedder_of(SimpleNamespace(embeddings=embed, index_config={"embed": "other"})) is embed
    assert embedder_of(SimpleNamespace(embeddings=None, index_config={"embed": embed})) is embed
    assert embedder_of(SimpleNamespace(index_config={"embed": embed})) is embed
    for none in (SimpleNamespace(), SimpleNamespace(index_config=None), SimpleNamespace(index_config={})):
        assert embedder_of(none) is None


@pytest.mark.filterwarnings("ignore:overflow")  # of the squares, which are then computed again
@pytest.mark.parametrize(
    ("vector", "unit"),
    [
        ([3.0, 4.0], [0.6, 0.8]), ([0.0, 0.0], [0.0, 0.0]), ([1e-30, 0.0], [1.0, 0.0]), ([0.0, -1e30], [0.0, -1.0]),
        ([1e38, 1e38], [0.5**0.5] * 2), ([1, 0], [1.0, 0.0]), ((3.0, 4.0), [0.6, 0.8]),
        (np.array([3.0, 4.0]), [0.6, 0.8]),
    ],
    ids=repr,
)  # fmt: skip
def test_a_vector_is_scaled_to_length_one_and_the_zero_vector_stays(vector, unit):
    found = BatchEmbedder(HashEmbeddings(8), 2).units({"x": vector})["x"]
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx(unit, abs=1e-6)


@pytest.mark.parametrize(
    ("vector", "error", "says"),
    [
        ([1.0], EmbedderChangedError, "returned 1 dimensions, the store is set to 2; give index.*dims.* as the model"),
        ([1.0, 0.0, 0.0], EmbedderChangedError, "returned 3 dimensions, the store is set to 2"),
        ([float("nan"), 1.0], EmbeddingError, "expected vectors of 2 finite numbers"),
        ([float("inf"), 1.0], EmbeddingError, "expected vectors of 2 finite numbers"),
        ([[1.0, 0.0]], EmbeddingError, "expected vectors of 2 finite numbers, got shape"),
        (["a", "b"], EmbeddingError, "something that is no vector of numbers"),
        ([None, 1.0], EmbeddingError, "no vector of numbers|finite numbers"),
        (7.0, EmbeddingError, "finite numbers"),
    ],
    ids=repr,
)
def test_what_is_no_vector_of_the_right_length_is_refused(vector, error, says):
    with pytest.raises(error, match=says):
        BatchEmbedder(HashEmbeddings(8), 2).units({"x": vector})


class Counting(HashEmbeddings):
    """Notes what it is asked to embed, and answers as told."""

    def __init__(self, answer=None):
        super().__init__(8)
        self.asked, self.answer = [], answer

    def embed_documents(self, texts):
        self.asked.append(list(texts))
        if isinstance(self.answer, Exception):
            raise self.answer
        return super().embed_documents(texts) if self.answer is None else self.answer

    def embed_query(self, text):
        self.asked.append(text)
        return super().embed_query(text)

    async def aembed_documents(self, texts):
        return self.embed_documents(texts)

    async def aembed_query(self, text):
        return self.embed_query(text)


async def test_each_text_is_embedded_once_and_nothing_where_there_is_nothing():
    embed = Counting()
    batch = BatchEmbedder(embed, 8)
    assert set(batch.embed(["a", "b", "a"], ["q", "q"]).documents) == {"a", "b"}
    assert embed.asked == [["a", "b"], "q"]
    embed.asked.clear()
    await batch.aembed(["a", "a"], ["q", "q"])
    assert embed.asked == [["a"], "q"]
    embed.asked.clear()
    assert batch.embed([], []) == await batch.aembed([], []) == ({}, {})
    assert embed.asked == []


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (EmbeddingError("no weights"), "^no weights$"),
        (RuntimeError("no quota"), "^the embedder failed, nothing was written: RuntimeError: no quota$"),
        ([[1.0] * 8], "^the embedder returned 1 vectors for 2 texts, nothing was written$"),
        (iter([]), "^the embedder returned a list_iterator for 2 texts, nothing was written$"),
    ],
    ids=range(4),
)
async def test_a_failure_of_an_embedder_says_that_nothing_was_written(answer, says):
    batch = BatchEmbedder(Counting(answer), 8)
    with pytest.raises(EmbeddingError, match=says):
        batch.embed(["a", "b"], [])
    with pytest.raises(EmbeddingError, match=says):
        await batch.aembed(["a", "b"], [])


def test_the_dimension_of_an_embedder_that_does_not_say_it_is_measured():
    class Short(Counting):
        def embed_query(self, text):
            return self.answer

    assert BatchEmbedder.probed(Counting()).dims == 8
    for wrong in ([], None, 7):
        with pytest.raises(EmbeddingError, match="for a word; expected a list of numbers"):
            BatchEmbedder.probed(Short(wrong))


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (
            ValueError("no key"),
            "^cannot load the embedder 'x:y': expected hash, minilm, FILE.py:NAME, or provider:.* no key$",
        ),
        (ImportError("no package"), "^cannot load the embedder 'x:y': expected .* no package$"),
        (TypeError("odd argument"), "^cannot load the embedder 'x:y': expected .* odd argument$"),
        (RuntimeError("gone"), "^cannot start the embedder 'x:y': RuntimeError: gone$"),
        (7, "^'x:y' loaded a int, not a LangChain Embeddings$"),
    ],
    ids=repr,
)
def test_whatever_goes_wrong_with_a_providers_embedder_is_an_embedding_error(monkeypatch, outcome, says):
    def load(name, **options):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr("langchain.embeddings.init_embeddings", load)
    with pytest.raises(EmbeddingError, match=says):
        load_embeddings("x:y")


async def test_known_vectors_are_taken_and_the_rest_is_asked_for_once():
    embed = Counting()
    known = KnownVectors(embed, {"a": [1.0] * 8})
    assert known.embed_documents(["a", "b", "b", "a"])[0] == [1.0] * 8
    assert known.embed_documents(["a"]) == [[1.0] * 8]
    assert embed.asked == [["b"]]
    assert known.embed_query("a") == HashEmbeddings(8).embed_query("a")
    assert known.identity == "hash-1:8"
    assert (announced_dims(known), known.fusion_weight) == (8, HashEmbeddings.fusion_weight)
    assert KnownVectors(Plain(fusion_weight=1.0), {}).fusion_weight == 1.0


async def test_hashes_of_a_turns_few_texts_are_there_without_waiting_and_those_of_many_leave_the_event_loop_free():
    batch, turns = BatchEmbedder(HashEmbeddings(64), 64), []
    asyncio.get_running_loop().call_soon(turns.append, "of another player")
    few = await batch.aembed(["a mill"], ["the mill", "a mill"])
    assert (list(few.documents), list(few.queries), turns) == (["a mill"], ["the mill", "a mill"], [])
    many = await batch.aembed(["mill " * 1_000], ["the mill"])
    assert (len(many.documents), turns) == (1, ["of another player"])
    assert many.queries["the mill"] == few.queries["the mill"]
