"""Matching: how well texts fit a query by their words alone."""

from __future__ import annotations

from collections.abc import Mapping

from questbook.memory.recall.words import content_words, scored_apart


async def matched(texts: Mapping[str, str], query: str) -> dict[str, float]:
    """Score each text by the query's words (BM25 over these texts alone); 0 if it shares none.

    Args:
        texts: By key.
        query: Some words.
    """
    import numpy as np

    alone = np.empty((len(texts), 0), np.intp)
    scores = await scored_apart(list(texts.values()), [content_words(query, frozenset())], alone, ())
    return dict(zip(texts, scores[0].tolist(), strict=True))
