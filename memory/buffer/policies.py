"""Turns of a conversation, and the policies that decide which of them are in the prompt and which leave the buffer.

A turn is all messages from what the person says up to what they say next. Turns stay whole, so a tool call is never
separated from its result. The last turn is the one in progress, and always in the prompt. What a policy removes from
the buffer is still in the store.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from operator import is_
from typing import NamedTuple, Protocol, runtime_checkable

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from questbook.memory.buffer.summary import ExtractiveSummarizer, Summarizer
from questbook.types import check_number

ASIDE = "aside"
"""Name of a message that repeats to the person what is known already, such as a recap: no part of an exchange."""
_NUMBER = "questbook_turn"


class Turn(NamedTuple):
    """One turn of a conversation: its number in the campaign, and all its messages, oldest first."""

    number: int
    messages: list[AnyMessage]


class TurnText(NamedTuple):
    """What the person said in a turn, and the reply, without tool calls, asides and results that are not asked for."""

    player: str
    reply: str


# The last answer and what it was for: a turn's steps ask for the same one again and again. The messages are kept, so
# that no other ones can be at their addresses.
_split: tuple[tuple[AnyMessage, ...], int, list[Turn]] = ((), 0, [])


def split_turns(messages: Sequence[AnyMessage], last_turn: int) -> list[Turn]:
    """Split messages into turns, oldest first; the last one gets the number `last_turn`, unless it has a mark.

    Several messages of a person in a row open one turn together, even with asides between them. What comes before the
    first message of a person belongs to the first turn. `with_number` marks a turn behind which one was taken out.
    """
    global _split
    known, last, found = _split
    if last != last_turn or len(known) != len(messages) or not all(map(is_, known, messages)):
        known, last, found = _split = tuple(messages), last_turn, _split_anew(messages, last_turn)
    return [Turn(number, [*of_turn]) for number, of_turn in found]


def _split_anew(messages: Sequence[AnyMessage], last_turn: int) -> list[Turn]:
    turns: list[list[AnyMessage]] = []
    marks: list[object] = []
    has_person, in_a_row = False, True  # the turn has a person's message; the last one but asides was a person's
    for message in messages:
        is_person = isinstance(message, HumanMessage)  # once a message: pydantic's classes answer slowly
        if not turns or (is_person and has_person and not in_a_row):
            turns.append([])
            marks.append(None)
            has_person = False
        turns[-1].append(message)
        if is_person:
            has_person, marks[-1] = True, message.response_metadata.get(_NUMBER)
        if message.name != ASIDE:
            in_a_row = is_person
    numbered, number = list[Turn](), last_turn + 1
    for turn, mark in zip(reversed(turns), reversed(marks), strict=True):
        number = mark if isinstance(mark, int) and mark < number else number - 1
        numbered.append(Turn(number, turn))
    return numbered[::-1]


def with_number(turn: Turn) -> AnyMessage:
    """Return the person's last message of a turn, marked with its number in metadata that no provider gets."""
    said = ([message for message in turn.messages if isinstance(message, HumanMessage)] or turn.messages)[-1]
    return said.model_copy(update={"response_metadata": {**said.response_metadata, _NUMBER: turn.number}})


def join_turns(turns: Iterable[Turn]) -> list[AnyMessage]:
    """Return the messages of turns, in the same order."""
    return [message for turn in turns for message in turn.messages]


def turn_text(messages: Sequence[AnyMessage], tools: Collection[str] = ()) -> TurnText:
    """Return the words of a turn; results of these `tools` are in the reply, each behind the tool's name."""
    player = "\n".join(message.text for message in messages if isinstance(message, HumanMessage))
    answers, called = list[str](), dict[str | None, str]()
    for message in messages:
        if isinstance(message, AIMessage) and message.name != ASIDE:
            answers.append(message.text)
            called |= {call["id"]: call["name"] for call in message.tool_calls}
        elif tools and isinstance(message, ToolMessage) and message.status != "error":
            name = message.name or called.get(message.tool_call_id, "")
            answers += [f"{name}: {message.text}"] * (name in tools)
    return TurnText(player, "\n\n".join(text for text in answers if text.strip()))


def messages_to_send(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Leave out asides, and what providers refuse: a tool call without all its results, a result without its call.

    Such calls are left by a run that was stopped. The text of a message with such a call stays.
    """
    conversation = [message for message in messages if message.name != ASIDE]
    sendable: list[AnyMessage] = []
    for position, message in enumerate(conversation):
        if isinstance(message, ToolMessage):
            continue  # added together with its call
        if not isinstance(message, AIMessage) or not (message.tool_calls or message.invalid_tool_calls):
            sendable.append(message)
            continue
        results = list(takewhile(lambda m: isinstance(m, ToolMessage), conversation[position + 1 :]))
        call_ids = {call["id"] for call in [*message.tool_calls, *message.invalid_tool_calls]}
        if call_ids == {result.tool_call_id for result in results if isinstance(result, ToolMessage)}:
            sendable += [message, *results]
        elif message.text.strip():
            sendable.append(AIMessage(message.text, id=message.id))
    return sendable


def latest_messages(messages: Sequence[AnyMessage], budget: int) -> list[AnyMessage]:
    """Return the messages of the latest whole turns that fit in `budget` tokens; the last turn always.

    As `messages_to_send`, without asides and broken tool calls.
    """
    turns = split_turns(messages_to_send(messages), 0)
    first, tokens = len(turns), 0
    while first:
        tokens += count_tokens_approximately(turns[first - 1].messages)
        if first < len(turns) and tokens > budget:
            break
        first -= 1
    return join_turns(turns[first:])


def overflow(turns: Sequence[Turn], budget: int, *, keep: float = 0.6) -> list[Turn]:
    """Return the oldest turns that must leave, never the last one; none while all fit in `budget` tokens.

    They leave in batches: `keep` is the share of the budget to shrink to.
    """
    tokens = [count_tokens_approximately(turn.messages) for turn in turns]
    total = sum(tokens)
    left = [total - before for before in accumulate(tokens, initial=0)]
    return [turn for turn, rest in zip(turns[:-1], left, strict=False) if total > budget and rest > budget * keep]


class Eviction(NamedTuple):
    """The turns that leave the prompt after a reply: some are folded into the summary, some dropped from the buffer."""

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


def _check_summarizer(policy: str, summarizer: object) -> None:
    if isinstance(summarizer, type) or not hasattr(summarizer, "fold"):
        expected = "expected an object with the method fold, such as ExtractiveSummarizer()."
        raise ValueError(f"{policy}.summarizer: got {summarizer!r:.80}; {expected}")


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

    def __post_init__(self) -> None:
        check_number("LastTurns.turns", self.turns)

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

    def __post_init__(self) -> None:
        check_number("TokenBudget.tokens", self.tokens)
        check_number("TokenBudget.keep", self.keep, most=1, whole=False)
        if self.summarizer is not None:
            _check_summarizer("TokenBudget", self.summarizer)

    def select(self, buffer: Buffer) -> list[AnyMessage]:
        """Return the latest turns that fit, at least the last."""
        return latest_messages(buffer.messages, self.tokens)

    def evict(self, buffer: Buffer) -> Eviction:
        """Drop the oldest turns once the buffer is over its budget."""
        oldest = overflow(buffer.turns(), self.tokens, keep=self.keep)
        drop = [turn for turn in oldest if turn.number <= buffer.stored_through]
        fold = [turn for turn in drop if turn.number > buffer.summarised_through]
        return Eviction(fold if self.summarizer else [], drop)


@dataclass(frozen=True)
class RunningSummary:
    """Folds all turns but the last few into the summary after each reply; those few stay word for word.

    Attributes:
        offset: How many turns stay word for word; 0 folds every turn as soon as it has its reply.
        summarizer: Folds them.
    """

    offset: int
    summarizer: Summarizer = field(default_factory=ExtractiveSummarizer)

    def __post_init__(self) -> None:
        check_number("RunningSummary.offset", self.offset)
        _check_summarizer("RunningSummary", self.summarizer)

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
        fold = [turn for turn in turns if done < turn.number <= reach]
        return Eviction(fold, [turn for turn in turns[:-1] if turn.number <= reach])
