"""An embedder that fails when a test tells it to."""

from __future__ import annotations

from questbook.memory.embeddings.embedders import HashEmbeddings


class Failing(HashEmbeddings):
    """Embeds no document while `fails` is set."""

    fails = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.fails:
            raise OSError("the embedder is gone")
        return super().embed_documents(texts)
