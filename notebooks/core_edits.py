"""The tools by which an assistant edits its core memory, as pure operations on the page.

An edit either fits, and the model is told what the section says now, or nothing changes and the model is told what is
wrong, which sections there are and what the section says.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from questbook.notebooks.core import CoreNotebook, Section, writable
from questbook.notebooks.errors import EditError, SectionFullError
from questbook.notebooks.patch import JSON
from questbook.notebooks.render import render_value
from questbook.notebooks.tool_schema import first_problem, tool_schema

_SHOWN = 60  # characters of a line that stand in a message
_MOST_PLACES = 8
_NUMBERED = re.compile(r"^[ \t]*(?:line )?\d+[:|→][ \t]?", re.MULTILINE)


class Edited(NamedTuple):
    """What a tool call made of the page.

    Attributes:
        page: The page after it.
        text: What the model is told.
        label: The section that was edited.
    """

    page: CoreNotebook
    text: str
    label: str


class _Args(BaseModel):
    model_config = ConfigDict(extra="forbid")

    label: str = Field(description="Label of the section.")


class _Append(_Args):
    """Add text to a section of your core memory, on a line of its own."""

    content: str = Field(description="The text to add.")


class _Insert(_Args):
    """Add a line to a section of your core memory, at a place of your choice."""

    content: str = Field(description="The text to add.")
    line: int = Field(default=-1, description="After which line: 0 is the top, -1 (the default) the end.")


class _Replace(_Args):
    """Replace text in a section of your core memory. The old text must stand there exactly, and once."""

    old_content: str = Field(description="Text that stands in the section, to the letter, and only once.")
    new_content: str = Field(description="What stands there afterwards.")


class _Remove(_Args):
    """Remove text from a section of your core memory. The text must stand there exactly, and once."""

    content: str = Field(description="Text that stands in the section, to the letter, and only once.")


class _Rethink(_Args):
    """Rewrite a whole section of your core memory: to sort it, shorten it, or settle what contradicts itself."""

    new_content: str = Field(description="Everything that the section says afterwards.")


def _appended(value: str, args: _Append) -> str:
    _some(args.content)
    return f"{value}\n{args.content}" if value else args.content


def _inserted(value: str, args: _Insert) -> str:
    _some(args.content)
    lines = value.split("\n") if value else []
    if not -1 <= args.line <= len(lines):
        raise EditError(f"line: got {args.line}; the section has {len(lines)} lines: send 0 to {len(lines)}, or -1.")
    place = len(lines) if args.line == -1 else args.line
    return "\n".join([*lines[:place], args.content, *lines[place:]])


def _replaced(value: str, args: _Replace) -> str:
    place = _only_place(value, args.old_content, "old_content")
    return value[:place] + args.new_content + value[place + len(args.old_content) :]


def _removed(value: str, args: _Remove) -> str:
    start = _only_place(value, args.content, "content")
    end = start + len(args.content)
    if (start == 0 or value[start - 1] == "\n") and (end == len(value) or value[end] == "\n"):
        # A whole line goes with its line break: the one behind it, or for the last line the one before.
        start, end = (start, end + 1) if end < len(value) else (max(start - 1, 0), end)
    return value[:start] + value[end:]


def _rethought(value: str, args: _Rethink) -> str:  # noqa: ARG001 (one signature for all)
    return args.new_content


_EDITS: dict[str, tuple[type[_Args], Callable[[str, Any], str]]] = {
    "core_memory_append": (_Append, _appended),
    "core_memory_insert": (_Insert, _inserted),
    "core_memory_replace": (_Replace, _replaced),
    "core_memory_remove": (_Remove, _removed),
    "core_memory_rethink": (_Rethink, _rethought),
}


CORE_TOOLS: list[JSON] = [tool_schema(name, arguments) for name, (arguments, _) in _EDITS.items()]
"""The tools that edit core memory, in the OpenAI function format."""


def edit_core(page: CoreNotebook, tool: str, args: Mapping[str, Any]) -> Edited:
    """Do what a tool call asks for. The page that is given is not changed.

    Args:
        page: Core memory.
        tool: Name of one of `CORE_TOOLS`.
        args: Its arguments as the model sent them.

    Raises:
        EditError: It does not fit; the message is for the model.
    """
    if tool not in _EDITS:
        raise EditError(f"There is no tool {tool!r}; those of core memory are {', '.join(_EDITS)}.")
    arguments, change = _EDITS[tool]
    try:
        asked = arguments.model_validate({name: _clean(value) for name, value in args.items()})
    except ValidationError as error:
        raise EditError(f"{tool}: {first_problem(error, arguments)}{_now(page, args.get('label'))}") from error
    section = page.sections.get(asked.label)
    if section is None:
        near = difflib.get_close_matches(asked.label.casefold(), page.labels, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise EditError(f"There is no section {asked.label!r:.60}; there are {', '.join(page.labels)}.{hint}")
    if section.read_only:
        raise EditError(f"Section {asked.label!r} is read-only: it cannot be edited.{_now(page, asked.label)}")
    try:
        value = change(section.value, asked)
        if value == section.value:
            raise EditError("That changes nothing: the section says so already.")
        edited = page.with_value(asked.label, value)
    except (EditError, SectionFullError) as error:
        raise EditError(f"{tool}: {error} Nothing was changed.{_now(page, asked.label)}") from error
    return Edited(edited, _said(asked.label, edited.sections[asked.label]), asked.label)


def places_of(text: str, wanted: str) -> list[int]:
    """List where `wanted` stands in `text`, overlapping places included."""
    places, at = list[int](), text.find(wanted)
    while wanted and at >= 0:
        places.append(at)
        at = text.find(wanted, at + 1)
    return places


def _only_place(value: str, wanted: str, argument: str) -> int:
    if not wanted:
        raise EditError(f"{argument}: got an empty text; send the text that stands in the section.")
    places = places_of(value, wanted)
    if len(places) == 1:
        return places[0]
    if not places:
        bare = _NUMBERED.sub("", wanted)
        if bare != wanted and places_of(value, bare):
            raise EditError(f"{argument}: the line numbers are no part of the text; leave them out.")
        raise EditError(f"{argument}: {_short(wanted)} does not stand in the section.{_nearest(value, wanted)}")
    lines = [value.count("\n", 0, place) + 1 for place in places]
    shown = "; ".join(
        f"line {line}: {_around(value, place, len(wanted))}"
        for line, place in list(zip(lines, places, strict=True))[:_MOST_PLACES]
    )
    more = f"; and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    raise EditError(
        f"{argument}: {_short(wanted)} stands {len(places)} times ({shown}{more}). Send more of the text around it, "
        "so that it is clear which is meant."
    )


def _nearest(value: str, wanted: str) -> str:
    """Say where something like it stands."""
    lines = value.split("\n")
    target = wanted.strip().casefold()
    folded = [line.strip().casefold() for line in lines]
    for number, line in enumerate(folded, 1):
        if target and target in line:
            return f" Line {number} has it in other case or spacing: {_short(lines[number - 1])}."
    near = difflib.get_close_matches(target.split("\n")[0], folded, n=1, cutoff=0.5)
    if not near:
        return ""
    number = folded.index(near[0])
    return f" The nearest is line {number + 1}: {_short(lines[number])}."


def _around(value: str, place: int, length: int) -> str:
    start = max(value.rfind("\n", 0, place) + 1, place - 20)
    end = value.find("\n", place + length)
    stop = min(end if end >= 0 else len(value), place + length + 20)
    return _short(value[start:stop])


def _said(label: str, section: Section) -> str:
    return f"Section {label!r} now uses {section.used:,} of {section.limit:,} characters: {render_value(section.value)}"


def _now(page: CoreNotebook, label: object) -> str:
    labels = f" Sections: {', '.join(page.labels)}."
    section = page.sections.get(label) if isinstance(label, str) else None
    if section is None:
        return labels
    used = f"uses {section.used:,} of {section.limit:,} characters"
    return f"{labels} {label!r} {used} and says: {render_value(section.value)}"


def _some(content: str) -> None:
    if not content.strip():
        raise EditError("content: got a blank text; send what is to be added.")


def _clean(value: Any) -> Any:
    return writable(value) if isinstance(value, str) else value


def _short(text: str) -> str:
    return render_value(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
