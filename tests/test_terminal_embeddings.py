"""`questbook embeddings get minilm`, and the setting that uses what it got."""

import asyncio

import pytest

from questbook.graphs.local.databases import open_store
from questbook.graphs.terminal.cli import main
from questbook.memory.errors import EmbeddingError


def test_what_is_not_the_published_model_is_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "model.safetensors").write_bytes(b"not the weights")
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    assert main(["embeddings", "get", "minilm", "--from", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.strip().splitlines()) == 1
    assert "SHA-256" in said.err


def test_a_source_that_is_not_there_is_refused_in_one_line(tmp_path, capsys):
    assert main(["embeddings", "get", "minilm", "--from", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_there_is_no_other_embedder_to_get(capsys):
    assert main(["embeddings", "get", "word2vec"]) == 2
    assert "minilm" in capsys.readouterr().err


def test_the_store_is_opened_with_the_embedder_that_the_settings_name(tmp_path, monkeypatch):
    async def identity():
        async with open_store(tmp_path / "m.db") as store:
            return store.embeddings.identity

    monkeypatch.setenv("QUESTBOOK_EMBEDDINGS", "hash:64")
    assert asyncio.run(identity()) == "hash-1:64"
    monkeypatch.setenv("QUESTBOOK_EMBEDDINGS", "hash:many")
    with pytest.raises(EmbeddingError, match="hash:<dims>"):
        asyncio.run(identity())
