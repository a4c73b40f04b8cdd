"""The embedders that come with the store."""

import math

import numpy as np
import pytest

from questbook import HashEmbeddings, load_embeddings
from questbook.memory.embeddings.embedders import announced_dims, identify
from questbook.memory.errors import EmbeddingError


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
