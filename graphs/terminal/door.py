"""Door: which graph a sitting is with, and the words that are different for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from questbook.graphs.embedded.saved_game import SavedGame
    from questbook.graphs.settings import Settings
    from questbook.graphs.terminal.screen import Screen
    from questbook.graphs.terminal.table import Command


class Door(NamedTuple):
    """Which graph a sitting is with.

    Attributes:
        machine: Name of the graph.
        who: Who answers, as in "the dungeon master reads at most …".
        commands: Slash commands.
        blank: Is said when a line is blank.
        offline: Is said when no language model answers.
        goodbye: Is said at the end.
        again: How a turn is told again.
        greet: Says where things stand, to a person.
    """

    machine: str
    who: str
    commands: Mapping[str, Command]
    blank: str
    offline: str
    goodbye: str
    again: str
    greet: Callable[[SavedGame | None, Settings, Screen], None]
