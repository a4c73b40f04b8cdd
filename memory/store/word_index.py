"""The word index in RAM: which items of a namespace have a word, how often, and what that scores (BM25).

A cache of what FTS5 holds (`rows.write_words`): the postings of a word are read at its first search, and new items are
added to them.
"""

import json
import sqlite3
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from questbook.memory.store.arrays import Ids, Mask, Places, Scores, find_ids
from questbook.memory.store.filters import FilterMask
from questbook.memory.store.rows import SHIFT, NamespaceRow, last_removal, namespace_mark, removals_after
from questbook.memory.text.bm25 import word_rarity, word_weight
from questbook.memory.text.words import stem_words

# A word that occurs more often than this in one namespace costs much and tells nothing; it does not count.
_TOO_COMMON = 50_000
_MOST_WORDS = 8_192  # whose postings are kept
_FEW_NEW = 256  # new items that are added to the kept postings; with more, the postings are read again
_ADDED_BYTES = 120  # of a newer item that has a kept word: a pair of numbers in a list
_ENTRY_BYTES = 350  # of a kept word: a dictionary's entry, two arrays, the word

_SIZES_AFTER = "SELECT id, sz FROM texts_docsize WHERE id > ? AND id < ? ORDER BY id"
_SIZES_OF = "SELECT id, sz FROM texts_docsize WHERE id IN (SELECT value FROM json_each(?))"
_TEXTS_AFTER = "SELECT * FROM texts WHERE rowid > ? AND rowid < ? ORDER BY rowid"


class Posting(NamedTuple):
    """The items that have a word."""

    places: NDArray[np.int32]  # their places in `WordMatches.ids`
    counts: Scores  # how often each has it, with the weights of the columns


class WordMatches(NamedTuple):
    """The items of one namespace that have some words."""

    ids: Ids  # ids of all its items that are in the word index, ascending
    sizes: Scores  # how many words each of them has
    postings: list[Posting | None]  # the items of each word; None for a word that is too common to count


class Postings:
    """The postings of one namespace; `weights` are those of the index's columns, in their order."""

    def __init__(self, namespace: int, weights: Sequence[float]) -> None:
        self._namespace = namespace
        self._weights = {f"c{number}": weight for number, weight in enumerate(weights)}
        self._kept: OrderedDict[str, Posting | None] = OrderedDict()  # by stem, least recently used first
        # Place and count in newer items, until the stem is asked for: most stems of a new text never are.
        self._added: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        self._version = self._epoch = -1
        self._removal = 0  # the last entry in the list of removals that was read
        self._bytes = 0

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return (12 * len(self._ids) if self._version >= 0 else 0) + self._bytes

    def find(self, connection: sqlite3.Connection, space: NamespaceRow, stems: Sequence[str]) -> WordMatches:
        """Find the items that have some stems, as `stem_words` makes them."""
        if space.version < self._version:  # another thread has read a newer version than this transaction sees
            return Postings(self._namespace, list(self._weights.values())).find(connection, space, stems)
        self._refresh(connection, space)
        return WordMatches(self._ids, self._sizes, [self._posting(connection, stem) for stem in stems])

    def _refresh(self, connection: sqlite3.Connection, space: NamespaceRow) -> None:
        if space.version <= self._version:
            return
        if self._version < 0 or space.epoch != self._epoch:
            self._ids, self._sizes = np.empty(0, np.int64), np.empty(0, np.float32)
            self._removal = last_removal(connection)
            self._clear()
        else:
            last = int(self._ids[-1]) if len(self._ids) else 0
            self._removal, _, changed = removals_after(connection, self._namespace, self._removal, last)
            self._read_again(connection, changed)
        self._append(connection)
        self._version, self._epoch = space.version, space.epoch

    def _clear(self) -> None:
        self._kept.clear()
        self._added.clear()
        self._bytes = 0

    def _read_again(self, connection: sqlite3.Connection, items: Sequence[int]) -> None:
        """Take over items that were updated or deleted."""
        if not items:
            return
        unchanged = ~np.isin(self._ids, items)
        ids, sizes = _sizes(connection.execute(_SIZES_OF, (json.dumps(list(items)),)).fetchall())
        ids, sizes = np.concatenate([self._ids[unchanged], ids]), np.concatenate([self._sizes[unchanged], sizes])
        order = np.argsort(ids, kind="stable")
        self._ids, self._sizes = ids[order], sizes[order]
        self._clear()

    def _append(self, connection: sqlite3.Connection) -> None:
        after = int(self._ids[-1]) if len(self._ids) else self._namespace << SHIFT
        newer = (after, (self._namespace + 1) << SHIFT)
        ids, sizes = _sizes(connection.execute(_SIZES_AFTER, newer).fetchall())
        first = len(self._ids)
        self._ids, self._sizes = np.concatenate([self._ids, ids]), np.concatenate([self._sizes, sizes])
        if len(ids) > _FEW_NEW:
            self._clear()
        if not len(ids) or not self._kept:
            return
        for place, columns in enumerate(connection.execute(_TEXTS_AFTER, newer), first):
            for stem, count in self._count_stems(columns).items():
                if self._kept.get(stem) is not None:
                    self._added[stem].append((place, count))
                    self._bytes += _ADDED_BYTES

    def _count_stems(self, columns: Sequence[str | None]) -> dict[str, float]:
        """Count the stems of one item, with the weights of the columns."""
        mark = len(namespace_mark(self._namespace))
        counts: defaultdict[str, float] = defaultdict(float)
        for weight, text in zip(self._weights.values(), columns, strict=True):
            for stem in stem_words([marked[mark:] for marked in (text or "").split()]):
                counts[stem] += weight
        return counts

    def _posting(self, connection: sqlite3.Connection, stem: str) -> Posting | None:
        """Return the items that have a stem; None if it is too common."""
        if stem in self._kept:
            self._kept.move_to_end(stem)
            if stem in self._added:
                self._kept[stem] = self._joined(stem)
            return self._kept[stem]
        term = namespace_mark(self._namespace) + stem
        query = "SELECT doc, col FROM temp.words WHERE term = ? LIMIT ?"
        instances = connection.execute(query, (term, _TOO_COMMON + 1)).fetchall()
        posting = self._read_posting(instances) if len(instances) <= _TOO_COMMON else None
        self._kept[stem] = posting
        self._bytes += _bytes(posting)
        while len(self._kept) > _MOST_WORDS:
            self._bytes -= _bytes(self._joined(next(iter(self._kept))))
            self._kept.popitem(last=False)
        return posting

    def _joined(self, stem: str) -> Posting | None:
        """Return a kept posting with the newer items that have the stem."""
        posting, added = self._kept[stem], self._added.pop(stem, [])
        if posting is None or not added:
            return posting
        self._bytes -= (_ADDED_BYTES - 8) * len(added)
        places, counts = zip(*added, strict=True)
        all_places = np.concatenate([posting.places, np.array(places, np.int32)])
        return Posting(all_places, np.concatenate([posting.counts, np.array(counts, np.float32)]))

    def _read_posting(self, instances: Sequence[tuple[int, str]]) -> Posting:
        """Make a posting of a word's instances: (item, column), once for each time that the word occurs."""
        counted: dict[int, float] = {}
        for item, column in instances:
            counted[item] = counted.get(item, 0.0) + self._weights[column]
        items = np.fromiter(counted, np.int64, len(counted))
        counts = np.fromiter(counted.values(), np.float32, len(counted))
        places, known = find_ids(self._ids, items)
        return Posting(places[known].astype(np.int32), counts[known])


def score_words(namespaces: Sequence[tuple[WordMatches, FilterMask | None]]) -> list[Scores]:
    """Score the items of several namespaces, with what a filter allows in each, as one collection, with BM25.

    How rare a word is and how long a text usually is are computed from the items that the filter allows, so that
    hidden items change nothing. The scores are at the places of `WordMatches.ids`; 0 where nothing is allowed or found.
    """
    masks = [None if allowed is None else allowed.of(matches.ids) for matches, allowed in namespaces]
    masked = [(matches.sizes, mask) for (matches, _), mask in zip(namespaces, masks, strict=True)]
    sizes = [sizes if mask is None else sizes[mask] for sizes, mask in masked]
    total = sum(map(len, sizes))
    average = sum(float(part.sum(dtype=np.float64)) for part in sizes) / max(total, 1)
    by_word = [
        postings
        for word in zip(*(matches.postings for matches, _ in namespaces), strict=True)
        if len(postings := [posting for posting in word if posting is not None]) == len(word)
    ]
    occurrences = [_occurrences([word[n] for word in by_word], mask) for n, mask in enumerate(masks)]
    having = np.zeros(len(by_word))
    for words, _, _ in occurrences:
        having += np.bincount(words, minlength=len(by_word))
    rarity = word_rarity(total, having)
    scores = []
    for (matches, _), (words, places, counts) in zip(namespaces, occurrences, strict=True):
        weights = word_weight(rarity[words], counts, matches.sizes[places], average)
        scores.append(np.bincount(places, weights, len(matches.ids)).astype(np.float32))
    return scores


def _occurrences(postings: Sequence[Posting], mask: Mask | None) -> tuple[Places, NDArray[np.int32], Scores]:
    """Join the postings of several words: the word's number, the item's place and the count of each."""
    words = np.arange(len(postings)).repeat([len(posting.places) for posting in postings])
    places = np.concatenate([np.empty(0, np.int32), *(posting.places for posting in postings)])
    counts = np.concatenate([np.empty(0, np.float32), *(posting.counts for posting in postings)])
    if mask is None:
        return words, places, counts
    inside = mask[places]
    return words[inside], places[inside], counts[inside]


def _bytes(posting: Posting | None) -> int:
    return _ENTRY_BYTES + (0 if posting is None else 8 * len(posting.places))


def _sizes(rows: Sequence[tuple[int, bytes]]) -> tuple[Ids, Scores]:
    """Read the lengths that FTS5 keeps of its texts: a blob with one number for each column."""
    ids = np.array([item for item, _ in rows], np.int64)
    sizes = np.array([sum(blob) if max(blob, default=0) < 0x80 else _decode_sum(blob) for _, blob in rows], np.float32)
    return ids, sizes


def _decode_sum(blob: bytes) -> int:
    # SQLite's variable-length integers: seven bits in a byte, the highest first; the top bit says that more follow.
    total = number = 0
    for byte in blob:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            total, number = total + number, 0
    return total
