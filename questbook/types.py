"""Types that every room shares, and what of them every database takes; words of any script."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar, cast

JSON: TypeAlias = dict[str, Any]
"""A JSON object: what pages, records and patches are in state and in stores."""

_ValueT = TypeVar("_ValueT")
_encode = json.JSONEncoder(ensure_ascii=False).encode
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check_number(
    name: str, value: object, least: int = 0, *, most: float | None = None, whole: bool = True, none: bool = False
) -> None:
    """Raise a ValueError if a value is no (whole) number from `least` to `most`; `none` says that None is allowed."""
    kinds = int if whole else (int, float)
    fits = isinstance(value, kinds) and not isinstance(value, bool) and value >= least
    if not (fits and (most is None or cast("float", value) <= most)) and not (none and value is None):
        kind = "a whole number" if whole else "a number"
        reach = f"from {least}" + ("" if most is None else f" to {most:g}") + (", or None" if none else "")
        raise ValueError(f"{name}: got {value!r:.80}; expected {kind} {reach}.")


def check_choice(name: str, value: object, *choices: object) -> None:
    """Raise a ValueError if a value is none of the choices."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        *first, last = map(repr, choices)
        raise ValueError(f"{name}: got {value!r:.80}; expected {', '.join(first)} or {last}.")


def check_type(name: str, value: object, kind: Any, expected: str) -> None:
    """Raise a ValueError if a value is of none of the types; `expected` says what would be."""
    if not isinstance(value, kind):
        raise ValueError(f"{name}: got {value!r:.80}; expected {expected}.")


def check_json(name: str, value: object) -> None:
    """Raise a ValueError if a value is neither a JSON object nor None."""
    try:
        fits = value is None or (isinstance(value, Mapping) and json.loads(json.dumps(dict(value))) == value)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(f"{name}: got {value!r:.80}; expected a JSON object, such as {{'project': 'blue'}}.")


def storable(value: _ValueT) -> _ValueT:
    """Return a value without NUL and lone surrogates, which models write now and then and PostgreSQL refuses.

    It is a text, or dicts, lists and tuples with texts in them; anything else is returned as it is.
    """
    try:  # what is JSON is looked through at once: a turn asks it of a thousand texts, and nearly all may stay
        encoded = _encode(value) if type(value) in (dict, list) else "\\u0000"
        sound = "\\u0000" not in encoded and (encoded.isascii() or _is_unicode(encoded))
    except (TypeError, ValueError, RecursionError):
        sound = False
    return value if sound else cast("_ValueT", _without(value))


def clean_text(text: str) -> str:
    """Return a person's text without control characters; what separates words does so still."""
    kept = (c if c in "\n\t\r\x85" or c.isprintable() or ord(c) > 0x9F else " " * c.isspace() for c in text)
    return "".join(kept)


def words_in(text: str) -> list[str]:
    """Return the words of a text: letters and digits, with the marks that belong to them, as vowel signs of Hindi."""
    letters = [" "]
    for c in text:  # a variation selector, as behind emoji, is no letter's
        is_mark = unicodedata.category(c) in ("Mn", "Mc") and not ("\ufe00" <= c <= "\ufe0f" or c >= "\U000e0100")
        letters.append(c if c.isalnum() or (is_mark and letters[-1] != " ") else " ")
    return "".join(letters).split()


def _without(value: Any) -> Any:
    if isinstance(value, str):
        fits = "\0" not in value and (value.isascii() or _is_unicode(value))
        return value if fits else _UNSTORABLE.sub("", value)
    if type(value) is dict:
        return {_without(key): _without(part) for key, part in value.items()}
    return type(value)(_without(part) for part in value) if type(value) in (list, tuple) else value


def _is_unicode(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False
