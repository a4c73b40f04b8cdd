"""BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009), and scores divided by their maximum.

The kernel takes counts from anywhere: the store's word index counts the items of a namespace, recall counts words in a
few hundred candidates. All functions work element by element on numpy arrays, and broadcast as numpy does. `TextWords`
finds the words of a few hundred texts, `WordTable` scores these texts.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from questbook.memory.text.words import spaced, stem_words

Floats = NDArray[np.floating[Any]]
FloatsT = TypeVar("FloatsT", bound=Floats)

K1, B = 1.2, 0.75
"""How soon a repeated word stops adding weight, and how much a long text is discounted; as in FTS5 and Lucene."""

_LEAST = 1e-9  # a maximum below this is rounding
# In what a query asks for, no word counts less than one that two texts of nine have: texts that were found by a query's
# words have them more often than others.
_LEAST_RARITY = 1.5
_RINGS = ((10, 1.2), (20, 1.0), (50, 0.8), (80, 0.4))  # words on either side, and what a word up to there counts
_AFTER = 0.8  # of it: an answer comes after its question more often than before
_MOST_ASKED = 5  # words that a long query asks for: of a message of forty words no text has a share worth naming
_LONGEST_HEAD = 4  # letters at the beginning of a word that are compared at once
_BLANK = ord(" ")
_FOREIGN = 0x80808080  # has a bit in common with any letter beyond ASCII


def word_rarity(total: int, having: Floats) -> Floats:
    """Return the inverse document frequency of words, always above 0, given how many of all texts have each."""
    rarity: Floats = np.log(1 + (total - having + 0.5) / (having + 0.5))
    return rarity


def word_weight(rarity: Floats, often: Floats, sizes: Floats, average: float) -> Floats:
    """Return what words add to the scores of texts that have them so often, given their rarity (`word_rarity`).

    `sizes` are how many words the texts have, `average` is how many a text has on average; less than 1 counts as 1.
    """
    return rarity * often * (K1 + 1) / (often + K1 * (1 - B + B * sizes / max(average, 1.0)))


def divide_by_maximum(scores: FloatsT) -> FloatsT:
    """Divide scores by the highest of them, so that different kinds can be added; NaN stays, and is passed over.

    Where none is above 0 they stay as they are.
    """
    highest = np.fmax.reduce(scores, initial=0.0)
    return scores / highest if highest > _LEAST else scores.copy()


class TextWords:
    """The words of many texts, ready to be looked through for stems; only words that can have a stem are stemmed."""

    def __init__(self, texts: Sequence[str]) -> None:
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
        ends = np.cumsum(np.array(lengths, np.intp) + 1)  # of the texts
        sizes = np.diff(np.searchsorted(self._begins, ends, side="right"), prepend=0)
        self.sizes: NDArray[np.float64] = sizes.astype(np.float64)  # how many words each text has, shape (texts)
        # Array operations compare the first four bytes of all words; strings are made only of the words that match.
        heads = np.ndarray(len(self._joined) - _LONGEST_HEAD + 1, ">u4", self._joined, strides=(1,))
        self._firsts = heads[self._begins].astype(np.uint32)

    def spelled_like(self, word: str, longer: int) -> set[str]:
        """Return words: all that have a word's first letter and, but for so many more or fewer, as many letters."""
        likely = self._firsts >> 24 == word.encode()[0]
        if self._joined.isascii():  # else a letter may have several bytes
            likely &= np.abs(self._stops - self._begins - len(word)) <= longer
        return {each.decode() for each in set(self._select(likely))}

    def find(self, stems: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return where texts have different stems: the number of the stem, and that of the word, over all texts."""
        chosen = _begin_so(self._firsts, heads_of(stems))
        words = self._select(chosen)
        different = list(dict.fromkeys(words))
        their_stems = stem_words([word.decode() for word in different])
        numbers = {stem: number for number, stem in enumerate(stems)}
        row_of = {word: numbers.get(stem, -1) for word, stem in zip(different, their_stems, strict=True)}
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


def _begin_so(firsts: NDArray[np.uint32], heads: Iterable[str]) -> NDArray[np.bool_]:
    """Return which words begin with a head or are not ASCII, by their first four bytes as a number."""
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


class WordTable:
    """How often texts have the words of queries; words said nearby count less.

    The words just before and after a text count as shares of a word of its own (BM25F with one length). What helps is
    the words nearby, not the whole text beside it, which may be long (docs/figures.md).

    Args:
        texts: The texts, or their words, in the order in which they were said.
        queries: The words of each query, as `query_words` gives them.
        rows: For each text the number of the row that it is in, shape (texts); texts of a row follow each other, and no
            word of another row is near. None: each is a row of its own.
        nearby: What a word is worth 20 words before a text; more nearer, less up to 80 words away and after the text.
    """

    def __init__(
        self,
        texts: Sequence[str] | TextWords,
        queries: Sequence[Sequence[str]],
        rows: NDArray[np.intp] | None = None,
        nearby: float = 0.7,
    ) -> None:
        self._stems = [[stem for stem in dict.fromkeys(stem_words(words)) if stem] for words in queries]
        self._rows = {stem: n for n, stem in enumerate(dict.fromkeys(stem for stems in self._stems for stem in stems))}
        words = texts if isinstance(texts, TextWords) else TextWords(texts)
        self._sizes = words.sizes.copy()
        ends = np.cumsum(self._sizes.astype(np.intp))
        begins = ends - self._sizes.astype(np.intp)
        stems, places = words.find(list(self._rows))  # places ascend
        # How often the first n words that have a stem have each: a span's counts are the difference of two of these.
        first = np.zeros((len(self._rows), len(places) + 1), np.int32)
        first[stems, np.arange(1, len(places) + 1)] = 1
        np.cumsum(first, axis=1, out=first)

        def before(edges: NDArray[np.intp]) -> NDArray[np.int32]:
            return first[:, np.searchsorted(places, edges)]

        own = before(ends) - before(begins)
        self._counts, self._having = own.astype(np.float64), np.count_nonzero(own, axis=1)
        self._own = own
        if rows is None or not len(ends) or not nearby:
            return
        changes = np.flatnonzero(np.diff(rows)) + 1
        starts, last = np.r_[0, changes], np.r_[changes, len(rows)] - 1
        sizes = last - starts + 1
        lowest, highest = np.repeat(begins[starts], sizes), np.repeat(ends[last], sizes)
        left, right = begins, ends
        for distance, share in _RINGS:
            reach = np.maximum(begins - distance, lowest), np.minimum(ends + distance, highest)
            said_before, said_after = before(left) - before(reach[0]), before(reach[1]) - before(right)
            self._counts += nearby * share * (said_before + _AFTER * said_after)
            left, right = reach
        self._sizes = (reach[1] - reach[0]).astype(np.float64)

    def scores(self) -> NDArray[np.float64]:
        """Return the scores of the texts by each query, 0 or more, shape (queries, texts)."""
        scores = np.zeros((len(self._stems), len(self._sizes)))
        if not self._counts.size:
            return scores
        rarity = word_rarity(len(self._sizes), self._having[:, None])
        weights = word_weight(rarity, self._counts, self._sizes, float(self._sizes.mean()))
        for number, stems in enumerate(self._stems):
            scores[number] = weights[[self._rows[stem] for stem in stems]].sum(axis=0)
        return scores

    def has_words(self, query: int) -> NDArray[np.bool_]:
        """Return whether texts have a word of a query themselves, not only nearby, shape (texts)."""
        rows = [self._rows[stem] for stem in self._stems[query]]
        found: NDArray[np.bool_] = np.any(self._own[rows], axis=0)
        return found

    def coverage(self, query: int, ignored: Iterable[str] = ()) -> NDArray[np.float64]:
        """Return which share of a query's words each text has, from 0 to 1, shape (texts).

        Rare words count more, and a word that no text has the most; ignored ones only if the query has no others. A
        word nearby counts half of what it counts in scores, so that what only stands beside an answer does not come.
        """
        stems, passed_over = self._stems[query], set(stem_words(list(ignored)))
        rows = [self._rows[stem] for stem in stems if stem not in passed_over] or [self._rows[stem] for stem in stems]
        if not rows:
            return np.zeros(len(self._sizes))
        rarity = np.maximum(word_rarity(len(self._sizes), self._having[rows]), _LEAST_RARITY)
        asked = float(np.sort(rarity)[-_MOST_ASKED:].sum())
        covered: NDArray[np.float64] = rarity @ np.minimum((self._own[rows] + self._counts[rows]) / 2, 1.0)
        return np.minimum(covered / asked, 1.0)

    def has(self, word: str) -> bool:
        """Return whether any text has a word of the queries."""
        return any(self._having[self._rows[stem]] for stem in stem_words([word]) if stem in self._rows)
