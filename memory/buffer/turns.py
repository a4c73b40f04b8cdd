"""The message buffer: the last turns word for word, within a token budget.

A turn is what a player said and everything up to what they say next. Turns stay whole, so a tool call never parts
from its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately


def turns_of(messages: Sequence[AnyMessage], last_turn: int) -> list[tuple[int, list[AnyMessage]]]:
    """Split messages into numbered turns, oldest first; the last one is number `last_turn`.

    Several messages of a player in a row open one turn together, asides between them or not. What stands before the
    first player's message belongs to the first turn.
    """
    turns: list[list[AnyMessage]] = []
    before: BaseMessage | None = None
    for message in messages:
        opens = isinstance(message, HumanMessage) and not isinstance(before, HumanMessage)
        if not turns or (opens and before is not None and _has_player(turns[-1])):
            turns.append([])
        turns[-1].append(message)
        before = before if message.name == ASIDE else message
    first = last_turn - len(turns) + 1
    return [(first + offset, turn) for offset, turn in enumerate(turns)]


ASIDE = "aside"
"""Name of a message that tells the player what is known anyway, such as a recap: no part of a turn's exchange."""


def spoken(turn: Sequence[AnyMessage]) -> tuple[str, str]:
    """Return what the player said in a turn and what was answered, without tool calls, their results and asides."""
    player = "\n".join(message.text for message in turn if isinstance(message, HumanMessage))
    answers = [message for message in turn if isinstance(message, AIMessage) and message.name != ASIDE]
    reply = "\n".join(message.text for message in answers if message.text.strip())
    return player, reply


def latest(messages: Sequence[AnyMessage], budget: int) -> list[AnyMessage]:
    """Return the latest whole turns that fit in `budget` tokens, asides left out; the last turn always."""
    kept: list[AnyMessage] = []
    for _, turn in reversed(turns_of(said(messages), 0)):
        if kept and count_tokens_approximately([*turn, *kept]) > budget:
            break
        kept = [*turn, *kept]
    return kept


def said(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Leave out asides, and what no provider takes: a call without its results, a result without its call."""
    return _paired([message for message in messages if message.name != ASIDE])


def _paired(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Leave out tool calls that were not answered at once, as after a run that was stopped: providers refuse them."""
    paired: list[AnyMessage] = []
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue  # taken along with its call
        if not isinstance(message, AIMessage) or not (message.tool_calls or message.invalid_tool_calls):
            paired.append(message)
            continue
        results = list(takewhile(lambda m: isinstance(m, ToolMessage), messages[position + 1 :]))
        called = {call["id"] for call in [*message.tool_calls, *message.invalid_tool_calls]}
        if called == {result.tool_call_id for result in results if isinstance(result, ToolMessage)}:
            paired += [message, *results]
        elif message.text.strip():
            paired.append(AIMessage(message.text, id=message.id))
    return paired


def overflow(
    messages: Sequence[AnyMessage], *, last_turn: int, budget: int, may_leave: int, keep: float = 0.6
) -> list[tuple[int, list[AnyMessage]]]:
    """Return the oldest turns that must leave the buffer; none while it fits in `budget` tokens.

    Args:
        messages: The buffer.
        last_turn: Number of its last turn; that one never leaves.
        budget: Tokens that the buffer may hold.
        may_leave: Number of the last turn that has been noted elsewhere; later ones stay, whatever they cost.
        keep: Share of the budget to shrink to, so that turns leave in batches and a summary is written rarely.
    """
    if count_tokens_approximately(messages) <= budget:
        return []
    turns = turns_of(messages, last_turn)
    leaving: list[tuple[int, list[AnyMessage]]] = []
    for position, (number, turn) in enumerate(turns[:-1]):
        rest = [message for _, later in turns[position:] for message in later]
        if number > may_leave or count_tokens_approximately(rest) <= budget * keep:
            break
        leaving.append((number, turn))
    return leaving


def _has_player(turn: Sequence[AnyMessage]) -> bool:
    return any(isinstance(message, HumanMessage) for message in turn)
