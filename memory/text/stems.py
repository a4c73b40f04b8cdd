"""Stems of words, as the store's word index has them, and how often texts have some stems.

SQLite's FTS5 makes the stems (Porter 1980, without accents), so that a query and the index always agree.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

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
    """Return the stem of each word of letters and digits; "" for a word in which FTS5 sees none.

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


class TextWords:
    """The words of many texts, ready to be looked through for stems; only words that can have a stem are stemmed.

    Attributes:
        sizes: How many words each text has, shape (texts).
    """

    def __init__(self, texts: Sequence[str]) -> None:
        import numpy as np

        whole = "\n".join(texts)
        if whole.isascii():  # each letter is a byte, and stays in its place
            joined, lengths = spaced(whole), list(map(len, texts))
        else:
            parts = [spaced(text) for text in texts]
            joined, lengths = b" ".join(parts), list(map(len, parts))
        self._joined = b" ".join([b"", joined, b" " * _LONGEST_HEAD])
        blank = np.frombuffer(self._joined, np.uint8) == _BLANK
        edges = np.flatnonzero(blank[:-1] != blank[1:]) + 1
        self._begins, self._stops = edges[::2], edges[1::2]
        self._ends = np.cumsum(np.array(lengths, np.intp) + 1)  # of the texts
        sizes = np.diff(np.searchsorted(self._begins, self._ends, side="right"), prepend=0)
        self.sizes: NDArray[np.float64] = sizes.astype(np.float64)
        # Array operations compare the first four bytes of all words; strings are made only of the words that match.
        heads = np.ndarray(len(self._joined) - _LONGEST_HEAD + 1, ">u4", self._joined, strides=(1,))
        self._firsts = heads[self._begins].astype(np.uint32)

    def spelled_like(self, word: str, longer: int) -> set[str]:
        """Return the words with a word's first letter and, but for so many more or fewer, as many letters."""
        import numpy as np

        likely = self._firsts >> 24 == word.encode()[0]
        if self._joined.isascii():  # else a letter may have several bytes
            likely &= np.abs(self._stops - self._begins - len(word)) <= longer
        words = [word.decode() for word in set(self._select(likely))]
        return {each for each in words if each[0] == word[0] and abs(len(each) - len(word)) <= longer}

    def find(self, stems: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return where texts have different stems: the number of the stem, and that of the word, over all texts."""
        import numpy as np

        chosen = _begin_so(self._firsts, heads_of(stems))
        words = self._select(chosen)
        different = list(dict.fromkeys(words))
        row_of_stem = {stem: row for row, stem in enumerate(stems)}
        their_stems = stem_words([word.decode() for word in different])
        row_of = {word: row_of_stem.get(stem, -1) for word, stem in zip(different, their_stems, strict=True)}
        rows = np.fromiter(map(row_of.__getitem__, words), np.intp, len(words))
        return rows[rows >= 0], np.flatnonzero(chosen)[rows >= 0]

    def _select(self, chosen: NDArray[np.bool_]) -> list[bytes]:
        places = zip(self._begins[chosen].tolist(), self._stops[chosen].tolist(), strict=True)
        return [self._joined[begin:stop] for begin, stop in places]


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


def _begin_so(firsts: NDArray[np.uint32], heads: Iterable[str]) -> NDArray[np.bool_]:
    """Return which words begin with a head or are not ASCII, by their first four bytes as a number."""
    import numpy as np

    matches: NDArray[np.bool_] = firsts & _FOREIGN != 0  # their accents come off in stems
    likely = np.zeros(1 << 16, np.bool_)  # first two bytes; few words are left to be compared
    by_length: dict[int, list[int]] = {}
    for head in (head.encode() for head in heads if head.isascii()):
        by_length.setdefault(len(head), []).append(int.from_bytes(head))
        likely[int.from_bytes(head[:2].ljust(2, b"\0")) : int.from_bytes(head[:2].ljust(2, b"\xff")) + 1] = True
    places = np.flatnonzero(likely[firsts >> 16])
    for length, numbers in by_length.items():
        ordered, beginnings = np.sort(np.array(numbers, np.uint32)), firsts[places] >> (32 - 8 * length)
        at = np.minimum(np.searchsorted(ordered, beginnings), len(ordered) - 1)  # `np.isin` takes ten times as long
        matches[places] |= ordered[at] == beginnings
    return matches
