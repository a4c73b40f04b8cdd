"""The tools by which an assistant edits its core memory, as pure functions of the page.

The model reads what the section says now; or nothing changes, and it reads what is wrong, and which sections there are.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Annotated, Any, NamedTuple, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from questbook.notebooks.base import render_value
from questbook.notebooks.core import CoreNotebook, writable
from questbook.notebooks.errors import DeclarationError, EditError, SectionFullError
from questbook.notebooks.schema import argument_problems, tool_schema
from questbook.types import JSON

_MAX_QUOTE = 60  # characters of a line that a message quotes
_MAX_MATCHES = 8  # places that a message names
_MOST_COUNTED = 100  # places of a text that are counted
_NUMBERED = re.compile(r"^[ \t]*(?:line )?\d+[:|→][ \t]?", re.MULTILINE)


class CoreEdit(NamedTuple):
    """The page after a tool call, the tool's result for the model, and the label of the section that was edited."""

    page: CoreNotebook
    text: str
    label: str


class _Args(BaseModel):
    model_config = ConfigDict(extra="forbid")

    label: str = Field(description="Label of the section.")


_Text = Annotated[str, Field(description="The text to add.")]
_Once = Annotated[str, Field(description="Text of the section, to the letter, that occurs in it only once.")]


def core_memory_append(value: str, content: _Text) -> str:
    """Add text to a section of your core memory, on a line of its own. In a list, each line is an item."""
    _check_content(content)
    return f"{value}\n{content}" if value else content


def core_memory_insert(
    value: str,
    content: _Text,
    line: Annotated[int, Field(description="After which line: 0 is the top, -1 (the default) the end.")] = -1,
) -> str:
    """Add a line to a section of your core memory, at a place of your choice."""
    _check_content(content)
    lines = value.split("\n") if value else []
    if not -1 <= line <= len(lines):
        raise EditError(f"line: got {line}; the section has {len(lines)} lines: send 0 to {len(lines)}, or -1.")
    index = len(lines) if line == -1 else line
    return "\n".join([*lines[:index], content, *lines[index:]])


def core_memory_replace(
    value: str, old_content: _Once, new_content: Annotated[str, Field(description="The text that takes its place.")]
) -> str:
    """Replace text in a section of your core memory. The old text must occur there exactly once."""
    start = _find_once(value, old_content, "old_content")
    return value[:start] + new_content + value[start + len(old_content) :]


def core_memory_remove(value: str, content: _Once) -> str:
    """Remove text from a section of your core memory. The text must occur there exactly once."""
    start = _find_once(value, content, "content")
    end = start + len(content)
    if (start == 0 or value[start - 1] == "\n") and (end == len(value) or value[end] == "\n"):
        # A whole line goes with its line break: the one behind it, or for the last line the one before.
        start, end = (start, end + 1) if end < len(value) else (max(start - 1, 0), end)
    return value[:start] + value[end:]


def core_memory_rethink(
    value: str,  # noqa: ARG001 (each takes the section's text)
    new_content: Annotated[str, Field(description="Everything that the section says afterwards.")],
) -> str:
    """Rewrite a whole section of your core memory: to sort it, shorten it, or settle what contradicts itself."""
    return new_content


class CoreTool(NamedTuple):
    """A tool that edits a section; `core_tool` makes one of a function."""

    name: str
    arguments: type[_Args]  # what a call is checked with: the section's label and the tool's own arguments
    change: Callable[[str, Any], str]  # of the section's text and the arguments, the new text; may raise an EditError

    @property
    def schema(self) -> JSON:
        """The tool in the OpenAI function format."""
        return tool_schema(self.name, self.arguments)


def core_tool(function: Callable[..., str]) -> CoreTool:
    """Make a tool that edits a section of core memory of a function, which an assistant may call as its own.

        def core_memory_tick(value: str, item: str) -> str:
            "Tick off an item of a list of things to do."
            if item not in value:
                raise EditError(f"item: {item!r} is not in the section.")
            return value.replace(item, f"[done] {item}")

    It takes the section's text (of a list, an item a line) as `value`, and the tool's arguments by name, with types,
    and returns the new text. What it raises as an EditError is for the model. Its name is the tool's, its docstring the
    description; without `value`, types or a docstring it is refused by a DeclarationError.
    """
    name, hints = function.__name__, get_type_hints(function, include_extras=True)
    parameters = list(signature(function).parameters.values())
    others = parameters[1:]
    if not parameters or parameters[0].name != "value" or not (function.__doc__ or "").strip():
        raise DeclarationError(f"{name}: expected a docstring and a first argument `value`, the section's text.")
    if strange := [one.name for one in others if one.name not in hints or one.name == "label"]:
        raise DeclarationError(f"{name}: the argument {strange[0]!r} needs a type, and may not be called 'label'.")
    fields: JSON = {one.name: (hints[one.name], ... if one.default is one.empty else one.default) for one in others}
    arguments = create_model(name, __base__=_Args, __doc__=function.__doc__, **fields)

    def change(value: str, args: BaseModel) -> str:
        return function(value, **{one.name: getattr(args, one.name) for one in others})

    return CoreTool(name, arguments, change)


_OURS = (core_memory_append, core_memory_insert, core_memory_replace, core_memory_remove, core_memory_rethink)
_TOOLS = {function.__name__: core_tool(function) for function in _OURS}
CORE_TOOLS: list[JSON] = [tool.schema for tool in _TOOLS.values()]
"""The tools that edit core memory, in the OpenAI function format."""


def edit_core(page: CoreNotebook, tool: str, args: Mapping[str, Any], tools: Sequence[CoreTool] = ()) -> CoreEdit:
    """Do what a tool call asks for, by one of `CORE_TOOLS` or the application's own. The page itself is not changed.

    A call that does not fit the page is an EditError, whose message is for the model.
    """
    known = _TOOLS | {one.name: one for one in tools}
    if tool not in known:
        raise EditError(f"There is no tool {tool!r}; those of core memory are {', '.join(known)}.")
    _, arguments, change = known[tool]
    try:
        call = arguments.model_validate({n: writable(v) if isinstance(v, str) else v for n, v in args.items()})
    except ValidationError as error:
        raise EditError(f"{tool}: {argument_problems(error, arguments)}{_current(page, args.get('label'))}") from error
    section = page.sections.get(call.label)
    if section is None:
        near = difflib.get_close_matches(call.label.casefold(), page.labels, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise EditError(f"There is no section {call.label!r:.60}; there are {', '.join(page.labels)}.{hint}")
    if section.read_only:
        raise EditError(f"Section {call.label!r} is read-only: it cannot be edited.{_current(page, call.label)}")
    try:
        value = change(section.text, call)
        if value == section.text:
            raise EditError("That changes nothing: the section says this already.")
        edited = page.with_value(call.label, value if isinstance(section.value, str) else value.split("\n"))
    except (EditError, SectionFullError) as error:
        raise EditError(f"{tool}: {error} Nothing was changed.{_current(page, call.label)}") from error
    section = edited.sections[call.label]
    used = f"now uses {section.used:,} of {section.limit:,} characters"
    return CoreEdit(edited, f"Section {call.label!r} {used}: {render_value(section.value)}", call.label)


def _find_all(text: str, wanted: str) -> list[int]:
    """List the offsets of `wanted` in `text`, also where matches overlap; of very many the first ones."""
    offsets, offset = list[int](), text.find(wanted) if wanted else -1
    while offset >= 0 and len(offsets) <= _MOST_COUNTED:
        offsets.append(offset)
        offset = text.find(wanted, offset + 1)
    return offsets


def _find_once(value: str, wanted: str, argument: str) -> int:
    if not wanted:
        raise EditError(f"{argument}: got an empty text; send text of the section.")
    offsets = _find_all(value, wanted)
    if len(offsets) == 1:
        return offsets[0]
    if not offsets:
        bare = _NUMBERED.sub("", wanted)
        if bare != wanted and _find_all(value, bare):
            raise EditError(f"{argument}: the line numbers are no part of the text; leave them out.")
        raise EditError(f"{argument}: {_quote(wanted)} is not in the section.{_nearest(value, wanted)}")
    places = [(value.count("\n", 0, offset) + 1, offset) for offset in offsets[:_MAX_MATCHES]]
    shown = "; ".join(f"line {line}: {_context(value, offset, len(wanted))}" for line, offset in places)
    more = f"; and {len(offsets) - _MAX_MATCHES} more" if len(offsets) > _MAX_MATCHES else ""
    times = f"more than {_MOST_COUNTED}" if len(offsets) > _MOST_COUNTED else len(offsets)
    send = "Send more of the text around it, so that only one place is meant."
    raise EditError(f"{argument}: {_quote(wanted)} occurs {times} times ({shown}{more}). {send}")


def _nearest(value: str, wanted: str) -> str:
    """Say which line is most like the text that was not there; "" if none is."""
    lines, target = value.split("\n"), wanted.strip().casefold()
    folded = [line.strip().casefold() for line in lines]
    for number, line in enumerate(folded):
        if target and target in line:
            return f" Line {number + 1} has it in other case or spacing: {_quote(lines[number])}."
    for near in difflib.get_close_matches(target.split("\n")[0], folded, n=1, cutoff=0.5):
        return f" The nearest is line {folded.index(near) + 1}: {_quote(lines[folded.index(near)])}."
    return ""


def _context(value: str, offset: int, length: int) -> str:
    """Quote a match with up to 20 characters of its line on each side."""
    start = max(value.rfind("\n", 0, offset) + 1, offset - 20)
    end = value.find("\n", offset + length)
    stop = min(end if end >= 0 else len(value), offset + length + 20)
    return _quote(value[start:stop])


def _current(page: CoreNotebook, label: object) -> str:
    labels = f" Sections: {', '.join(page.labels)}."
    section = page.sections.get(label) if isinstance(label, str) else None
    if section is None:
        return labels
    used = f"uses {section.used:,} of {section.limit:,} characters"
    return f"{labels} {label!r} {used} and says: {render_value(section.value)}"


def _check_content(content: str) -> None:
    if not content.strip():
        raise EditError("content: got a blank text; send what is to be added.")


def _quote(text: str) -> str:
    return render_value(text if len(text) <= _MAX_QUOTE else text[: _MAX_QUOTE - 1] + "…")
