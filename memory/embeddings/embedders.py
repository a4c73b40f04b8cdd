"""Embedders that come with the store, and how to name any other.

`docs/embeddings.md` says which one to choose, `docs/figures.md` what each finds.
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
import re
import sys
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from zlib import crc32

from langchain_core.embeddings import Embeddings
from langgraph.store.base.embed import EmbeddingsLambda, ensure_embeddings

from questbook.memory.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from langgraph.store.base.embed import AEmbeddingsFunc, EmbeddingsFunc
    from numpy.typing import NDArray

AUTO = "auto"
"""In place of an embedder's name: the one that made the file's vectors; in a new file MiniLM, if it is ready here."""
_WORD = re.compile(r"[^\W_]+")
_HASHED = re.compile(r"hash-1:(\d+) ")
_DEFAULT_DIMS = 512
_GRAMS = (3, 4, 5)  # lengths of the character n-grams, as measured (docs/figures.md)
_GRAM_WEIGHT = 0.4  # one n-gram against one word: a word has many n-grams
_AT_ONCE = 4_000  # characters of documents that are embedded without a thread: less than a millisecond


@runtime_checkable
class HasIdentity(Protocol):
    """An embedder with a name, by which the store notices when it changes."""

    @property
    def identity(self) -> str:
        """A name that changes whenever the vectors would."""


class HashEmbeddings(Embeddings):
    """Vectors of hashed words and character n-grams: no model, no download, the same on every machine.

    It knows spelling, not meaning: texts that share words, or parts of words, are close. That is good for similarity
    thresholds and for finding duplicates; for searching, the word index beside it does more. (Feature hashing with
    signs after Weinberger et al. 2009, term frequencies damped by 1 + ln.)

    Args:
        dims: Number of dimensions, 8 or more. More dimensions mean fewer collisions and larger files.
    """

    fusion_weight = 0.25
    """The weight of its cosine beside word scores of weight 1, which know spelling better."""

    def __init__(self, dims: int = _DEFAULT_DIMS) -> None:
        if dims < 8:
            raise EmbeddingError(f"HashEmbeddings needs 8 dimensions or more, got {dims}")
        self.dims = dims

    @property
    def identity(self) -> str:
        """The algorithm's version and the dimension."""
        return f"hash-1:{self.dims}"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts as unit vectors; a text without letters or digits gives the zero vector."""
        return [list(_embed(text, self.dims)) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Embed a query as documents are embedded."""
        return list(_embed(text, self.dims))

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed a turn's few texts at once, many in a thread."""
        if "numpy" in sys.modules and sum(map(len, texts)) <= _AT_ONCE:  # its import would block the event loop
            return self.embed_documents(texts)
        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """Embed a query at once: a thread would take longer to wake up."""
        if "numpy" in sys.modules:
            return self.embed_query(text)
        return await asyncio.to_thread(self.embed_query, text)


@lru_cache(maxsize=16)  # a fact, or a turn, is searched with before it is stored
def _embed(text: str, dims: int) -> tuple[float, ...]:
    import numpy as np

    features, counts = _features(text)
    hashes, is_gram = features >> 1, features & 1
    weights = (1.0 + np.log(counts)) * np.where(is_gram, _GRAM_WEIGHT, 1.0)
    # The sign comes from a bit that the position does not use, so that collisions cancel on average.
    vector = np.bincount((hashes >> 1) % dims, np.where(hashes & 1, weights, -weights), dims)
    norm = math.sqrt(float(vector @ vector))
    return tuple((vector / norm if norm else vector).tolist())


def _features(text: str) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return the different codes of a text's words, and how often each occurs."""
    import numpy as np

    folded = text.lower()
    if not folded.isascii():
        folded = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    codes = [_codes(word) for word in _WORD.findall(folded)]
    return np.unique(np.concatenate([np.empty(0, np.int64), *codes]), return_counts=True)


@lru_cache(maxsize=8192)  # texts of one campaign have most of their words in common
def _codes(word: str) -> NDArray[np.int64]:
    """Return the hash of a word and of its n-grams; the lowest bit says which is an n-gram."""
    import numpy as np

    marked = f" {word} "
    grams = (f"#{marked[i : i + length]}" for length in _GRAMS for i in range(len(marked) - length + 1))
    return np.array([_hash(word) << 1, *(_hash(gram) << 1 | 1 for gram in grams)], np.int64)


def _hash(feature: str) -> int:
    return crc32(feature.encode("utf-8", "surrogatepass"))


class KnownVectors(Embeddings):
    """An embedder that knows the vectors of some texts and asks another one, whose identity it has, for the rest."""

    def __init__(self, embedder: Embeddings, known: Mapping[str, list[float]]) -> None:
        self._embedder, self._known = embedder, known

    @property
    def identity(self) -> str:
        """Identity of the real embedder."""
        return identify(self._embedder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts; use the known vectors."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        new = dict(zip(missing, self._embedder.embed_documents(missing), strict=True)) if missing else {}
        return [self._known[text] if text in self._known else new[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Embed a query with the real embedder."""
        return self._embedder.embed_query(text)


def embedder_of(store: object) -> object:
    """Return the embedder of a store; None if the store does not say it."""
    if (embeddings := getattr(store, "embeddings", None)) is not None:
        return embeddings  # what the store has made of a name in its index
    index = getattr(store, "index_config", None)
    return index.get("embed") if isinstance(index, Mapping) else None


def choose_embeddings(file: Path, recorded: str | None) -> Embeddings:
    """Return the embedder of a store that names none (`AUTO`).

    Args:
        file: The store's file, for the error.
        recorded: What the file says of its embedder: its `identify` and its dimension; None: it has no vectors yet.
            Then it is MiniLM, if its weights and its tokenizer are here, else `HashEmbeddings`.

    Raises:
        EmbeddingError: That embedder cannot be used here, or is not known by its name alone.
    """
    from questbook.memory.embeddings.minilm import WITHOUT, MiniLMEmbeddings, minilm_directory, steps_to_minilm

    steps = steps_to_minilm()
    if recorded is None:
        return HashEmbeddings() if steps else MiniLMEmbeddings()
    if match := _HASHED.match(recorded):
        return HashEmbeddings(int(match[1]))
    made = f"{file} has vectors of {recorded}"
    if not recorded.startswith(MiniLMEmbeddings.identity):
        raise EmbeddingError(f"{made}, and no embedder is named: name the one that made them, or {WITHOUT}")
    if steps:
        raise EmbeddingError(
            f"{made}, which cannot be used here, with weights in {minilm_directory()}: run "
            f"{' and '.join(f'`{step}`' for step in steps)}, or {WITHOUT}"
        )
    return MiniLMEmbeddings()


def load_embeddings(name: str, **options: Any) -> Embeddings:
    """Load an embedder by name.

    Args:
        name: `hash` or `hash:<dims>` for `HashEmbeddings`; `minilm` or `minilm:<directory>` for
            `MiniLMEmbeddings`; `<file>.py:<name>` for an embedder or an embedding function in a Python file, as in
            `langgraph.json`; otherwise `provider:model` as LangChain's
            `init_embeddings` takes it, for example `openai:text-embedding-3-small`.
        **options: Passed to `init_embeddings`.

    Returns:
        A LangChain `Embeddings`.

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
        from questbook.memory.embeddings.minilm import MiniLMEmbeddings

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
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise EmbeddingError(f"cannot load the embedder {file}:{name}: {file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # it is the app's own program
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else f"{type(error).__name__}: {error}"
        raise EmbeddingError(f"cannot load the embedder {file}:{name}: {reason}") from error
    embed = getattr(module, name, None)
    if not isinstance(embed, Embeddings) and not callable(embed):
        raise EmbeddingError(
            f"{file} has no embedder and no embedding function {name!r}; it has {embed!r:.80} of that name"
        )
    return ensure_embeddings(embed)


def identify(embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc) -> str:
    """Return the name of an embedder or embedding function; another model has another name.

    It is its `identity` if it has one; otherwise its class and model name, or the qualified name of the function.
    """
    if isinstance(embed, HasIdentity):
        return embed.identity
    if isinstance(embed, EmbeddingsLambda):  # what LangGraph makes of a function
        embed = getattr(embed, "func", None) or embed.afunc
    named = embed if callable(embed) and not isinstance(embed, Embeddings) else type(embed)
    home = getattr(named, "__qualname__", type(embed).__qualname__)
    model = next((m for m in (getattr(embed, a, None) for a in ("model", "model_name")) if isinstance(m, str)), None)
    return f"{home}:{model}" if model else home


def announced_dims(embed: object) -> int | None:
    """Return the dimension that an embedder says it has; None if it does not say it."""
    for attribute in ("dims", "dimensions", "dim"):
        size = getattr(embed, attribute, None)
        if isinstance(size, int) and not isinstance(size, bool) and size > 0:
            return size
    return None
