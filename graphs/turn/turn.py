"""A turn: a person's message and all that comes of it, until the next one. How it begins, and how it is remembered.

A private turn is one whose person asked that it not be remembered. Its words are in the buffer for the current talk;
nothing is derived from them: no page, no fact, no summary, no record.
"""

import logging
import uuid
from collections.abc import Callable, Iterable

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from questbook.graphs.errors import PastUnknownError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.channels import Names
from questbook.graphs.turn.clock import clock_problem, said_at
from questbook.graphs.turn.scope import HEAD, SettingsT, run_thread, visible_timeline
from questbook.graphs.turn.shared_pages import move_ops
from questbook.graphs.turn.state import MOST_REMEMBERED, Turn, TurnState, failure_notice, notice, opener_of, turn_of
from questbook.memory.buffer.policies import split_turns
from questbook.memory.recall.intents import is_standing, off_record
from questbook.memory.recall.recall import access_op, last_accesses
from questbook.memory.store.any_store import get_values, put_all
from questbook.memory.timeline.records import STANDING, WITHHELD
from questbook.memory.timeline.timeline import Segment, Timeline, branch_name, branch_of, extend, record_key
from questbook.memory.timeline.timeline import remember as remember_records
from questbook.types import JSON

_MOST_EARLIER = 100  # turns of an earlier thread that notes catch up with
_log = logging.getLogger(__name__)
CLOCK = "clock"  # what a notice names as its node if the computer's clock went back
FORGOTTEN = "[forgotten]"  # what a record says in the place of words that are not kept, or no longer
PRIVATE_REFUSAL = "The person asked that this not be remembered: nothing of this turn is noted."
"""What a tool answers that would note something of a private turn."""


def open_turn(state: TurnState, runtime: Runtime[SettingsT]) -> JSON:
    """Number the turns that the newest messages open, if any, and extend the timeline; return the channels to write."""
    opened_by, turn = state.opener, state.turn + state.opened
    notices = [
        notice(turn, "edit", f"A change of {channel!r} did not fit and was left out: nothing was changed.", reason)
        for channel, reason in state.refusals
    ]
    if (problem := clock_problem(runtime)) and not any(entry["node"] == CLOCK for entry in state.notices):
        notices.append(notice(turn, CLOCK, problem))
    first_branch = branch_name(run_thread(runtime) or uuid.uuid4().hex)  # the same if the first turn is run again
    return {
        **state.mended,
        "turn": turn,
        "opened_by": opened_by,
        "opened_in": [mark] if (mark := state.run_mark) and mark not in state.opened_in else [],
        "timeline": [list(segment) for segment in extend(state.timeline, turn, first_branch)],
        "campaign": Names([runtime.context.user, runtime.context.campaign]),
        "machine": state.MACHINE,
        "notices": [entry for entry in notices if entry not in state.notices],  # two nodes may open a turn
    }


def is_private(state: TurnState) -> bool:
    """Whether the player asks, in the current turn, that it not be remembered."""
    return off_record(state.words)


def stored_words(turn: Turn) -> Turn:
    """Return a turn as it is stored: without its words if it is private, as after `forget`."""
    return {**turn, "player": FORGOTTEN, "reply": FORGOTTEN, "withheld": True} if off_record(turn["player"]) else turn


def public_turns(turns: Iterable[Turn]) -> list[Turn]:
    """Return the turns of which something may be noted: neither private ones nor those that were forgotten."""
    return [turn for turn in turns if stored_words(turn)["player"] != FORGOTTEN]


async def remember_turns(
    state: TurnState,
    runtime: Runtime[SettingsT],
    writes: Callable[[list[Turn], list[Segment], JSON], list[PutOp]] | None = None,
) -> JSON:
    """Write the turns that are not stored yet, one record each, and move the head; return the channels to write.

    To run the node twice is to run it once. If the store fails, a notice says so, and the next turn writes it too.
    `writes` makes further writes, given the turns, the timeline with their places, and `origin_of` the records.
    """
    if runtime.store is None:
        first = []
        if not state.remembered_through:
            _log.warning("No store: nothing is remembered. Give the graph one where it is made: store=…")
            first = [notice(state.turn, "remember", "No store: nothing is remembered.")]
        return {"remembered_through": state.turn, "notices": first}
    turns, origin = state.transcript(state.remembered_through + 1, state.turn), origin_of(runtime)
    try:
        accesses = runtime.context.campaign_namespace("accesses")
        is_scored = state.recalled and runtime.context.weights.scoring == "generative_agents"
        last = await last_accesses(runtime.store, accesses, state.timeline, state.turn) if is_scored else None

        def more(timeline: list[Segment]) -> list[PutOp]:
            ops = writes(turns, timeline, origin) if writes else []
            ops += head_ops(state, timeline, runtime.context, origin["thread"])
            if last is not None:
                used = [key for memory in state.recalled or [] for key in (memory["key"], *memory.get("tells", ()))]
                ops.append(access_op(accesses, timeline, state.turn, last, used, origin["said_at"]))
            return ops

        timeline = await remember_records(
            runtime.store,
            runtime.context.campaign_namespace("exchanges"),
            [_record(turn, state) | state.record_fields(turn["turn"]) for turn in turns],
            turn=turns[0]["turn"] if turns else state.turn,
            timeline=visible_timeline(state, runtime),
            claims=runtime.context.campaign_namespace("claims"),
            provenance=origin,
            also=more,
        )
    except Exception as error:  # noqa: BLE001 (any store may be behind this; the reply must survive its failure)
        text = "The turn was not written to memory; the next turn will write it."
        return {"notices": [failure_notice(state.turn, "remember", text, error)]}
    long = [turn["turn"] for turn in turns if max(len(turn["player"]), len(turn["reply"])) > MOST_REMEMBERED]
    text = f"What is longer than {MOST_REMEMBERED:,} characters is remembered in part: how it begins, and how it ends."
    return {
        "remembered_through": state.turn,
        "timeline": [list(segment) for segment in timeline],
        "notices": [notice(turn, "remember", text) for turn in long],
    }


async def turns_to_note(state: TurnState, runtime: Runtime[SettingsT], first: int) -> list[Turn]:
    """Return the public ones of the turns from `first` on as `state.transcript` has them, for notes that catch up.

    What was played on another thread before is read from the records of those turns, at most a hundred; without rolls.
    """
    turns = state.transcript(first, state.turn)
    earlier = range(max(first, state.turn - _MOST_EARLIER), turns[0]["turn"] if turns else state.turn)
    if runtime.store is None or not earlier or not state.timeline:
        return public_turns(turns)
    try:
        past = await turn_records(runtime.store, runtime.context, state.timeline, earlier)
    except Exception as error:  # any store may be behind this
        raise PastUnknownError(f"Earlier turns cannot be read from the store: {error}") from error
    return public_turns([*(turn_of(turn, value) for turn, value in past.items()), *turns])


async def turn_records(
    store: BaseStore, settings: Settings, timeline: Timeline, turns: Iterable[int], kind: str = "exchanges"
) -> dict[int, JSON]:
    """Return the records of one kind that turns of a timeline have, by turn, in their order."""
    namespace = settings.campaign_namespace(kind)
    places = {t: (namespace, record_key(branch_of(timeline, t), t, kind.removesuffix("s"))) for t in turns}
    found = await get_values(store, [*places.values()])
    return {turn: dict(found[place]) for turn, place in places.items() if place in found}


def origin_of(runtime: Runtime[SettingsT]) -> JSON:
    """Return where and when a record is written, as its fields `thread`, `checkpoint`, `said_at`; and `metadata`."""
    info = runtime.execution_info
    checkpoint = info.checkpoint_id if info else None
    place = {"thread": run_thread(runtime), "checkpoint": checkpoint, "said_at": said_at(checkpoint)}
    return place | ({"metadata": metadata} if (metadata := runtime.context.metadata) else {})


def messages_of(state: TurnState, first: int, last: int) -> JSON:
    """Return the ids of the messages of turns `first` to `last`, and of the person's first one as `said`."""
    turns = [messages for turn, messages in split_turns(state.messages, state.turn) if first <= turn <= last]
    messages = [message for turn in turns for message in turn if message.id]
    return {"messages": [message.id for message in messages], "said": opener_of(messages)}


def head_key(state: TurnState) -> str:
    """Return the key of the campaign's head: "pages" where only pages are a campaign's, "" where nothing is."""
    if state.SCOPE == "campaign":
        return HEAD
    return "pages" if state.pages_of("campaign") else ""


def head_ops(state: TurnState, timeline: Timeline, settings: Settings, thread: str | None) -> list[PutOp]:
    """Make the write that moves the campaign's head to where this turn ends; none if no new thread can go on there."""
    key = head_key(state)
    if not key or not state.has_past:
        return []
    value = {
        "machine": state.MACHINE,
        "thread": thread,
        "turn": state.turn,
        "timeline": [list(segment) for segment in timeline],
        **state.head_fields(),
    }
    return [PutOp(settings.campaign_namespace(HEAD), key, value, index=False)]


async def head_of(store: BaseStore, settings: Settings, key: str = HEAD) -> JSON | None:
    """Return the campaign's head; None if no turn of it was finished."""
    head = await store.aget(settings.campaign_namespace(HEAD), key)
    return head.value if head else None


async def move_head(state: TurnState, store: BaseStore, settings: Settings, thread: str | None) -> None:
    """Move the campaign's head to a state that a person has gone to; one in which nothing has begun removes it."""
    if thread:
        await put_all(store, await move_ops(state, store, settings, thread))
    if ops := head_ops(state, state.timeline, settings, thread):
        await put_all(store, ops)
    elif key := head_key(state):
        await store.adelete(settings.campaign_namespace(HEAD), key)


def _record(turn: Turn, state: TurnState) -> JSON:
    buffered, words = dict(split_turns(state.messages, state.turn)), stored_words(turn)
    return {
        "kind": "exchange",
        "text": f"{words['player']}\n{words['reply']}",
        "player": words["player"],
        "reply": words["reply"],
        **({WITHHELD: True} if words.get(WITHHELD) else {}),
        **({STANDING: True} if is_standing(words["player"]) else {}),
        "line": state.line,
        "messages": [message.id for message in buffered[turn["turn"]] if message.id],
    }
