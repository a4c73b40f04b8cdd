"""Packed rows: items of a namespace of some thousands as the file holds them, so that a search need not ask it.

As Python objects they would take more than their vectors; so they take about what they say, and are read when found.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable

from questbook.memory.store.rows import ItemRow, Namespace, RawItem, decode_key, read_item

_FIXED = 40  # bytes of an item beside its key and its value: five numbers


class PackedRows:
    """Rows in the order of their ids. One thread at a time.

    Args:
        namespace: The labels of all of them.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._ids = array("q")
        self._marks = array("q", [0])  # after a 0, of each item: where its key ends, created, updated, its value's end
        self._text = bytearray()
        self._gone = set[int]()

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return _FIXED * len(self._ids) + len(self._text) + 64 * len(self._gone)

    @property
    def worn(self) -> bool:
        """Whether so many are gone that all had better be read anew."""
        return 4 * len(self._gone) > len(self._ids)

    def add(self, found: Iterable[RawItem], longest: int) -> int | None:
        """Append rows that have newer ids than all that are here, in their order.

        What expires is left out, because its time changes without a new version of the namespace; so is what is
        damaged, and a value of more characters than `longest`.

        Returns:
            The last of their ids; None if there are none.
        """
        number = None
        for number, key, value, created, updated, expires in found:
            if expires is not None or not isinstance(value, str) or len(value) > longest:
                continue
            self._ids.append(number)
            self._text += key if isinstance(key, bytes) else key.encode()
            self._marks.extend((len(self._text), created, updated))
            self._text += value.encode()
            self._marks.append(len(self._text))
        return number

    def drop(self, number: int) -> None:
        """Forget an item, if it is here."""
        if self._place(number) is not None:
            self._gone.add(number)

    def get(self, number: int) -> ItemRow | None:
        """Return an item of its own for whoever asks; None if it is not here, or its value is no JSON."""
        place = self._place(number)
        if place is None:
            return None
        begin, middle, created, updated, end = self._marks[4 * place : 4 * place + 5]
        key, value = decode_key(self._text[begin:middle]), self._text[middle:end].decode()
        return read_item((number, key, value, created, updated, None), self._namespace)

    def _place(self, number: int) -> int | None:
        ids = self._ids
        place = number - ids[0] if ids else 0  # where it is as long as none before it is missing
        if not 0 <= place < len(ids) or ids[place] != number:
            place = bisect_left(ids, number)
        here = place < len(ids) and ids[place] == number and number not in self._gone
        return place if here else None
