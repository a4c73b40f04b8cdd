"""The word index of one namespace in RAM: which items have a word, and how often. A cache of what FTS5 holds.

`bm25` makes scores of it. A word is read when it is first asked for; once a small namespace is asked often, all are.
"""

import json
import sqlite3
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from questbook.memory.store.changes import changed_after, last_removed
from questbook.memory.store.row_cache import OFTEN
from questbook.memory.store.rows import SHIFT, NamespaceRow
from questbook.memory.store.word_table import WordTable
from questbook.memory.text.bm25 import Having, Matches
from questbook.memory.text.stems import stem_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Scores = NDArray[np.float32]

# A word that occurs more often than this in one namespace costs much and tells nothing; it is passed over.
_TOO_COMMON = 50_000
_MOST_WORDS = 8_192  # whose postings are kept
_SMALL = 16_384  # words in all its texts
_FEW_NEW = 256  # items that are read to bring the kept postings up to date; with more, they are read anew

_INSTANCES = "SELECT doc, col FROM temp.words WHERE term = ? LIMIT ?"
_ALL_INSTANCES = "SELECT term, doc, col FROM temp.words WHERE term >= ? AND term <= ?"


class Postings:
    """Which items of a namespace have a word.

    Args:
        namespace: Its id.
        weights: Of the index's columns, in their order.
    """

    def __init__(self, namespace: int, weights: Sequence[float]) -> None:
        self._namespace = namespace
        self._weights = {f"c{number}": weight for number, weight in enumerate(weights)}
        self._found: OrderedDict[str, Having | None] = OrderedDict()  # None: passed over
        self._version = self._epoch = -1
        self._mark = 0
        self._bytes = 0
        self._asked = 0
        self._table: WordTable | None = None  # all words, but for what `_found` has of some of them

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        table = 0 if self._table is None else self._table.size
        return (12 * len(self.ids) if self._version >= 0 else 0) + self._bytes + table

    def matches(self, connection: sqlite3.Connection, space: NamespaceRow, words: Sequence[str]) -> Matches:
        """Look up stems.

        Args:
            connection: In a read transaction.
            space: The namespace as that transaction sees it.
            words: Stems, as `stems` makes them.
        """
        if space.version < self._version:  # another thread has seen what this transaction does not
            return Postings(self._namespace, list(self._weights.values())).matches(connection, space, words)
        self._refresh(connection, space)
        self._asked += 1
        if self._asked == OFTEN and float(self.sizes.sum()) <= _SMALL:
            sign = f"{self._namespace}x"
            instances = connection.execute(_ALL_INSTANCES, (sign, f"{self._namespace}y")).fetchall()
            self._table = WordTable(instances, len(sign), self.ids, self._weights)
        return Matches(self.ids, self.sizes, [self._having(connection, word) for word in words])

    def current(self, space: NamespaceRow) -> bool:
        """Whether this is of the namespace's very version."""
        return space.version == self._version

    def known(self, words: Sequence[str]) -> Matches | None:
        """Look up stems in RAM alone; None if they are not all there."""
        if self._table is None and any(word not in self._found for word in words):
            return None
        return Matches(self.ids, self.sizes, [self._kept(word) for word in words])

    def _kept(self, word: str) -> Having | None:
        if word in self._found or self._table is None:
            return self._found[word]
        return self._table.having(word)

    def _refresh(self, connection: sqlite3.Connection, space: NamespaceRow) -> None:
        import numpy as np

        if space.version <= self._version:
            return
        if self._version < 0 or space.epoch != self._epoch:
            self.ids, self.sizes = np.empty(0, np.int64), np.empty(0, np.float32)
            self._mark = last_removed(connection)
            self._forget()
        else:
            last = int(self.ids[-1]) if len(self.ids) else 0
            self._mark, changed = changed_after(connection, self._namespace, self._mark, last)
            self._replace(connection, changed)
        self._append(connection)
        self._version, self._epoch = space.version, space.epoch

    def _forget(self) -> None:
        self._found.clear()
        self._bytes = self._asked = 0
        self._table = None

    def _replace(self, connection: sqlite3.Connection, changed: Sequence[int]) -> None:
        import numpy as np

        if not changed:
            return
        kept = ~np.isin(self.ids, changed)
        ids, sizes = _sizes(_text_sizes(connection, changed))
        ids, sizes = np.concatenate([self.ids[kept], ids]), np.concatenate([self.sizes[kept], sizes])
        order = np.argsort(ids, kind="stable")
        self.ids, self.sizes = ids[order], sizes[order]
        self._forget()

    def _append(self, connection: sqlite3.Connection) -> None:
        import numpy as np

        low = self._namespace << SHIFT
        after = int(self.ids[-1]) if len(self.ids) else low
        ids, sizes = _sizes(_text_sizes_after(connection, self._namespace, after))
        if not len(ids):
            return
        first = len(self.ids)
        self.ids, self.sizes = np.concatenate([self.ids, ids]), np.concatenate([self.sizes, sizes])
        if not self._found and self._table is None:
            return
        if len(ids) > _FEW_NEW:
            self._forget()
            return
        new: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        texts = _texts_after(connection, self._namespace, after)
        for place, columns in enumerate(texts, first):
            for word, often in self._counted(columns).items():
                if self._table is not None or word in self._found:
                    new[word].append((place, often))
        for word, more in new.items():
            found = self._kept(word)
            if found is not None:
                places, often_ = zip(*more, strict=True)
                self._bytes += 8 * len(more) + (0 if word in self._found else _bytes(found))
                self._found[word] = Having(
                    np.concatenate([found.places, np.array(places, np.int32)]),
                    np.concatenate([found.often, np.array(often_, np.float32)]),
                )
        if len(self._found) > _MOST_WORDS:
            self._table = None

    def _counted(self, columns: Sequence[str]) -> Counter[str]:
        sign = len(f"{self._namespace}x")
        counted: Counter[str] = Counter()
        for weight, text in zip(self._weights.values(), columns, strict=True):
            for word in stem_words([signed[sign:] for signed in text.split()]):
                counted[word] += weight  # type: ignore[assignment]  # a counter of weights
        return counted

    def _having(self, connection: sqlite3.Connection, stem: str) -> Having | None:
        """The items that have a word; None if too many have it."""
        if stem in self._found:
            self._found.move_to_end(stem)
        if stem in self._found or self._table is not None:
            return self._kept(stem)
        term = f"{self._namespace}x{stem}"
        instances = connection.execute(_INSTANCES, (term, _TOO_COMMON + 1)).fetchall()
        found = self._having_of(instances) if len(instances) <= _TOO_COMMON else None
        self._found[stem] = found
        self._bytes += _bytes(found)
        while len(self._found) > _MOST_WORDS:
            self._bytes -= _bytes(self._found.popitem(last=False)[1])
        return found

    def _having_of(self, instances: Sequence[tuple[int, str]]) -> Having:
        """Count a word's instances, which FTS5 lists by document."""
        import numpy as np

        counted: dict[int, float] = {}
        for document, column in instances:
            counted[document] = counted.get(document, 0.0) + self._weights[column]
        items = np.fromiter(counted, np.int64, len(counted))
        often = np.fromiter(counted.values(), np.float32, len(counted))
        places = np.searchsorted(self.ids, items)
        if len(items) and (places[-1] >= len(self.ids) or (self.ids[places] != items).any()):
            inside = np.isin(items, self.ids)
            places, often = places[inside], often[inside]
        return Having(places.astype(np.int32), often)


def _bytes(found: Having | None) -> int:
    return 350 + (0 if found is None else 8 * len(found.places))  # a dictionary's entry, two arrays, a word


def _sizes(found: "list[tuple[int, bytes]]") -> "tuple[Ids, Scores]":
    """Read the lengths that FTS5 keeps of its texts: a blob with one number for each column."""
    import numpy as np

    ids = np.array([item for item, _ in found], np.int64)
    sizes = np.array([sum(blob) if max(blob, default=0) < 0x80 else _decoded(blob) for _, blob in found], np.float32)
    return ids, sizes


def _decoded(blob: bytes) -> int:
    # SQLite's variable-length integers: seven bits a byte, the highest first, the top bit saying that more follow.
    total = number = 0
    for byte in blob:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            total, number = total + number, 0
    return total


def _text_sizes_after(connection: sqlite3.Connection, namespace: int, after: int) -> list[tuple[int, bytes]]:
    """Item ids and FTS5's record of their length, of a namespace's indexed items newer than a given one."""
    return connection.execute(
        "SELECT id, sz FROM texts_docsize WHERE id > ? AND id < ? ORDER BY id", (after, (namespace + 1) << SHIFT)
    ).fetchall()


def _text_sizes(connection: sqlite3.Connection, items: Sequence[int]) -> list[tuple[int, bytes]]:
    """Item ids and FTS5's record of their length, of those of some items that are in the word index."""
    return connection.execute(
        "SELECT id, sz FROM texts_docsize WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(items)),)
    ).fetchall()


def _texts_after(connection: sqlite3.Connection, namespace: int, after: int) -> Iterator[tuple[str, ...]]:
    """What the word index holds of a namespace's items newer than a given one: its columns, oldest first."""
    for row in connection.execute(
        "SELECT * FROM texts WHERE rowid > ? AND rowid < ? ORDER BY rowid", (after, (namespace + 1) << SHIFT)
    ):
        yield tuple(text or "" for text in row)
