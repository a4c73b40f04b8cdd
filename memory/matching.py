"""Matching: how well texts fit a query by their words alone."""

from __future__ import annotations

from collections.abc import Mapping

from memory.words import content_words, scored_apart


async def matched(texts: Mapping[str, str], query: str) -> dict[str, float]:
    """Score each text by the query's words (BM25 over these texts alone); 0 if it shares none.

    Args:
        texts: By key.
        query: Some words.
    """
    (scores,) = await scored_apart(texts, [content_words(query, frozenset())], {key: [(key, 1.0)] for key in texts})
    return scores
