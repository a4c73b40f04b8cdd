"""Word scores: BM25 of records with their neighbours, over these records alone.

Words are split and stemmed as in the store's word index. The score is made here, so that a word in a neighbour counts
less and a word that most records share still counts a little.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from questbook.memory.text.bm25 import word_rarity, word_weight
from questbook.memory.text.stems import count_stems, stem_words
from questbook.memory.text.words import query_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def word_scores(
    texts: Sequence[str], queries: Sequence[Sequence[str]], near: NDArray[np.intp], shares: Sequence[float]
) -> NDArray[np.float64]:
    """Score records by the words of queries: BM25 with the words of each neighbour weighed (BM25F, one length).

    Args:
        texts: Of the records.
        queries: The words of each query, as `query_words` gives them.
        near: The numbers of each record's neighbours, shape (records, neighbours); -1 where there is none.
        shares: What a word is worth in each of the neighbours; in the record itself it is worth 1.

    Returns:
        Scores of 0 or more, shape (queries, records).
    """
    import numpy as np

    asked = [[stem for stem in dict.fromkeys(stem_words(words)) if stem] for words in queries]
    rows = {stem: row for row, stem in enumerate(dict.fromkeys(stem for stems in asked for stem in stems))}
    scores = np.zeros((len(queries), len(texts)))
    if not rows or not texts:
        return scores
    counts, sizes = count_stems(texts, list(rows))
    # The last column, for -1, is an empty text.
    padded_counts, padded_sizes = np.pad(counts, ((0, 0), (0, 1))), np.pad(sizes, (0, 1))
    having = np.count_nonzero(counts, axis=1)[:, None]
    for column, share in enumerate(shares):
        if share:
            counts += share * padded_counts[:, near[:, column]]
            sizes += padded_sizes[near[:, column]]
    weights = word_weight(word_rarity(len(texts), having), counts, sizes, float(sizes.mean()))
    for number, stems in enumerate(asked):
        scores[number] = weights[[rows[stem] for stem in stems]].sum(axis=0)
    return scores


async def scored_apart(
    texts: Sequence[str], queries: Sequence[Sequence[str]], near: NDArray[np.intp], shares: Sequence[float]
) -> NDArray[np.float64]:
    """Do the same in a thread of its own."""
    return await asyncio.to_thread(word_scores, texts, queries, near, shares)


def content_words(query: str, names: frozenset[str]) -> list[str]:
    """Return the words of a query that are looked up: no stop words, no names of speakers, who say who and not what.

    Args:
        query: Any text.
        names: Names to leave out, in small letters; if nothing else is asked, they stay.
    """
    words = query_words(query)
    return [word for word in words if word not in names] or words
