"""Buffer policies: which turns are in the prompt word for word, and which leave the buffer after a reply.

The last turn is the one in progress, and always in the prompt. What a policy removes from the buffer is still in the
store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from langchain_core.messages import AnyMessage

from questbook.memory.buffer.summary import ExtractiveSummarizer, Summarizer
from questbook.memory.buffer.turns import Turn, join_turns, latest_messages, messages_to_send, overflow, split_turns


class Eviction(NamedTuple):
    """The turns that a policy takes out of the prompt after a reply, oldest first; falsy if there are none.

    Those to fold go into the summary, the messages of those to drop leave the buffer.
    """

    fold: list[Turn]
    drop: list[Turn]

    def __bool__(self) -> bool:
        return bool(self.fold or self.drop)


@dataclass(frozen=True)
class Buffer:
    """What a policy decides by."""

    messages: Sequence[AnyMessage]  # the messages in state, oldest first
    last_turn: int  # number of their last turn
    summarised_through: int = 0  # number of the last turn that the summary covers
    stored_through: int = 0  # number of the last turn that is noted and stored; later ones must not leave

    def turns(self) -> list[Turn]:
        """Return all turns."""
        return split_turns(self.messages, self.last_turn)

    def turns_to_send(self) -> list[Turn]:
        """Return the turns with only what providers take."""
        return split_turns(messages_to_send(self.messages), self.last_turn)


@runtime_checkable
class BufferPolicy(Protocol):
    """Decides which turns are in the prompt, and which leave the buffer."""

    @property
    def summarizer(self) -> Summarizer | None:
        """Folds turns into the summary; None: turns leave without a summary."""

    def select(self, buffer: Buffer) -> list[AnyMessage]:
        """Return the messages for the prompt; those of the last turn always."""

    def evict(self, buffer: Buffer) -> Eviction:
        """Return the turns to fold and to drop after the last turn's reply; none that is not stored yet."""


@dataclass(frozen=True)
class Unbounded:
    """Keeps every turn in the prompt, until the model's window is full and its provider refuses."""

    summarizer: None = None

    def select(self, buffer: Buffer) -> list[AnyMessage]:
        """Return everything that can be sent."""
        return messages_to_send(buffer.messages)

    def evict(self, buffer: Buffer) -> Eviction:  # noqa: ARG002 - the protocol's argument
        """Return no turns."""
        return Eviction([], [])


@dataclass(frozen=True)
class LastTurns:
    """Keeps the last turns before this one in the prompt; older ones leave without a summary.

    Attributes:
        turns: How many, not counting the one in progress. With 1, a third question knows the second and not the first.
    """

    turns: int
    summarizer: None = None

    def select(self, buffer: Buffer) -> list[AnyMessage]:
        """Return the last `turns` turns and the one in progress."""
        return join_turns(buffer.turns_to_send()[-self.turns - 1 :])

    def evict(self, buffer: Buffer) -> Eviction:
        """Drop the turns that no later prompt will hold."""
        older = buffer.turns()[: -max(self.turns, 1)]
        return Eviction([], [turn for turn in older if turn.number <= buffer.stored_through])


@dataclass(frozen=True)
class TokenBudget:
    """Keeps the latest turns that fit in a budget; older ones leave in batches, into the summary.

    Attributes:
        tokens: Tokens of the buffer, about four characters each.
        summarizer: Folds the turns that leave; None: they leave without a summary.
        keep: Share of the budget to shrink to, so that a summary is rarely written.
    """

    tokens: int
    summarizer: Summarizer | None = field(default_factory=ExtractiveSummarizer)
    keep: float = 0.6

    def select(self, buffer: Buffer) -> list[AnyMessage]:
        """Return the latest turns that fit, at least the last."""
        return latest_messages(buffer.messages, self.tokens)

    def evict(self, buffer: Buffer) -> Eviction:
        """Drop the oldest turns once the buffer is over its budget."""
        oldest = overflow(buffer.turns(), self.tokens, keep=self.keep)
        drop = [turn for turn in oldest if turn.number <= buffer.stored_through]
        return Eviction(
            [turn for turn in drop if turn.number > buffer.summarised_through] if self.summarizer else [], drop
        )


@dataclass(frozen=True)
class RunningSummary:
    """Folds all turns but the last few into the summary after each reply; those few stay word for word.

    Attributes:
        offset: How many turns stay word for word; 0 folds every turn as soon as it has its reply.
        summarizer: Folds them.
    """

    offset: int
    summarizer: Summarizer = field(default_factory=ExtractiveSummarizer)

    def select(self, buffer: Buffer) -> list[AnyMessage]:
        """Return the turns that the summary does not cover."""
        turns = buffer.turns_to_send()
        return join_turns([turn for turn in turns[:-1] if turn.number > buffer.summarised_through] + turns[-1:])

    def evict(self, buffer: Buffer) -> Eviction:
        """Fold the first `max(0, turns - offset)` turns that are not in the summary yet.

        The last turn's messages stay in the buffer, for people, even when it is folded.
        """
        turns, done = buffer.turns(), buffer.summarised_through
        reach = max(done, min(buffer.last_turn - self.offset, buffer.stored_through))
        return Eviction(
            [turn for turn in turns if done < turn.number <= reach],
            [turn for turn in turns[:-1] if turn.number <= reach],
        )


def count_verbatim_turns(messages: Sequence[AnyMessage]) -> int:
    """Count the turns before the one in progress that are in a prompt word for word."""
    return max(0, len(split_turns(messages, 0)) - 1)
