"""Items of one namespace that were read lately, in RAM: what is recalled once is soon recalled again."""

import sqlite3
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any

from langgraph.store.base import SearchItem

from memory import rows
from memory.changes import changed_after, last_removed
from memory.rows import SHIFT, ItemRow, NamespaceRow

OFTEN = 3
"""Times that a small namespace is asked before all of it is read, items as well as words."""

_MOST = 2_048  # items; a campaign's scene comes by a few hundred
_LARGEST = 1 << 16  # characters of an item that is kept; a larger one is read as fast as it is copied
_ITEM = 600  # bytes of an item beside what it says: a row, its key and times, two dictionaries and their parts
_ATOMS = (str, int, float, bool, type(None))


class RowCache:
    """The items of a namespace that were read last; once it is asked often, all of a small one.

    Whoever asks gets a value of their own, to do with as they like. Items that expire are not kept: their time
    changes without a new version.

    Args:
        namespace: Its id.
    """

    def __init__(self, namespace: int) -> None:
        self._namespace = namespace
        self._items: dict[int, ItemRow] = {}  # least recently used first
        self._bytes = 0
        self._version = self._epoch = -1
        self._mark = 0
        self._asked = 0
        self._through = 0  # items up to this one have all been read, but for those that changed since
        self._changed: list[int] = []
        self._complete_at = -1  # the version of which all was read

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return self._bytes

    def search_items(self, space: NamespaceRow, found: Sequence[tuple[int, float | None]]) -> list[SearchItem] | None:
        """Make search items of ids and scores; None if not all are kept, or they are not of this very version."""
        self._asked += 1
        if self._version != space.version or not all(number in self._items for number, _ in found):
            return None
        kept = [(self._items[number], score) for number, score in found]
        return [as_search_item(row, _copied(row.value), score) for row, score in kept]

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
                self._items[number] = kept = self._items.pop(number)
                found.append(_own(kept))
        self._asked += 1
        if self._asked >= OFTEN and self._complete_at < space.version and space.items <= _MOST:
            self._complete(connection, space)
        while len(self._items) > _MOST:
            self._drop(next(iter(self._items)))
            self._through = 0
        if not self._through:
            self._changed = []
        return found

    def _complete(self, connection: sqlite3.Connection, space: NamespaceRow) -> None:
        """Read what was not read yet."""
        changed = rows.get_items(connection, self._changed, {space.id: space.path}) if self._changed else []
        for item in (*changed, *rows.all_items(connection, space, self._through)):
            if item.id not in self._items:
                self._keep(item)
            self._through = max(self._through, item.id)
        self._changed = []
        self._complete_at = space.version

    def _keep(self, item: ItemRow) -> None:
        if item.expires_at is None and item.size <= _LARGEST:
            self._items[item.id] = _own(item)
            self._bytes += _ITEM + item.size

    def _drop(self, number: int) -> None:
        if (item := self._items.pop(number, None)) is not None:
            self._bytes -= _ITEM + item.size

    def _refresh(self, connection: sqlite3.Connection, space: NamespaceRow) -> None:
        if space.version == self._version:
            return
        if space.epoch != self._epoch:
            self._items.clear()
            self._bytes = self._through = 0
            self._changed = []
            self._mark = last_removed(connection)
        else:
            self._mark, changed = changed_after(connection, self._namespace, self._mark, (self._namespace + 1) << SHIFT)
            self._changed += [number for number in changed if number <= self._through]
            for number in changed:
                self._drop(number)
        self._version, self._epoch = space.version, space.epoch


def as_search_item(row: ItemRow, value: dict[str, Any], score: float | None) -> SearchItem:
    """Make of an item what a search returns: with its value, or with a copy."""
    return SearchItem(row.namespace, row.key, value, row.created_at, row.updated_at, score)


def _own(item: ItemRow) -> ItemRow:
    value = _copied(item.value)
    return ItemRow(
        item.id, item.namespace, item.key, value, item.created_at, item.updated_at, item.expires_at, item.size
    )


def _copied(value: Mapping[str, Any]) -> dict[str, Any]:
    """Copy JSON; a third of the time of reading it."""
    return {intern(name): part if isinstance(part, _ATOMS) else _copy(part) for name, part in value.items()}


def _copy(part: Any) -> Any:
    if isinstance(part, dict):
        return _copied(part)
    return [_copy(one) for one in part] if isinstance(part, list) else part
