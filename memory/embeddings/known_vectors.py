"""An embedder that takes over vectors which were made before."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.embeddings import Embeddings

from questbook.memory.embeddings.embedders import identify


class KnownVectors(Embeddings):
    """An embedder that knows the vectors of some texts, and asks the real embedder for the others.

    Args:
        embedder: The real embedder; this one has its identity.
        known: Vectors by text.
    """

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
