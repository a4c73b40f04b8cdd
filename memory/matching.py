"""Matching: how well texts fit a query by their words alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from memory.recall import word_scores


async def matched(texts: Mapping[str, str], query: str) -> dict[str, float]:
    """Score each text by the query's words (BM25 over these texts alone); 0 if it shares none.

    Args:
        texts: By key.
        query: Some words.
    """
    return await asyncio.to_thread(word_scores, texts, query)
