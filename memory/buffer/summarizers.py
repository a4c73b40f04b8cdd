"""Summarizers: whatever folds turns that leave the buffer into the running summary. A model is one of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from questbook.memory.buffer.summary import extract


class Summarizer(Protocol):
    """Folds turns into a summary."""

    async def fold(self, summary: str, turns: Sequence[Mapping[str, Any]], tokens: int) -> str:
        """Return a summary that also covers these turns.

        Args:
            summary: The summary so far; "" at first.
            turns: What was said, oldest first: {"turn", "player", "reply", …}.
            tokens: What the new summary may have, about four characters each.
        """


class Extractive:
    """Takes the first sentences of what was said, and lets the oldest make way: no model, always the same."""

    async def fold(self, summary: str, turns: Sequence[Mapping[str, Any]], tokens: int) -> str:
        """Extend the summary by the first two sentences of each turn."""
        return extract(summary, [f"{turn['player']}. {turn['reply']}" for turn in turns], tokens)
