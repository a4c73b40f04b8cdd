"""`/core`: core memory in the terminal, to look at and to edit."""

from __future__ import annotations

import difflib
import re
from functools import partial
from typing import TYPE_CHECKING

from questbook.graphs.terminal.table import Ask, Command, Outcome, Table, Then
from questbook.graphs.terminal.text import one_line

if TYPE_CHECKING:
    from questbook.notebooks import CoreNotebook

_ARROW = "=>"
_ESCAPE = re.compile(r"\\(n|\\)")


async def _core(table: Table, rest: str) -> Outcome:
    from questbook.graphs.companion.edits import (
        core_of,
    )  # pydantic and the graph, which the first prompt does not wait for

    page = await core_of(await table.game.load(), table.game.config, table.game.context)
    if not rest:
        return _show(table, page, page.labels)
    label, asked = _split(page, rest)
    if label is None:
        near = difflib.get_close_matches(rest.split()[0].casefold(), page.labels, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        there = f"There is no section {one_line(rest, 40)}; there are {', '.join(page.labels)}."
        table.screen.complain(there + hint)
        return Then.PROMPT
    edit, _, text = asked.partition(" ")
    text = text.strip()
    if not edit:
        return _show(table, page, [label])
    if edit.lower() == "edit" and not text and table.screen.live:
        return Ask(_escaped(page.sections[label].value), partial(_rewritten, table, label, page.sections[label].value))
    call = _call(edit.lower(), text)
    if call is None:
        table.screen.complain(
            f"/core {label} add TEXT, set TEXT, replace OLD {_ARROW} NEW, remove TEXT or clear"
            f"{', or edit' if table.screen.live else ''}; got {one_line(asked, 40)}."
        )
        return Then.PROMPT
    return await _do(table, label, *call)


def _show(table: Table, page: CoreNotebook, labels: list[str]) -> Outcome:
    rows = []
    for label in labels:
        section = page.sections[label]
        notes = [f"{section.used:,}/{section.limit:,}", *(["read-only"] if section.read_only else [])]
        notes += [f"shared as {section.shared}"] if section.shared else []
        rows.append((label, ", ".join(notes), section.value or "–"))
    table.screen.table("Core memory", ("Section", "Used", "Says"), rows)
    return Then.PROMPT


def _split(page: CoreNotebook, rest: str) -> tuple[str | None, str]:
    """Split what was typed into the label of a section, which may hold blanks, and what is to be done with it."""
    for label in sorted(page.labels, key=len, reverse=True):
        typed, behind = rest[: len(label)], rest[len(label) :]
        if typed.casefold() == label.casefold() and (not behind or behind[0].isspace()):
            return label, behind.strip()
    return None, ""


def _call(edit: str, text: str) -> tuple[str, dict[str, str]] | None:
    """Return the tool that does an edit, and its arguments; None if that is no edit."""
    if edit == "clear" and not text:
        return "core_memory_rethink", {"new_content": ""}
    if edit == "replace" and _ARROW in text:
        old, _, new = text.partition(_ARROW)
        return "core_memory_replace", {"old_content": old.strip(), "new_content": new.strip()}
    tools = {"add": ("append", "content"), "set": ("rethink", "new_content"), "remove": ("remove", "content")}
    if edit not in tools or not text:
        return None
    tool, argument = tools[edit]
    return f"core_memory_{tool}", {argument: text}


async def _do(table: Table, label: str, tool: str, args: dict[str, str]) -> Outcome:
    from questbook.graphs.companion.edits import edit_by_hand
    from questbook.notebooks import EditError

    saved = await table.game.saved_game()
    if saved is None or not saved.turn:
        table.screen.complain("Core memory begins with your first message; the setting core says how. Say something.")
        return Then.PROMPT
    try:
        said = await edit_by_hand(
            await table.game.load(), table.game.config, table.game.context, tool, {"label": label, **args}
        )
    except EditError as error:
        table.screen.complain(one_line(str(error)))
    else:
        table.screen.answer(said)
    return Then.PROMPT


async def _rewritten(table: Table, label: str, before: str, line: str) -> Outcome:
    if (text := _unescaped(line)) in ("", before):
        table.screen.say("The section stands as it was.")
        return Then.PROMPT
    return await _do(table, label, "core_memory_rethink", {"new_content": text})


def _escaped(value: str) -> str:
    """Put a value on one line: a line break as a backslash and n, a backslash as two."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _unescaped(line: str) -> str:
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else "\\", line)


CORE = {
    "/core": Command(
        "[SECTION [EDIT]]",
        f"core memory and its limits; to edit: add TEXT, set TEXT, replace OLD {_ARROW} NEW, remove TEXT, clear, edit",
        _core,
        ("persona", "human", "scratchpad"),
    )
}
