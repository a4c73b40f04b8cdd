"""write: note the insights, settle the contradictions, and only then say that this was reflected on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ModelError
from questbook.graphs.reflect.failing import failing
from questbook.graphs.reflect.places import places_of
from questbook.graphs.reflect.state import ReflectState
from questbook.memory.facts import marks
from questbook.memory.facts.marks import write_judgements
from questbook.memory.facts.reflection import finished_op
from questbook.memory.facts.sources import second_drawing_op
from questbook.memory.facts.writing import FactDraft, write_facts
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import branch_of, record_key

_AFTER_FACTS = 900  # an insight of a turn comes after that turn's facts, which are noted 64 at a time


@failing("write")
async def write(state: ReflectState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Write everything under keys that follow from the turn, so that to write twice is to write once.

    An insight that is like one that holds becomes a mark that it was thought again, and a record of what it rests on.
    """
    if runtime.store is None or state.questions is None or (state.questions and state.concluded is None):
        raise ModelError("It was interrupted before anything was written.")
    places, turn, through = places_of(runtime.context), state.turn, state.through or state.turn
    branch = branch_of(state.timeline, turn)
    stamped = Stamp(branch, turn).to_json() | {"at": marks.turn_position(turn, _AFTER_FACTS), "turns": [turn, turn]}
    info = runtime.execution_info
    where: dict[str, Any] = {
        "thread": info.thread_id if info else None,
        "checkpoint": info.checkpoint_id if info else None,
    }
    where |= {"said_at": datetime.now(UTC).isoformat(timespec="seconds"), "messages": []}
    notes, judged, shown = (
        list[FactDraft](),
        list[tuple[str, str]](),
        {one.key: one.value for one in state.evidence or []},
    )
    if state.concluded is not None:
        judged = state.concluded.contradictions
        for ordinal, insight in enumerate(state.concluded.insights):
            at = {"at": marks.turn_position(turn, _AFTER_FACTS + ordinal)}
            value = insight.record(shown, state.viewer or []) | stamped | at | where
            # What is secret, or somebody's claim, does not take in what is neither, nor the other way about.
            known = shown.get(insight.same_as, {})
            same = all(known.get(name) == value[name] for name in ("kind", "claimed_by"))
            key = record_key(branch, turn, "insight", ordinal)
            notes.append(FactDraft(key, value, insight.same_as if same else ""))
    noted = await write_facts(runtime.store, places.facts, notes, timeline=state.timeline)
    again = [one for one in notes if one.key in noted.repetitions]
    await runtime.store.abatch(
        [second_drawing_op(places.facts, i.key, noted.repetitions[i.key], i.value) for i in again]
    )
    ended = await write_judgements(runtime.store, places.facts, judged, stamped)
    told = {
        "insights": noted.new,
        "again": list(noted.repetitions.values()),
        "ended": ended,
        "importance": state.pending,
    }
    await runtime.store.abatch([finished_op(places.reflections, stamped, through, told)])
    return {"reflected_through": through, "pending": 0, "written": noted.new}
