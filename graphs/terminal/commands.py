"""Slash commands: which there are, and what a player can look at beside the story."""

from __future__ import annotations

import difflib
from datetime import datetime
from typing import Any

from questbook.graphs.errors import ForgettingError, HistoryError
from questbook.graphs.terminal.campaigns import list_campaigns
from questbook.graphs.terminal.keeping import KEEPING
from questbook.graphs.terminal.table import Command, Outcome, Table, Then
from questbook.graphs.terminal.text import one_line
from questbook.graphs.terminal.travel import TRAVEL
from questbook.memory.lore.documents import LorePiece

_REPLY_SHOWN = 160


async def run_command(table: Table, line: str) -> Outcome:
    """Do what a line that begins with "/" asks for."""
    name, _, rest = line.strip().partition(" ")
    commands = table.commands or COMMANDS
    command = commands.get(name.lower())
    if command is None:
        near = difflib.get_close_matches(name.lower(), commands, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]}?" if near else "/help lists them."
        table.screen.complain(f"There is no command {one_line(name, 40)}. {hint}")
        return Then.PROMPT
    try:
        return await command.run(table, rest.strip())
    except (HistoryError, ForgettingError) as error:
        table.screen.complain(str(error))
        return Then.PROMPT


async def _sheet(table: Table, rest: str) -> Then:  # noqa: ARG001
    from questbook.graphs.terminal.pages import sheet_rows  # pydantic, which the first prompt does not need

    saved = await table.game.saved_game()
    if saved is None or not any(
        saved.view.character.player_view().get(f) for f in ("name", "class", "ancestry", "goal")
    ):
        table.screen.answer("No character yet: tell the dungeon master who you want to play.")
    else:
        table.screen.table("Character", ("", ""), sheet_rows(saved.view))
    return Then.PROMPT


async def _quest(table: Table, rest: str) -> Then:  # noqa: ARG001
    from questbook.graphs.terminal.pages import quest_rows

    saved = await table.game.saved_game()
    if saved is None or not saved.character.complete:
        table.screen.answer("No quest yet: it opens once your character is complete.")
    else:
        table.screen.table("Quest", ("", ""), quest_rows(saved.view))
    return Then.PROMPT


async def _memories(table: Table, rest: str) -> Then:  # noqa: ARG001
    if table.recalled is None:
        table.screen.answer(
            "/memories shows what was recalled for a turn just played; none was, or it was only told again."
        )
    elif not table.recalled:
        table.screen.answer("Nothing was recalled for the last turn: what matters still stands in the conversation.")
    else:
        rows = [
            (
                str(memory.get("turn") or ""),
                str(memory.get("age") or ""),
                _score(memory.get("score")),
                one_line(_told(memory), _REPLY_SHOWN),
                one_line(str(memory.get("reply") or ""), _REPLY_SHOWN),
                str(memory.get("why") or ""),
            )
            for memory in table.recalled
        ]
        heads = ("Turn", "When", "Score", "You said", "Reply", "Why")
        table.screen.table("Recalled for the last turn", heads, rows, right="Score")
    return Then.PROMPT


async def _prompt(table: Table, rest: str) -> Then:
    replies = [prompted for prompted in table.prompts if prompted.node in table.speaking]
    shown = (replies or table.prompts)[-1:]
    if not shown:
        table.screen.answer(
            "No turn has been played since you came here; /prompt shows what the model saw in the last one."
        )
        return Then.PROMPT
    node, sections, fidelity = shown[0]
    names = [str(section["section"]) for section in sections]
    if not rest:
        rows = [(str(section["section"]), f"{section['tokens']:,}") for section in sections]
        rows.append(("total", f"{sum(section['tokens'] for section in sections):,}"))
        title = f"What the model saw last ({node}); /prompt SECTION or /prompt all shows the text"
        table.screen.table(title, ("Section", "Tokens"), rows, right="Tokens")
        if fidelity:
            table.screen.answer(f"Word for word: {fidelity['turns']} of {fidelity['of']} earlier turns.")
    elif rest != "all" and rest not in names:
        near = difflib.get_close_matches(rest, names, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(names)} and all."
        table.screen.complain(f"The prompt has no section {one_line(rest, 40)}. {hint}")
    else:
        for section in sections:
            if rest in ("all", section["section"]):
                table.screen.answer(f"{section['section']} ({section['tokens']:,} tokens)", style="bold")
                table.screen.answer(str(section["text"]))
                table.screen.blank()
    return Then.PROMPT


async def _campaigns(table: Table, rest: str) -> Then:  # noqa: ARG001
    campaigns = await list_campaigns(table.game.checkpointer, table.game.context.user)
    if not campaigns:
        table.screen.answer("No campaign yet: the first message begins this one.")
        return Then.PROMPT
    rows = []
    for saved in campaigns:
        here = saved.thread_id == table.game.thread_id
        who = ", ".join(filter(None, (saved.character.name, saved.character.class_name)))
        when = datetime.fromisoformat(saved.played).astimezone().strftime("%Y-%m-%d %H:%M")
        mark = "*" if here else ""
        rows.append((mark, one_line(saved.campaign, 40), who or "–", str(saved.turn), when, saved.thread_id))
    columns = ("", "Campaign", "Character", "Turn", "Last played", "Thread")
    table.screen.table("Campaigns (questbook play --campaign NAME opens one)", columns, rows, right="Turn")
    return Then.PROMPT


async def _help(table: Table, rest: str) -> Then:  # noqa: ARG001
    rows = [
        (f"{name} {command.arguments}".strip(), command.does) for name, command in (table.commands or COMMANDS).items()
    ]
    table.screen.table("Commands", ("", ""), rows)
    table.screen.say(f"Everything else is said to {table.who}. Ctrl-C stops a reply, Ctrl-D quits.")
    return Then.PROMPT


async def _quit(table: Table, rest: str) -> Then:  # noqa: ARG001
    return Then.QUIT


def _told(memory: dict[str, Any]) -> str:
    lore = LorePiece.from_json(memory)
    if lore.citation:
        return f"[{lore.citation}] {lore.body}"
    said = str(memory.get("player") or memory.get("text") or "")
    return f"{memory['speaker']}: {said}" if memory.get("speaker") else said


def _score(score: Any) -> str:
    return f"{score:.2f}" if isinstance(score, int | float) else "–"


_SECTIONS = ("all", "instructions", "character", "quest", "summary", "memories", "messages")

_LOOK: dict[str, Command] = {
    "/sheet": Command("", "your character", _sheet),
    "/quest": Command("", "where the story stands, as far as you know", _quest),
    "/memories": Command("", "what was recalled for the last turn, with age, score and reason", _memories),
    "/prompt": Command(
        "[SECTION|all]",
        "what the model saw in the last turn, secrets included, with token counts",
        _prompt,
        _SECTIONS,
    ),
    "/campaigns": Command("", "your campaigns", _campaigns),
}
LOOK_AGAIN = {name: _LOOK[name] for name in ("/memories", "/prompt")}
"""What any graph can show of its last turn."""
REST: dict[str, Command] = {
    "/help": Command("", "this list", _help),
    "/quit": Command("", "leave; the campaign goes on where you stopped", _quit),
}
# Each idea brings its commands from a module of its own; /help lists them in this order.
COMMANDS: dict[str, Command] = _LOOK | TRAVEL | KEEPING | REST
