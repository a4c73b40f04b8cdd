"""What a field of a page is: a text, a number, a choice, a thing with parts, or a list to which one can add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from questbook.notebooks import CharacterNotebook, Notebook, StateNotebook

PAGES: Mapping[str, type[Notebook]] = {"character": CharacterNotebook, "quest": StateNotebook}
"""The pages that a person edits, by channel."""


class Part(NamedTuple):
    """A field, or a part of one."""

    name: str  # as the page has it
    kind: str  # "text", "number", "choice", "parts" (a thing with fields of its own), or "list" (things by name)
    hint: str = ""  # what belongs in it
    choices: tuple[Any, ...] = ()  # as the page has them
    parts: tuple[Part, ...] = ()  # its own fields; of a list, those of each thing in it; none if each has a value alone
    each: str = ""  # of a list: the kind of each thing in it


def part_at(page: str, names: Sequence[str]) -> Part | None:
    """Return what a page has at a path, whether or not anything is written there; None: nothing that one may edit."""
    if page not in PAGES:
        return None
    here = Part(page, "parts", parts=tuple(_parts_of(PAGES[page])))
    for name in names:
        if here.kind == "list":
            here = here._replace(name=name, kind=here.each, hint="", each="")
            continue
        below = next((part for part in here.parts if part.name == name), None)
        if below is None:
            return None
        here = below
    return here


def _parts_of(page: type[BaseModel]) -> Iterator[Part]:
    secret = page.SECRET if issubclass(page, Notebook) else frozenset()
    for name, field in page.model_fields.items():
        by_engine = isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("engine")
        if name not in secret and not by_engine:
            yield _part(field.alias or name, field.annotation, field.description or "")


def _part(name: str, annotation: Any, hint: str = "") -> Part:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        hints = [extra.description for extra in inner[1:] if isinstance(extra, FieldInfo) and extra.description]
        return _part(name, inner[0], hint or "".join(hints[:1]))
    if origin in (Union, UnionType):
        return _part(name, next(kind for kind in inner if kind is not type(None)), hint)
    if origin is Literal:
        return Part(name, "choice", hint, inner)
    if origin is dict:
        each = _part(name, inner[1])
        return Part(name, "list", hint, each.choices, each.parts, each.kind)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Part(name, "parts", hint, parts=tuple(_parts_of(annotation)))
    if annotation is bool:
        return Part(name, "choice", hint, (True, False))
    return Part(name, "number" if annotation in (int, float) else "text", hint)


def settings_part(name: str, field: FieldInfo) -> Part:
    """Return what a setting is."""
    return _part(name, field.annotation, field.description or "")


def patch_of(names: Sequence[str], value: Any) -> dict[str, Any]:
    """Make the merge patch that sets one field; None deletes it."""
    for name in reversed(names):
        value = {name: value}
    assert isinstance(value, dict)  # noqa: S101 (a path has one name at least)
    return value


def read_value(part: Part, text: str) -> Any:
    """Read what a person wrote into a field: nothing deletes it; the page refuses what is no number."""
    text = text.strip()
    if part.kind == "choice":
        return next((choice for choice in part.choices if str(choice) == text), text or None)
    if part.kind == "number" and text.removeprefix("-").removeprefix("+").isdecimal():
        return int(text)
    return text or None
