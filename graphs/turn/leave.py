"""Leaving the buffer: what its policy lets go after a reply, and the summary that tells of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import RemoveMessage

from questbook.graphs.settings import Settings
from questbook.graphs.turn.summarize import fold, policy_of
from questbook.graphs.turn.turn import notice
from questbook.graphs.turn.turn_state import TurnState
from questbook.graphs.turn.withheld import on_record
from questbook.memory.buffer.policies import Buffer, BufferPolicy, Eviction

JSON = dict[str, Any]


def leaving(
    state: TurnState, settings: Settings, instructions: str, done: int, policy: BufferPolicy | None = None
) -> Eviction:
    """Return what is to be done about the buffer.

    Args:
        state: The thread's state, its last turn answered.
        settings: Name the policy.
        instructions: What a summarizing model is told.
        done: Last turn that is noted and stored; no later one leaves.
        policy: The buffer policy, if the application has one of its own.
    """
    return (policy or policy_of(settings, instructions)).evict(
        Buffer(state.messages, state.turn, state.summarised_through, done)
    )


async def leave(
    state: TurnState,
    settings: Settings,
    instructions: str,
    done: int,
    told: Callable[[int, int], list[JSON]],
    policy: BufferPolicy | None = None,
) -> JSON:
    """Do it, and return the channels to write; if the summarizer fails, sentences stand in, and a notice says so.

    What the player asked not to be remembered leaves without a word in the summary.

    Args:
        state: The same.
        settings: The same.
        instructions: The same.
        done: The same.
        told: Tells turns, the first to the last, for the summary.
        policy: The same.
    """
    folded, dropped = leaving(state, settings, instructions, done, policy)
    update: JSON = {"messages": [RemoveMessage(m.id) for _, turn in dropped for m in turn if m.id]}
    summarizer = (policy or policy_of(settings, instructions)).summarizer
    if folded and summarizer:
        first, last = folded[0][0], folded[-1][0]
        if open_turns := on_record(told(first, last)):
            update["summary"], failure = await fold(state.summary, open_turns, settings, summarizer)
            update |= {"notices": [notice(state.turn, "condense", failure)]} if failure else {}
        update["summarised_through"] = last
    return update
