"""Items of one namespace that were read lately, in RAM: what is recalled once is soon recalled again."""

import sqlite3
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any, NamedTuple

from langgraph.store.base import SearchItem

from questbook.memory.store import rows
from questbook.memory.store.changes import changed_after, last_removed
from questbook.memory.store.packed_rows import PackedRows
from questbook.memory.store.rows import SHIFT, ItemRow, NamespaceRow

OFTEN = 3
"""Times that a small namespace is asked before all of it is read, items as well as words."""

_MOST = 2_048  # items that are kept as objects; a campaign's scene comes by a few hundred
_PACKED = 32_768  # items of a namespace that is kept whole as the file has it
_LARGEST = 1 << 16  # characters of an item that is kept; a larger one is read as fast as it is copied
_ITEM = 600  # bytes of an item beside what it says: a row, its key and times, two dictionaries and their parts
_PART = 72  # bytes of whatever lies in a list or dictionary of its value
_ATOMS = (str, int, float, bool, type(None))


class _Kept(NamedTuple):
    row: ItemRow
    flat: bool  # whether its value has no lists and no dictionaries in it, and so is copied at once
    size: int


class RowCache:
    """The items of a namespace that were read last; once it is asked often, all of a small one, packed if it is larger.

    Whoever asks gets a value of their own, to do with as they like. Items that expire are not kept: their time
    changes without a new version.

    Args:
        namespace: Its id.
        whole: Whether all items may be kept, if there are not too many.
    """

    def __init__(self, namespace: int, *, whole: bool = True) -> None:
        self._namespace = namespace
        self._most = _PACKED if whole else 0
        self._items: dict[int, _Kept] = {}  # least recently used first
        self._packed: PackedRows | None = None
        self._bytes = 0
        self._version = self._epoch = -1
        self._mark = 0
        self._asked = 0
        self._through = 0  # items up to this one have all been read, but for those that changed since
        self._changed = set[int]()
        self._complete_at = -1  # the version of which all was read

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return self._bytes + (0 if self._packed is None else self._packed.size)

    def search_items(self, space: NamespaceRow, found: Sequence[tuple[int, float | None]]) -> list[SearchItem] | None:
        """Make search items of ids and scores; None if not all are kept, or they are not of this very version."""
        self._asked += 1
        if self._version != space.version:
            return None
        page = []
        for number, score in found:
            if (own := self._own(number)) is None:
                return None
            page.append(as_search_item(*own, score))
        return page

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
        known: dict[int, ItemRow] = {}
        for number in ids:
            if (own := self._own(number)) is not None:
                known[number] = own[0]._replace(value=own[1])
        missing = [number for number in ids if number not in known]
        read = rows.get_items(connection, missing, {space.id: space.path}) if missing else []
        for item in read:
            known[item.id] = item
            self._keep(item)
        self._asked += 1
        if self._asked >= OFTEN and self._complete_at < space.version and space.items <= self._most:
            self._complete(connection, space)
        while len(self._items) > _MOST:
            self._evict(next(iter(self._items)))
            if self._packed is None:
                self._through = 0
        if not self._through:
            self._changed.clear()
        return [known[number] for number in ids if number in known]

    def _own(self, number: int) -> tuple[ItemRow, dict[str, Any]] | None:
        """An item, and its value for the caller to do with as they like; None if it is not kept."""
        if (kept := self._items.get(number)) is not None:
            self._items[number] = self._items.pop(number)
            return kept.row, dict(kept.row.value) if kept.flat else _copied(kept.row.value)
        packed = None if self._packed is None else self._packed.get(number)
        return None if packed is None else (packed, packed.value)

    def _complete(self, connection: sqlite3.Connection, space: NamespaceRow) -> None:
        """Read what was not read yet."""
        if (self._packed is None and space.items > _MOST) or (self._packed is not None and self._packed.worn):
            self._empty()
            self._packed = PackedRows(space.path)
        if self._changed:
            for item in rows.get_items(connection, sorted(self._changed), {space.id: space.path}):
                self._keep(item)
        newer = rows.raw_items(connection, space, self._through)
        if self._packed is None:
            for raw in newer:
                self._through = raw[0]
                if self._through in self._items:
                    continue
                if (row := rows.read_item(raw, space.path)) is not None:
                    self._keep(row)
        else:
            self._through = self._packed.add(newer, _LARGEST) or self._through
        self._changed.clear()
        self._complete_at = space.version

    def _empty(self) -> None:
        self._items.clear()
        self._packed = None
        self._bytes = self._through = 0
        self._changed.clear()

    def _keep(self, item: ItemRow) -> None:
        if item.id not in self._items and item.expires_at is None and item.size <= _LARGEST:
            flat = all(isinstance(part, _ATOMS) for part in item.value.values())
            size = _ITEM + item.size + (0 if flat else _PART * _parts(item.value))
            self._items[item.id] = _Kept(item._replace(value=_copied(item.value)), flat, size)
            self._bytes += size

    def _evict(self, number: int) -> None:
        if (kept := self._items.pop(number, None)) is not None:
            self._bytes -= kept.size

    def _refresh(self, connection: sqlite3.Connection, space: NamespaceRow) -> None:
        if space.version == self._version:
            return
        if space.epoch != self._epoch:
            self._empty()
            self._mark = last_removed(connection)
        else:
            self._mark, changed = changed_after(connection, self._namespace, self._mark, (self._namespace + 1) << SHIFT)
            self._changed.update(number for number in changed if number <= self._through)
            for number in changed:
                self._evict(number)
                if self._packed is not None:
                    self._packed.drop(number)
        self._version, self._epoch = space.version, space.epoch


def as_search_item(row: ItemRow, value: dict[str, Any], score: float | None) -> SearchItem:
    """Make of an item what a search returns: with its value, or with a copy."""
    return SearchItem(row.namespace, row.key, value, row.created_at, row.updated_at, score)


def _copied(value: Mapping[str, Any]) -> dict[str, Any]:
    """Copy JSON; a third of the time of reading it."""
    return {intern(name): part if isinstance(part, _ATOMS) else _copy(part) for name, part in value.items()}


def _copy(part: Any) -> Any:
    if isinstance(part, dict):
        return _copied(part)
    return [_copy(one) for one in part] if isinstance(part, list) else part


def _parts(part: Any) -> int:
    """How many values lie in a value, at any depth."""
    if not isinstance(part, dict | list):
        return 0
    inside = part.values() if isinstance(part, dict) else part
    return len(part) + sum(_parts(one) for one in inside)
