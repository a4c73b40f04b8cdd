"""The nodes of a reflection: note, gather, question, retrieve, conclude, write.

A node that fails ends the reflection instead of the run that it is part of. Then nothing says that the reflection was
done, a notice tells a person, and the next reflection begins with the same facts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial, wraps

from langchain_core.messages import BaseMessage
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp, SearchItem

from questbook.graphs.errors import InputError, ModelError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import chat_model
from questbook.graphs.reflect import prompts
from questbook.graphs.reflect.state import ReflectState
from questbook.graphs.settings import NotingContext, ReflectContext, Settings
from questbook.graphs.turn.facts import learn_turns
from questbook.graphs.turn.node import GaveWay, give_way
from questbook.graphs.turn.recall import FACTS
from questbook.graphs.turn.scope import run_thread, user_timeline
from questbook.graphs.turn.state import Notice, notice, turn_of
from questbook.graphs.turn.tool_calls import calls_of
from questbook.graphs.turn.turn import head_of, public_turns, turn_records
from questbook.memory.facts import reflection
from questbook.memory.facts.validity import keep_valid, turn_position, write_judgements
from questbook.memory.facts.writing import FactChanges, FactDraft, write_facts
from questbook.memory.recall.candidates import Scope, propose_candidates
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.store.any_store import JointReads, put_all
from questbook.memory.text.words import content_stems
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import Timeline, branch_of, record_key
from questbook.types import JSON

_ANSWERS = 12  # memories that are recalled for each question
_SIMILAR_READ = 12  # records that are read for each new fact, itself and other new facts among them
_SIMILAR = 3  # of these, earlier facts that are shown
_SHORT_PROSE = 200  # characters up to which an answer without a call only says that there is nothing
_AFTER_FACTS = 900  # an insight's place in its turn: after the facts, of which 64 at a time are written

_NodeFunction = Callable[[ReflectState, Runtime[ReflectContext]], Awaitable[JSON]]
MOST_TURNS = 100  # that notes catch up with
NOTED = "noted"  # last label of the namespace that says which turns were noted in the background
_log = logging.getLogger(__name__)


def ends_on_failure(node: _NodeFunction) -> _NodeFunction:
    """Make a node that ends the reflection if it fails, or takes more than `update_timeout` seconds."""

    @wraps(node)
    async def run(state: ReflectState, runtime: Runtime[ReflectContext]) -> JSON:
        try:
            async with asyncio.timeout(runtime.context.update_timeout):
                return await node(state, runtime)
        except InputError:  # what a caller has to mend is an error of the run
            raise
        except GaveWay:
            if not state.note_from:
                raise
            return {"failed": "another run of the thread waits, and goes on from here"}
        except Exception as error:  # noqa: BLE001 (models and stores raise errors of any kind; the turn is over)
            reason = str(error) or f"no answer within {runtime.context.update_timeout:g} seconds"
            what = "What was said was not noted" if node.__name__ == "note" else "The reflection was not finished"
            _log.warning("Turn %d: %s: %s", state.turn, what, reason, exc_info=True)
            text = f"{what}; nothing is lost, and it will be taken up again."
            return {"failed": reason, "notices": [notice(state.turn, "reflect", text, f"{node.__name__}: {reason}")]}

    return run


async def find_start(state: ReflectState, runtime: Runtime[ReflectContext]) -> tuple[ReflectState, JSON]:
    """Return the state with its timeline and turn, and the channels to write: if neither is given, the campaign's head.

    An InputError says that one of them is lacking, that they contradict, or that the campaign was not played.
    """
    if runtime.store is not None and state.timeline == state.taken and (state.taken or not state.turn):
        head = await head_of(runtime.store, runtime.context)
        if head is None:
            whose = f"campaign {runtime.context.campaign!r} of {runtime.context.user!r}"
            remedy = "Name the campaign in the context, or give `timeline` and `turn` of a thread's state."
            raise InputError(f"Nothing was played in {whose} yet, so there is nothing to reflect on. {remedy}")
        start = {name: head[name] for name in ("timeline", "turn")} | {"taken": head["timeline"]}
        return ReflectState.model_validate({**dict(state), **start}), {**start, "through": 0}
    if lacking := [name for name in ("timeline", "turn") if not getattr(state, name)]:
        needed = " and ".join(f"`{name}`" for name in lacking)
        example = 'as the thread that it looks back on has them in its state: {"timeline": [["main", 12]], "turn": 12}.'
        raise InputError(f"A reflection needs {needed}, {example}")
    if (reached := state.timeline[-1][1]) != state.turn:
        raise InputError(f"turn: got {state.turn}, and a timeline that reaches turn {reached}. Give both of one state.")
    return state, {}


async def gather(state: ReflectState, runtime: Runtime[ReflectContext]) -> JSON:
    """Read the facts since the last reflection. If they do not matter enough together, the reflection ends here."""
    state, start = await find_start(state, runtime)
    update: JSON = start | {"facts": None, "questions": None, "evidence": None, "concluded": None, "written": []}
    update |= {"machine": "reflect", "failed": "", "pending": 0}
    if runtime.store is None:
        return update | {"notices": [notice(state.turn, "reflect", "No store: there is nothing to reflect on.")]}
    context, through = runtime.context, state.through or state.turn
    backlog = await backlog_of(state.timeline, through, runtime.store, context)
    update |= {"pending": backlog.importance, "reflected_through": backlog.since}
    if backlog.importance < context.reflection_importance:
        return update
    reads = JointReads(runtime.store)
    validity = keep_valid(reads, backlog.facts, timeline=state.timeline)
    valid, head = await asyncio.gather(validity, head_of(reads, context))
    valid.sort(key=lambda item: (-reflection.importance_of(item.value), str(item.value.get("at")), item.key))
    candidates = [reflection.Evidence(item.key, item.value) for item in valid]
    facts = prompts.fit_budget(candidates, context.buffer_tokens // 2)
    name = str(((head or {}).get(state.viewer_page) or {}).get("name") or "")
    return update | {"facts": facts, "viewer": [name] if name else []}


async def backlog_of(timeline: Timeline, through: int, store: BaseStore, context: ReflectContext) -> reflection.Backlog:
    """Return what was noted up to a turn since the last reflection."""
    facts, reflections = (context.campaign_namespace(name) for name in (FACTS, "reflections"))
    return await reflection.find_backlog(store, facts, reflections, timeline, through)


async def question(state: ReflectState, runtime: Runtime[ReflectContext]) -> JSON:
    """Ask the model for at most three questions about the facts, in one call. No call: there is nothing to ask."""
    if state.facts is None:
        raise ModelError("It was interrupted after it had gathered the facts.")
    asking = _ask(prompts.question_prompt(state.facts), prompts.questions_tool(), runtime.context)
    calls, prose = await give_way(asking, runtime)
    questions, oddities = reflection.read_questions(calls, prose)
    if not questions and (prose or calls):
        raise ModelError("The model answered without a question.")
    return {"questions": questions, "notices": _notices(state, oddities)}


async def retrieve(state: ReflectState, runtime: Runtime[ReflectContext]) -> JSON:
    """Collect what the model is shown, in the order of turns: new facts, similar ones, what answers the questions."""
    if state.facts is None or state.questions is None or runtime.store is None:
        return {}
    exchanges, facts = (runtime.context.campaign_namespace(name) for name in ("exchanges", FACTS))
    reads = JointReads(runtime.store)
    query = partial(
        Query,
        timeline=state.timeline,
        before=state.turn + 1,
        limit=_ANSWERS,
        weights=runtime.context.weights.model_copy(update={"scoring": "sum"}),  # to reflect is not to use
        visibility="all",  # what is concluded of a secret is one
        refine=partial(keep_valid, reads, timeline=state.timeline),
    )
    similar, recalled = await asyncio.gather(
        _similar_facts(reads, facts, state, state.facts),
        asyncio.gather(*(recall(reads, [exchanges, facts], query(text)) for text in state.questions)),
    )
    answers = [reflection.Evidence(record.key, record.value) for records in recalled for record in records]
    nearest = [fact for those in similar for fact in those[:1]]
    further = [fact for those in similar for fact in those[1:]]
    unique = {record.key: record for record in [*state.facts, *nearest, *answers, *further]}
    evidence = prompts.fit_budget(list(unique.values()), runtime.context.buffer_tokens)
    evidence.sort(key=lambda record: (record.value.get("turn") or 0, str(record.value.get("at")), record.key))
    return {"evidence": evidence}


async def conclude(state: ReflectState, runtime: Runtime[ReflectContext]) -> JSON:
    """Ask the model for insights and contradictions, in one call. No call: there are none."""
    if state.failed:
        return {}
    if state.evidence is None or state.questions is None:
        raise ModelError("It was interrupted before the memories were recalled.")
    prompt = prompts.conclude_prompt(state.evidence, state.questions)
    calls, prose = await give_way(_ask(prompt, prompts.reflection_tool(), runtime.context), runtime)
    if prose:
        raise ModelError("The model answered with prose instead of calling the tool.")
    concluded = reflection.read_reflection(calls, state.evidence)
    return {"concluded": concluded, "notices": _notices(state, concluded.notices)}


async def write(state: ReflectState, runtime: Runtime[ReflectContext]) -> JSON:
    """Write insights and judgements, and last that the facts have been reflected on; writing twice is writing once.

    An insight that repeats a valid one becomes a mark that it was drawn again, and a record of what it was drawn from.
    """
    if runtime.store is None or state.questions is None or (state.questions and state.concluded is None):
        raise ModelError("It was interrupted before anything was written.")
    facts, reflections = (runtime.context.campaign_namespace(name) for name in (FACTS, "reflections"))
    turn, through = state.turn, state.through or state.turn
    thread = state.thread or run_thread(runtime) or ""  # the user's threads look for it
    stamp = Stamp(branch_of(state.timeline, turn), turn, thread=thread).to_json()
    stamp |= {"at": turn_position(turn, _AFTER_FACTS), "turns": [turn, turn]}
    drafts = _insight_drafts(state, stamp, runtime)
    contradictions = state.concluded.contradictions if state.concluded else []
    ended = await write_judgements(runtime.store, facts, contradictions, stamp)

    def last(changes: FactChanges) -> Iterator[PutOp]:
        for draft in drafts:
            if repeated := changes.repetitions.get(draft.key):
                yield reflection.second_drawing_op(facts, draft.key, repeated, draft.value)
        again = list(changes.repetitions.values())
        outcome = {"insights": changes.new, "again": again, "ended": ended, "importance": state.pending}
        yield reflection.finished_op(reflections, stamp, through, outcome)

    changes = await write_facts(runtime.store, facts, drafts, timeline=state.timeline, also=last)
    return {"reflected_through": through, "pending": 0, "written": changes.new}


async def noted_through(store: BaseStore, context: Settings, timeline: Timeline, turns: range) -> int:
    """Return the last of these turns up to which a timeline's facts were noted in the background; 0: none."""
    return max(await turn_records(store, context, timeline, turns, NOTED), default=0)


async def note(state: ReflectState, runtime: Runtime[ReflectContext]) -> JSON:
    """Ask the model what the oldest turns taught that nobody has noted, and write it, with a record that says so.

    The words come from the store, so that nothing is noted of what was forgotten or retracted meanwhile.
    """
    state, start = await find_start(state, runtime)
    update: JSON = start | {"machine": "reflect", "failed": "", "note_from": state.turn + 1}
    store, context = runtime.store, NotingContext.of(runtime.context)
    if store is None:
        return update | {"notices": [notice(state.turn, "note", "No store: there is nothing to note.")]}
    due = range(max(state.note_from, state.turn - MOST_TURNS, 1), state.turn + 1)
    done = await noted_through(store, context, state.timeline, due)
    records = await turn_records(store, context, state.timeline, due[max(0, done + 1 - due.start) :])
    turns = public_turns(turn_of(turn, record) for turn, record in records.items())
    if not turns:
        return update

    def origin(first: int, last: int) -> JSON:
        messages = [id_ for turn in range(first, last + 1) for id_ in records.get(turn, {}).get("messages", [])]
        return {name: records[last].get(name) for name in ("thread", "checkpoint", "said_at")} | {"messages": messages}

    view = user_timeline(state.timeline, context, state.thread) if state.of_user else state.timeline
    before, budget = turns[-1]["turn"] + 1, context.buffer_tokens
    learned = await learn_turns(
        turns, store, context, timeline=view, before=before, budget=budget, origin=origin, wait=lambda work: work
    )
    through = state.turn if learned.through == turns[-1]["turn"] else learned.through
    stamp = Stamp(branch_of(state.timeline, through), through, thread=state.thread).to_json()
    noted = context.campaign_namespace(NOTED)
    await put_all(store, [PutOp(noted, record_key(stamp["branch"], through, NOTED), stamp, index=False)])
    notices = [notice(state.turn, "note", *remark) for remark in learned.remarks]
    return update | {"note_from": through + 1, "notices": notices}


def _insight_drafts(state: ReflectState, stamp: JSON, runtime: Runtime[ReflectContext]) -> list[FactDraft]:
    info, thread = runtime.execution_info, stamp.get("thread")
    provenance: JSON = {
        "thread": thread,
        "checkpoint": info.checkpoint_id if info and thread and info.thread_id == thread else None,
        "said_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "messages": [],
    }
    shown = {record.key: record.value for record in state.evidence or []}
    drafts = []
    for ordinal, insight in enumerate(state.concluded.insights if state.concluded else []):
        position = {"at": turn_position(state.turn, _AFTER_FACTS + ordinal)}
        value = insight.record(shown, state.viewer or []) | stamp | position | provenance
        # A secret, or a claim, is no repetition of an insight that is neither, nor the other way round.
        original = shown.get(insight.same_as, {})
        same = all(original.get(name) == value[name] for name in ("kind", "claimed_by"))
        key = record_key(stamp["branch"], state.turn, "insight", ordinal)
        drafts.append(FactDraft(key, value, insight.same_as if same else ""))
    return drafts


async def _ask(prompt: list[BaseMessage], tool: JSON, context: ReflectContext) -> tuple[list[JSON], str]:
    """Ask the model once, for calls of a tool; return their arguments, and its text if it says more than "nothing"."""
    name = tool["function"]["name"]
    model = (await chat_model(context)).bind_tools([tool])
    reply = await ask(model, prompt, model_name=context.model, tools=[tool], tags=[TAG_NOSTREAM])
    calls = calls_of(reply)
    readable = [call.args for call in calls if call.name == name and not call.problem]
    if calls and not readable:
        raise ModelError(f"No call of the tool {name} could be read: {calls[0].problem or f'got {calls[0].name!r}.'}")
    wordy = not readable and (len(reply.text) > _SHORT_PROSE or "{" in reply.text or "?" in reply.text)
    return readable, reply.text if wordy else ""


def _notices(state: ReflectState, oddities: Sequence[str]) -> list[Notice]:
    """Return one notice if something of an answer was not used; what could be put right is only logged."""
    if oddities:
        _log.info("The reflection of turn %d: %s", state.turn, " ".join(oddities))
    if not any("left out" in oddity or "refused" in oddity for oddity in oddities):
        return []
    text = "Not all that the reflection concluded could be used; no memory is changed by that."
    return [notice(state.turn, "reflect", text, " ".join(oddities))]


async def _similar_facts(
    store: BaseStore, namespace: tuple[str, ...], state: ReflectState, facts: Sequence[reflection.Evidence]
) -> list[list[reflection.Evidence]]:
    texts = [str(fact.value["text"]) for fact in facts]
    scope = Scope(namespace, state.timeline, state.turn + 1)
    [results] = await propose_candidates(store, [scope], texts, [_SIMILAR_READ] * len(texts))
    new = {fact.key for fact in facts}
    earlier = [[item for item in items if item.key not in new] for items in map(_rank, texts, results)]
    unique = {item.key: item for items in earlier for item in items}
    valid = {item.key for item in await keep_valid(store, list(unique.values()), timeline=state.timeline)}
    return [
        [reflection.Evidence(item.key, item.value) for item in items if item.key in valid][:_SIMILAR]
        for items in earlier
    ]


def _rank(text: str, items: Iterable[SearchItem]) -> list[SearchItem]:
    """Return items in the store's order; if the store has none, those with words of the text, the most words first."""
    items = list(items)
    if any(item.score is not None for item in items):
        return items
    words = content_stems(text)
    shared = {item.key: len(words & content_stems(str(item.value.get("text", "")))) for item in items}
    matches = [item for item in items if shared[item.key]]
    return sorted(matches, key=lambda item: (-shared[item.key], item.key))[:_SIMILAR_READ]


NODES = (note, gather, question, retrieve, conclude, write)
