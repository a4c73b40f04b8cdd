"""Prompt text of a page: one line per field, `field: value`, the value as JSON.

JSON keeps a value on its line and inside its quotes, and `<`, `>` and `&` are written as escapes, so that no value can
end its section of the prompt or pretend to be another.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from questbook.types import JSON

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": "))  # `json.dumps` would make one each time
# What markup is made of, and U+2028, U+2029 and U+0085, which end a line for some readers and may stand in JSON.
_ESCAPES = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029\x85"}


def render_value(value: Any) -> str:
    """Render a JSON value on one line, without characters that markup is made of."""
    text = _ENCODER.encode(value)
    for char, escape in _ESCAPES.items():  # several times as fast as `str.translate` where there are few
        text = text.replace(char, escape)
    return text


def render_fields(fields: Mapping[str, Any], last: Collection[str] = ()) -> str:
    """Render the fields, one per line, without the empty ones, which would only cost tokens; some come last."""
    order = [name for name in fields if name not in last] + [name for name in last if name in fields]
    return "\n".join(f"{name}: {render_value(fields[name])}" for name in order if not is_empty(fields[name]))


def filled_fields(page: BaseModel, without: Collection[str] = ()) -> JSON:
    """Return a page's fields as JSON: not its version, empty ones, nor those `without`.

    An entry with a name stays, even if all its fields are empty.
    """
    return {name: value for name, value in _filled(page).items() if name != "version" and name not in without}


def parse_fields(text: str) -> JSON:
    """Read the fields that `render_fields` wrote. Lines that are not `field: JSON` are skipped."""
    fields: JSON = {}
    for line in text.splitlines():
        name, separator, value = line.partition(": ")
        if not separator:
            continue
        try:
            fields[name] = json.loads(value)
        except json.JSONDecodeError:  # prose around the page
            continue
    return fields


def is_empty(value: Any) -> bool:
    """Return whether a field is empty: null, blank text or an empty collection. 0 and false are values."""
    if isinstance(value, str):
        return not value or value.isspace()
    return value is None or (isinstance(value, dict | list) and not value)


@cache
def _names(page: type[BaseModel]) -> list[tuple[str, str]]:
    """Return the fields of a page or entry, each with its name in JSON."""
    return [(name, field.alias or name) for name, field in page.model_fields.items()]


def _filled(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, BaseModel):
        fields = {name: _filled(getattr(value, field)) for field, name in _names(type(value))}
        return {name: part for name, part in fields.items() if not is_empty(part)}
    if isinstance(value, Mapping):
        return {name: _filled(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(part) for part in value]
    return to_jsonable_python(value)
