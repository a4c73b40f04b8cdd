"""Types that every room shares, and what of them every database takes."""

from __future__ import annotations

import re
from typing import Any, TypeAlias, TypeVar, cast

JSON: TypeAlias = dict[str, Any]
"""A JSON object: what pages, records and patches are in state and in stores."""

_ValueT = TypeVar("_ValueT")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(value: _ValueT) -> _ValueT:
    """Return a value without NUL and lone surrogates, which models write now and then and PostgreSQL refuses.

    Args:
        value: A text, or dicts, lists and tuples with texts in them; anything else is returned as it is.
    """
    return cast("_ValueT", _without(value))


def _without(value: Any) -> Any:
    if isinstance(value, str):
        return value if _is_storable(value) else _UNSTORABLE.sub("", value)
    if type(value) is dict:
        return {_without(key): _without(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_without(part) for part in value)
    return value


def _is_storable(text: str) -> bool:
    try:
        return "\0" not in text and (text.isascii() or bool(text.encode()))
    except UnicodeEncodeError:
        return False
