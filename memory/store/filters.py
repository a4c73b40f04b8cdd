"""Filters of a search: exact values, nested values, comparison operators and alternatives."""

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any

_ORDER: dict[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_OPERATORS = frozenset({"$eq", "$ne", *_ORDER})
EITHER = "$or"
"""In the place of a key: a list of filters, one of which must hold. LangGraph's own stores do not know it."""


def check_filter(wanted: Mapping[str, Any]) -> None:
    """Refuse a filter with an unknown operator before anything is searched.

    Args:
        wanted: `SearchOp.filter`.

    Raises:
        ValueError: If an operator is none of $eq, $ne, $gt, $gte, $lt, $lte, or "$or" has no list of filters.
    """
    for key, condition in wanted.items():
        if key != EITHER:
            _check_condition(condition)
            continue
        if not isinstance(condition, list | tuple) or not all(isinstance(one, Mapping) for one in condition):
            raise ValueError(f"{EITHER} takes a list of filters, got {condition!r:.80}")
        for one in condition:
            check_filter(one)


def _check_condition(condition: object) -> None:
    if not isinstance(condition, Mapping):
        return
    if any(str(name).startswith("$") for name in condition):
        for name in condition:
            if name not in _OPERATORS:
                raise ValueError(f"Unsupported operator: {name}; expected one of {', '.join(sorted(_OPERATORS))}")
    else:
        for nested in condition.values():
            _check_condition(nested)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a stored value meets every condition of a filter.

    A key is looked up as it is written; if the value has no such key, dots in it lead into nested objects. A
    missing key counts as None. Values are compared as LangGraph's stores do: objects by the keys that the
    filter names, lists element by element. Order operators compare numbers as numbers (also a number in a
    string, if the other side is a number) and strings by code point; what cannot be ordered does not match.

    Args:
        value: The item's value.
        wanted: A filter that passed `check_filter`.

    Returns:
        True if all conditions hold.
    """
    return not wanted or all(
        any(matches(value, one) for one in condition) if key == EITHER else meets(look_up(value, key), condition)
        for key, condition in wanted.items()
    )


def look_up(value: Mapping[str, Any], key: str) -> Any:
    """What a value has under a key; None if nothing."""
    if key in value or "." not in key:
        return value.get(key)
    found: Any = value
    for step in key.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(step)
    return found


def meets(have: Any, condition: Any) -> bool:
    """Whether what a value has under a key is as a condition wants it."""
    if isinstance(condition, Mapping):
        if any(str(name).startswith("$") for name in condition):
            return all(_compare(have, name, operand) for name, operand in condition.items())
        return isinstance(have, Mapping) and all(meets(have.get(key), want) for key, want in condition.items())
    if isinstance(condition, list | tuple):
        return (
            isinstance(have, list | tuple)
            and len(have) == len(condition)
            and all(meets(one, other) for one, other in zip(have, condition, strict=True))
        )
    return bool(have == condition)


def _compare(have: Any, operator: str, operand: Any) -> bool:
    if operator == "$eq":
        return bool(have == _as_json(operand))
    if operator == "$ne":
        return bool(have != _as_json(operand))
    compare = _ORDER[operator]
    if isinstance(have, str) and isinstance(operand, str):
        return compare(have, operand)
    left, right = _number(have), _number(operand)
    return left is not None and right is not None and compare(left, right)


def _as_json(operand: Any) -> Any:
    # A tuple is stored as a list.
    return list(operand) if isinstance(operand, tuple) else operand


def _number(value: Any) -> int | float | None:
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None
