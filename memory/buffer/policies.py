"""Buffer policies: which turns stand in the prompt word for word, and what becomes of the others.

A turn is what was said and answered; the last one is the one under way, and always stands. What a policy takes out of
the buffer is still in the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from langchain_core.messages import AnyMessage

from questbook.memory.buffer.summarizers import Extractive, Summarizer
from questbook.memory.buffer.turns import latest, overflow, said, turns_of

Turn = tuple[int, list[AnyMessage]]
"""A turn's number and its messages."""


class Due(NamedTuple):
    """What is to be done about a buffer after a reply.

    Attributes:
        fold: Turns that go into the summary, oldest first.
        drop: Turns whose messages leave the buffer, oldest first.
    """

    fold: list[Turn]
    drop: list[Turn]

    def __bool__(self) -> bool:
        return bool(self.fold or self.drop)


@runtime_checkable
class BufferPolicy(Protocol):
    """Which turns stand in the prompt, and what becomes of the others."""

    @property
    def summarizer(self) -> Summarizer | None:
        """What folds turns into the summary; None: turns leave without one."""

    def shown(self, messages: Sequence[AnyMessage], *, last_turn: int, folded: int = 0) -> list[AnyMessage]:
        """Return the messages that stand in the prompt; the last turn's always do.

        Args:
            messages: The buffer.
            last_turn: Number of its last turn.
            folded: Number of the last turn that the summary covers.
        """

    def due(self, messages: Sequence[AnyMessage], *, last_turn: int, folded: int, may_leave: int) -> Due:
        """Return what is to be done after the reply; nothing to be done is falsy.

        Args:
            messages: The buffer.
            last_turn: Number of its last turn, which has been answered.
            folded: Number of the last turn that the summary covers.
            may_leave: Number of the last turn that has been noted and stored; later ones stay as they are.
        """


@dataclass(frozen=True)
class Unbounded:
    """Every turn stands in the prompt, until the model's window is full and its provider refuses."""

    summarizer: None = None

    def shown(self, messages: Sequence[AnyMessage], *, last_turn: int, folded: int = 0) -> list[AnyMessage]:  # noqa: ARG002
        """Return everything."""
        return said(messages)

    def due(self, messages: Sequence[AnyMessage], *, last_turn: int, folded: int, may_leave: int) -> Due:  # noqa: ARG002
        """Nothing ever leaves."""
        return Due([], [])


@dataclass(frozen=True)
class LastTurns:
    """The last turns before this one stand in the prompt; older ones leave, and no summary tells of them.

    Attributes:
        turns: How many, not counting the one under way. With 1, a third question knows the second and not the first.
    """

    turns: int
    summarizer: None = None

    def shown(self, messages: Sequence[AnyMessage], *, last_turn: int, folded: int = 0) -> list[AnyMessage]:  # noqa: ARG002
        """Return the last `turns` turns and the one under way."""
        return _messages(turns_of(said(messages), last_turn)[-self.turns - 1 :])

    def due(self, messages: Sequence[AnyMessage], *, last_turn: int, folded: int, may_leave: int) -> Due:  # noqa: ARG002
        """Drop what no later prompt will hold."""
        kept = max(self.turns, 1)
        return Due([], [turn for turn in turns_of(messages, last_turn)[:-kept] if turn[0] <= may_leave])


@dataclass(frozen=True)
class TokenBudget:
    """The latest turns that fit in a budget stand in the prompt; older ones leave in batches, into the summary.

    Attributes:
        tokens: Tokens of the buffer, about four characters each.
        summarizer: What folds the turns that leave; None: they leave without a summary.
        keep: Share of the budget to shrink to, so that a summary is written rarely.
    """

    tokens: int
    summarizer: Summarizer | None = field(default_factory=Extractive)
    keep: float = 0.6

    def shown(self, messages: Sequence[AnyMessage], *, last_turn: int, folded: int = 0) -> list[AnyMessage]:  # noqa: ARG002
        """Return the latest turns that fit, at least the last."""
        return latest(messages, self.tokens)

    def due(self, messages: Sequence[AnyMessage], *, last_turn: int, folded: int, may_leave: int) -> Due:
        """Let the oldest turns leave once the buffer is over its budget."""
        leaving = overflow(messages, last_turn=last_turn, budget=self.tokens, may_leave=may_leave, keep=self.keep)
        return Due([turn for turn in leaving if turn[0] > folded] if self.summarizer else [], leaving)


@dataclass(frozen=True)
class Summary:
    """After each reply, all turns but the last few are folded into the summary; those few stand word for word.

    Attributes:
        offset: How many turns stay word for word; 0 folds every turn as soon as it is answered.
        summarizer: What folds them.
    """

    offset: int
    summarizer: Summarizer = field(default_factory=Extractive)

    def shown(self, messages: Sequence[AnyMessage], *, last_turn: int, folded: int = 0) -> list[AnyMessage]:
        """Return the turns that the summary does not cover."""
        turns = turns_of(said(messages), last_turn)
        return _messages([turn for turn in turns[:-1] if turn[0] > folded] + turns[-1:])

    def due(self, messages: Sequence[AnyMessage], *, last_turn: int, folded: int, may_leave: int) -> Due:
        """Fold the first `max(0, turns - offset)` turns, as far as that has not been done.

        The last turn's messages stay in the buffer, for people, even when it is folded.
        """
        turns = turns_of(messages, last_turn)
        reach = max(folded, min(last_turn - self.offset, may_leave))
        fold = [turn for turn in turns if folded < turn[0] <= reach]
        return Due(fold, [turn for turn in turns[:-1] if turn[0] <= reach])


def fidelity(shown: Sequence[AnyMessage]) -> int:
    """Count the turns before the one under way that stand in a prompt word for word."""
    return max(0, len(turns_of(shown, 0)) - 1)


def _messages(turns: Sequence[Turn]) -> list[AnyMessage]:
    return [message for _, turn in turns for message in turn]
