"""Facts of a conversation: after the reply, one question to the model for what was said, and how it gets into a store.

`learn` is a node. `ask_facts` needs no state; `questbook.memory.facts.writing.note_facts` writes what it returns.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from questbook.graphs.errors import ModelError
from questbook.graphs.settings import AppRules, Settings
from questbook.graphs.turn.node import give_way
from questbook.graphs.turn.notes import IN_SHORT, ask_of_oldest, attribute_lines, catching_up, known_slots, take_notes
from questbook.graphs.turn.pages import declare
from questbook.graphs.turn.prompt import INSTRUCTIONS, Section, prompt_about_turns
from questbook.graphs.turn.recall import FACTS
from questbook.graphs.turn.scope import SettingsT, visible_timeline
from questbook.graphs.turn.state import FactState, Turn, notice
from questbook.graphs.turn.turn import messages_of, move_head, origin_of, turn_records, turns_to_note
from questbook.memory.facts.fact import Fact, facts_tool
from questbook.memory.facts.forms import forms_tool, read_forms
from questbook.memory.facts.reading import classify_statement, read_facts
from questbook.memory.facts.reflection import importance_of
from questbook.memory.facts.validity import read_records
from questbook.memory.facts.writing import note_facts
from questbook.memory.timeline.records import read_time
from questbook.memory.timeline.timeline import Timeline
from questbook.notebooks import DeclarationError, Notebook, render_fields
from questbook.types import JSON, check_choice, check_number

INSTRUCTION = files("questbook.graphs.turn").joinpath("facts.txt").read_text("utf-8").rstrip()

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FactNotes:
    """Facts are noted after each reply, by one call of the model; a later fact of a slot ends the earlier one.

    Attributes:
        reflection: When to look back on them and draw conclusions: at the end of a turn, in the background (on
            LangGraph Server, by its graph `reflect`), or never.
        reflection_importance: Importance of new facts, each 1 to 10, at whose sum there is a reflection.
        noting: When they are noted: at the end of the turn, or in the background (on LangGraph Server, by its graph
            `reflect`, which then reflects too, unless `reflection` is "off"). There the model is loaded by its name.
        schema: Pydantic classes of the app as which facts are noted, each with its slot
            (`questbook.memory.facts.forms`); `Fact` among them stands for sentences. None: sentences alone.
        instructions: What is added to the instructions by which facts are noted.
        ttl: After how long a fact ends by itself, unless its class says so (`TTL`); None: never.
    """

    reflection: Literal["inline", "background", "off"] = "off"
    reflection_importance: int = 150
    noting: Literal["inline", "background"] = "inline"
    schema: Sequence[type[BaseModel]] = ()
    instructions: str = ""
    ttl: timedelta | None = None

    def __post_init__(self) -> None:
        declare(check_choice, "FactNotes.reflection", self.reflection, "inline", "background", "off")
        declare(check_number, "FactNotes.reflection_importance", self.reflection_importance, 1)
        declare(check_choice, "FactNotes.noting", self.noting, "inline", "background")
        if self.noting == "background" and (self.schema or self.instructions or self.ttl):
            unknown = "the graph `reflect`, which notes in the background, does not know them. Take 'inline'."
            raise DeclarationError(f"noting: got 'background' with a schema, instructions or ttl; {unknown}")

    def settings(self) -> JSON:
        """Return the settings of notes and reflections."""
        return {name: getattr(self, name) for name in ("reflection", "reflection_importance", "noting")}


def rules_of(facts: object, team: Any, metadata: Any) -> AppRules:
    """Put together what an app says of its agent's memory; a DeclarationError refuses what makes no sense."""
    notes = facts if isinstance(facts, FactNotes) else FactNotes()
    team, metadata = "" if team is None else team, {} if metadata is None else metadata
    rules: JSON = {name: getattr(notes, name) for name in ("schema", "instructions", "ttl")}
    return AppRules(team=team, metadata=metadata, **rules)


class NotedFacts(NamedTuple):
    """What turns taught: facts, and what could not be kept, for people, each with a detail for developers."""

    facts: list[Fact]
    remarks: list[tuple[str, str]]


class TaughtTurns(NamedTuple):
    """The last turn that was noted, the importance of the facts that are new, and remarks as in `NotedFacts`."""

    through: int
    importance: int
    remarks: list[tuple[str, str]]


async def learn(state: FactState, runtime: Runtime[SettingsT]) -> JSON:
    """Ask the model, once, what the turns taught that have a place and are not noted yet, and write it."""
    store, context = runtime.store, runtime.context
    if store is None:
        return {"facts_through": state.turn}
    if state.remembered_through < state.turn:  # a turn without a place yet may have the number of another future's
        return {}
    view, origin = visible_timeline(state, runtime), origin_of(runtime)
    # Any store may be behind this; the reply must survive its failure.
    with catching_up(state, "learn", "What this turn taught was not noted", Exception) as failure:
        due = await turns_to_note(state, runtime, state.facts_through + 1)
        if not due:
            return {"facts_through": state.turn}
        learned = await learn_turns(
            due,
            store,
            context,
            timeline=view,
            before=state.turn + 1,
            budget=state.fit_tokens(context.buffer_tokens, context.model),
            origin=lambda first, last: origin | {"messages": messages_of(state, first, last)["messages"]},
            wait=lambda work: give_way(work, runtime),
        )
        update: JSON = {
            "facts_through": state.turn if learned.through == due[-1]["turn"] else learned.through,
            "unreflected": state.unreflected + learned.importance,
            "notices": [notice(state.turn, "learn", *remark) for remark in learned.remarks],
        }
        try:
            # The head was moved with the exchange: left there, a new thread would note this turn once more.
            await move_head(state.model_copy(update=update), store, context, origin["thread"])
        except Exception as error:  # noqa: BLE001 (as above)
            _log.warning("The head of turn %d does not say that its facts are noted: %s", state.turn, error)
        return update
    return {"notices": failure}


async def learn_turns(
    due: Sequence[Turn],
    store: BaseStore,
    settings: Settings,
    *,
    timeline: Timeline,
    before: int,
    budget: int,
    origin: Callable[[int, int], JSON],
    wait: Callable[[Coroutine[Any, Any, NotedFacts]], Awaitable[NotedFacts]],
) -> TaughtTurns:
    """Ask the model, once, what the oldest of these turns taught, and write it; the others are left for later.

    The turns are `due`, the oldest first, at least one, as `ask_facts` takes them, and `timeline` is theirs. Attributes
    are known that were noted `before` this turn. The model is shown turns of `budget` tokens; `wait` waits for its
    answer. `origin` returns where the facts come from, given the first and the last turn that was shown.
    """
    namespace = settings.campaign_namespace(FACTS)

    async def ask(shown: list[Turn]) -> NotedFacts:
        slots = await known_slots(store, namespace, shown, ["the user"], timeline=timeline, before=before)
        now = await _said_at(store, settings, timeline, shown[-1]["turn"])
        return await wait(ask_facts(shown, settings, known="\n".join(attribute_lines(slots)), now=now))

    noted, turns, short = await ask_of_oldest(due, budget, ask)
    first, last = turns[0]["turn"], turns[-1]["turn"]
    provenance = origin(first, last) | {"turns": [first, last]}
    changes = await note_facts(store, namespace, noted.facts, timeline=timeline, turn=last, provenance=provenance)
    new = await read_records(store, namespace, changes.new)
    remarks = [*([(IN_SHORT, "")] if short else []), *noted.remarks]
    return TaughtTurns(last, sum(map(importance_of, new.values())), remarks)


async def ask_facts(
    turns: Sequence[Turn], settings: Settings, *, known: str = "", now: datetime | None = None
) -> NotedFacts:
    """Ask the model, once, what turns of a conversation taught; no call means nothing.

    Calls that a model writes as text are read; for what cannot be read it is asked twice more, with all that is wrong.
    `turns` are {"turn", "player", "reply"}; `known` are lines of attributes that were noted before; `now` is when the
    turns were said, with an offset (None: now). A QuestbookError says that the model failed, or nothing can be read.
    """
    now = now or datetime.now(UTC).astimezone(settings.zone)
    shown = [{"turn": turn["turn"], "user": turn["player"], "assistant": turn["reply"]} for turn in turns]
    last = [Section("about", render_fields({"now": f"{now:%A, %Y-%m-%d}"})), Section("known", known)]
    schema, instructions = settings.APP.schema, "\n\n".join(filter(None, [INSTRUCTION, settings.APP.instructions]))
    prompt = prompt_about_turns([Section(INSTRUCTIONS, instructions)], shown, last)
    notes = await take_notes(list[Notebook](), prompt, settings, [forms_tool(schema) if schema else facts_tool()])
    if notes.problems and not notes.other_calls:
        raise ModelError(" ".join(notes.problems))
    calls = [call.args for call in notes.other_calls]
    forms, misfits = read_forms([form for form in schema if form is not Fact], calls)
    facts, oddities = read_facts([{"facts": call.get("facts") or []} for call in calls] if schema else calls, now)
    oddities += misfits
    if oddities:
        _log.info("Facts of turn %s: %s", turns[-1]["turn"], " ".join(oddities))
    lost = [*notes.problems, *(oddity for oddity in oddities if "left out" in oddity or "were read" in oddity)]
    spoken, reply = ("\n".join(str(turn[part]) for turn in turns) for part in ("player", "reply"))
    remarks = [("Not every fact of this turn could be kept.", " ".join(lost))] if lost else []
    noted = [(classify_statement(fact, spoken, reply), None) for fact in facts] + forms
    return NotedFacts([_expiring(fact, ttl or settings.APP.ttl, now) for fact, ttl in noted], remarks)


def _expiring(fact: Fact, ttl: timedelta | None, said: datetime) -> Fact:
    return fact if ttl is None else fact.model_copy(update={"expires": (said + ttl).isoformat(timespec="seconds")})


async def _said_at(store: BaseStore, settings: Settings, timeline: Timeline, turn: int) -> datetime | None:
    """Return when a turn was said, as its exchange says: notes may come days later; None if it is not known."""
    time = read_time(str((await turn_records(store, settings, timeline, [turn])).get(turn, {}).get("said_at") or ""))
    return time.astimezone(settings.zone) if time else None
