"""Embedders by name, and the one of a store that names none."""

import re
import runpy
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langgraph.store.base.embed import ensure_embeddings

from questbook.memory.embeddings.embedders import HashEmbeddings
from questbook.memory.embeddings.minilm import WITHOUT, MiniLMEmbeddings, minilm_directory, steps_to_minilm
from questbook.memory.errors import EmbeddingError

AUTO = "auto"
"""In place of an embedder's name: the one that made the file's vectors; in a new file MiniLM, if it is ready here."""
_HASHED = re.compile(r"hash-1:(\d+) ")


def choose_embeddings(file: Path | str, recorded: str | None) -> Embeddings:
    """Return the embedder of a store that names none (`AUTO`): the one that its file records.

    If the file has no vectors yet (None), it is MiniLM, if its weights and its tokenizer are here, else hash. One that
    cannot be used here, or is not known by its name alone, is an EmbeddingError.
    """
    steps = steps_to_minilm()
    if recorded is None:
        return HashEmbeddings() if steps else MiniLMEmbeddings()
    if match := _HASHED.match(recorded):
        return HashEmbeddings(int(match[1]))
    made = f"{file} has vectors of {recorded}"
    if not recorded.startswith(MiniLMEmbeddings.identity):
        raise EmbeddingError(f"{made}, and no embedder is named: name the one that made them, or {WITHOUT}")
    if steps:
        run = " and ".join(f"`{step}`" for step in steps)
        here = f"which cannot be used here, with weights in {minilm_directory()}"
        raise EmbeddingError(f"{made}, {here}: run {run}, or {WITHOUT}")
    return MiniLMEmbeddings()


def load_embeddings(name: str, **options: Any) -> Embeddings:
    """Load a LangChain embedder by name.

    Args:
        name: `hash` or `hash:<dims>` for `HashEmbeddings`; `minilm` or `minilm:<directory>` for
            `MiniLMEmbeddings`; `<file>.py:<name>` for an embedder or an embedding function in a Python file, as in
            `langgraph.json`; otherwise `provider:model` as LangChain's `init_embeddings` takes it, for example
            `openai:text-embedding-3-small`.
        **options: Passed to `init_embeddings`.

    Raises:
        EmbeddingError: If the name is not understood, or the provider's package or key is missing.
    """
    if ".py:" in name:
        return _load_from_file(*name.rsplit(":", 1))
    provider, _, model = name.partition(":")
    if provider == "hash":
        if model and not model.isdecimal():
            raise EmbeddingError(f"{name!r}: expected 'hash' or 'hash:<dims>', for example 'hash:512'")
        return HashEmbeddings(int(model)) if model else HashEmbeddings()
    if provider == "minilm":
        return MiniLMEmbeddings(model or None)
    from langchain.embeddings import init_embeddings  # half a second that most runs do not need

    try:
        loaded = init_embeddings(name, **options)
    except (ValueError, ImportError, TypeError) as error:
        expected = "expected hash, minilm, FILE.py:NAME, or provider:model as LangChain's init_embeddings takes it"
        raise EmbeddingError(f"cannot load the embedder {name!r}: {expected}. {error}") from error
    except Exception as error:
        raise EmbeddingError(f"cannot start the embedder {name!r}: {type(error).__name__}: {error}") from error
    if not isinstance(loaded, Embeddings):
        raise EmbeddingError(f"{name!r} loaded a {type(loaded).__name__}, not a LangChain Embeddings")
    return loaded


def _load_from_file(file: str, name: str) -> Embeddings:
    try:
        embed = runpy.run_path(file).get(name)
    except Exception as error:  # it is the app's own program
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else f"{type(error).__name__}: {error}"
        raise EmbeddingError(f"cannot load the embedder {file}:{name}: {reason}") from error
    if not isinstance(embed, Embeddings) and not callable(embed):
        found = f"it has {embed!r:.80} of that name"
        raise EmbeddingError(f"{file} has no embedder and no embedding function {name!r}; {found}")
    return ensure_embeddings(embed)
