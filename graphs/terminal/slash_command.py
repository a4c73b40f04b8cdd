"""What a slash command is, and what it works on: the terminal with its game, its screen and the last turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from questbook.graphs.events import Event, Memories, NodeEnd, PromptReport
from questbook.graphs.terminal.screen import Screen
from questbook.types import JSON

if TYPE_CHECKING:
    from questbook.graphs.embedded.game import Game
    from questbook.graphs.embedded.saved_game import SavedGame
    from questbook.graphs.settings import Settings


class Quit(NamedTuple):
    """The program ends."""


class Play(NamedTuple):
    """A turn follows. Its events begin when they are asked for."""

    events: AsyncGenerator[Event]


class Ask(NamedTuple):
    """A question to the player follows.

    Attributes:
        words: What the line holds already, for a person to change; a pipe does not show it.
        answered: Called with the line, "" if the player gave up; says what follows then.
    """

    words: str
    answered: Callable[[str], Awaitable[Outcome]]


Outcome = Quit | Play | Ask | None
"""What follows a command; None: the next line of the player."""


class Command(NamedTuple):
    """A slash command.

    Attributes:
        arguments: What may follow it, for /help.
        does: What it does, in one line.
        run: Does it, given the terminal and the rest of the line.
        words: Words that complete it.
        looks: Whether it only looks. Then the upkeep of the last turn goes on; else it gives way first.
    """

    arguments: str
    does: str
    run: Callable[[Terminal, str], Awaitable[Outcome]]
    words: tuple[str, ...] = ()
    looks: bool = False


class Partner(NamedTuple):
    """Whom the player talks with, and the texts that differ between the game and the companion.

    Attributes:
        machine: Name of the graph.
        name: Who answers, as in "the dungeon master reads at most …".
        commands: The slash commands.
        blank: Answer to a blank line.
        offline: Note that no language model answers.
        goodbye: Last words.
        again: How a turn is played again, after "Turn 7 again, ".
        greet: Shows a person where the campaign is.
    """

    machine: str
    name: str
    commands: Mapping[str, Command]
    blank: str
    offline: str
    goodbye: str
    again: str
    greet: Callable[[SavedGame | None, Settings, Screen], None]


@dataclass
class Terminal:
    """A game that is played at the terminal.

    Attributes:
        game: The campaign.
        screen: Shows answers.
        partner: Whom the player talks with.
        recalled: Memories of the last turn; None before the first.
        prompts: What the model saw in the last turn, in order.
        speaking: Nodes that wrote to the player.
    """

    game: Game
    screen: Screen
    partner: Partner
    recalled: list[JSON] | None = None
    prompts: list[PromptReport] = field(default_factory=list)
    speaking: set[str] = field(default_factory=set)

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
