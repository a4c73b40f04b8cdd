"""remember: write the turn to the semantic store, once."""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.note_facts import note_facts
from graphs.dungeon_master.sections import transcript
from graphs.dungeon_master.session import head_op
from graphs.dungeon_master.state import DungeonState
from graphs.dungeon_master.turn import notice
from graphs.dungeon_master.withheld import withheld
from memory.buffer import turns_of
from memory.namespaces import campaign_namespace
from memory.timeline import Segment, branch_of, claim, record_key, stamp

_log = logging.getLogger(__name__)


async def remember(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Store each turn that is not stored yet as one record: the player's words and the reply together.

    A record's key follows from its branch and turn, and a record that stands is never written again, so that running
    the node twice is running it once. A turn that another future has taken already goes on a branch of its own. If the
    store fails, the turn stays in the buffer, a notice says so, and the next turn writes it too.
    """
    if runtime.store is None:
        first = [] if state.remembered_through else [notice(state.turn, "remember", "No store: nothing is recalled.")]
        return {"remembered_through": state.turn, "notices": first, "facts": []}
    turns = transcript(state, state.remembered_through + 1, state.turn)
    campaign = (runtime.context.user, runtime.context.campaign)
    exchanges, claims = (campaign_namespace(*campaign, what) for what in ("exchanges", "claims"))
    timeline = list(state.timeline)
    try:
        records: list[PutOp] = []
        for told in turns:
            turn, content = told["turn"], _content(told, state)
            if turn < state.turn and await _stands_already(runtime.store, exchanges, timeline, content, turn):
                continue
            timeline = await claim(runtime.store, claims, timeline, turn, _digest(content))
            key = record_key(branch_of(timeline, turn), turn, "exchange")
            if await runtime.store.aget(exchanges, key) is None:
                records.append(PutOp(exchanges, key, content | _provenance(turn, timeline, runtime)))
        thread = runtime.execution_info.thread_id if runtime.execution_info else None
        await runtime.store.abatch([*records, head_op(state, timeline, runtime.context, thread)])
    except Exception as error:  # noqa: BLE001 (any store may stand behind this; the reply must outlive its failure)
        _log.warning("Turn %d was not remembered: %s", state.turn, error, exc_info=True)
        text = f"The turn was not written to memory; the next turn will write it. {error}"
        return {"notices": [notice(state.turn, "remember", text)]}
    written = await note_facts(state, runtime, timeline, _provenance(state.turn, timeline, runtime))
    return {"remembered_through": state.turn, "timeline": [list(segment) for segment in timeline]} | written


def _content(told: dict[str, Any], state: DungeonState) -> dict[str, Any]:
    """Tell what a turn's record says, without where and when it was written."""
    now = told["turn"] == state.turn
    told = withheld(told)
    return {
        "kind": "exchange",
        "text": f"{told['player']}\n{told['reply']}",
        "player": told["player"],
        "reply": told["reply"],
        "line": state.line,
        "messages": [message.id for message in _messages(state, told["turn"])],
        "location": state.quest.location,
        "noted": state.noted if now else {},
    }


def _provenance(turn: int, timeline: list[Segment], runtime: Runtime[Context]) -> dict[str, Any]:
    info = runtime.execution_info
    return stamp(branch_of(timeline, turn), turn) | {
        "after": branch_of(timeline, turn - 1) if turn > 1 else None,
        "thread": info.thread_id if info else None,
        "checkpoint": info.checkpoint_id if info else None,
        "said_at": _said_at(info.checkpoint_id if info else None),
    }


def _digest(content: dict[str, Any]) -> str:
    """Tell this attempt at a turn from every other, by all that its record says.

    The reply's id would not do: a person who rewrites a reply or a page before it is remembered, and runs on from
    there, has made another future, whose messages keep their ids.
    """
    told = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(told.encode("ascii")).hexdigest()[:32]


async def _stands_already(
    store: BaseStore, exchanges: tuple[str, ...], timeline: list[Segment], content: dict[str, Any], turn: int
) -> bool:
    """Whether an earlier turn's exchange was written on this timeline, though no checkpoint says so.

    The run was killed between the store's write and the checkpoint, and the player has gone on with another message.
    Where the story stood when it was written is past, so the exchange alone is compared.
    """
    found = await store.aget(exchanges, record_key(branch_of(timeline, turn), turn, "exchange"))
    return found is not None and all(found.value.get(name) == content[name] for name in ("text", "messages"))


def _said_at(checkpoint: str | None) -> str:
    """When the reply stood in a checkpoint, ISO 8601 in UTC: the same if the node is run again."""
    # A checkpoint id is a UUID of version 6, which begins with its time in 100 ns since 15 October 1582 (RFC 9562).
    if checkpoint and (made := uuid.UUID(checkpoint)).version == 6:
        ticks = int(made.hex[:12] + made.hex[13:16], 16)
        return (datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=ticks // 10)).isoformat(timespec="seconds")
    return datetime.now(UTC).isoformat(timespec="seconds")


def _messages(state: DungeonState, turn: int) -> list[AnyMessage]:
    return next(messages for number, messages in turns_of(state.messages, state.turn) if number == turn)
