"""A turn: what a player said, up to what they say next."""

from __future__ import annotations

import uuid
from typing import Any, TypeVar

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime

from questbook.graphs.errors import InputError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.node import context_or_none
from questbook.graphs.turn.turn_state import TurnState
from questbook.memory.buffer.turns import split_turns, turn_text
from questbook.memory.timeline.timeline import branch_name, extend

SettingsT = TypeVar("SettingsT", bound=Settings)


def check_input(state: TurnState, context: Settings) -> None:
    """Refuse what cannot be played, before anything of it is kept.

    Raises:
        InputError: The last message is not a player's, says nothing, or is longer than `context.max_message_chars`.
    """
    if not state.messages or not isinstance(state.messages[-1], HumanMessage):
        found = f"the last one has role {state.messages[-1].type!r}" if state.messages else "there is none"
        raise InputError(f"A turn begins with a message of role 'user', but {found}. Send one.")
    text = state.messages[-1].text
    if not text.strip():
        raise InputError("The player's message is blank. Say what your character does.")
    if len(text) > context.max_message_chars:
        raise InputError(
            f"The player's message has {len(text):,} characters; at most {context.max_message_chars:,} can be read. "
            "Send it in parts."
        )


def check_beginning(state: TurnState, settings: type[Settings]) -> None:
    """Refuse, in an edge, what cannot be played, and to go on in another campaign than the thread's.

    Raises:
        InputError: As `check_input` does; or the settings name another user or campaign than those of the thread's
            first turn, and its story would become that one's.
    """
    given = context_or_none()
    context = settings.of(given)
    check_input(state, context)
    named = [context.user, context.campaign]
    # In `update_state` nothing is given, and nothing is run.
    if given is not None and state.campaign and state.campaign != named:
        (user, campaign), (new_user, new) = state.campaign, named
        raise InputError(
            f"This thread belongs to campaign {campaign!r} of {user!r}, but the settings name {new!r} of {new_user!r}. "
            "Begin a new thread for that one."
        )


def open_turn(state: TurnState, runtime: Runtime[SettingsT]) -> dict[str, Any]:
    """Number the turn that the newest message opens, and reach the timeline up to it.

    Returns the channels to write. Safe to call again within a turn, also when it was left unanswered and the player
    has added to it: messages of a player in a row are one turn.
    """
    _, messages = split_turns(state.messages, state.turn)[-1]
    opened_by = next(message.id or "" for message in messages if isinstance(message, HumanMessage))
    turn = state.turn + (opened_by != state.opened_by)
    return {
        "turn": turn,
        "opened_by": opened_by,
        "timeline": [list(segment) for segment in extend(state.timeline, turn, _first_branch(runtime))],
        "campaign": [runtime.context.user, runtime.context.campaign],
    }


def spoken_turns(state: TurnState, first: int, last: int) -> list[dict[str, Any]]:
    """Tell turns `first` to `last`, those that still stand in the buffer, each as {"turn", "player", "reply"}."""
    told = []
    for turn, messages in split_turns(state.messages, state.turn):
        if first <= turn <= last:
            player, reply = turn_text(messages)
            told.append({"turn": turn, "player": player, "reply": reply})
    return told


def notice(turn: int, node: str, text: str) -> dict[str, Any]:
    """Make an entry for the channel `notices`."""
    return {"turn": turn, "node": node, "text": text}


def _first_branch(runtime: Runtime[SettingsT]) -> str:
    """Name the branch on which a thread begins: the same one if the first turn is run again."""
    thread = runtime.execution_info.thread_id if runtime.execution_info else None
    return branch_name(thread or uuid.uuid4().hex)
