"""Filters of a search: exact values, nested values, comparison operators, and alternatives (`$or`).

`check_filter` refuses a wrong filter, `matches` asks one value, `filter_index` asks all items of a namespace at once
and answers with a `FilterMask`.
"""

import reprlib
from collections.abc import Callable, Iterable, Mapping
from operator import ge, gt, le, lt
from typing import Any

from questbook.memory.errors import BadQueryError

EITHER = "$or"
"""In the place of a key: a list of filters, of which one must hold. LangGraph's own stores do not know it."""

ORDER: Mapping[str, Callable[[Any, Any], Any]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
"""The operators that compare by order."""

_DEEPEST = 50  # levels; comparing values takes Python's stack
_OPERATORS = frozenset({"$eq", "$ne", *ORDER})


def check_filter(wanted: object) -> None:
    """Refuse a wrong filter before anything is searched.

    Raises:
        BadQueryError: If it is no mapping, a key is no text, an operator is none of $eq, $ne, $gt, $gte, $lt, $lte,
            "$or" has no list of filters, or it is nested deeper than 50 levels.
    """
    _check_depth(wanted)
    _check_conditions(wanted)


def _check_depth(wanted: object) -> None:
    level = [wanted]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _parts(outer)]
        if not level:
            return
    raise BadQueryError(f"a filter may be nested {_DEEPEST} levels deep; this one is deeper: {reprlib.repr(wanted)}")


def _parts(value: object) -> Iterable[object]:
    """Return what is inside a mapping or a list."""
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _check_conditions(wanted: object) -> None:
    if not isinstance(wanted, Mapping):
        raise BadQueryError(f'a filter is a mapping, for example {{"kind": "fact"}}; got {reprlib.repr(wanted)}')
    _check_keys(wanted)
    for key, condition in wanted.items():
        if key != EITHER:
            _check_condition(condition)
            continue
        if not isinstance(condition, list | tuple) or not all(isinstance(branch, Mapping) for branch in condition):
            raise BadQueryError(f"{EITHER} takes a list of filters, got {reprlib.repr(condition)}")
        for alternative in condition:
            _check_conditions(alternative)


def _check_condition(condition: object) -> None:
    if not isinstance(condition, Mapping):
        return
    _check_keys(condition)
    if _has_operators(condition):
        for name in condition:
            if name not in _OPERATORS:
                raise BadQueryError(f"Unsupported operator: {name}; expected one of {', '.join(sorted(_OPERATORS))}")
    else:
        for nested in condition.values():
            _check_condition(nested)


def _check_keys(wanted: Mapping[Any, Any]) -> None:
    for key in wanted:
        if not isinstance(key, str):
            raise BadQueryError(f"the keys of a filter are texts, as those of stored values; got {reprlib.repr(key)}")


def _has_operators(condition: Mapping[str, Any]) -> bool:
    return any(str(name).startswith("$") for name in condition)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a stored value meets every condition of a filter that passed `check_filter`.

    A key is looked up as it is written; if the value has no such key, its dots lead into nested objects. A missing
    key counts as None. Values are compared as LangGraph's stores compare them: objects by the keys that the filter
    names, lists element by element. Order operators compare numbers as numbers (also a number in a string, if the
    other side is a number) and strings by code point; other pairs do not match.
    """
    return not wanted or all(
        any(matches(value, alternative) for alternative in condition)
        if key == EITHER
        else meets(look_up(value, key), condition)
        for key, condition in wanted.items()
    )


def look_up(value: Mapping[str, Any], key: str) -> Any:
    """Return what a value has under a key; None if it has nothing there."""
    if key in value or "." not in key:
        return value.get(key)
    inner: Any = value
    for step in key.split("."):
        if not isinstance(inner, Mapping):
            return None
        inner = inner.get(step)
    return inner


def meets(have: Any, condition: Any) -> bool:
    """Return whether the value under one key meets its condition."""
    if isinstance(condition, Mapping):
        if _has_operators(condition):
            return all(_compare(have, name, operand) for name, operand in condition.items())
        return isinstance(have, Mapping) and all(meets(have.get(key), want) for key, want in condition.items())
    if isinstance(condition, list | tuple):
        return (
            isinstance(have, list | tuple)
            and len(have) == len(condition)
            and all(meets(element, want) for element, want in zip(have, condition, strict=True))
        )
    return bool(have == condition)


def _compare(have: Any, operator: str, operand: Any) -> bool:
    if operator in ("$eq", "$ne"):
        stored = list(operand) if isinstance(operand, tuple) else operand  # JSON has no tuples
        return bool(have == stored) == (operator == "$eq")
    compare = ORDER[operator]
    if isinstance(have, str) and isinstance(operand, str):
        return bool(compare(have, operand))
    left, right = _number(have), _number(operand)
    return left is not None and right is not None and bool(compare(left, right))


def _number(value: Any) -> int | float | None:
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None
