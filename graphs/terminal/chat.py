"""`questbook chat`: the companion in the terminal, and `/core`, which shows and edits its core memory."""

import argparse
import difflib
import re
import sys
from datetime import datetime
from functools import partial

from questbook.graphs.companion.context import CompanionContext, assistant_name
from questbook.graphs.errors import InputError
from questbook.graphs.interface.text import one_line, plain
from questbook.graphs.local.databases import knows_meaning
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import SavedGame
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.play import play
from questbook.graphs.terminal.screen import Screen
from questbook.graphs.terminal.slash_commands import ALWAYS, Ask, Command, Outcome, Partner, Terminal
from questbook.graphs.terminal.travel import TRAVEL
from questbook.memory.recall.times import phrase_age
from questbook.memory.text.words import content_stems
from questbook.memory.timeline.timeline import remembered_timeline
from questbook.notebooks import CoreNotebook, EditError

_ARROW = "=>"
_WIDTH = 160  # characters of a cell
_ESCAPE = re.compile(r"\\(n|\\)")


async def chat(context: CompanionContext, flags: argparse.Namespace) -> None:
    """Do what `questbook chat` asks for."""
    if hint := await ltm_hint(context):
        print(hint, file=sys.stderr)  # noqa: T201
    await play(context, flags, COMPANION)


async def ltm_hint(context: CompanionContext) -> str:
    """Return a note on a setting of `ltm_config` that hardly ever recalls anything; "" if there is none.

    If the settings are wrong, the person learns it at once, not with the first message.
    """
    if context.ltm_config == "":
        return ""
    from questbook.graphs.companion.ltm import ltm_of
    from questbook.memory.ltm.config import SPELLING_DISTANCE

    config = await ltm_of(context)
    if config is None or "max_cosine_distance" not in config.ltm_reads.model_fields_set:
        return ""
    distance = config.ltm_reads.max_cosine_distance
    if distance >= SPELLING_DISTANCE or await knows_meaning(find_home(), context.embeddings):
        return ""
    problem = f"ltm_reads.max_cosine_distance is {distance:g}, which the embedder hash seldom reaches"
    hint = f"leave it out, which is {SPELLING_DISTANCE:g} there, or get minilm: questbook embeddings get minilm"
    return f"{problem}: {hint}."


def _greet(saved: SavedGame | None, context: Settings, screen: Screen) -> None:
    name = one_line(assistant_name(context.campaign), 60)
    if saved is None or saved.turn == 0:
        screen.heading(f"Welcome. A new companion begins: {name}.")
        screen.say("Tell it who you are and what is on your mind. /help lists the commands.")
        return
    last = phrase_age(saved.played, datetime.now().astimezone())
    screen.heading(f"{name}, turn {saved.turn}. You last talked {last}.")
    if saved.last_reply:
        screen.blank()
        screen.tell(saved.last_reply)


async def _core(terminal: Terminal, rest: str) -> Outcome:
    from questbook.graphs.companion.core_memory import core_of  # the graph, which the first prompt does not wait for

    page = await core_of(await terminal.game.load(), terminal.game.config, terminal.game.context)
    label, request = _split_label(page, rest) if rest else (None, "")
    if rest and label is None:
        near = difflib.get_close_matches(rest.split()[0].casefold(), page.labels, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InputError(f"There is no section {one_line(rest, 40)}; there are {', '.join(page.labels)}.{hint}")
    if label is None or not request:
        _show(terminal, page, page.labels if label is None else [label])
        return None
    verb, _, text = request.partition(" ")
    verb, text = verb.lower(), text.strip()
    if verb == "edit" and not text and terminal.screen.live:
        before = page.sections[label].text
        shown = before.replace("\\", "\\\\").replace("\n", "\\n")  # on one line; `_replace_section` reads it
        return Ask(shown, partial(_replace_section, terminal, label, before))
    if (edit := _read_edit(verb, text)) is None:
        edits = f"add TEXT, set TEXT, replace OLD {_ARROW} NEW, remove TEXT or clear"
        edits += ", or edit" if terminal.screen.live else ""
        raise InputError(f"/core {label} {edits}; got {one_line(request, 40)}.")
    await _apply(terminal, label, *edit)
    return None


def _show(terminal: Terminal, page: CoreNotebook, labels: list[str]) -> None:
    rows = []
    for label in labels:
        section = page.sections[label]
        notes = [f"{section.used:,}/{section.limit:,}", *(["read-only"] if section.read_only else [])]
        notes += [f"shared as {section.shared}"] if section.shared else []
        rows.append((label, ", ".join(notes), section.text or "–"))
    terminal.screen.table("Core memory", ("Section", "Used", "Says"), rows)


def _split_label(page: CoreNotebook, text: str) -> tuple[str | None, str]:
    """Split a line into the label of a section, which may hold blanks, and the rest; None if it names no section."""
    for label in sorted(page.labels, key=len, reverse=True):
        typed, rest = text[: len(label)], text[len(label) :]
        if typed.casefold() == label.casefold() and (not rest or rest[0].isspace()):
            return label, rest.strip()
    return None, ""


def _read_edit(verb: str, text: str) -> tuple[str, dict[str, str]] | None:
    """Return what edits a section as asked: the name of core memory's tool, and its arguments without the section."""
    if verb == "clear" and not text:
        return "core_memory_rethink", {"new_content": ""}
    if verb == "replace" and _ARROW in text:
        old, _, new = text.partition(_ARROW)
        return "core_memory_replace", {"old_content": old.strip(), "new_content": new.strip()}
    tools = {"add": ("append", "content"), "set": ("rethink", "new_content"), "remove": ("remove", "content")}
    if verb not in tools or not text:
        return None
    tool, argument = tools[verb]
    return f"core_memory_{tool}", {argument: text}


async def _apply(terminal: Terminal, label: str, tool: str, arguments: dict[str, str]) -> None:
    from questbook.graphs.companion.core_memory import edit_by_hand

    game, saved = terminal.game, await terminal.game.saved_game()
    if saved is None or not saved.turn:
        raise InputError("Core memory begins with your first message; the setting core says how. Say something.")
    try:
        answer = await edit_by_hand(await game.load(), game.config, game.context, tool, {"label": label, **arguments})
    except EditError as error:
        terminal.screen.complain(str(error))
    else:
        terminal.screen.answer(answer)


async def _replace_section(terminal: Terminal, label: str, before: str, line: str) -> None:
    text = _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else "\\", line)
    if text in ("", before):
        return terminal.screen.say("The section was not changed.")
    return await _apply(terminal, label, "core_memory_rethink", {"new_content": text})


async def _why(terminal: Terminal, rest: str) -> None:
    """Show the facts that hold, or those that have some words, also what has ended; each with what taught it."""
    from questbook.graphs.memories.memories import Memories

    screen, game = terminal.screen, terminal.game
    saved = await game.saved_game()
    if not (timeline := remembered_timeline(saved.values) if saved else []):
        return screen.answer("Nothing is noted yet; /why shows what was learnt, and what you said that taught it.")
    view = Memories(await game.store(), game.context.user, campaign=game.context.campaign, timeline=timeline)
    wanted, rows = content_stems(rest) if rest else frozenset[str](), []
    for memory in sorted(await view.list(), key=lambda memory: str(memory.value.get("at"))):
        ended = memory.status != "holds"
        if memory.kind in ("exchange", "archive") or memory.status == "elsewhere" or (ended and not wanted):
            continue
        if wanted <= content_stems(memory.text):
            noted = f"{memory.text}{' (no longer)' if ended else ''}"
            rows.append((str(memory.turn), one_line(plain(noted), _WIDTH), one_line(memory.said, _WIDTH)))
    if rows:
        return screen.table("What it learnt", ("Turn", "Noted", "You said"), rows)
    return screen.answer(f"Nothing is noted{f' of {one_line(rest, 40)}' if rest else ' yet'}.")


_EDITS = f"to edit: add TEXT, set TEXT, replace OLD {_ARROW} NEW, remove TEXT, clear, edit"
_SECTIONS = ("persona", "human", "scratchpad")
_COMMANDS = {
    "/core": Command("[SECTION [EDIT]]", f"core memory and its limits; {_EDITS}", _core, _SECTIONS),
    "/why": Command("[WORDS]", "what it learnt, and what you said that taught it; of WORDS also what has ended", _why),
}
COMPANION = Partner(
    machine="companion",
    name="the companion",
    commands=_COMMANDS | TRAVEL | ALWAYS,
    blank="Say something, or /help.",
    offline="The built-in offline assistant answers, which follows a few rules. "
    "For a language model: questbook chat --model openai:gpt-4.1-mini, with OPENAI_API_KEY set.",
    goodbye="Everything is kept. Until next time!",
    again="in other words.",
    greet=_greet,
)
