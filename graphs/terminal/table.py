"""The table: what commands work on, and what may follow one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from questbook.graphs.embedded.game import Game
from questbook.graphs.events import Event, Memories, NodeEnd, PromptReport
from questbook.graphs.terminal.screen import Screen


class Then(Enum):
    """What follows a command that plays nothing."""

    PROMPT = "prompt"
    QUIT = "quit"


class Play(NamedTuple):
    """A turn follows: its events, which begin when they are asked for."""

    events: AsyncGenerator[Event]


class Ask(NamedTuple):
    """A question to the player follows.

    Attributes:
        words: What stands in the line already, to be changed; only a person sees it.
        answered: Is called with the line, and says what follows then. A line that was given up is "".
    """

    words: str
    answered: Callable[[str], Awaitable[Outcome]]


Outcome = Then | Play | Ask


@dataclass
class Table:
    """What lies on the table: the game, the screen, and what the last turn was played with.

    Attributes:
        game: The campaign.
        screen: Where answers go.
        recalled: Memories of the last turn; None before the first.
        prompts: What the model saw in the last turn, in order.
        speaking: Nodes that had words for the player.
        commands: What may be typed; none: those of the game.
        who: Who answers.
        again: How a turn is told again.
    """

    game: Game
    screen: Screen
    recalled: list[dict[str, Any]] | None = None
    prompts: list[PromptReport] = field(default_factory=list)
    speaking: set[str] = field(default_factory=set)
    commands: Mapping[str, Command] = field(default_factory=dict)
    who: str = "the dungeon master"
    again: str = "in other words; the dice stand."

    def clear(self) -> None:
        """Make room for a new turn."""
        self.recalled, self.prompts = None, []

    def too_long(self, message: str) -> bool:
        """Whether a message cannot be sent because of its length; the player is told."""
        limit = self.game.context.max_message_chars
        if len(message) > limit:
            self.screen.complain(
                f"That is {len(message):,} characters; {self.who} reads at most {limit:,} at once. "
                "Nothing was sent; say it in parts."
            )
        return len(message) > limit

    def keep(self, event: Event) -> None:
        """Keep what a command may ask for."""
        if isinstance(event, Memories):
            self.recalled = event.memories
        elif isinstance(event, PromptReport):
            self.prompts.append(event)
        elif isinstance(event, NodeEnd) and event.spoke:
            self.speaking.add(event.node)


class Command(NamedTuple):
    """A command: what may follow it, what it does in a line, the doing, and words to complete after it."""

    arguments: str
    does: str
    run: Callable[[Table, str], Awaitable[Outcome]]
    words: tuple[str, ...] = ()
