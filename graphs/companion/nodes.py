"""The companion's nodes `recall`, `respond` and `remember`; `use_tools` is in `tools`, `condense` in `turn.buffer`."""

import logging
from dataclasses import replace
from datetime import UTC, datetime

from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.core_memory import fetch_shared
from questbook.graphs.companion.ltm import character_memories, ltm_of, make_memories, memory_ops, with_memories
from questbook.graphs.companion.prompts import assist_prompt
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.companion.tools import tools_for
from questbook.graphs.turn.prompt import Prompt
from questbook.graphs.turn.recall import FACTS, OPENING, RecallPlan, assistant_plan, recall_or_notice, with_recalled
from questbook.graphs.turn.reply import reply
from questbook.graphs.turn.scope import visible_timeline
from questbook.graphs.turn.sessions import begin
from questbook.graphs.turn.state import Turn
from questbook.graphs.turn.turn import remember_turns
from questbook.memory.archive.archive import entry_writes
from questbook.memory.facts.supersession import EndedFact, find_ended, outdated_sections
from questbook.memory.recall.times import phrase_age
from questbook.memory.timeline.records import PAUSE, read_time
from questbook.memory.timeline.timeline import Segment, as_of
from questbook.notebooks import CoreNotebook, sections_of
from questbook.types import JSON

_log = logging.getLogger(__name__)


async def recall(state: CompanionState, runtime: Runtime[CompanionContext]) -> JSON:
    """Open the turn: take over the past or the configured sections, fetch shared sections, recall."""
    before = state.core
    await ltm_of(runtime.context, runtime.server_info)  # wrong settings are reported before anything is done with them
    begun, opened, past = await begin(state, runtime)
    core = before if state.turn else CoreNotebook.load(past.get("core") or sections_of(runtime.context.core))
    opened |= _clock(begun, runtime.context) if opened["turn"] != past.get("turn", state.turn) else {}
    now = begun.model_copy(update={**opened, "core": core})

    async def plan_of(now: CompanionState, runtime: Runtime[CompanionContext]) -> RecallPlan:
        nonlocal core
        core = await fetch_shared(now.core, runtime.store, runtime.context.user)
        return await recall_plan(now, runtime)

    recalled = await recall_or_notice(now, runtime, plan_of)
    notices = [*opened["notices"], *recalled["notices"]]
    return {**opened, **recalled, "core": core.patch_from(before), "notices": notices}


async def respond(state: CompanionState, runtime: Runtime[CompanionContext]) -> JSON:
    """Answer the person, call tools, or both."""
    state = await with_recalled(state, runtime, recall_plan)
    prompt, rounds = await prompt_for(state, runtime), runtime.context.max_tool_rounds
    tools = tools_for(state, runtime.context)
    update, _ = await reply(state, runtime, prompt, node="respond", tools=tools, most_rounds=rounds)
    return update


async def prompt_for(state: CompanionState, runtime: Runtime[CompanionContext]) -> Prompt:
    """Make the prompt of a turn whose memories were recalled."""
    prompt = assist_prompt(state, runtime.context, await _outdated(state, runtime))
    if (ltm := await ltm_of(runtime.context, runtime.server_info)) is not None:
        prompt = with_memories(prompt, state.recalled or [], ltm, runtime.context)
    return prompt


async def _outdated(state: CompanionState, runtime: Runtime[CompanionContext]) -> dict[str, list[EndedFact]]:
    """Return the sections of core memory that tell what facts have ended; none if the store cannot be read."""
    context, written = runtime.context, state.written
    if runtime.store is None or not context.notes_facts or written < 1:
        return {}
    timeline = as_of(visible_timeline(state, runtime), written)
    try:
        ended = await find_ended(runtime.store, context.campaign_namespace(FACTS), timeline=timeline)
    except Exception as error:  # noqa: BLE001 (any store may be behind this; recall has left a notice)
        _log.warning("Core memory was not compared with the facts in turn %d: %s", state.turn, error)
        return {}
    return outdated_sections({label: section.text for label, section in state.core.sections.items()}, ended)


async def remember(state: CompanionState, runtime: Runtime[CompanionContext]) -> JSON:
    """Store each turn that is not stored yet, with its archival entries and, with `ltm_config`, character memories."""
    ltm = await ltm_of(runtime.context, runtime.server_info)
    archive = runtime.context.campaign_namespace("archive")
    made = await make_memories(state, runtime, ltm)

    def writes(turns: list[Turn], timeline: list[Segment], origin: JSON) -> list[PutOp]:
        ops: list[PutOp] = []
        for turn in dict.fromkeys(entry["turn"] for entry in state.archived):
            entries = [entry for entry in state.archived if entry["turn"] == turn]
            # An entry keeps the time at which it was archived: a failed write may come a turn late.
            ops += entry_writes(archive, [{**origin, **entry} for entry in entries], timeline, turn)
        return ops + (memory_ops(state, runtime, ltm, turns, timeline, origin, made.texts) if ltm else [])

    update = await remember_turns(state, runtime, writes)
    written = runtime.store is not None and "remembered_through" in update
    notices = [*update.get("notices", []), *made.notices]
    return update | ({"archived": []} if written else {}) | ({"notices": notices} if notices else {})


async def recall_plan(state: CompanionState, runtime: Runtime[CompanionContext]) -> RecallPlan:
    """Return what the companion recalls: as any assistant, or with `ltm_config` the character's own memories."""
    context = runtime.context
    plan = assistant_plan(state, context, None, facts=context.notes_facts, voices=OPENING)
    plan = replace(plan, options=replace(plan.options, rerank=context.EXTRAS.rerank))
    if (ltm := await ltm_of(context, runtime.server_info)) is None:
        return plan
    shown = [message.text for message in plan.shown]
    return replace(plan, instead=lambda: character_memories(state, runtime, ltm, state.words, shown))


def _clock(state: CompanionState, context: CompanionContext) -> JSON:
    now = datetime.now(UTC)
    away = phrase_age(state.opened_at, now.astimezone(context.zone)) if state.opened_at else ""
    goes_on = state.session and (opened := read_time(state.opened_at)) and now - opened <= PAUSE
    session = state.session if goes_on else now.isoformat()
    return {"opened_at": now.isoformat(timespec="seconds"), "away": away, "session": session}
