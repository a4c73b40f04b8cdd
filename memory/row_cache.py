"""Items of one namespace that were read lately, in RAM: what is recalled once is soon recalled again."""

import sqlite3
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from memory import rows
from memory.changes import changed_after, last_removed
from memory.rows import SHIFT, ItemRow, NamespaceRow

_MOST = 2_048  # items; a campaign's scene comes by a few hundred
_LARGEST = 1 << 16  # bytes of an item that is kept; a larger one is read as fast as it is copied
_ATOMS = (str, int, float, bool, type(None))


class RowCache:
    """The items of a namespace that were read last.

    Whoever asks gets a value of their own, to do with as they like. Items that expire are not kept: their time
    changes without a new version.

    Args:
        namespace: Its id.
    """

    def __init__(self, namespace: int) -> None:
        self._namespace = namespace
        self._items: OrderedDict[int, tuple[ItemRow, int]] = OrderedDict()  # with bytes; least recently used first
        self._bytes = 0
        self._version = self._epoch = -1
        self._mark = 0

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return self._bytes

    def items(self, connection: sqlite3.Connection, space: NamespaceRow, ids: Sequence[int]) -> list[ItemRow]:
        """Return items in the order asked for; those that are gone are left out.

        Args:
            connection: In a read transaction.
            space: The namespace as that transaction sees it.
            ids: Their ids.
        """
        if space.version < self._version:  # another thread has seen what this transaction does not
            return rows.get_items(connection, ids, {space.id: space.path})
        self._refresh(connection, space)
        missing = [number for number in ids if number not in self._items]
        read = (
            {item.id: item for item in rows.get_items(connection, missing, {space.id: space.path})} if missing else {}
        )
        found = []
        for number in ids:
            if (item := read.get(number)) is not None:
                found.append(item)
                self._keep(item)
            elif number in self._items:
                self._items.move_to_end(number)
                kept, _ = self._items[number]
                found.append(kept._replace(value=_copied(kept.value)))
        while len(self._items) > _MOST:
            self._bytes -= self._items.popitem(last=False)[1][1]
        return found

    def _keep(self, item: ItemRow) -> None:
        size = _size(item.value)
        if item.expires_at is None and size <= _LARGEST:
            self._items[item.id] = item._replace(value=_copied(item.value)), size
            self._bytes += size

    def _refresh(self, connection: sqlite3.Connection, space: NamespaceRow) -> None:
        if space.version == self._version:
            return
        if space.epoch != self._epoch:
            self._items.clear()
            self._bytes = 0
            self._mark = last_removed(connection)
        else:
            self._mark, changed = changed_after(connection, self._namespace, self._mark, (self._namespace + 1) << SHIFT)
            for number in changed:
                if number in self._items:
                    self._bytes -= self._items.pop(number)[1]
        self._version, self._epoch = space.version, space.epoch


def _copied(value: Mapping[str, Any]) -> dict[str, Any]:
    """Copy JSON; a third of the time of reading it."""
    return {name: part if isinstance(part, _ATOMS) else _copy(part) for name, part in value.items()}


def _size(part: Any) -> int:
    """Bytes that JSON takes in RAM, about."""
    if isinstance(part, str):
        return 50 + (len(part) if part.isascii() else 2 * len(part))
    if isinstance(part, dict):
        return 200 + sum(100 + _size(one) for one in part.values())
    return 60 + sum(map(_size, part)) if isinstance(part, list) else 32


def _copy(part: Any) -> Any:
    if isinstance(part, dict):
        return _copied(part)
    return [_copy(one) for one in part] if isinstance(part, list) else part
