"""Stems of words, as the store's word index has them, and how often texts have some stems.

SQLite's FTS5 makes the stems (Porter 1980, without accents), so that a query and the index always agree.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from questbook.memory.errors import StoreConfigError
from questbook.memory.text.words import spaced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOKENIZER = "porter unicode61 remove_diacritics 2"
_MOST_KEPT = 50_000  # words whose stems are kept in RAM; a language's everyday vocabulary
_LONGEST_HEAD = 4  # letters at the beginning of a word that are compared at once
_BLANK = ord(" ")
_FOREIGN = 0x80808080  # has a bit in common with any letter beyond ASCII

_lock = threading.Lock()
_stem_of: dict[str, str] = {}


def stem_words(words: Sequence[str]) -> list[str]:
    """Return the stem of each word; "" for a word in which FTS5 sees none.

    Args:
        words: Single words of letters and digits.

    Raises:
        StoreConfigError: If SQLite was built without FTS5.
    """
    missing = [word for word in dict.fromkeys(words) if word not in _stem_of]
    if missing:
        with _lock:
            if len(_stem_of) + len(missing) > _MOST_KEPT:
                missing = list(dict.fromkeys(words))
                _stem_of.clear()
            _stem_of.update(_ask_fts5(missing))
            return [_stem_of[word] for word in words]
    return [_stem_of.get(word) or _stem_again(word) for word in words]


class StemCounts(NamedTuple):
    """How often texts have stems.

    Attributes:
        counts: Shape (stems, texts).
        sizes: How many words, of all kinds, each text has.
    """

    counts: NDArray[np.float64]
    sizes: NDArray[np.float64]


def count_stems(texts: Sequence[str], stems: Sequence[str]) -> StemCounts:
    """Count stems in many texts at once; only words that can have one of the stems are stemmed.

    Args:
        texts: Any texts.
        stems: Different stems, as `stem_words` gives them.
    """
    import numpy as np

    words, places, sizes = _find_words(texts, heads_of(stems))
    row_of_stem = {stem: row for row, stem in enumerate(stems)}
    different = list(dict.fromkeys(words))
    row_of = {word: row_of_stem.get(stem, -1) for word, stem in zip(different, stem_words(different), strict=True)}
    rows = np.array([row_of[word] for word in words], np.intp)
    cells = (rows * len(texts) + places)[rows >= 0]
    counts = np.bincount(cells, minlength=len(stems) * len(texts)).reshape(len(stems), len(texts))
    return StemCounts(counts.astype(np.float64), sizes.astype(np.float64))


def heads_of(stems: Iterable[str]) -> set[str]:
    """Return the first letters, at most four, of all words that may have one of some stems.

    Stemming changes only ends. It may make an i of a y at the end ("happi" of "happy") or put an e there ("file" of
    "filing"); what comes before the last letter of a stem is the beginning of each of its words.
    """
    heads = set()
    for stem in stems:
        if len(stem) > 2:
            heads.add(stem[:-1][:_LONGEST_HEAD])
        else:
            heads.update({stem, stem[:1] + "y"} if stem[1:] == "i" else {stem})
    return heads


def _stem_again(word: str) -> str:
    # Another thread may have emptied the cache between the two looks.
    with _lock:
        return _stem_of.get(word) or _stem_of.setdefault(word, _ask_fts5([word])[word])


def _ask_fts5(words: Sequence[str]) -> dict[str, str]:
    # With a letter before it, as in the index, where the namespace's number comes first: a "y" is stemmed otherwise
    # at the beginning of a word.
    connection = _connection()
    connection.execute("BEGIN")  # a transaction for each word would take several times as long
    try:
        numbered = ((number, f"x{word}") for number, word in enumerate(words))
        connection.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", numbered)
        rows = connection.execute("SELECT doc, term FROM terms WHERE offset = 0").fetchall()
    finally:
        connection.execute("ROLLBACK")
    return dict.fromkeys(words, "") | {words[number]: term[1:] for number, term in rows}


@cache
def _connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    try:
        connection.execute(
            f"CREATE VIRTUAL TABLE words USING fts5(word, content = '', columnsize = 0, tokenize = '{TOKENIZER}')"
        )
    except sqlite3.OperationalError as error:
        raise StoreConfigError(
            'this Python\'s SQLite was built without FTS5: open the store with index["lexical"] = False'
        ) from error
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(words, instance)")
    return connection


def _find_words(texts: Sequence[str], heads: Iterable[str]) -> tuple[list[str], NDArray[np.intp], NDArray[np.intp]]:
    """Find the words that begin in certain ways, as often as they occur.

    Array operations compare the first four bytes of all words; strings are made only of the words that match.

    Args:
        texts: Any texts.
        heads: First letters, from one to four.

    Returns:
        The words, with those whose beginning is not ASCII; the number of the text of each; how many words, of all
        kinds, each text has.
    """
    import numpy as np

    parts = [spaced(text).encode() for text in texts]
    joined = b" ".join([b"", *parts, b" " * _LONGEST_HEAD])
    data = np.frombuffer(joined, np.uint8)
    blank = data == _BLANK
    begins = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1
    ends = np.cumsum([len(part) + 1 for part in parts])
    sizes = np.diff(np.searchsorted(begins, ends, side="right"), prepend=0)
    firsts = data[begins[:, None] + np.arange(_LONGEST_HEAD)].view(">u4").ravel().astype(np.uint32)
    chosen = begins[_begin_so(firsts, heads)]
    words = [joined[begin : joined.find(b" ", begin)].decode() for begin in chosen.tolist()]
    return words, np.searchsorted(ends, chosen), sizes


def _begin_so(firsts: NDArray[np.uint32], heads: Iterable[str]) -> NDArray[np.bool_]:
    """Return which words begin with a head or are not ASCII, by their first four bytes as a number."""
    import numpy as np

    matches: NDArray[np.bool_] = firsts & _FOREIGN != 0  # their accents come off in stems
    by_length: dict[int, list[int]] = {}
    for head in heads:
        if head.isascii():
            by_length.setdefault(len(head), []).append(int.from_bytes(head.encode()))
    for length, numbers in by_length.items():
        matches |= np.isin(firsts >> (32 - 8 * length), numbers)
    return matches
