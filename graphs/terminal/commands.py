"""Slash commands that show something beside the story, and `run_command`, which runs any."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from questbook.graphs.errors import ForgettingError, HistoryError
from questbook.graphs.local.saved_game import list_campaigns
from questbook.graphs.terminal.screen import one_line
from questbook.graphs.terminal.sitting import Command, Outcome, Quit, Sitting

_REPLY_WIDTH = 160
_MOST_CAMPAIGNS = 50  # that are listed unless all are asked for


async def run_command(sitting: Sitting, line: str) -> Outcome:
    """Do what a line that begins with "/" asks for; return what follows."""
    name, _, rest = line.strip().partition(" ")
    commands = sitting.partner.commands
    command = commands.get(name.lower())
    if command is None:
        near = difflib.get_close_matches(name.lower(), commands, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]}?" if near else "/help lists them."
        sitting.screen.complain(f"There is no command {one_line(name, 40)}. {hint}")
        return None
    try:
        return await command.run(sitting, rest.strip())
    except (HistoryError, ForgettingError) as error:
        sitting.screen.complain(str(error))
        return None


async def _sheet(sitting: Sitting, rest: str) -> None:  # noqa: ARG001
    from questbook.graphs.terminal.pages import sheet_rows  # pydantic, which the first prompt does not need

    saved = await sitting.game.saved_game()
    view = saved.view if saved else None
    if view is None or not any(view.character.player_view().get(f) for f in ("name", "class", "ancestry", "goal")):
        sitting.screen.answer("No character yet: tell the dungeon master who you want to play.")
    else:
        sitting.screen.table("Character", ("", ""), sheet_rows(view))


async def _quest(sitting: Sitting, rest: str) -> None:  # noqa: ARG001
    from questbook.graphs.terminal.pages import quest_rows

    saved = await sitting.game.saved_game()
    if saved is None or not saved.character.complete:
        sitting.screen.answer("No quest yet: it begins when your character is complete.")
    else:
        sitting.screen.table("Quest", ("", ""), quest_rows(saved.view))


async def _memories(sitting: Sitting, rest: str) -> None:  # noqa: ARG001
    if sitting.recalled is None:
        await sitting.look_back()
    if sitting.recalled is None:
        sitting.screen.answer("/memories shows what was recalled for the last turn of the story; there is none yet.")
    elif not sitting.recalled:
        sitting.screen.answer(
            "Nothing was recalled for the last turn: nothing fits it but what the conversation still holds."
        )
    else:
        rows = [
            (
                str(memory.get("turn") or ""),
                str(memory.get("age") or ""),
                _score(memory.get("score")),
                one_line(_memory_text(memory), _REPLY_WIDTH),
                one_line(str(memory.get("reply") or ""), _REPLY_WIDTH),
                str(memory.get("why") or ""),
            )
            for memory in sitting.recalled
        ]
        columns = ("Turn", "When", "Score", "You said", "Reply", "Why")
        sitting.screen.table("Recalled for the last turn", columns, rows, right="Score")


async def _prompt(sitting: Sitting, rest: str) -> None:
    screen = sitting.screen
    await sitting.look_back()
    prompts = [prompt for prompt in sitting.prompts if prompt.node in sitting.speaking] or sitting.prompts
    if not prompts:
        screen.answer("Nothing has been played yet; /prompt shows what the model saw in the last turn.")
        return
    node, sections, fidelity = prompts[-1]
    if rest == "summary":
        saved = await sitting.game.saved_game()
        text = str(saved.values.get("summary") or "") if saved else ""
        screen.answer(f"summary ({-(-len(text) // 4):,} tokens), as it is now", style="bold")
        screen.answer(text or "Nothing has left the conversation yet.")
        screen.blank()
        return
    names = [str(section["section"]) for section in sections]
    if not rest:
        rows = [(str(section["section"]), f"{section['tokens']:,}") for section in sections]
        rows.append(("total", f"{sum(section['tokens'] for section in sections):,}"))
        title = f"What the model saw last ({node}); /prompt SECTION or /prompt all shows the text"
        screen.table(title, ("Section", "Tokens"), rows, right="Tokens")
        if fidelity:
            screen.answer(f"Word for word: {fidelity['turns']} of {fidelity['of']} earlier turns.")
        await _show_costs(sitting)
    elif rest != "all" and rest not in names:
        near = difflib.get_close_matches(rest, names, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(names)} and all."
        screen.complain(f"The prompt has no section {one_line(rest, 40)}. {hint}")
    else:
        for section in sections:
            if rest in ("all", section["section"]):
                screen.answer(f"{section['section']} ({section['tokens']:,} tokens)", style="bold")
                screen.answer(str(section["text"]))
                screen.blank()


async def _show_costs(sitting: Sitting) -> None:
    from questbook.graphs.local.costs import costs_of  # LangChain, which came with the last turn

    game = sitting.game
    costs = await asyncio.to_thread(costs_of, game.home, game.context.user or "", game.context.campaign)
    if costs.total.calls:
        sitting.screen.answer(f"Cost: {costs.last}. The campaign: {costs.total}, with turns undone or played again.")


async def _campaigns(sitting: Sitting, rest: str) -> None:
    game = sitting.game
    most = None if rest == "all" else _MOST_CAMPAIGNS
    campaigns = await list_campaigns(game.checkpointer, game.context.user, most)
    if not campaigns:
        sitting.screen.answer("No campaign yet: your first message begins this one.")
        return
    rows = []
    for saved in campaigns:
        mark = "*" if saved.thread_id == game.thread_id else ""
        who = ", ".join(filter(None, (saved.character.name, saved.character.class_name)))
        when = datetime.fromisoformat(saved.played).astimezone().strftime("%Y-%m-%d %H:%M")
        rows.append((mark, one_line(saved.campaign, 40), who or "–", str(saved.turn), when, saved.thread_id))
    columns = ("", "Campaign", "Character", "Turn", "Last played", "Thread")
    sitting.screen.table("Campaigns (questbook play --campaign NAME opens one)", columns, rows, right="Turn")
    if len(rows) == most:
        sitting.screen.answer(f"These are the {most} that you played last; /campaigns all shows every one.")


async def _help(sitting: Sitting, rest: str) -> None:  # noqa: ARG001
    commands = sitting.partner.commands.items()
    rows = [(f"{name} {command.arguments}".strip(), command.does) for name, command in commands]
    sitting.screen.table("Commands", ("", ""), rows)
    sitting.screen.say(f"Everything else goes to {sitting.partner.name}. Ctrl-C stops a reply, Ctrl-D quits.")


async def _quit(sitting: Sitting, rest: str) -> Quit:  # noqa: ARG001
    return Quit()


def _memory_text(memory: Mapping[str, Any]) -> str:
    from questbook.memory.lore.documents import LorePiece

    lore = LorePiece.from_json(memory)
    if lore.citation:
        return f"[{lore.citation}] {lore.body}"
    text = str(memory.get("player") or memory.get("text") or "")
    return f"{memory['speaker']}: {text}" if memory.get("speaker") else text


def _score(score: Any) -> str:
    return f"{score:.2f}" if isinstance(score, int | float) else "–"


GAME_PAGES = {
    "/sheet": Command("", "your character", _sheet, looks=True),
    "/quest": Command("", "the quest, as far as you know it", _quest, looks=True),
}
"""What only the dungeon master's game can show."""
LAST_TURN = {
    "/memories": Command("", "what was recalled for the last turn, with age, score and reason", _memories, looks=True),
    "/prompt": Command(
        "[SECTION|all]",
        "what the model saw in the last turn, secrets included, with token counts",
        _prompt,
        ("all", "instructions", "character", "quest", "summary", "memories", "messages"),
        looks=True,
    ),
}
"""What every graph can show of its last turn."""
CAMPAIGNS = {"/campaigns": Command("[all]", "the campaigns that you played last", _campaigns, looks=True)}
REST = {
    "/help": Command("", "this list", _help, looks=True),
    "/quit": Command("", "leave; the campaign is kept", _quit),
}
