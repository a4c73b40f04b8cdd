"""Values of one namespace's items by key, in RAM, so that a filter is applied to all of them at once."""

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any

from questbook.memory.store.changes import changed_after, last_removed, values_after, values_of
from questbook.memory.store.filters import EITHER, look_up, meets
from questbook.memory.store.rows import SHIFT, NamespaceRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Mask = NDArray[np.bool_]
    Places = NDArray[np.intp]

_ORDER: dict[str, Callable[[Any, Any], Any]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_MOST_KEYS = 16  # that are kept; filters of one application name few
_MOST_MASKS = 32  # answers of filters that are kept until something changes
_MANY_VALUES = 64  # different ones, from which on texts are compared all at once
_LONGEST_TEXT = 32  # characters of a text that is compared so


class Columns:
    """The values of a namespace's items under the keys that filters name.

    Args:
        namespace: Its id.
    """

    def __init__(self, namespace: int) -> None:
        self._namespace = namespace
        self._columns: OrderedDict[str, _Column] = OrderedDict()
        self._masks: OrderedDict[str, Mask] = OrderedDict()
        self._epoch = -1
        self._mark = 0
        self.version = -1
        """Of the namespace, to which the values are up to date."""

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        if self.version < 0:
            return 0
        masks = sum(mask.nbytes for mask in self._masks.values())
        return 8 * len(self.ids) + masks + sum(column.size for column in self._columns.values())

    def mask(self, connection: sqlite3.Connection, space: NamespaceRow, wanted: Mapping[str, Any]) -> "Mask":
        """Which items meet a filter, aligned to `ids`.

        Args:
            connection: In a read transaction.
            space: The namespace as that transaction sees it.
            wanted: A filter that passed `check_filter`.
        """
        import numpy as np

        written = json.dumps(wanted, sort_keys=True, default=repr)
        if self.version < space.version or written not in self._masks:
            self._refresh(connection, space, _keys(wanted))
        if (mask := self._masks.get(written)) is None:
            mask = np.zeros(len(self.ids), np.bool_)
            mask[self._places(wanted)] = True
            self._masks[written] = mask
            if len(self._masks) > _MOST_MASKS:
                self._masks.popitem(last=False)
        return mask

    def _refresh(self, connection: sqlite3.Connection, space: NamespaceRow, keys: Sequence[str]) -> None:
        import numpy as np

        new = [key for key in keys if key not in self._columns]
        if space.version <= self.version and not new:
            return
        for key in keys:
            self._columns.setdefault(key, _Column(key))
            self._columns.move_to_end(key)
        while len(self._columns) > max(_MOST_KEYS, len(keys)):
            self._columns.popitem(last=False)
        if new or space.epoch != self._epoch or space.version < self.version:
            self.ids = np.empty(0, np.int64)
            for column in self._columns.values():
                column.clear()
            self._mark = last_removed(connection)
        else:
            last = int(self.ids[-1]) if len(self.ids) else 0
            self._mark, changed = changed_after(connection, self._namespace, self._mark, last)
            self._replace(connection, changed)
        after = int(self.ids[-1]) if len(self.ids) else self._namespace << SHIFT
        self._append(values_after(connection, self._namespace, after))
        self._masks.clear()
        self.version, self._epoch = space.version, space.epoch

    def _append(self, found: "list[tuple[int, Any]]") -> None:
        import numpy as np

        if found:
            self.ids = np.concatenate([self.ids, np.array([item for item, _ in found], np.int64)])
            for column in self._columns.values():
                column.append([value for _, value in found])

    def _replace(self, connection: sqlite3.Connection, changed: Sequence[int]) -> None:
        import numpy as np

        if not changed:
            return
        kept = ~np.isin(self.ids, changed)
        self.ids = self.ids[kept]
        for column in self._columns.values():
            column.keep(kept)
        self._append(values_of(connection, changed))
        order = np.argsort(self.ids, kind="stable")
        self.ids = self.ids[order]
        for column in self._columns.values():
            column.keep(order)

    def _places(self, wanted: Mapping[str, Any], among: "Places | None" = None) -> "Places":
        """Places of the items, of all or of some, that meet every condition."""
        import numpy as np

        places = among
        # What looks at the fewest comes first: equal texts, then orders, then alternatives.
        for key, condition in sorted(wanted.items(), key=lambda one: (one[0] == EITHER, not isinstance(one[1], str))):
            if key != EITHER:
                places = self._columns[key].places(condition, places)
            elif (bounded := _bounds(condition)) is not None:
                places = self._below(*bounded, places)
            else:
                found = [self._places(one, places) for one in condition]
                places = np.unique(np.concatenate(found)) if found else np.empty(0, np.intp)
        return np.arange(len(self.ids)) if places is None else places

    def _below(self, label: str, order: str, bounds: Mapping[str, str], among: "Places | None") -> "Places":
        """Places of the items that reach no further than the bound that their label has."""
        import numpy as np

        labels, orders = self._columns[label], self._columns[order]
        if orders.texts is None:
            alternatives = [{label: name, order: {"$lte": bound}} for name, bound in bounds.items()]
            found = [self._places(one, among) for one in alternatives]
            return np.unique(np.concatenate(found))
        longest = max(1, *map(len, bounds.values()))
        limits = np.zeros(len(labels.values), f"U{longest}")
        named = np.zeros(len(labels.values), np.bool_)
        for name, bound in bounds.items():
            if (code := labels.code(name)) >= 0:
                limits[code], named[code] = bound, True
        codes = labels.codes if among is None else labels.codes[among]
        texts = orders.texts[orders.codes if among is None else orders.codes[among]]
        found_ = np.flatnonzero(named[codes] & (texts <= limits[codes]))
        return found_ if among is None else among[found_]


class _Column:
    """One key's values: a number for each item, and what the numbers mean."""

    def __init__(self, key: str) -> None:
        self._key = key
        self.clear()

    def clear(self) -> None:
        import numpy as np

        self.codes = np.empty(0, np.int32)
        self.values: list[Any] = []
        self.texts: NDArray[np.str_] | None = np.empty(0, "U1")  # `values`; None if some are no short texts
        self._code: dict[Any, int] = {}

    @property
    def size(self) -> int:
        return 4 * len(self.codes) + 100 * len(self.values) + (0 if self.texts is None else self.texts.nbytes)

    def append(self, items: Sequence[Any]) -> None:
        import numpy as np

        first = len(self.values)
        codes = [self._coded(look_up(item, self._key) if isinstance(item, Mapping) else None) for item in items]
        self.codes = np.concatenate([self.codes, np.array(codes, np.int32)])
        new = self.values[first:]
        if self.texts is not None and new:
            short = all(isinstance(value, str) and len(value) <= _LONGEST_TEXT for value in new)
            # numpy takes a NUL at the end for padding.
            sound = short and not any(value.endswith("\0") for value in new)
            self.texts = np.concatenate([self.texts, np.array(new, np.str_)]) if sound else None

    def keep(self, chosen: "Mask | Places") -> None:
        self.codes = self.codes[chosen]

    def code(self, text: str) -> int:
        """The number of a text; -1 if no item has it."""
        return self._code.get(text, -1)

    def _coded(self, value: Any) -> int:
        # Other values by their JSON, in a tuple, so that they fall together with no text.
        name = value if isinstance(value, str) else (json.dumps(value, sort_keys=True),)
        code = self._code.get(name)
        if code is None:
            code = self._code[name] = len(self.values)
            self.values.append(value)
        return code

    def places(self, condition: Any, among: "Places | None") -> "Places":
        """Places, among some or all, of the items whose value meets a condition."""
        import numpy as np

        codes = self.codes if among is None else self.codes[among]
        good = codes == self.code(condition) if isinstance(condition, str) else self._good(condition, codes)
        found = np.flatnonzero(good)
        return found if among is None else among[found]

    def _good(self, condition: Any, codes: "NDArray[np.int32]") -> "Mask":
        import numpy as np

        if self.texts is not None and len(self.values) > _MANY_VALUES and _compares_texts(condition):
            texts = self.texts[codes]
            good = np.ones(len(codes), np.bool_)
            for name, operand in condition.items():
                good &= _ORDER[name](texts, operand)
            return good
        table = np.fromiter((meets(value, condition) for value in self.values), np.bool_, len(self.values))
        return table[codes] if len(table) else np.zeros(len(codes), np.bool_)


def _compares_texts(condition: Any) -> bool:
    """Whether numpy orders texts by this condition as Python does."""
    return isinstance(condition, Mapping) and all(
        name in _ORDER and isinstance(operand, str) and not operand.endswith("\0")
        for name, operand in condition.items()
    )


def _keys(wanted: Mapping[str, Any]) -> list[str]:
    """The keys that a filter asks for."""
    keys: dict[str, None] = {}
    for key, condition in wanted.items():
        if key == EITHER:
            keys |= dict.fromkeys(name for one in condition for name in _keys(one))
        else:
            keys[key] = None
    return list(keys)


def _bounds(alternatives: Sequence[Mapping[str, Any]]) -> tuple[str, str, dict[str, str]] | None:
    """Read alternatives that each want one label up to a bound, as a timeline's segments do.

    Returns:
        The label's key, the bound's key and the highest bound by label; None if they are of another shape.
    """
    bounds: dict[str, str] = {}
    keys: set[tuple[str, ...]] = set()
    for one in alternatives:
        if len(one) != 2:
            return None
        (label, name), (order, condition) = sorted(one.items(), key=lambda item: not isinstance(item[1], str))
        bound = condition.get("$lte") if isinstance(condition, Mapping) and len(condition) == 1 else None
        if EITHER in one or not isinstance(name, str) or not isinstance(bound, str) or bound.endswith("\0"):
            return None
        keys.add((label, order))
        bounds[name] = max(bound, bounds.get(name, bound))
    if len(keys) != 1:
        return None
    ((label, order),) = keys
    return label, order, bounds
