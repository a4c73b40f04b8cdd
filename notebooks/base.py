"""Notebook: a typed page that lives in graph state as plain JSON and changes only by patches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import to_jsonable_python

from questbook.notebooks.errors import PageFullError, PatchError, VersionError
from questbook.notebooks.merge import added
from questbook.notebooks.number import Number
from questbook.notebooks.patch import JSON, is_deeper, merge_patch, patch_schema
from questbook.notebooks.render import is_empty, render_fields
from questbook.notebooks.update import Update, every_turn

__all__ = ["Change", "Entry", "Notebook", "Number", "Place"]

_DEEPEST = 100  # levels of a patch; Python gives up at a few hundred

PageT = TypeVar("PageT")
Place = Literal["before", "after", "last"]
"""Where a page stands in the prompt: before or after the instructions, or last, behind the conversation."""


class Entry(BaseModel):
    """A part of a page with fields of its own: one quest, one person."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Change(NamedTuple, Generic[PageT]):
    """What a patch made of a page.

    Attributes:
        page: The page after the patch.
        notes: One sentence for each value that code corrected ("condition.hp: 99 became 11, the maximum").
    """

    page: PageT
    notes: list[str]


class Notebook(BaseModel):
    """A typed page of an application's memory.

    A subclass declares fields (each with a default: a page starts empty), and in capitals what is to be done with the
    page. State stores `page.as_json()`; a node receives the typed page.

    Attributes:
        version: Schema version that wrote the page.
    """

    # Inputs stay out of pydantic's own messages: a page may hold secrets, and messages end up in logs.
    model_config = ConfigDict(
        extra="forbid", frozen=True, str_strip_whitespace=True, populate_by_name=True, hide_input_in_errors=True
    )

    VERSION: ClassVar[int] = 1
    """Schema version of this class; raise it with an `upgrade` when a field changes its shape."""
    LIMIT: ClassVar[int] = 4000
    """Characters that the page may render to, as a model writes it."""
    RESERVED: ClassVar[int] = 0
    """Characters beyond the limit that only code and people may use, for the fields that code fills."""
    SECRET: ClassVar[frozenset[str]] = frozenset()
    """Fields that no view for the player may hold."""

    REQUIRED: ClassVar[tuple[str, ...]] = ()
    """Fields, as in JSON, without which the page is not complete; an interview asks for them."""
    CHANNEL: ClassVar[str] = ""
    """Channel of the state that holds the page, and name of its section in the prompt; empty: see `channel`."""
    UPDATE: ClassVar[Update] = every_turn
    """When the page is written: `once`, `every_turn`, `every(n)` or `on_demand`."""
    PLACE: ClassVar[Place] = "after"
    """Where the page stands in the prompt."""

    TOOL: ClassVar[str] = "Note what changed. Send only the fields to change, as totals; null deletes an entry."
    """What the model is told about the tool that patches this page; what the class is for, its docstring says."""

    version: int = Field(default=1, json_schema_extra={"engine": True})

    @classmethod
    def channel(cls) -> str:
        """Return `CHANNEL`, or else the class's name in small letters without "Notebook"."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__.removesuffix("Notebook"))
        return cls.CHANNEL or words.lower()

    @property
    def missing(self) -> list[str]:
        """Required fields that nothing has been said about yet, in the order of `REQUIRED`."""
        said = self.as_json()
        return [field for field in self.REQUIRED if is_empty(said[field])]

    @property
    def complete(self) -> bool:
        """Whether every required field is filled."""
        return not self.missing

    @classmethod
    def upgrade(cls, page: JSON) -> JSON:
        """Bring a page that an older version wrote to this version's shape. The default changes nothing."""
        return page

    @model_validator(mode="before")
    @classmethod
    def _read(cls, page: Any) -> Any:
        if not isinstance(page, Mapping):
            return page
        if cls._version_of(page) < cls.VERSION:
            return {**cls.upgrade(dict(page)), "version": cls.VERSION}
        return page

    @classmethod
    def _version_of(cls, page: Mapping[str, Any]) -> int:
        found = page.get("version", 1)
        if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= cls.VERSION:
            raise VersionError(cls.__name__, found, cls.VERSION)
        return found

    @classmethod
    def load(cls, page: Any) -> Self:
        """Read a page from state: JSON, an instance, or None for an empty page.

        Raises:
            PatchError: The JSON is not such a page; the message names each wrong field.
            VersionError: A newer Questbook wrote it.
        """
        if isinstance(page, cls):
            return page
        if isinstance(page, Mapping):
            cls._version_of(page)  # here, because pydantic would wrap the error
        try:
            return cls.model_validate({} if page is None else page)
        except ValidationError as error:
            raise PatchError.from_validation(cls.__name__, error) from error

    def as_json(self) -> JSON:
        """Return the page as the plain JSON that state stores."""
        return self.model_dump(mode="json", by_alias=True)

    def patched(self, patch: Any, *, by_model: bool = False, bounded: bool = True) -> Change[Self]:
        """Apply a merge patch and check the outcome. This page is not changed.

        Args:
            patch: RFC 7396 merge patch over the page's JSON; {"$add": n} adds to a number.
            by_model: A model wrote it: fields that belong to code are refused.
            bounded: Whether the limit holds; it cannot for what several writers, who each kept it, wrote at once.

        Raises:
            PatchError: The patch is no object, is nested more than 100 levels deep, or a field does not validate.
            PageFullError: The page would pass its limit. A page that is over it already may still be shortened.
        """
        name = type(self).__name__
        if isinstance(patch, type(self)):
            patch = patch.as_json()
        if is_deeper(patch, _DEEPEST):
            raise PatchError(name, [f"The patch: it is nested more than {_DEEPEST} levels deep; expected fewer."])
        if not isinstance(patch, Mapping):
            raise PatchError(name, [f"The patch: got {patch!r:.80}; expected an object with the fields to change."])
        if by_model and (owned := self._owned(patch)):
            raise PatchError(name, [f"{field}: code keeps this field; leave it out." for field in owned])
        self._version_of(patch)
        before = self.as_json()
        try:
            merged = type(self).model_validate(merge_patch(before, self.prepare(added(before, patch))))
        except ValidationError as error:
            raise PatchError.from_validation(name, error) from error
        change = merged.settle(self)
        used = len(change.page.render())
        limit = self.LIMIT if by_model else self.LIMIT + self.RESERVED
        if bounded and used > limit and used >= len(self.render()):
            raise PageFullError(name, used, limit)
        return change

    def prepare(self, patch: JSON) -> JSON:
        """Bring a patch to the page's own spelling before it is merged. The default changes nothing."""
        return patch

    def settle(self, before: Self) -> Change[Self]:  # noqa: ARG002 (for subclasses)
        """Hold a merged page to the application's rules, given the page before the patch.

        Returns the page, values clamped where a rule says so, with a note on each.

        Raises:
            PatchError: A rule is broken and no clamping would be right.
        """
        return Change(self, [])

    def render(self) -> str:
        """Render the whole page for a prompt: `field: JSON value`, one line each, empty fields left out."""
        return render_fields(self._shown(frozenset()))

    def player_view(self) -> JSON:
        """Return what the player may know, as JSON: everything that is neither secret nor empty."""
        return self._shown(self.SECRET)

    @classmethod
    def tool(cls) -> JSON:
        """Return the tool by which a model patches this page, in the OpenAI function format."""
        own = cls.TOOL if cls.TOOL != Notebook.TOOL else f"{' '.join((cls.__doc__ or '').split())} {cls.TOOL}".strip()
        function = {"name": cls.__name__, "description": own, "parameters": patch_schema(cls)}
        return {"type": "function", "function": function}

    def _shown(self, left_out: frozenset[str]) -> JSON:
        return {name: value for name, value in _filled(self).items() if name != "version" and name not in left_out}

    @classmethod
    def _owned(cls, patch: Mapping[str, Any]) -> list[str]:
        return [path for path in _engine_fields(cls) if _names(patch, path.split("."))]


def _filled(value: Any) -> Any:
    """Leave out the fields that say nothing. Entries that somebody named stay, even with nothing to say of them."""
    if isinstance(value, BaseModel):
        fields = {f.alias or name: _filled(getattr(value, name)) for name, f in type(value).model_fields.items()}
        return {name: part for name, part in fields.items() if not is_empty(part)}
    if isinstance(value, Mapping):
        return {name: _filled(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(part) for part in value]
    return value if isinstance(value, str | int | float) or value is None else to_jsonable_python(value)


def _engine_fields(model: type[BaseModel], prefix: str = "") -> list[str]:
    """List the paths of fields marked as belonging to code, one level of nesting deep."""
    paths = []
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, dict) and extra.get("engine"):
            paths.append(prefix + name)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, Entry):
            paths += _engine_fields(field.annotation, f"{prefix}{name}.")
    return paths


def _names(patch: Any, path: list[str]) -> bool:
    for part in path:
        if not isinstance(patch, Mapping) or part not in patch:
            return False
        patch = patch[part]
    return True
