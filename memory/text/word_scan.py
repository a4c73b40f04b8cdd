"""Scan: looks through many texts at once for the words that begin in certain ways."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from questbook.memory.store.lexical import spaced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST_HEAD = 4
"""Letters of a head that are looked at."""

_BLANK = ord(" ")
_FOREIGN = 0x80808080  # has a bit in common with any letter beyond ASCII


class Scan(NamedTuple):
    """What was found in some texts.

    Attributes:
        words: The words that begin as wanted, and those whose beginning is not ASCII, as often as they occur.
        places: The number of the text of each.
        sizes: How many words, of all kinds, each text has.
    """

    words: list[str]
    places: NDArray[np.intp]
    sizes: NDArray[np.intp]


def scan(texts: Sequence[str], heads: Iterable[str]) -> Scan:
    """Find words by their first letters.

    Array operations look at the first four bytes of all words; only of words that fit strings are made.

    Args:
        texts: Any texts.
        heads: First letters, from one to four; words are split as the word index splits them.
    """
    import numpy as np

    parts = [spaced(text).encode() for text in texts]
    joined = b" ".join([b"", *parts, b" " * LONGEST_HEAD])
    data = np.frombuffer(joined, np.uint8)
    blank = data == _BLANK
    begins = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1
    ends = np.cumsum([len(part) + 1 for part in parts])
    sizes = np.diff(np.searchsorted(begins, ends, side="right"), prepend=0)
    firsts = data[begins[:, None] + np.arange(LONGEST_HEAD)].view(">u4").ravel().astype(np.uint32)
    chosen = begins[_wanted(firsts, heads)]
    words = [joined[begin : joined.find(b" ", begin)].decode() for begin in chosen.tolist()]
    return Scan(words, np.searchsorted(ends, chosen), sizes)


def _wanted(firsts: NDArray[np.uint32], heads: Iterable[str]) -> NDArray[np.bool_]:
    """Return which words are wanted, by their first four bytes as a number."""
    import numpy as np

    wanted: NDArray[np.bool_] = firsts & _FOREIGN != 0  # accents come off in stems
    by_length: dict[int, list[int]] = {}
    for head in heads:
        if head.isascii():
            by_length.setdefault(len(head), []).append(int.from_bytes(head.encode()))
    for length, numbers in by_length.items():
        wanted |= np.isin(firsts >> (32 - 8 * length), numbers)
    return wanted
