"""Baselines: what is in a prompt if a conversation is kept in other ways, and how long that prompt is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from peers import BUDGET
from tables import REPLY_CHARS

WINDOW = 128_000
"""Tokens that a large model's window holds."""


class Transcript:
    """What was said in a campaign, turn by turn."""

    def __init__(self) -> None:
        self._turns: list[str] = []
        self._chars = 0

    def add(self, player: str, reply: str) -> None:
        """Add a turn."""
        self._turns.append(f"{player}\n{reply}".casefold())
        self._chars += len(player) + len(reply)

    def last(self, tokens: int | None) -> list[str]:
        """Return the newest turns that fit into so many tokens of four characters; None: all."""
        if tokens is None:
            return self._turns
        kept, room = len(self._turns), 4 * tokens
        while kept and (room := room - len(self._turns[kept - 1])) >= 0:
            kept -= 1
        return self._turns[kept:]


class Baseline(NamedTuple):
    """A way to keep a conversation.

    Attributes:
        name: What it is called.
        shown: Returns what of a transcript is in the prompt.
        tokens: Returns how many tokens all prompts of the next turn come to.
    """

    name: str
    shown: Callable[[Transcript], list[str]]
    tokens: Callable[[Transcript], int]


def _full(said: Transcript) -> int:
    return said._chars // 4


def _opengpts(said: Transcript) -> int:
    """Two calls; the history holds an update of the state for each turn besides (`peers.opengpts`)."""
    notes = len(said._turns) * REPLY_CHARS // 4
    return 2 * (_full(said) + notes)


BASELINES = (
    Baseline("full history", lambda said: said.last(None), _full),
    Baseline("full history, 128,000 tokens", lambda said: said.last(WINDOW), lambda said: min(_full(said), WINDOW)),
    Baseline("last turns, 4,000 tokens", lambda said: said.last(BUDGET), lambda said: min(_full(said), BUDGET)),
    Baseline("OpenGPTs' shape", lambda said: said.last(None), _opengpts),
)
"""Of OpenGPTs and the full history nothing leaves the prompt, until the provider refuses it."""
