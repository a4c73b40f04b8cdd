"""Notes in the background: the facts of turns that are in the store, each turn's once, on the turn's own timeline."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from questbook.graphs.reflect.context import NotingContext, ReflectContext, namespaces_of
from questbook.graphs.reflect.nodes import Update, check_start, ends_on_failure
from questbook.graphs.reflect.state import ReflectState
from questbook.graphs.turn.facts import learn_turns
from questbook.graphs.turn.scope import user_timeline
from questbook.graphs.turn.state import notice, turn_of
from questbook.graphs.turn.turn import public_turns
from questbook.memory.store.any_store import put_all
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import Segment, branch_of, record_key
from questbook.types import JSON

_MOST = 100  # turns that notes catch up with


async def noted_through(store: BaseStore, noted: tuple[str, ...], timeline: Sequence[Segment], turns: range) -> int:
    """Return the last of these turns up to which a timeline's facts were noted in the background; 0: none.

    `noted` is the namespace of the records of what was noted.
    """
    keys = [record_key(branch_of(timeline, turn), turn, "noted") for turn in turns]
    records = await asyncio.gather(*(store.aget(noted, key, refresh_ttl=False) for key in keys))
    return max((turn for turn, record in zip(turns, records, strict=True) if record is not None), default=0)


@ends_on_failure
async def note(state: ReflectState, runtime: Runtime[ReflectContext]) -> Update:
    """Ask the model what the oldest turns taught that nobody has noted, and write it, with a record that says so.

    The words come from the store, so that nothing is noted of what was forgotten or retracted meanwhile. What is
    written carries the turn's place: a fork from before it does not see it, nor does a thread that was undone.

    Raises:
        InputError: The input does not say where to look back from.
    """
    check_start(state)
    update: Update = {"machine": "reflect", "failed": "", "note_from": state.turn + 1}
    store, context, namespaces = runtime.store, NotingContext.of(runtime.context), namespaces_of(runtime.context)
    if store is None:
        return update | {"notices": [notice(state.turn, "note", "No store: there is nothing to note.")]}
    due = range(max(state.note_from, state.turn - _MOST, 1), state.turn + 1)
    done = await noted_through(store, namespaces.noted, state.timeline, due)
    keys = [record_key(branch_of(state.timeline, turn), turn, "exchange") for turn in due if turn > done]
    items = await asyncio.gather(*(store.aget(namespaces.exchanges, key, refresh_ttl=False) for key in keys))
    records: dict[int, JSON] = {record.value["turn"]: record.value for record in items if record is not None}
    turns = public_turns(turn_of(turn, record) for turn, record in sorted(records.items()))
    if not turns:
        return update

    def origin(first: int, last: int) -> JSON:
        messages = [id_ for turn in range(first, last + 1) for id_ in records.get(turn, {}).get("messages", [])]
        return {name: records[last].get(name) for name in ("thread", "checkpoint", "said_at")} | {"messages": messages}

    view = user_timeline(state.timeline, context, state.thread) if state.of_user else state.timeline
    learned = await learn_turns(
        turns,
        store,
        context,
        timeline=view,
        before=turns[-1]["turn"] + 1,
        budget=context.buffer_tokens,
        origin=origin,
        wait=lambda work: work,
    )
    through = state.turn if learned.through == turns[-1]["turn"] else learned.through
    stamp = Stamp(branch_of(state.timeline, through), through, thread=state.thread).to_json()
    written = PutOp(namespaces.noted, record_key(stamp["branch"], through, "noted"), stamp, index=False)
    await put_all(store, [written])
    notices = [notice(state.turn, "note", *remark) for remark in learned.remarks]
    return update | {"note_from": through + 1, "notices": notices}
