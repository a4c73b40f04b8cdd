"""Update policies: when a page is written, and by whom."""

from __future__ import annotations

from dataclasses import dataclass

from questbook.notebooks.errors import DeclarationError


@dataclass(frozen=True)
class Update:
    """When a page is written. Use `once`, `every_turn`, `every(n)` or `on_demand`; there are no others.

    Attributes:
        name: As it is written in a declaration.
        turns: After each so many turns the model is asked, behind the reply, what changed; 0: never.
    """

    name: str
    turns: int = 0

    def due(self, turn: int, noted: int) -> bool:
        """Whether the model is asked after this turn.

        A turn on which it is due and that failed stays due: the next one catches up, and the rhythm stays as it was.

        Args:
            turn: The turn that has just been answered, from 1.
            noted: Last turn that the page takes account of; 0 before the first.
        """
        return self.turns > 0 and turn // self.turns > noted // self.turns


once = Update("once")
"""An interview at the beginning fills the page until nothing of `REQUIRED` is missing; then only people change it."""
every_turn = Update("every_turn", turns=1)
"""After every reply the model is asked what changed; no change is a valid answer."""
on_demand = Update("on_demand")
"""The model may call the page's tool whenever it answers."""


def every(turns: int) -> Update:
    """Ask the model after every so many turns what changed in them.

    Raises:
        DeclarationError: `turns` is no whole number from 1.
    """
    if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
        raise DeclarationError(f"every({turns!r}): expected a whole number of turns from 1, such as every(3).")
    return Update(f"every({turns})", turns)
