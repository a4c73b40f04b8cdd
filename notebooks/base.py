"""Notebook: a typed page that lives in graph state as plain JSON and changes only by patches.

A subclass declares fields, and in capitals how an agent keeps the page. In a prompt a field is one line, `field: JSON`,
with `<`, `>` and `&` as escapes: no value can end its section or pretend to be another.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import to_jsonable_python

from questbook.notebooks.errors import DeclarationError, NotebookError, PageFullError, PatchError, VersionError
from questbook.notebooks.patch import MAX_DEPTH, add_counts, diff_counts, is_deeper, merge_patch
from questbook.notebooks.schema import by_engine, list_problems, own_names, patch_schema
from questbook.types import JSON

_CHANNEL = re.compile(r"[a-z][a-z0-9_]{0,39}")

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": "))  # `json.dumps` would make one each time
# What markup is made of, and U+2028, U+2029 and U+0085, which end a line for some readers and may stand in JSON.
_ESCAPES = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029\x85"}

PageT = TypeVar("PageT")
PromptPlace = Literal["before", "after", "last"]
"""Where a page is in the prompt: before or after the instructions, or last, beside the newest message."""
Scope = Literal["thread", "user", "campaign"]
"""Whose a page or a memory is: a thread's; a user's, in all threads; or a campaign's, which new threads go on with."""


@dataclass(frozen=True)
class Update:
    """When a page is written: `once`, `every_turn`, `every(n)` or `on_demand`; there are no others.

    Every so many turns, after the reply, the model is asked what changed; 0: never.
    """

    name: str
    turns: int = 0

    def due(self, turn: int, noted: int) -> bool:
        """Return whether the model is asked after a turn, given the last that was noted: what failed stays due."""
        return self.turns > 0 and turn // self.turns > noted // self.turns


once = Update("once")
"""An interview at the beginning fills the page until no field of `REQUIRED` is empty; then only people change it."""
every_turn = Update("every_turn", turns=1)
"""After every reply the model is asked what changed; no change is a valid answer."""
on_demand = Update("on_demand")
"""The model may call the page's tool whenever it answers."""


def every(turns: int) -> Update:
    """Ask the model every so many turns, a whole number from 1, what changed in them."""
    if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
        raise DeclarationError(f"every({turns!r}): expected a whole number of turns from 1, such as every(3).")
    return Update(f"every({turns})", turns)


class Entry(BaseModel):
    """A part of a page that has fields itself: one task, one person."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Change(NamedTuple, Generic[PageT]):
    """The page after a patch, and a note on each value that code corrected ("condition.hp: 99 became 11.")."""

    page: PageT
    notes: list[str]


class Notebook(BaseModel):
    """A typed page of an application's memory.

    A subclass declares fields, each with a default (a page starts empty), and in capitals how the page is kept.
    State stores `page.as_json()`; a node receives the typed page. A page is never changed: `apply` returns a new one.
    """

    # Pydantic's own messages do not show inputs: a page may hold secrets, and messages end up in logs.
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
    """Fields that the person who talks with the agent may not see."""
    REQUIRED: ClassVar[tuple[str, ...]] = ()
    """Fields, by their names in JSON, that a complete page fills; an interview asks for them."""
    WORDS: ClassVar[Mapping[str, str]] = {}
    """What else models call a field, by its name in JSON: {"goal": "aim motive"}; entries may, too."""
    CHANNEL: ClassVar[str] = ""
    """Channel of the state that holds the page, and name of its section in the prompt; empty: see `channel`."""
    UPDATE: ClassVar[Update] = every_turn
    """When the page is written: `once`, `every_turn`, `every(n)` or `on_demand`."""
    PLACE: ClassVar[PromptPlace | Literal[""]] = ""
    """Where the page is in the prompt; empty: see `place`."""
    SCOPE: ClassVar[Scope] = "thread"
    """Whose the page is: a chat's own, one of all threads of the user, or one that a new thread goes on with."""
    CHANGING: ClassVar[tuple[str, ...]] = ()
    """Fields that change most often, by their names in JSON: they come last, for prompts that begin alike cost less."""
    KEEPS_ENTRIES: ClassVar[bool] = False  # True: an entry whose name is forgotten gets another one, and is not removed
    TOOL: ClassVar[str] = "Note what changed. Send only the fields to change, as totals; null deletes an entry."
    """Instructions for the tool that patches this page. What the page is for is said by the class's docstring."""

    version: int = Field(default=1, description="Schema version of the page.", json_schema_extra={"engine": True})

    @classmethod
    def channel(cls) -> str:
        """Return `CHANNEL`, or by default the class's name in small letters without "Notebook"."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__.removesuffix("Notebook"))
        return cls.CHANNEL or words.lower()

    @classmethod
    def place(cls) -> PromptPlace:
        """Return `PLACE`; by default "last" for a page that is written after replies, "after" for one that stays.

        Providers charge less for the beginning that a prompt shares with the one before: what changes comes last.
        """
        return cls.PLACE or ("last" if cls.UPDATE.turns else "after")

    @property
    def missing(self) -> list[str]:
        """Required fields that are still empty, in the order of `REQUIRED`."""
        fields = self.as_json()
        return [field for field in self.REQUIRED if is_empty(fields[field])]

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
        return {**(cls.upgrade(dict(page)) if cls._version_of(page) < cls.VERSION else page), "version": cls.VERSION}

    @classmethod
    def _version_of(cls, page: Mapping[str, Any]) -> int:
        version = page.get("version", cls.VERSION)  # each page that was written has one
        if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= cls.VERSION:
            raise VersionError(cls.__name__, version, cls.VERSION)
        return version

    @classmethod
    def load(cls, page: Any) -> Self:
        """Read a page from state: JSON, an instance, or None for an empty page.

        JSON that is no such page is a PatchError, a page of a newer Questbook a VersionError.
        """
        if isinstance(page, cls):
            return page
        if isinstance(page, Mapping):
            cls._version_of(page)  # here, because pydantic would wrap the error
        try:
            return cls.model_validate({} if page is None else page)
        except ValidationError as error:
            raise PatchError(cls.__name__, list_problems(error, cls)) from error

    def as_json(self) -> JSON:
        """Return the page as the plain JSON that state stores."""
        return self.model_dump(mode="json", by_alias=True)

    def apply(self, patch: Any, *, by_model: bool = False, bounded: bool = True) -> Change[Self]:
        """Apply a merge patch (RFC 7396; {"$add": n} adds to a number) and check the result. This page is not changed.

        If a model wrote it (`by_model`), fields that belong to code must stay as they are. The limit cannot hold
        (`bounded`) where several writers, each within it, write at once. A PatchError says what does not fit, or that
        the page's own code raised something; a PageFullError, that a page would pass its limit: one that is over it
        already may be shortened.
        """
        name = type(self).__name__
        if isinstance(patch, type(self)):
            patch = patch.as_json()
        if is_deeper(patch, MAX_DEPTH):
            raise PatchError(name, [f"The patch: it is nested more than {MAX_DEPTH} levels deep; expected fewer."])
        if not isinstance(patch, Mapping):
            raise PatchError(name, [f"The patch: got {patch!r:.80}; expected an object with the fields to change."])
        before, patch = self.as_json(), own_names(type(self), patch)  # a copy
        if by_model and (refused := _take_engine(type(self), before, patch)):
            raise PatchError(name, [f"{field}: code keeps this field; leave it out." for field in refused])
        self._version_of(patch)
        patch.pop("version", None)
        try:
            merged = type(self).model_validate(merge_patch(before, add_counts(before, self.normalize(patch))))
            change = merged.enforce(self)
            used = len(change.page.render())
        except NotebookError:
            raise
        except Exception as error:  # a turn must not end because of it; of a page with secrets it may quote one
            raised = [f"{name} raised {type(error).__name__}{'' if self.SECRET else f': {error}'}."]
            problems = list_problems(error, type(self)) if isinstance(error, ValidationError) else raised
            raise PatchError(name, problems) from error
        limit = self.LIMIT if by_model else self.LIMIT + self.RESERVED
        if bounded and used > limit and used >= len(self.render()):
            raise PageFullError(name, used, limit)
        return change

    def patch_from(self, before: Self) -> JSON:
        """Return the merge patch that turns the page `before` into this one, with counts as what was added to them."""
        return diff_counts(type(self), before.as_json(), self.as_json())

    def normalize(self, patch: JSON) -> JSON:
        """Return a patch, whose counts may be {"$add": n}, in the page's own spelling. The default changes nothing."""
        return patch

    def enforce(self, before: Self) -> Change[Self]:  # noqa: ARG002 (for subclasses)
        """Apply the app's rules to a merged page, given the page before: clamp values, with a note on each.

        Where clamping would be wrong, raise a PatchError.
        """
        return Change(self, [])

    def render(self) -> str:
        """Render the whole page for a prompt: one line per field, `field: JSON value`, without empty fields.

        The fields of `CHANGING` come last.
        """
        fields = self._filled_fields(frozenset())
        order = [name for name in fields if name not in self.CHANGING] + [n for n in self.CHANGING if n in fields]
        return render_fields({name: fields[name] for name in order})

    @property
    def fullness(self) -> str:
        """How full the page is, for the model that writes it: "1,240 of 6,000 characters"."""
        return f"{len(self.render()):,} of {self.LIMIT:,} characters"

    def player_view(self) -> JSON:
        """Return what the person may see, as JSON: all fields that are neither secret nor empty."""
        return self._filled_fields(self.SECRET)

    @classmethod
    def tool(cls) -> JSON:
        """Return the tool by which a model patches this page, in the OpenAI function format."""
        text = cls.TOOL if cls.TOOL != Notebook.TOOL else f"{' '.join((cls.__doc__ or '').split())} {cls.TOOL}".strip()
        function = {"name": cls.__name__, "description": text, "parameters": patch_schema(cls)}
        return {"type": "function", "function": function}

    def _filled_fields(self, without: frozenset[str]) -> JSON:
        return {name: value for name, value in _filled(self).items() if name != "version" and name not in without}


def check_declarations(pages: Sequence[type[Notebook]]) -> None:
    """Check the notebooks of which an agent is to be made.

    A wrong declaration, or a name that two share, is a DeclarationError: it names class, value and what is allowed.
    """
    for number, page in enumerate(pages):
        if not isinstance(page, type) or not issubclass(page, Notebook):
            raise DeclarationError(f"A notebook is a class derived from Notebook; got {page!r:.80}.")
        name = page.__name__
        if problem := _wrong_setting(page) or _wrong_fields(page):
            raise DeclarationError(f"{name}{problem}")
        for other in pages[:number]:
            if other is page:
                raise DeclarationError(f"{name} is given twice; give each notebook once.")
            clash = f"two classes are called {name}, and their tools too." if other.__name__ == name else ""
            if other.channel() == page.channel():
                clash = f"{other.__name__} and {name} are both {page.channel()!r}. Give one of them another CHANNEL."
            if clash:
                raise DeclarationError(f"Two notebooks cannot have one name: {clash}")


def _wrong_setting(page: type[Notebook]) -> str:
    for attribute, least in (("VERSION", 1), ("LIMIT", 1), ("RESERVED", 0)):
        if type(number := getattr(page, attribute)) is not int or number < least:
            return f".{attribute}: got {number!r}; expected a whole number from {least}."
    if not _CHANNEL.fullmatch(str(page.channel())) or not isinstance(page.CHANNEL, str):
        return f".CHANNEL: got {page.channel()!r}; expected small letters, digits and underscores, at most 40."
    if not isinstance(page.UPDATE, Update) or (page.UPDATE not in (once, on_demand) and page.UPDATE.turns < 1):
        return f".UPDATE: got {page.UPDATE!r}; expected once, every_turn, every(n) or on_demand."
    for attribute, value, allowed in (("PLACE", page.place(), PromptPlace), ("SCOPE", page.SCOPE, Scope)):
        if value not in get_args(allowed):
            return f".{attribute}: got {value!r}; expected one of {str(get_args(allowed))[1:-1]}."
    return ""


def _wrong_fields(page: type[Notebook]) -> str:
    free = {"place", "channel", "load"}  # asked of the class alone, where a field is not in the way
    free |= set() if page.REQUIRED else {"missing", "complete"}
    if taken := [name for name in page.model_fields if name in vars(Notebook).keys() - free]:
        return f".{taken[0]}: every page has something of this name already. Give the field another one."
    try:
        empty = page()
        page.tool()
    except ValidationError as error:
        field = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
        return f".{field}: a page starts empty, so every field needs a default."
    except RecursionError:
        return ": the type of a field contains itself, which no tool can describe."
    if (used := len(empty.render())) > page.LIMIT:
        return f".LIMIT: got {page.LIMIT}; the empty page already renders to {used} characters."
    fields = empty.as_json()
    if fields.keys() != {name for _, name in _names(page)}:
        return ": a page does not come back from its JSON: leave out computed and excluded fields and other aliases."
    if not isinstance(page.WORDS, Mapping) or not all(isinstance(words, str) for words in page.WORDS.values()):
        return f".WORDS: got {page.WORDS!r:.80}; expected other words by field, such as {{'goal': 'aim motive'}}."
    for attribute in ("REQUIRED", "CHANGING", "SECRET", "WORDS"):
        listed: Any = getattr(page, attribute)
        if isinstance(listed, str) or not isinstance(listed, Collection):
            return f".{attribute}: got {listed!r:.80}; expected names of fields, such as ('goal',)."
        if wrong := [field for field in listed if field not in fields]:
            return f".{attribute}: there is no field {wrong[0]!r}; there are {', '.join(fields)}."
    if full := [field for field in page.REQUIRED if once == page.UPDATE and not is_empty(fields[field])]:
        there = f"the empty page has {fields[full[0]]!r:.80} there already"
        return f".REQUIRED: {full[0]!r} is never asked for: {there}; take an empty default, as in `int | None = None`."
    if once == page.UPDATE and not page.REQUIRED:
        return " is filled once: name in REQUIRED the fields that the interview asks for."
    return ""


@cache
def _names(page: type[BaseModel]) -> list[tuple[str, str]]:
    """Return the fields of a page or entry, each with its name in JSON."""
    return [(name, field.alias or name) for name, field in page.model_fields.items()]


def _filled(value: Any) -> Any:
    """Return the value without empty fields. An entry with a name stays, even if all its fields are empty."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, BaseModel):
        fields = {name: _filled(getattr(value, field)) for field, name in _names(type(value))}
        return {name: part for name, part in fields.items() if not is_empty(part)}
    if isinstance(value, Mapping):
        return dict(zip(to_jsonable_python(dict.fromkeys(value)), map(_filled, value.values()), strict=True))
    if isinstance(value, list | tuple):
        return [_filled(part) for part in value]
    return to_jsonable_python(value)


def _take_engine(page: type[BaseModel], before: JSON, patch: JSON) -> list[str]:
    """Take the fields that belong to code out of a patch; return the paths of those that it would change.

    A model sends back what the prompt shows it; what stays as it is, is no mistake.
    """
    changed = list[str]()
    for path in _engine_fields(page):
        *parents, name = path.split(".")
        place, old = patch, before
        for parent in parents:
            place, old = (place.get(parent) if isinstance(place, dict) else None) or {}, old[parent]
        if isinstance(place, dict) and name in place:
            value, now = place.pop(name), old.get(name)
            if merge_patch(now, value) != now and not (is_empty(value) and is_empty(now)):
                changed.append(path)
    return changed


def _engine_fields(model: type[BaseModel], prefix: str = "") -> list[str]:
    """List the paths of the fields that belong to code, in the page and in its entries."""
    paths = []
    for own, name in _names(model):
        field = model.model_fields[own]
        if by_engine(field):
            paths.append(prefix + name)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, Entry):
            paths += _engine_fields(field.annotation, f"{prefix}{name}.")
    return paths


def render_value(value: Any) -> str:
    """Render a JSON value on one line, without characters that markup is made of."""
    text = _ENCODER.encode(value)
    for char, escape in _ESCAPES.items():  # several times as fast as `str.translate` where there are few
        text = text.replace(char, escape)
    return text


def render_fields(fields: Mapping[str, Any]) -> str:
    """Render the fields, one per line, without the empty ones, which would only cost tokens."""
    return "\n".join(f"{name}: {render_value(value)}" for name, value in fields.items() if not is_empty(value))


def parse_fields(text: str) -> JSON:
    """Read the fields that `render_fields` wrote. Lines that are not `field: JSON` are skipped."""
    fields: JSON = {}
    for line in text.splitlines():
        name, separator, value = line.partition(": ")
        with suppress(json.JSONDecodeError, RecursionError):  # prose around the page, however odd
            fields |= {name: json.loads(value)} if separator else {}
    return fields


def is_empty(value: Any) -> bool:
    """Return whether a field is empty: null, blank text or an empty collection. 0 and false are values."""
    if isinstance(value, str):
        return not value or value.isspace()
    return value is None or (isinstance(value, dict | list) and not value)
