"""Merge patches (RFC 7396): apply one, make one from two pages, or apply as much of one as fits; and `Count`.

A merge patch says what a field is afterwards. Of two patches of one page each keeps what the other did not touch; only
counts would be lost, so a patch of a field of type `Count` says how much to add: {"$add": 1}.
"""

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any, Generic, NamedTuple, Protocol, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field

from questbook.notebooks.errors import NotebookError, PageFullError, PatchError
from questbook.notebooks.schema import fields_of, own_names, shorten
from questbook.types import JSON

ADD = "$add"
"""The key of a patch that adds to a number: {"$add": n}."""
MAX_DEPTH = 100  # levels that a patch may have; Python's recursion ends at a few hundred
_LONGEST_PATH = 500  # characters


_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_NUMBERS = {word: n for n, word in enumerate(f"{_WORDS} seventeen eighteen nineteen twenty".split())}
_SAID = re.compile(  # a number, perhaps with its unit
    rf"(?:day )?(\d{{1,3}}(?:,\d{{3}})+|\d+|{'|'.join(_NUMBERS)})"
    r"(?: ?(?:x|gp?|gold|(?:gold )?(?:pieces?|coins?)|days?|hp|(?:hit )?points?))?"
)


def _read_number(value: Any) -> Any:
    """Read "one", "35 gp" and "day 3" as numbers; true is not 1."""
    if isinstance(value, bool):
        raise ValueError("expected a number")
    said = _SAID.fullmatch(" ".join(value.casefold().split())) if isinstance(value, str) else None
    return _NUMBERS.get(said[1], said[1].replace(",", "")) if said else value


class _Adds:
    """Marks the type of a number to which writers add."""


Whole = Annotated[int, BeforeValidator(_read_number)]
Number = Annotated[Whole, Field(ge=-1_000_000_000, le=1_000_000_000)]
"""A whole number that every store and checkpointer can hold; true is not 1."""
Count = Annotated[Number, _Adds()]
"""A number that counts something. What several writers add at once adds up; in other fields the last value stays."""


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply `patch` to `target` as RFC 7396 says: objects merge, null deletes, all else replaces.

    Neither argument is changed.
    """
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def diff_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> JSON:
    """Return the merge patch that turns `before` into `after`; empty if they are equal.

    Where `after` holds null, the patch deletes: for a page that means its default.
    """
    patch: JSON = {key: None for key in before if after.get(key) is None and before[key] is not None}
    for key, value in after.items():
        old = before.get(key)
        if value is None or value == old:
            continue
        patch[key] = diff_patch(old, value) if isinstance(value, Mapping) and isinstance(old, Mapping) else value
    return patch


def diff_counts(page: type[BaseModel], before: JSON, after: JSON) -> JSON:
    """Return `diff_patch` of a page's JSON before and after a change; counts are written as what was added to them."""
    patch = diff_patch(before, after)
    for key, field in fields_of(page).items():
        if key in patch:
            annotation = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
            patch[key] = _as_added(annotation, before.get(key), after.get(key), patch[key])
    return patch


def add_counts(current: Any, patch: Any) -> Any:
    """Return the patch with each {"$add": n} replaced by the total: n more than `current` has there."""
    if not isinstance(patch, Mapping):
        return patch
    if set(patch) == {ADD} and _is_number(patch[ADD]) and (current is None or _is_number(current)):
        return (current or 0) + patch[ADD]
    old = current if isinstance(current, Mapping) else {}
    return {key: add_counts(old.get(key), value) for key, value in patch.items()}


def is_deeper(value: Any, levels: int) -> bool:
    """Return whether a JSON value is nested deeper than `levels`. No recursion, which deep values would break."""
    level = [value]
    while level and levels:
        levels -= 1
        parts = [part for part in level if isinstance(part, Mapping | list | tuple)]
        level = [inner for part in parts for inner in (part.values() if isinstance(part, Mapping) else part)]
    return bool(level)


def _as_added(annotation: Any, before: Any, after: Any, patch: Any) -> Any:
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        if any(isinstance(mark, _Adds) for mark in marks) and _is_number(before or 0) and _is_number(after):
            return {ADD: after - (before or 0)}
        return _as_added(inner, before, after, patch)
    if get_origin(annotation) in (Union, types.UnionType):  # X | None
        options = [option for option in get_args(annotation) if option is not type(None)]
        return _as_added(options[0], before, after, patch) if len(options) == 1 else patch
    before = {} if before is None else before  # an entry that two writers make at once is one
    if not isinstance(patch, Mapping) or not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return patch
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return diff_counts(annotation, dict(before), dict(after))
    if get_origin(annotation) is dict:
        entry = get_args(annotation)[1]
        return {key: _as_added(entry, before.get(key), after.get(key), value) for key, value in patch.items()}
    return patch


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class _Page(Protocol):
    def apply(self, patch: Any, *, by_model: bool) -> Any: ...  # see `Notebook.apply`


PageT = TypeVar("PageT", bound=_Page)


class PartialChange(NamedTuple, Generic[PageT]):
    """The page after the parts of a patch that fit, a note on each value that code corrected, and what does not fit.

    Each problem is a sentence with the path, the value, and what fits.
    """

    page: PageT
    notes: list[str]
    problems: list[str]


def apply_fitting(page: PageT, patch: Any) -> PartialChange[PageT]:
    """Apply what fits of a model's merge patch; say what is wrong with the rest, and as a note what was left out."""
    left_out, problems = list[str](), list[str]()
    rest = patch if is_deeper(patch, MAX_DEPTH) else own_names(type(page), patch, left_out)
    while True:
        try:
            change = page.apply(rest, by_model=True)
            return PartialChange(change.page, [*shorten(left_out), *change.notes], shorten(problems))
        except PatchError as error:
            problems += error.problems
            readable = isinstance(rest, Mapping) and not is_deeper(rest, MAX_DEPTH)
            smaller = _without(rest, error.problems) if readable else rest
            if smaller == rest or not smaller:
                return PartialChange(page, [], shorten(problems))
            rest = smaller
        except PageFullError as error:
            whole = _apply_by_field(page, rest)
            return whole._replace(problems=shorten([*problems, str(error), *whole.problems]))
        except NotebookError as error:
            return PartialChange(page, [], shorten([*problems, str(error)]))


def _apply_by_field(page: PageT, patch: Mapping[str, Any]) -> PartialChange[PageT]:
    """Apply the fields of a patch one by one, as far as the page has room; those that make room go first."""
    left, notes, now = dict(patch), list[str](), page
    for _ in range(2):
        for name, value in list(left.items()):
            try:
                change = now.apply({name: value}, by_model=True)
            except NotebookError:
                continue
            now, notes = change.page, [*notes, *change.notes]
            del left[name]
    return PartialChange(now, notes, [f"Not noted for that: {', '.join(left)}."] if left else [])


def _without(patch: Mapping[str, Any], problems: Sequence[str]) -> JSON:
    """Return a patch without the parts that problems name; each problem begins with a path.

    A path may name more than the patch has, such as a field of an entry: then the entry goes.
    """
    paths = {" ".join(".".join(path).casefold().split()): path for path in _paths(patch)}
    left: JSON = deepcopy(dict(patch))
    for problem in problems:
        text = " ".join(problem.casefold().split())[:_LONGEST_PATH]
        ends = [place for place, character in enumerate(text) if character in ".:"]
        if path := next((paths[text[:end]] for end in reversed(ends) if text[:end] in paths), None):
            _drop(left, *path)
    return left


def _paths(patch: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in patch.items():
        path = (*above, str(name))
        yield path
        if isinstance(value, Mapping):
            yield from _paths(value, path)


def _drop(fields: JSON, name: str, *rest: str) -> None:
    """Remove what is at a path, and what is left empty above it: that must not become an empty entry."""
    if rest and fields.get(name):
        _drop(fields[name], *rest)
    if not rest or not fields.get(name):
        fields.pop(name, None)
