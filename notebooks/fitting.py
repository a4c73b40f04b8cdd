"""Fitting: a model's patch of which not all fits. What fits is applied; of the rest, every problem is listed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from questbook.notebooks.base import Change, Notebook
from questbook.notebooks.errors import NotebookError, PageFullError, PatchError
from questbook.notebooks.patch import is_deeper
from questbook.notebooks.problems import shorten
from questbook.types import JSON

PageT = TypeVar("PageT", bound=Notebook)
_Path = tuple[str, ...]
_LONGEST_PATH = 500  # characters
_DEEPEST = 100


class PartialChange(NamedTuple, Generic[PageT]):
    """The page after the parts of a patch that fit, a note on each value that code corrected, and what does not fit.

    Each problem is a sentence with the path, the value, and what fits.
    """

    page: PageT
    notes: list[str]
    problems: list[str]


def apply_fitting(page: PageT, patch: Any) -> PartialChange[PageT]:
    """Apply what fits of a model's merge patch, and say of the rest what is wrong. The page itself is not changed."""
    rest, problems = patch, list[str]()
    while True:
        try:
            change: Change[PageT] = page.apply(rest, by_model=True)
            return PartialChange(change.page, change.notes, shorten(problems))
        except PatchError as error:
            problems += error.problems
            readable = isinstance(rest, Mapping) and not is_deeper(rest, _DEEPEST)
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
    wrong = set[_Path]()
    for problem in problems:
        text = " ".join(problem.casefold().split())[:_LONGEST_PATH]
        ends = [place for place, character in enumerate(text) if character in ".:"]
        if path := next((paths[text[:end]] for end in reversed(ends) if text[:end] in paths), None):
            wrong.add(path)
    return _cut(patch, (), wrong)


def _paths(patch: Mapping[str, Any], above: _Path = ()) -> Iterator[_Path]:
    for name, value in patch.items():
        path = (*above, str(name))
        yield path
        if isinstance(value, Mapping):
            yield from _paths(value, path)


def _cut(patch: Mapping[str, Any], above: _Path, wrong: set[_Path]) -> JSON:
    kept: JSON = {}
    for name, value in patch.items():
        path = (*above, str(name))
        if path in wrong:
            continue
        if isinstance(value, Mapping) and value:
            value = _cut(value, path, wrong)
            if not value:  # an entry of which nothing is left must not become an empty entry
                continue
        kept[name] = value
    return kept
