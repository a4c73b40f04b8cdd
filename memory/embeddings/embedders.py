"""Embedders: vectors of hashed words, what an embedder says of itself, and calls to any of them.

`docs/embeddings.md` says which one to choose, `docs/figures.md` what each finds. `load_embeddings` is in `loading`.
"""

from __future__ import annotations

import asyncio
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, Self
from zlib import crc32

from langchain_core.embeddings import Embeddings
from langgraph.store.base.embed import EmbeddingsLambda

from questbook.memory.errors import EmbedderChangedError, EmbeddingError
from questbook.memory.sync import in_own_thread, run_sync

if TYPE_CHECKING:
    import numpy as np
    from langgraph.store.base.embed import AEmbeddingsFunc, EmbeddingsFunc
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

_WORD = re.compile(r"[^\W_]+")
_DEFAULT_DIMS = 512
_GRAMS = (3, 4, 5)  # lengths of the character n-grams, as measured (docs/figures.md)
_GRAM_WEIGHT = 0.4  # one n-gram against one word: a word has many n-grams
_AT_ONCE = 4_000  # characters of documents that are embedded without a thread: less than a millisecond
_SAFE = 1e-12  # lengths between this and its inverse are right in 32 bits; their squares neither vanish nor overflow


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

    def embeds_at_once(self, texts: Iterable[str]) -> bool:
        """Whether texts are so few that a thread would take longer to wake up; numpy's import would block the loop."""
        return "numpy" in sys.modules and sum(map(len, texts)) <= _AT_ONCE

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed a turn's few texts at once, many in a thread."""
        if self.embeds_at_once(texts):
            return self.embed_documents(texts)
        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """Embed a query as documents are embedded."""
        if self.embeds_at_once([text]):
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
    codes = [(_codes if len(word) < 64 else _codes.__wrapped__)(word) for word in _WORD.findall(folded)]
    return np.unique(np.concatenate([np.empty(0, np.int64), *codes]), return_counts=True)


@lru_cache(maxsize=8192)  # texts of one campaign have most of their words in common
def _codes(word: str) -> NDArray[np.int64]:
    """Return the hash of a word and of its n-grams; the lowest bit says which is an n-gram."""
    import numpy as np

    marked = f" {word} "
    grams = (f"#{marked[i : i + length]}" for length in _GRAMS for i in range(len(marked) - length + 1))
    hashes = [crc32(feature.encode("utf-8", "surrogatepass")) << 1 for feature in (word, *grams)]
    return np.array([hashes[0], *(of_gram | 1 for of_gram in hashes[1:])], np.int64)


class KnownVectors(Embeddings):
    """An embedder that knows the vectors of some texts and asks another one, whose identity it has, for the rest."""

    def __init__(self, embedder: Embeddings, known: Mapping[str, list[float]]) -> None:
        self._embedder, self._known = embedder, known
        self.dims, self.fusion_weight = announced_dims(embedder), getattr(embedder, "fusion_weight", 1.0)

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


_NAMING = frozenset({"model", "model_name", "model_id", "deployment", "dimensions"})
"""Arguments of an embedding function that say which embedder it is."""


def identify(embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc) -> str:
    """Return the name of an embedder or embedding function, by which the store notices when the model changes.

    It is its `identity` if it has one; otherwise its class and model name, or the qualified name of the function. Of
    LangChain's cache and of a `functools.partial` it is that of what is inside, with what the partial names.
    """
    if (identity := getattr(embed, "identity", None)) is not None:
        return str(identity)
    if isinstance(inside := getattr(embed, "underlying_embeddings", None), Embeddings):
        return identify(inside)
    if isinstance(embed, EmbeddingsLambda):  # what LangGraph makes of a function
        embed = getattr(embed, "func", None) or embed.afunc
    if isinstance(embed, partial):
        told = [f"{name}={value!r}" for name, value in sorted(embed.keywords.items()) if name in _NAMING]  # no key
        return ":".join([identify(embed.func), *told])
    named = embed if callable(embed) and not isinstance(embed, Embeddings) else type(embed)
    home = getattr(named, "__qualname__", type(embed).__qualname__)
    named_by = (getattr(embed, attribute, None) for attribute in ("model", "model_name", "model_id"))
    models = [model for model in named_by if isinstance(model, str)][:1]
    if not models or "deployment" in getattr(embed, "model_fields_set", ()):  # else OpenAI's has a default one
        models.append(str(getattr(embed, "deployment", None) or ""))
    return ":".join(filter(None, [home, *models]))


def is_only_asynchronous(embed: object) -> bool:
    """Whether LangGraph has wrapped an asynchronous function, which so has no synchronous method."""
    return isinstance(embed, EmbeddingsLambda) and not hasattr(embed, "func")


_callers_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("callers_loop", default=None)


async def embed_here(work: Callable[[], None]) -> None:
    """Work in a thread; what an asynchronous function embeds for it meanwhile, it embeds in this event loop.

    HTTP clients stay bound to the loop that opened their connections.
    """
    loop = asyncio.get_running_loop()

    def run() -> None:
        _callers_loop.set(loop)
        work()

    await in_own_thread(run)


def announced_dims(embed: object) -> int | None:
    """Return the dimension that an embedder says it has; None if it does not say it."""
    sizes = (getattr(embed, attribute, None) for attribute in ("dims", "dimensions", "dim"))
    return next((size for size in sizes if type(size) is int and size > 0), None)


class RawVectors(NamedTuple):
    """What an embedder returned, by text."""

    documents: Mapping[str, Sequence[float]]
    queries: Mapping[str, Sequence[float]]


class _Tick(NamedTuple):
    """What the callers of one tick of an event loop want to embed."""

    texts: dict[str, None]
    queries: dict[str, None]
    task: asyncio.Task[RawVectors]


class BatchEmbedder:
    """Any LangChain embedder with the length of its vectors: many texts in one call; failures are an EmbeddingError."""

    def __init__(self, embeddings: Embeddings, dims: int) -> None:
        self.embeddings = embeddings
        self.dims = dims
        self._ticks: dict[asyncio.AbstractEventLoop, _Tick] = {}

    @classmethod
    def probed(cls, embeddings: Embeddings) -> Self:
        """Find out the dimension of an embedder by embedding one word."""
        vector: object = cls(embeddings, 0).embed((), ("dimension",)).queries["dimension"]
        if not isinstance(vector, Sized) or not len(vector):
            raise EmbeddingError(f"the embedder returned {vector!r:.40} for a word; expected a list of numbers")
        return cls(embeddings, len(vector))

    def embed(self, texts: Iterable[str], queries: Iterable[str]) -> RawVectors:
        """Embed documents with `embed_documents` in one call, each query with `embed_query`, and each text once."""
        texts, queries = list(dict.fromkeys(texts)), list(dict.fromkeys(queries))
        if is_only_asynchronous(self.embeddings):
            if asyncio._get_running_loop() is not None:
                instead = "use the store's asynchronous methods there (aput, asearch, abatch)"
                raise EmbeddingError(f"the embedding function is asynchronous and an event loop is running: {instead}")
            call, loop = self._call(texts, queries), _callers_loop.get()
            return run_sync(call) if loop is None else asyncio.run_coroutine_threadsafe(call, loop).result()
        try:
            of_texts = self.embeddings.embed_documents(texts) if texts else []
            of_queries = [self.embeddings.embed_query(query) for query in queries]
        except Exception as error:
            raise _explain(error) from error
        return RawVectors(_by_text(texts, of_texts), _by_text(queries, of_queries))

    async def aembed(self, texts: Sequence[str], queries: Sequence[str]) -> RawVectors:
        """Embed like `embed`, with asynchronous methods, in one call for all callers of one tick of the event loop.

        The first one plans the call for the next tick. The vectors are those of all of them, and so is an error.
        """
        if not texts and not queries:
            return RawVectors({}, {})
        if isinstance(self.embeddings, HashEmbeddings) and self.embeddings.embeds_at_once([*texts, *queries]):
            return self.embed(texts, queries)
        loop = asyncio.get_running_loop()
        tick = self._ticks.get(loop)
        if tick is None or tick.task.done():  # done: cancelled before it began
            tick = self._ticks[loop] = _Tick({}, {}, loop.create_task(self._flush(loop)))
            # If every caller is cancelled, nothing else looks at its failure.
            tick.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        tick.texts.update(dict.fromkeys(texts))
        tick.queries.update(dict.fromkeys(queries))
        # Shielded, so that a cancelled caller does not cancel the call of the others.
        return await asyncio.shield(tick.task)

    async def _flush(self, loop: asyncio.AbstractEventLoop) -> RawVectors:
        await asyncio.sleep(0)
        tick = self._ticks.pop(loop)
        return await self._call(list(tick.texts), list(tick.queries))

    async def _call(self, texts: list[str], queries: list[str]) -> RawVectors:
        try:
            of_texts = await self.embeddings.aembed_documents(texts) if texts else []
            of_queries = await asyncio.gather(*(self.embeddings.aembed_query(query) for query in queries))
        except Exception as error:
            raise _explain(error) from error
        return RawVectors(_by_text(texts, of_texts), _by_text(queries, of_queries))

    def units(self, vectors: Mapping[str, Sequence[float]]) -> dict[str, Vector]:
        """Check vectors, by text, and scale them to length 1: an error if one is not of `dims` finite numbers."""
        return {text: _unit_vector(vector, self.dims) for text, vector in vectors.items()}


def _unit_vector(vector: Sequence[float], dims: int) -> Vector:
    """Scale a vector to length 1; the zero vector stays zero, so that its cosine to everything is 0."""
    import numpy as np  # a program that only imports the store should not wait for numpy

    try:
        array = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"the embedder returned something that is no vector of numbers: {error}") from error
    # A sum of squares is finite only if all numbers are; if it is not, they may still be finite and only large.
    norm = math.sqrt(float(array @ array)) if array.ndim == 1 else math.nan
    if not math.isfinite(norm) and (array.ndim != 1 or not np.isfinite(array).all()):
        raise EmbeddingError(f"expected vectors of {dims} finite numbers, got shape {array.shape} or NaN")
    if array.shape != (dims,):
        found = f"the embedder returned {array.shape[0]} dimensions, the store is set to {dims}"
        raise EmbedderChangedError(f'{found}; give index["dims"] as the model has it')
    if not _SAFE < norm < 1 / _SAFE:
        norm = float(np.linalg.norm(array.astype(np.float64)))
        return array if norm == 0.0 else (array.astype(np.float64) / norm).astype(np.float32)
    return array / np.float32(norm)


def _by_text(texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> dict[str, Sequence[float]]:
    if not isinstance(vectors, Sized) or len(vectors) != len(texts):
        returned = f"{len(vectors)} vectors" if isinstance(vectors, Sized) else f"a {type(vectors).__name__}"
        raise EmbeddingError(f"the embedder returned {returned} for {len(texts)} texts, nothing was written")
    return dict(zip(texts, vectors, strict=True))


def _explain(error: Exception) -> EmbeddingError:
    problem = f"the embedder failed, nothing was written: {type(error).__name__}: {error}"
    return error if isinstance(error, EmbeddingError) else EmbeddingError(problem)
