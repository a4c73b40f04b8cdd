"""Filters of a search: exact values, nested values, comparison operators, and filters joined by `$or` and `$and`.

`{"$through": ["branch", "order", {"a": "3", "b": "7"}]}` is short for an `$or` of `{"branch": "a", "order": {"$lte":
"3"}}` and so on: what a timeline with many forks may see.

`check_filter` refuses a wrong filter, `matches` asks one value. A `FilterIndex` has the values of a namespace's items
in RAM and asks all of them at once; its answer is a `FilterMask`.
"""

import json
import reprlib
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from questbook.memory.errors import BadQueryError
from questbook.memory.store.arrays import Ids, Mask, Places, find_ids
from questbook.memory.store.rows import SHIFT, NamespaceRow, last_removal, removals_after, values_after, values_of
from questbook.types import JSON

_EITHER, _ALL, _THROUGH = "$or", "$and", "$through"
_JOINS: Mapping[str, Callable[[Any], bool]] = {_EITHER: any, _ALL: all}
"""Keys whose value is a list of filters: one of them must hold, or all of them. Only our stores know these keys."""
_ORDER: Mapping[str, Callable[[Any, Any], Any]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_OPERATORS = frozenset({"$eq", "$ne", *_ORDER})
_SCALARS = frozenset({str, int, float, bool, type(None)})
_DEEPEST = 50  # levels; comparing values takes Python's stack
_MOST_KEYS = 16  # whose values are kept; the filters of one application name few
_MOST_MASKS = 32  # answers that are kept until something changes
_MANY_VALUES = 64  # different values, from which on texts are compared all at once
_LONGEST_TEXT = 32  # characters of a text that is compared so


def check_filter(wanted: object) -> None:
    """Refuse a wrong filter before anything is searched, with a BadQueryError.

    It is no mapping, a key is no text, an operator is unknown, "$or" or "$and" has no filters, it has over 50 levels.
    """
    if not isinstance(wanted, Mapping):
        raise BadQueryError(f'a filter is a mapping, for example {{"kind": "fact"}}; got {reprlib.repr(wanted)}')
    try:
        _check_conditions(wanted, _DEEPEST)
    except RecursionError as error:
        deepest = f"a filter may be nested {_DEEPEST} levels deep"
        raise BadQueryError(f"{deepest}; this one is deeper: {reprlib.repr(wanted)}") from error


def _check_depth(value: object, levels: int) -> None:
    """Raise a RecursionError if mappings and lists are nested in a value more levels deep."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    if levels <= 0 and inner:
        raise RecursionError
    for each in inner:
        if type(each) not in _SCALARS:  # most are
            _check_depth(each, levels - 1)


def _check_conditions(wanted: Mapping[Any, Any], levels: int, *, is_filter: bool = True) -> None:
    """Refuse wrong keys and values of a filter, or of a condition in it, which may have operators, no "$or", "$and"."""
    if levels <= 0:
        raise RecursionError
    has_operators = not is_filter and _has_operators(wanted)
    for key, condition in wanted.items():  # a timeline with many forks makes long filters
        if not isinstance(key, str):
            raise BadQueryError(f"the keys of a filter are texts, as those of stored values; got {reprlib.repr(key)}")
        if has_operators and key not in _OPERATORS:
            raise BadQueryError(f"Unsupported operator: {key}; expected one of {', '.join(sorted(_OPERATORS))}")
        if is_filter and key == _THROUGH and not _is_through(condition):
            raise BadQueryError(f"{key} takes two keys and texts by text, got {reprlib.repr(condition)}")
        if is_filter and key in _JOINS:
            if not isinstance(condition, list | tuple) or not all(isinstance(branch, Mapping) for branch in condition):
                raise BadQueryError(f"{key} takes a list of filters, got {reprlib.repr(condition)}")
            for alternative in condition:
                _check_conditions(alternative, levels - 2)
        elif type(condition) not in _SCALARS:
            if has_operators or not isinstance(condition, Mapping):
                _check_depth(condition, levels - 1)
            elif levels < 2 or condition.keys() - _OPERATORS or {*map(type, condition.values())} - _SCALARS:
                _check_conditions(condition, levels - 1, is_filter=False)


def _is_through(condition: Any) -> bool:
    alike = isinstance(condition, list | tuple) and len(condition) == 3 and isinstance(condition[2], Mapping)
    return alike and {*map(type, [*condition[:2], *condition[2], *condition[2].values()])} == {str}


def alternatives(condition: Sequence[Any]) -> list[JSON]:
    """Return what "$through" is short for: one filter for each text."""
    name, order, last = condition
    return [{name: text, order: {"$lte": through}} for text, through in last.items()]


def _has_operators(condition: Mapping[str, Any]) -> bool:
    return any(str(name)[:1] == "$" for name in condition)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a stored value meets every condition of a filter that passed `check_filter`.

    A key is looked up as it is written; if the value has no such key, its dots lead into nested objects. A missing
    key counts as None. Values are compared as LangGraph's stores compare them: objects by the keys that the filter
    names, lists element by element. Order operators compare numbers as numbers (also a number in a string, if the
    other side is a number) and strings by code point; other pairs do not match.
    """
    return all(_holds(value, key, condition) for key, condition in wanted.items())


def _holds(value: Mapping[str, Any], key: str, condition: Any) -> bool:
    if key == _THROUGH:
        key, condition = _EITHER, alternatives(condition)
    if key in _JOINS:
        return _JOINS[key](matches(value, one) for one in condition)
    return _meets(_look_up(value, key), condition)


def _look_up(value: Mapping[str, Any], key: str) -> Any:
    """Return what a value has under a key; None if it has nothing there."""
    if key in value or "." not in key:
        return value.get(key)
    inner: Any = value
    for step in key.split("."):
        if not isinstance(inner, Mapping):
            return None
        inner = inner.get(step)
    return inner


def _meets(have: Any, condition: Any) -> bool:
    """Return whether the value under one key meets its condition."""
    if isinstance(condition, Mapping):
        if _has_operators(condition):
            return all(_compare(have, name, operand) for name, operand in condition.items())
        return isinstance(have, Mapping) and all(_meets(have.get(key), want) for key, want in condition.items())
    if isinstance(condition, list | tuple):
        alike = isinstance(have, list | tuple) and len(have) == len(condition)
        return alike and all(_meets(element, want) for element, want in zip(have, condition, strict=True))
    return bool(have == condition)


def _compare(have: Any, operator: str, operand: Any) -> bool:
    if operator in ("$eq", "$ne"):
        stored = list(operand) if isinstance(operand, tuple) else operand  # JSON has no tuples
        return bool(have == stored) == (operator == "$eq")
    compare = _ORDER[operator]
    if isinstance(have, str) and isinstance(operand, str):
        return bool(compare(have, operand))
    left, right = number_in(have), number_in(operand)
    return left is not None and right is not None and bool(compare(left, right))


def number_in(value: Any) -> int | float | None:
    """Return a number, also one in a string; None if it is none."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) else None


class FilterMask(NamedTuple):
    """The items of one namespace that a filter allows."""

    ids: Ids  # ids of all its items, ascending
    mask: Mask  # which of them are allowed

    def of(self, items: Ids) -> Mask:
        """Return which of some items are allowed."""
        if np.array_equal(items, self.ids):
            return self.mask
        places, inside = find_ids(self.ids, items)
        inside[inside] = self.mask[places[inside]]
        return inside

    def allowed_ids(self) -> list[int]:
        """Return the ids of the allowed items, ascending."""
        ids: list[int] = self.ids[self.mask].tolist()
        return ids


class FilterIndex:
    """The values of a namespace's items under the keys that filters name, in RAM."""

    def __init__(self, namespace: int) -> None:
        self._namespace = namespace
        self._columns: OrderedDict[str, _Column] = OrderedDict()
        self._masks: OrderedDict[str, Mask] = OrderedDict()
        self._epoch = -1
        self._removal = 0  # the last entry in the list of removals that was read
        self.version = -1
        """The namespace's version that the values are of."""

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        if self.version < 0:
            return 0
        masks = sum(mask.nbytes for mask in self._masks.values())
        return 8 * len(self._ids) + masks + sum(column.size for column in self._columns.values())

    def apply(self, connection: sqlite3.Connection, space: NamespaceRow, wanted: Mapping[str, Any]) -> FilterMask:
        """Find the items that meet a filter that passed `check_filter`."""
        name = json.dumps(wanted, sort_keys=True, default=repr)
        if self.version < space.version or name not in self._masks:
            self._refresh(connection, space, _keys(wanted))
        if (mask := self._masks.get(name)) is None:
            mask = np.zeros(len(self._ids), np.bool_)
            mask[self._places(wanted)] = True
            self._masks[name] = mask
            if len(self._masks) > _MOST_MASKS:
                self._masks.popitem(last=False)
        return FilterMask(self._ids, mask)

    def _refresh(self, connection: sqlite3.Connection, space: NamespaceRow, keys: Sequence[str]) -> None:
        new = [key for key in keys if key not in self._columns]
        if space.version <= self.version and not new:
            return
        for key in keys:
            self._columns.setdefault(key, _Column(key))
            self._columns.move_to_end(key)
        while len(self._columns) > max(_MOST_KEYS, len(keys)):
            self._columns.popitem(last=False)
        if new or space.epoch != self._epoch or space.version < self.version:
            self._ids = np.empty(0, np.int64)
            for column in self._columns.values():
                column.clear()
            self._removal = last_removal(connection)
        else:
            last = int(self._ids[-1]) if len(self._ids) else 0
            self._removal, _, changed = removals_after(connection, self._namespace, self._removal, last)
            self._read_again(connection, changed)
        after = int(self._ids[-1]) if len(self._ids) else self._namespace << SHIFT
        self._append(values_after(connection, self._namespace, after))
        self._masks.clear()
        self.version, self._epoch = space.version, space.epoch

    def _append(self, rows: list[tuple[int, Any]]) -> None:
        if rows:
            self._ids = np.concatenate([self._ids, np.array([item for item, _ in rows], np.int64)])
            for column in self._columns.values():
                column.append([value for _, value in rows])

    def _read_again(self, connection: sqlite3.Connection, items: Sequence[int]) -> None:
        """Take over items that were updated or deleted."""
        if not items:
            return
        self._take(~np.isin(self._ids, items))
        self._append(values_of(connection, items))
        self._take(np.argsort(self._ids, kind="stable"))

    def _take(self, chosen: Mask | Places) -> None:
        self._ids = self._ids[chosen]
        for column in self._columns.values():
            column.codes = column.codes[chosen]

    def _places(self, wanted: Mapping[str, Any], among: Places | None = None) -> Places:
        """Find the places of the items, among all or some, that meet every condition."""
        places = among
        # The cheapest condition first: equal texts, then orders, then alternatives.
        simple_first = sorted(wanted.items(), key=lambda pair: (pair[0][:1] == "$", not isinstance(pair[1], str)))
        for key, condition in simple_first:
            if places is not None and not len(places):
                break
            if key == _EITHER:
                of_each = [self._places(alternative, places) for alternative in condition]
                places = np.unique(np.concatenate(of_each)) if of_each else np.empty(0, np.intp)
            elif key == _THROUGH:
                places = self._places_through(condition, places)
            elif key == _ALL:
                for one in condition:
                    places = self._places(one, places)
            else:
                places = self._columns[key].places(condition, places)
        return np.arange(len(self._ids)) if places is None else places

    def _places_through(self, condition: Sequence[Any], among: Places | None) -> Places:
        """Find the places of the items, among all or some, whose one text is a name and whose other is at most its."""
        (name, order, last), places = condition, np.arange(len(self._ids)) if among is None else among
        column, orders = self._columns[name], self._columns[order]
        if orders.texts is None or not orders.ascends:
            return self._places({_EITHER: alternatives(condition)}, places)
        # A NUL at a limit's end, which numpy drops, says nothing where no text ends with one.
        counts = np.searchsorted(orders.texts, np.array([*last.values(), ""]), side="right")
        # By a name's number, how many texts are at most its; the last place is for names that no item has.
        reach = np.zeros(len(column.values) + 1, np.intp)
        reach[np.array([column.code_of(text) for text in last], np.intp)] = counts[:-1]
        return places[orders.codes[places] < reach[column.codes[places]]]


class _Column:
    """The values of one key: a number for each item, and the value of each number."""

    def __init__(self, key: str) -> None:
        self._key = key
        self.clear()

    def clear(self) -> None:
        self.codes = np.empty(0, np.int32)  # the number of each item
        self.values: list[Any] = []  # the value of each number
        # `values` as an array; None if some of them are no short texts.
        self.texts: NDArray[np.str_] | None = np.empty(0, "U1")
        self.ascends = True  # whether each of `texts` comes after the one before, as what is written in order does
        self._codes: dict[Any, int] = {}  # by value

    @property
    def size(self) -> int:
        return 4 * len(self.codes) + 100 * len(self.values) + (0 if self.texts is None else self.texts.nbytes)

    def append(self, items: Sequence[Any]) -> None:
        """Append the values of some items; an item that is no object has None."""
        first = len(self.values)
        codes = [self._encode(_look_up(item, self._key) if isinstance(item, Mapping) else None) for item in items]
        self.codes = np.concatenate([self.codes, np.array(codes, np.int32)])
        new = self.values[first:]
        if self.texts is not None and new:
            short = all(isinstance(value, str) and len(value) <= _LONGEST_TEXT for value in new)
            # numpy takes a NUL at the end for padding.
            sound = short and not any(value.endswith("\0") for value in new)
            self.texts = np.concatenate([self.texts, np.array(new, np.str_)]) if sound else None
            self.ascends &= self.texts is not None and all(map(lt, self.values[max(first - 1, 0) :], new[not first :]))

    def _encode(self, value: Any) -> int:
        # Values that are no texts go by their JSON, in a tuple, so that none is taken for a text.
        name = value if isinstance(value, str) else (json.dumps(value, sort_keys=True),)
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self.values)
            self.values.append(value)
        return code

    def code_of(self, text: str) -> int:
        """Return the number of a text; -1 if no item has it."""
        return self._codes.get(text, -1)

    def places(self, condition: Any, among: Places | None) -> Places:
        """Find the places of the items, among all or some, whose value meets a condition."""
        codes = self.codes if among is None else self.codes[among]
        mask = codes == self.code_of(condition) if isinstance(condition, str) else self._mask(condition, codes)
        places = np.flatnonzero(mask)
        return places if among is None else among[places]

    def _mask(self, condition: Any, codes: NDArray[np.int32]) -> Mask:
        limits = [(_ORDER[name], limit) for name, limit in condition.items()] if _orders_texts(condition) else []
        if limits and self.texts is not None and len(self.values) > _MANY_VALUES:
            few: Mask = np.logical_and.reduce([compare(self.texts, limit) for compare, limit in limits])
            return few[codes]
        meets = (
            all(compare(value, limit) for compare, limit in limits)  # as `_meets`, in a tenth of its time
            if limits and isinstance(value, str)
            else _meets(value, condition)
            for value in self.values
        )
        table = np.fromiter(meets, np.bool_, len(self.values))
        return table[codes] if len(table) else np.zeros(len(codes), np.bool_)


def _orders_texts(condition: Any) -> bool:
    """Return whether a condition orders texts, and numpy orders them as Python does."""
    return isinstance(condition, Mapping) and all(
        name in _ORDER and isinstance(limit, str) and not limit.endswith("\0") for name, limit in condition.items()
    )


def _keys(wanted: Mapping[str, Any]) -> list[str]:
    """Return the keys that a filter names, each once."""
    keys: dict[str, None] = {}
    for key, condition in wanted.items():
        names = condition[:2] if key == _THROUGH else [key]
        keys |= dict.fromkeys([name for one in condition for name in _keys(one)] if key in _JOINS else names)
    return list(keys)
