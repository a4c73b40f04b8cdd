"""Changes that several writers make to one page at the same time.

A merge patch says what a field is afterwards. Two that were made of the same page and are applied one after the other
keep what the other did not touch: fields, and entries of collections. Only a count would be lost, since both tell the
same total. So the change of a field of type `Count` is told as what is added: {"$add": 1}.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from questbook.notebooks.number import Number
from questbook.notebooks.patch import JSON, diff_patch

ADD = "$add"


class _Sum:
    """Marks a number to which writers add."""


Count = Annotated[Number, _Sum()]
"""A number that counts something. What several writers add to it at once adds up; other fields keep the last value."""


def difference(page: type[BaseModel], before: JSON, after: JSON) -> JSON:
    """Return the patch that makes `after` of `before`, and keeps what others have written meanwhile.

    As `diff_patch`, but counts are told as what was added to them.

    Args:
        page: The notebook's class, which says what is a count.
        before: A page's JSON.
        after: The same after a change.
    """
    patch = diff_patch(before, after)
    for name, field in page.model_fields.items():
        key = field.alias or name
        if key in patch:
            annotation = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
            patch[key] = _added(annotation, before.get(key), after.get(key), patch[key])
    return patch


def added(current: Any, patch: Any) -> Any:
    """Return a patch with each {"$add": n} written as the total that it comes to."""
    if not isinstance(patch, Mapping):
        return patch
    if set(patch) == {ADD} and _is_number(patch[ADD]) and (current is None or _is_number(current)):
        return (current or 0) + patch[ADD]
    known = current if isinstance(current, Mapping) else {}
    return {key: added(known.get(key), value) for key, value in patch.items()}


def _added(annotation: Any, before: Any, after: Any, patch: Any) -> Any:
    if patch is None:
        return None
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        if any(isinstance(mark, _Sum) for mark in marks) and _is_number(before or 0) and _is_number(after):
            return {ADD: after - (before or 0)}
        return _added(inner, before, after, patch)
    if get_origin(annotation) in (Union, types.UnionType):  # X | None
        options = [option for option in get_args(annotation) if option is not type(None)]
        return _added(options[0], before, after, patch) if len(options) == 1 else patch
    before = {} if before is None else before  # an entry that two writers make at once is one
    if not isinstance(patch, Mapping) or not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return patch
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return difference(annotation, dict(before), dict(after))
    if get_origin(annotation) is dict:
        of = get_args(annotation)[1]
        return {key: _added(of, before.get(key), after.get(key), value) for key, value in patch.items()}
    return patch


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
