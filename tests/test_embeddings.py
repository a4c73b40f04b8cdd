"""The embedders that come with the store."""

import math
import os
import subprocess
import sys

import pytest

from questbook import HashEmbeddings, load_embeddings
from questbook.memory.embeddings.embedders import announced_dims, identify
from questbook.memory.errors import EmbeddingError


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_vectors_have_length_one_and_the_asked_dimension():
    vector = HashEmbeddings(128).embed_query("The dragon sleeps.")
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


@pytest.mark.slow
def test_another_process_makes_the_same_vectors():
    code = "from questbook import HashEmbeddings; print(HashEmbeddings(16).embed_query('dragon egg'))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{HashEmbeddings(16).embed_query('dragon egg')}\n"}


def test_lone_surrogates_do_no_harm():
    assert math.hypot(*HashEmbeddings().embed_query("a\ud800b")) > 0


def test_embedders_are_loaded_by_name():
    assert load_embeddings("hash").dims == HashEmbeddings().dims
    assert load_embeddings("hash:64").dims == 64


@pytest.mark.parametrize("name", ["hash:many", "hash:4", "nobody:nothing", "", "nothing"])
def test_names_that_mean_nothing_are_refused_by_name(name):
    with pytest.raises(EmbeddingError):
        load_embeddings(name)


def test_a_missing_key_is_explained(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EmbeddingError, match="openai:text-embedding-3-small"):
        load_embeddings("openai:text-embedding-3-small")


def test_a_name_that_nobody_knows_is_answered_with_what_is_expected():
    with pytest.raises(EmbeddingError, match=r"'minlm': expected hash, minilm, FILE.py:NAME, or provider:model"):
        load_embeddings("minlm")


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
