"""Turns: the messages of a conversation, from what a player said up to what they say next.

Turns stay whole, so a tool call is never separated from its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

ASIDE = "aside"
"""Name of a message that repeats to the player what is known already, such as a recap: no part of an exchange."""


class Turn(NamedTuple):
    """One turn of a conversation: its number in the campaign, and all its messages, oldest first."""

    number: int
    messages: list[AnyMessage]


class TurnText(NamedTuple):
    """What the person said in a turn, and the reply, without tool calls, their results and asides."""

    player: str
    reply: str


def split_turns(messages: Sequence[AnyMessage], last_turn: int) -> list[Turn]:
    """Split messages into turns, oldest first; the last one gets the number `last_turn`.

    Several messages of a player in a row open one turn together, even with asides between them. What comes before the
    first message of a player belongs to the first turn.
    """
    turns: list[list[AnyMessage]] = []
    has_player, in_a_row = False, True  # the turn has a player's message; the last one but asides was a player's
    for message in messages:
        is_player = isinstance(message, HumanMessage)  # once a message: pydantic's classes answer slowly
        if not turns or (is_player and has_player and not in_a_row):
            turns.append([])
            has_player = False
        turns[-1].append(message)
        has_player |= is_player
        if message.name != ASIDE:
            in_a_row = is_player
    first = last_turn - len(turns) + 1
    return [Turn(number, turn) for number, turn in enumerate(turns, first)]


def join_turns(turns: Iterable[Turn]) -> list[AnyMessage]:
    """Return the messages of turns, in the same order."""
    return [message for turn in turns for message in turn.messages]


def turn_text(messages: Sequence[AnyMessage]) -> TurnText:
    """Return the words of a turn."""
    player = "\n".join(message.text for message in messages if isinstance(message, HumanMessage))
    answers = [message for message in messages if isinstance(message, AIMessage) and message.name != ASIDE]
    return TurnText(player, "\n\n".join(message.text for message in answers if message.text.strip()))


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
    rest = sum(tokens)
    if rest <= budget:
        return []
    leaving: list[Turn] = []
    for turn, cost in zip(turns[:-1], tokens, strict=False):
        if rest <= budget * keep:
            break
        leaving.append(turn)
        rest -= cost
    return leaving
