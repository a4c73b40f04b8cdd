"""A turn: the player's message and all that comes of it, until the next one. How it begins, and whether it is private.

A private turn is one whose player asked that it not be remembered. Its words are in the buffer for the current talk;
nothing is derived from them: no page, no fact, no summary, no record.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from typing import TypeVar

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime

from questbook.graphs.errors import InputError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.channels import Names
from questbook.graphs.turn.clock import clock_problem
from questbook.graphs.turn.node import Edge, settings_of_run
from questbook.graphs.turn.scope import campaign_of, check_owner, run_thread
from questbook.graphs.turn.shapes import Turn
from questbook.graphs.turn.state import TurnState
from questbook.memory.recall.intents import off_record
from questbook.memory.timeline.timeline import branch_name, extend
from questbook.types import JSON

SettingsT = TypeVar("SettingsT", bound=Settings)

_log = logging.getLogger(__name__)
CLOCK = "clock"
"""What a notice names as its node if the computer's clock went back."""
FORGOTTEN = "[forgotten]"
"""What a record says in the place of words that are not kept, or no longer."""
PRIVATE_REFUSAL = "The person asked that this not be remembered: nothing of this turn is noted."
"""What a tool answers that would note something of a private turn."""


def check_input(state: TurnState, settings: Settings) -> None:
    """Refuse input that cannot be played, before anything of it is kept.

    Raises:
        InputError: The last message is not a player's, says nothing, or is longer than `settings.max_message_chars`.
    """
    if not state.messages or not isinstance(state.messages[-1], HumanMessage):
        problem = f"the last one has role {state.messages[-1].type!r}" if state.messages else "there is none"
        raise InputError(f"A turn begins with a message of role 'user', but {problem}. Send one.")
    text = state.messages[-1].text
    if not text.strip():
        raise InputError("The player's message is blank. Say what your character does.")
    if len(text) > settings.max_message_chars:
        raise InputError(
            f"The player's message has {len(text):,} characters; at most {settings.max_message_chars:,} can be read. "
            "Send it in parts."
        )


def check_start(state: TurnState, settings_class: type[Settings]) -> None:
    """Refuse, in an edge, input that cannot be played, and settings of another campaign than the thread's.

    Raises:
        InputError: As `check_input`; or the settings name another user or campaign than those of the thread's first
            turn, and its story would become part of that one.
        SettingsError: Nobody is named as the user, or two that differ are.
    """
    settings = settings_of_run(settings_class)
    check_input(state, settings or settings_class.of())
    if settings is not None:
        check_owner(campaign_of(state), settings)


def open_turn(state: TurnState, runtime: Runtime[SettingsT]) -> JSON:
    """Number the turn that the newest message opens, and extend the timeline to it; return the channels to write.

    Safe to call again within a turn, also when it was left unanswered and the player has added to it: messages of a
    player in a row are one turn.
    """
    opened_by = next(message.id or "" for message in state.current_turn if isinstance(message, HumanMessage))
    turn = state.turn + (opened_by != state.opened_by)
    notices = [
        notice(turn, "edit", f"A change of {channel!r} did not fit and was left out: nothing was changed.", reason)
        for channel, reason in state.refusals
    ]
    if (problem := clock_problem(runtime)) and not any(entry["node"] == CLOCK for entry in state.notices):
        notices.append(notice(turn, CLOCK, problem))
    return {
        "turn": turn,
        "opened_by": opened_by,
        "timeline": [list(segment) for segment in extend(state.timeline, turn, _first_branch(runtime))],
        "campaign": Names([runtime.context.user, runtime.context.campaign]),
        "machine": state.MACHINE,
        "notices": [entry for entry in notices if entry not in state.notices],  # two nodes may open a turn
    }


def route_to(node: str) -> Edge:
    """Make an edge to one node, or to END, that reads the state.

    So LangGraph shows it what `update_state` writes in the name of the node before it: what does not fit is refused
    before it is saved (`questbook.graphs.turn.channels`). A plain edge reads nothing, and LangGraph calls nothing else
    of ours between an edit and its saving, so Studio draws these edges dashed, too.
    """
    return Edge(lambda _: node)


def notice(turn: int, node: str, text: str, detail: str = "") -> JSON:
    """Make an entry for the channel `notices`.

    Args:
        turn: The turn.
        node: The node that writes it.
        text: What a person should know, in words of theirs: no names of tools, nodes or classes.
        detail: What a developer reads in Studio beside it: errors as the model got them.
    """
    return {"turn": turn, "node": node, "text": text} | ({"detail": detail} if detail else {})


def failure_notice(turn: int, node: str, text: str, error: Exception) -> JSON:
    """Log an error that does not end the turn, and make its notice: what it means for a person, and the error."""
    _log.warning("Turn %d, %s: %s", turn, node, text, exc_info=error)
    return notice(turn, node, f"{text} {error}")


def is_private(state: TurnState) -> bool:
    """Whether the player asks, in the current turn, that it not be remembered."""
    return off_record(state.words)


def stored_words(turn: Turn) -> Turn:
    """Return a turn as it is stored: as it is, or without its words if it is private.

    That the turn was played is kept, as after `forget`: the tree of what was played must not fall apart.
    """
    return {**turn, "player": FORGOTTEN, "reply": FORGOTTEN, "withheld": True} if off_record(turn["player"]) else turn


def public_turns(turns: Iterable[Turn]) -> list[Turn]:
    """Return the turns of which something may be noted: neither private ones nor those that were forgotten."""
    return [turn for turn in turns if stored_words(turn)["player"] != FORGOTTEN]


def _first_branch(runtime: Runtime[SettingsT]) -> str:
    """Name the branch on which a thread begins: the same one if the first turn is run again."""
    return branch_name(run_thread(runtime) or uuid.uuid4().hex)
