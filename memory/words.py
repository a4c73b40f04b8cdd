"""Word scores: BM25 of records with their neighbours, over these records alone.

SQLite's FTS5 splits and stems (porter); how often each word occurs is read from its index, and the score is made here,
so that a word in a neighbour counts less and a word that most records share still counts a little.
"""

from __future__ import annotations

import asyncio
import math
import re
import sqlite3
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from memory.lexical import query_words, split_words

_K1, _B = 1.2, 0.75  # Robertson and Zaragoza 2009, and FTS5's
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")
_TOKENIZER = "porter unicode61 remove_diacritics 2"

Key = TypeVar("Key", bound=Hashable)
Near = Mapping[Key, Sequence[tuple[Key, float]]]
"""For each record to score, the texts that count for it, each with its weight."""


def word_scores(texts: Mapping[Key, str], queries: Sequence[Sequence[str]], near: Near[Key]) -> list[dict[Key, float]]:
    """Score records by the words of queries: BM25 with the words of each neighbour weighed (BM25F, one length).

    Args:
        texts: Of the records and of their neighbours.
        queries: The words of each query, as `query_words` gives them.
        near: Each record's own text and its neighbours' with their weights.

    Returns:
        For each query the score of each record in `near`, 0 or more.
    """
    keys = list(texts)
    counts = _counts([texts[key] for key in keys], queries)
    lengths = {key: texts[key].count(" ") + 1 for key in keys}  # in words, about
    sizes = {key: sum(lengths[other] for other, _ in others) for key, others in near.items()}
    usual = sum(sizes.values()) / len(sizes) if sizes else 1.0
    counted: dict[Key, list[tuple[Key, float]]] = {key: [] for key in keys}
    for key, others in near.items():
        for other, weight in others:
            counted[other].append((key, weight))
    found = []
    for stems in counts:
        scores = dict.fromkeys(near, 0.0)
        for by_row in stems:
            frequency: dict[Key, float] = {}
            for row, count in by_row.items():
                for key, weight in counted[keys[row]]:
                    frequency[key] = frequency.get(key, 0.0) + weight * count
            having = sum(1 for row in by_row if keys[row] in near)
            rarity = math.log(1 + (len(near) - having + 0.5) / (having + 0.5))
            for key, often in frequency.items():
                long = _K1 * (1 - _B + _B * sizes[key] / usual)
                scores[key] += rarity * often * (_K1 + 1) / (often + long)
        found.append(scores)
    return found


async def scored_apart(
    texts: Mapping[Key, str], queries: Sequence[Sequence[str]], near: Near[Key]
) -> list[dict[Key, float]]:
    """Do the same in a thread of its own."""
    return await asyncio.to_thread(word_scores, texts, queries, near)


def _counts(texts: Sequence[str], queries: Sequence[Sequence[str]]) -> list[list[dict[int, int]]]:
    """Return for each query and each of its different stems how often it occurs, by the text's number."""
    index = sqlite3.connect(":memory:")
    try:
        for table in ("texts", "asked"):
            index.execute(f"CREATE VIRTUAL TABLE {table} USING fts5(text, content = '', tokenize = '{_TOKENIZER}')")
            index.execute(f"CREATE VIRTUAL TABLE {table}_words USING fts5vocab({table}, instance)")
        index.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)", ((n, _split(text)) for n, text in enumerate(texts))
        )
        index.executemany(
            "INSERT INTO asked (rowid, text) VALUES (?, ?)", [(n, " ".join(words)) for n, words in enumerate(queries)]
        )
        known: dict[str, dict[int, int]] = {}
        found: list[list[dict[int, int]]] = [[] for _ in queries]
        for number, stem in index.execute("SELECT DISTINCT doc, term FROM asked_words").fetchall():
            if stem not in known:
                rows = index.execute("SELECT doc, count(*) FROM texts_words WHERE term = ? GROUP BY doc", (stem,))
                known[stem] = dict(rows.fetchall())
            found[number].append(known[stem])
        return found
    finally:
        index.close()


def _split(text: str) -> str:
    """Part what is written without spaces as queries are parted; FTS5 splits the rest itself, and faster."""
    return " ".join(split_words(text)) if _UNSPACED.search(text) else text


def content_words(query: str, names: frozenset[str]) -> list[str]:
    """Return the words of a query that are looked up: no stop words, no names of speakers, who say who and not what.

    Args:
        query: Any text.
        names: Names to leave out, in small letters; if nothing else is asked, they stay.
    """
    words = query_words(query)
    return [word for word in words if word not in names] or words
