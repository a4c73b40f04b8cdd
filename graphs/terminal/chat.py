"""`questbook chat`: the companion in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from questbook.graphs.terminal.commands import LOOK_AGAIN, REST
from questbook.graphs.terminal.core import CORE
from questbook.graphs.terminal.door import Door
from questbook.graphs.terminal.keeping import KEEPING
from questbook.graphs.terminal.table import Command
from questbook.graphs.terminal.text import one_line
from questbook.graphs.terminal.travel import TRAVEL

if TYPE_CHECKING:
    from questbook.graphs.companion.context import Context as Companion
    from questbook.graphs.embedded.saved_game import SavedGame
    from questbook.graphs.settings import Settings
    from questbook.graphs.terminal.screen import Screen


async def hint(context: Companion) -> str:
    """Return what a person should know of the settings of the character's memory; "" if nothing.

    Raises:
        LtmConfigError: They are wrong; that is told at once, not with the first message.
    """
    if context.ltm_config == "":
        return ""
    from questbook.graphs.companion.ltm import ltm_of
    from questbook.memory.ltm.config import SPELLING_DISTANCE

    config = await ltm_of(context)
    if config is None or context.embeddings != "hash" or config.ltm_reads.max_cosine_distance >= SPELLING_DISTANCE:
        return ""
    if "max_cosine_distance" not in config.ltm_reads.model_fields_set:
        return ""
    return (
        f"ltm_reads.max_cosine_distance is {config.ltm_reads.max_cosine_distance:g}, which the embedder hash seldom "
        f"reaches: leave it out, which is {SPELLING_DISTANCE:g} there, or get minilm: questbook embeddings get minilm."
    )


def _greet(saved: SavedGame | None, context: Settings, screen: Screen) -> None:
    from questbook.graphs.companion.context import assistant_name

    name = one_line(assistant_name(context.campaign), 60)
    if saved is None or saved.turn == 0:
        screen.heading(f"Welcome. A new companion begins: {name}.")
        screen.say("Tell it who you are and what is on your mind. /help lists the commands.")
        return
    from datetime import datetime

    from questbook.memory.recall.age import phrase_age

    away = phrase_age(saved.played, datetime.now().astimezone())
    screen.heading(f"{name}, turn {saved.turn}. You last talked {away}.")
    if saved.last_reply:
        screen.say(one_line(saved.last_reply, 200))


_MOVES = {name: command for name, command in TRAVEL.items() if name != "/recap"}
COMPANION_COMMANDS: dict[str, Command] = CORE | LOOK_AGAIN | _MOVES | {"/forget": KEEPING["/forget"]} | REST
CHAT = Door(
    machine="companion",
    who="the companion",
    commands=COMPANION_COMMANDS,
    blank="Say something, or /help.",
    offline=(
        "The built-in offline assistant answers, which is made of a few rules. "
        "For a language model: questbook chat --model openai:gpt-4.1-mini, with OPENAI_API_KEY set."
    ),
    goodbye="Everything is kept. Until next time!",
    again="in other words.",
    greet=_greet,
)
