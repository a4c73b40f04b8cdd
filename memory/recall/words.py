"""Word scores: BM25 of records with their neighbours, over these records alone.

Words are split and stemmed as in the store's word index. The score is made here, so that a word in a neighbour counts
less and a word that most records share still counts a little.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from questbook.memory.store.lexical import query_words
from questbook.memory.text.stems import stems
from questbook.memory.text.word_scan import LONGEST_HEAD, scan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_K1, _B = 1.2, 0.75  # Robertson and Zaragoza 2009, and FTS5's


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

    asked = [[stem for stem in dict.fromkeys(stems(words)) if stem] for words in queries]
    rows = {stem: row for row, stem in enumerate(dict.fromkeys(stem for one in asked for stem in one))}
    scores = np.zeros((len(queries), len(texts)))
    if not rows or not texts:
        return scores
    counts, lengths = _counted(texts, rows)
    counted = [(column, share) for column, share in enumerate(shares) if share]
    often, sizes = counts[:, :-1].copy(), lengths[:-1].copy()
    for column, share in counted:
        often += share * counts[:, near[:, column]]
        sizes += lengths[near[:, column]]
    having = np.count_nonzero(counts, axis=1)[:, None]
    rarity = np.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
    long = _K1 * (1 - _B + _B * sizes / max(float(sizes.mean()), 1.0))
    parts = rarity * often * (_K1 + 1) / (often + long)
    for number, one in enumerate(asked):
        scores[number] = parts[[rows[stem] for stem in one]].sum(axis=0)
    return scores


async def scored_apart(
    texts: Sequence[str], queries: Sequence[Sequence[str]], near: NDArray[np.intp], shares: Sequence[float]
) -> NDArray[np.float64]:
    """Do the same in a thread of its own."""
    return await asyncio.to_thread(word_scores, texts, queries, near, shares)


def _counted(texts: Sequence[str], rows: Mapping[str, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how often each stem occurs in each text, and each text's words; the last, for -1, is an empty text."""
    import numpy as np

    found = scan(texts, heads_of(rows))
    known = list(dict.fromkeys(found.words))
    row_of = {word: rows[stem] for word, stem in zip(known, stems(known), strict=True) if stem in rows}
    which = np.array([row_of.get(word, -1) for word in found.words], np.intp)
    width = len(texts) + 1
    cells = (which * width + found.places)[which >= 0]
    counts = np.bincount(cells, minlength=len(rows) * width).reshape(len(rows), width)
    return counts.astype(np.float64), np.append(found.sizes, 0).astype(np.float64)


def heads_of(found: Iterable[str]) -> set[str]:
    """Return with what words begin that may have some stems, at most four letters: stemming changes ends.

    It may make an i of a y at the end ("happi" of "happy") or put an e there ("file" of "filing"); what comes before
    the last letter of a stem stands at the beginning of each of its words.
    """
    heads = set()
    for stem in found:
        if len(stem) > 2:
            heads.add(stem[:-1][:LONGEST_HEAD])
        else:
            heads.update({stem, stem[:1] + "y"} if stem[1:] == "i" else {stem})
    return heads


def content_words(query: str, names: frozenset[str]) -> list[str]:
    """Return the words of a query that are looked up: no stop words, no names of speakers, who say who and not what.

    Args:
        query: Any text.
        names: Names to leave out, in small letters; if nothing else is asked, they stay.
    """
    words = query_words(query)
    return [word for word in words if word not in names] or words
