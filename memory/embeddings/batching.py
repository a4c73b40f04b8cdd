"""Calls to an embedder: many texts in one call, and only checked vectors of length 1 come back."""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Self

from langchain_core.embeddings import Embeddings

from questbook.memory.errors import EmbedderChangedError, EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


_SAFE = 1e-12  # lengths between this and its inverse are right in 32 bits; their squares neither vanish nor overflow


class RawVectors(NamedTuple):
    """What an embedder returned, by text."""

    documents: Mapping[str, Sequence[float]]
    queries: Mapping[str, Sequence[float]]


class _Tick:
    """What the callers of one tick of an event loop want to embed."""

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        self.queries: dict[str, None] = {}
        self.task: asyncio.Task[RawVectors]


class BatchEmbedder:
    """Any LangChain embedder, with the length that every vector of it must have."""

    def __init__(self, embeddings: Embeddings, dims: int) -> None:
        self.embeddings = embeddings
        self.dims = dims
        self._ticks: dict[asyncio.AbstractEventLoop, _Tick] = {}
        # LangGraph wraps a function; the wrapper of an asynchronous one has no synchronous method.
        self._only_asynchronous = hasattr(embeddings, "afunc") and not hasattr(embeddings, "func")

    @classmethod
    def probed(cls, embeddings: Embeddings) -> Self:
        """Find out the dimension of an embedder by embedding one word.

        Raises:
            EmbeddingError: If the embedder fails, or returns no vector.
        """
        vector: object = cls(embeddings, 0).embed((), ("dimension",)).queries["dimension"]
        if not isinstance(vector, Sized) or not len(vector):
            raise EmbeddingError(f"the embedder returned {vector!r:.40} for a word; expected a list of numbers")
        return cls(embeddings, len(vector))

    def embed(self, texts: Iterable[str], queries: Iterable[str]) -> RawVectors:
        """Embed documents with `embed_documents` in one call, each query with `embed_query`, and each text once.

        Raises:
            EmbeddingError: If the embedder raises, or returns another number of vectors than of texts.
        """
        texts, queries = list(dict.fromkeys(texts)), list(dict.fromkeys(queries))
        if self._only_asynchronous:
            return self._run(texts, queries)
        try:
            of_texts = self.embeddings.embed_documents(texts) if texts else []
            of_queries = [self.embeddings.embed_query(query) for query in queries]
        except Exception as error:
            raise _explain(error) from error
        return RawVectors(_by_text(texts, of_texts), _by_text(queries, of_queries))

    def _run(self, texts: list[str], queries: list[str]) -> RawVectors:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._call(texts, queries))
        raise EmbeddingError(
            "the embedding function is asynchronous and an event loop is running: "
            "use the store's asynchronous methods there (aput, asearch, abatch)"
        )

    async def aembed(self, texts: Sequence[str], queries: Sequence[str]) -> RawVectors:
        """Embed like `embed`, with the embedder's asynchronous methods, once for all callers of one tick.

        The first caller of a tick of the event loop plans a call for the next tick; callers before it join. The vectors
        are those of all of them, and so is an error.
        """
        if not texts and not queries:
            return RawVectors({}, {})
        loop = asyncio.get_running_loop()
        tick = self._ticks.get(loop)
        if tick is None:
            tick = self._ticks[loop] = _Tick()
            tick.task = loop.create_task(self._flush(loop, tick))
            # If every caller is cancelled, nothing else looks at its failure.
            tick.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        tick.texts.update(dict.fromkeys(texts))
        tick.queries.update(dict.fromkeys(queries))
        # Shielded, so that a cancelled caller does not cancel the call of the others.
        return await asyncio.shield(tick.task)

    async def _flush(self, loop: asyncio.AbstractEventLoop, tick: _Tick) -> RawVectors:
        await asyncio.sleep(0)
        del self._ticks[loop]
        return await self._call(list(tick.texts), list(tick.queries))

    async def _call(self, texts: list[str], queries: list[str]) -> RawVectors:
        try:
            of_texts = await self.embeddings.aembed_documents(texts) if texts else []
            of_queries = await asyncio.gather(*(self.embeddings.aembed_query(query) for query in queries))
        except Exception as error:
            raise _explain(error) from error
        return RawVectors(_by_text(texts, of_texts), _by_text(queries, of_queries))

    def units(self, vectors: Mapping[str, Sequence[float]]) -> dict[str, Vector]:
        """Check vectors, by text, and scale them to length 1; see `unit_vector`."""
        return {text: unit_vector(vector, self.dims) for text, vector in vectors.items()}


def unit_vector(vector: Sequence[float], dims: int) -> Vector:
    """Scale a vector to length 1; the zero vector stays zero, so that its cosine to everything is 0.

    Raises:
        EmbedderChangedError: If it has another length than `dims`: the store was set up for another model.
        EmbeddingError: If it is no vector of finite numbers.
    """
    import numpy as np  # a program that only imports the store should not wait for numpy

    try:
        array = _array(vector, dims)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"the embedder returned something that is no vector of numbers: {error}") from error
    # A sum of squares is finite only if all numbers are; if it is not, they may still be finite and only large.
    norm = math.sqrt(float(array @ array)) if array.ndim == 1 else math.nan
    if not math.isfinite(norm) and (array.ndim != 1 or not np.isfinite(array).all()):
        raise EmbeddingError(f"expected vectors of {dims} finite numbers, got shape {array.shape} or NaN")
    if array.shape != (dims,):
        raise EmbedderChangedError(
            f"the embedder returned {array.shape[0]} dimensions, the store is set to {dims}; "
            'give index["dims"] as the model has it'
        )
    if not _SAFE < norm < 1 / _SAFE:
        norm = float(np.linalg.norm(array.astype(np.float64)))
        return array if norm == 0.0 else (array.astype(np.float64) / norm).astype(np.float32)
    return array / np.float32(norm)


def _array(vector: Sequence[float], dims: int) -> Vector:
    import numpy as np

    if type(vector) is list and len(vector) == dims:
        try:
            return np.frombuffer(_packer(dims)(*vector), np.float32)  # a third of the time that numpy takes for a list
        except (struct.error, OverflowError):
            pass  # numpy explains what is wrong with it
    return np.asarray(vector, dtype=np.float32)


@cache
def _packer(dims: int) -> Callable[..., bytes]:
    return struct.Struct(f"{dims}f").pack


def _by_text(texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> dict[str, Sequence[float]]:
    if not isinstance(vectors, Sized):
        raise EmbeddingError(
            f"the embedder returned {type(vectors).__name__} instead of a list of vectors, nothing was written"
        )
    if len(vectors) != len(texts):
        raise EmbeddingError(
            f"the embedder returned {len(vectors)} vectors for {len(texts)} texts, nothing was written"
        )
    return dict(zip(texts, vectors, strict=True))


def _explain(error: Exception) -> EmbeddingError:
    if isinstance(error, EmbeddingError):
        return error
    return EmbeddingError(f"the embedder failed, nothing was written: {type(error).__name__}: {error}")
