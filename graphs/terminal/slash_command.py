"""What a slash command is, and what it works on: the terminal with its game, its screen and the last turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from questbook.graphs.events import Event, Memories, NodeEnd, PromptReport
from questbook.graphs.terminal.screen import Screen
from questbook.types import JSON

if TYPE_CHECKING:
    from questbook.graphs.local.game import Game
    from questbook.graphs.local.saved_game import SavedGame
    from questbook.graphs.settings import Settings


class Quit(NamedTuple):
    """The program ends."""


class Play(NamedTuple):
    """A turn follows. Its events begin when they are asked for."""

    events: AsyncGenerator[Event]


class Ask(NamedTuple):
    """A question to the player follows."""

    words: str  # what the line holds already, for a person to change; a pipe does not show it
    answered: Callable[[str], Awaitable[Outcome]]  # called with the line, "" if the player gave up


Outcome = Quit | Play | Ask | None
"""What follows a command; None: the next line of the player."""


class Command(NamedTuple):
    """A slash command."""

    arguments: str  # what may follow it, for /help
    does: str  # in one line
    run: Callable[[Terminal, str], Awaitable[Outcome]]  # given the rest of the line
    words: tuple[str, ...] = ()  # that complete it
    looks: bool = False  # whether it only looks: then the upkeep of the last turn goes on; else it gives way first


class Partner(NamedTuple):
    """Whom the player talks with, and the texts that differ between the game and the companion."""

    machine: str  # name of the graph
    name: str  # who answers, as in "the dungeon master reads at most …"
    commands: Mapping[str, Command]
    blank: str  # answer to a blank line
    offline: str  # note that no language model answers
    goodbye: str
    again: str  # how a turn is played again, after "Turn 7 again, "
    greet: Callable[[SavedGame | None, Settings, Screen], None]  # shows a person where the campaign is


@dataclass
class Terminal:
    """A game that is played at the terminal: what slash commands work on."""

    game: Game
    screen: Screen
    partner: Partner
    recalled: list[JSON] | None = None  # memories of the last turn; None before the first
    prompts: list[PromptReport] = field(default_factory=list)  # what the model saw in the last turn, in order
    speaking: set[str] = field(default_factory=set)  # nodes that wrote to the player

    def clear(self) -> None:
        """Forget the last turn."""
        self.recalled, self.prompts = None, []

    async def look_back(self) -> None:
        """After a restart or a move in the story, learn what was recalled and asked in the last turn here."""
        if not self.prompts:
            for event in await self.game.last_turn():
                self.keep(event)

    def keep(self, event: Event) -> None:
        """Keep what a command may ask for."""
        if isinstance(event, Memories):
            self.recalled = event.memories
        elif isinstance(event, PromptReport):
            self.prompts.append(event)
        elif isinstance(event, NodeEnd) and event.spoke:
            self.speaking.add(event.node)

    def is_too_long(self, message: str) -> bool:
        """Whether a message is too long to be sent; if so, say it to the player."""
        limit = self.game.context.max_message_chars
        if len(message) > limit:
            self.screen.complain(
                f"That is {len(message):,} characters; {self.partner.name} reads at most {limit:,} at once. "
                "Nothing was sent; say it in parts."
            )
        return len(message) > limit
