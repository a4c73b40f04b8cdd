"""update_state: after the reply, note what changed on the quest's page; and say what the notes deleted on their own."""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.facts import FACT_WORDS, read_new_facts, story_attributes, with_secrets
from questbook.graphs.dungeon_master.prompts import update_prompt
from questbook.graphs.dungeon_master.quest import recall_plan
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.dungeon_master.told_rolls import ToldRolls
from questbook.graphs.turn.node import give_way
from questbook.graphs.turn.notes import (
    CATCH_UP,
    GIVEN_UP,
    IN_SHORT,
    Notes,
    OfOldest,
    ask_of_oldest,
    catching_up,
    is_given_up,
    take_notes,
)
from questbook.graphs.turn.recall import with_recalled
from questbook.graphs.turn.state import Notice, Turn, failure_notice, notice
from questbook.graphs.turn.turn import turns_to_note
from questbook.memory.facts.fact import facts_tool
from questbook.memory.text.words import content_stems, plain_words, strip_ending
from questbook.notebooks import StateNotebook, render_value
from questbook.types import JSON

_NOT_UPDATED = "The quest notes were not updated"
_NAMED = 3  # entries that the notice names
_FULL = 0.8  # share of the page's limit
_LABELS = {"quests": "the quest", "people": "the person", "facts": "the fact", "inventory": "the item"}
_ABOUT = re.compile(  # what follows one of these says something about an item
    r"[,;:(]|\s(?:with|without|from|in|for|to|on|at|by|that|which|made|marked|stamped|engraved|bearing)\s", re.I
)
_log = logging.getLogger(__name__)
EntryT = TypeVar("EntryT")


class _Noted(NamedTuple):
    page: StateNotebook  # the quest's page
    update: JSON  # the other channels to write
    turns: tuple[int, int] | None = None  # first and last turn of the notes; None: no notes were taken


async def update_state(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Ask the model, once, for a patch of the quest's page and the facts of every turn not noted yet (`take_notes`).

    If some of the patch does not fit, a notice says so, and the next turn's update covers this turn too, as after a
    failure (`catching_up`). What the narrator handed over as secret is written whatever becomes of the notes.
    """
    page, secrets = with_secrets(state)
    handed_over = {"facts": [*state.facts, *secrets], "new_secrets": []} if state.new_secrets else {}
    noted = await _note(state.model_copy(update={"quest": page, **handed_over}), runtime)
    patch = noted.page.patch_from(state.quest)
    update = {"noted": _waiting_notes(state, noted, patch), **handed_over, **noted.update}
    return update | ({"quest": patch} if patch else {})


async def _note(state: DungeonState, runtime: Runtime[Context]) -> _Noted:
    page, notices = state.quest, list[Notice]()
    if not page.UPDATE.due(state.turn, state.noted_through):
        return _Noted(page, {})

    async def ask(shown: list[Turn]) -> Notes[StateNotebook]:
        nonlocal state
        known = ""
        try:
            state = await with_recalled(state, runtime, recall_plan)
            known = await story_attributes(state, runtime, shown, state.recalled or [])
        except Exception as error:  # noqa: BLE001 (any store may be behind this; the turn can be noted without)
            text = "Memory could not be searched for what is known, so it may be noted again."
            notices[:] = [failure_notice(state.turn, "update_state", text, error)]
        prompt = update_prompt(state, shown, known)
        return await give_way(take_notes([page], prompt, runtime.context, [facts_tool(FACT_WORDS)]), runtime)

    with catching_up(state, "update_state", _NOT_UPDATED) as failure:
        if not (due := await turns_to_note(state, runtime, state.noted_through + 1)):
            return _Noted(page, {"noted_through": state.turn})
        budget = state.fit_tokens(runtime.context.buffer_tokens, runtime.context.model)
        answer = await ask_of_oldest(due, budget, ask)
        return _read_notes(state, answer, notices, is_all=len(answer.turns) == len(due))
    return _Noted(page, {"notices": [*notices, *failure]})


def _read_notes(
    state: DungeonState, answer: OfOldest[Notes[StateNotebook]], notices: list[Notice], *, is_all: bool
) -> _Noted:
    notes, turns, short = answer
    first, last = turns[0]["turn"], turns[-1]["turn"]
    told = ToldRolls(roll for roll in state.rolls if first <= roll.get("turn", 0) <= last)
    [page], patch = notes.pages, told.marked(notes.patches[0])
    if told.found:
        page = state.quest.apply(patch, bounded=False).page
    remarks = [(remark, "") for remark in [*([IN_SHORT] if short else []), *notes.remarks]]
    if dropped := deletion_notice(state.quest, page, turns):
        remarks.append((dropped, ""))
    through = state.turn if is_all else last  # private turns behind them need no notes
    arguments: list[Any] = [call.args for call in notes.other_calls]
    if notes.problems:
        _log.warning("Not all was noted of turn %d: %s", state.turn, notes.problems)
        given_up = is_given_up(state, "update_state", first, is_all=is_all)
        through = last if given_up else state.noted_through
        missed = "Not all of this turn was noted" if arguments or page != state.quest else _NOT_UPDATED
        remarks.append((f"{missed}; {GIVEN_UP if given_up else CATCH_UP}.", " ".join(notes.problems)))
    update: JSON = {"noted_through": through}
    if arguments:
        update["facts"], odd = read_new_facts(state, turns, told.marked(arguments), state.recalled or [])
        remarks += odd
    if notices := [*notices, *(notice(state.turn, "update_state", *remark) for remark in remarks)]:
        update["notices"] = notices
    return _Noted(page, update, (first, last))


def _waiting_notes(state: DungeonState, noted: _Noted, patch: JSON) -> JSON:
    """Return the channel `noted` after this turn's notes: turns that `remember` could not write keep theirs."""
    written = state.remembered_through
    waiting = {turn: entry for turn, entry in state.noted.items() if turn.isdigit() and int(turn) > written}
    now: JSON = {"noted": {}, "location": noted.page.location, "day": noted.page.clock.day}
    if noted.turns or patch:
        first, last = noted.turns or (state.turn, state.turn)
        now["noted"] = {"from": first, "through": last, "patch": patch}
    if "sheet" in (interview := state.noted.get(str(state.turn), {})):
        now["sheet"] = interview["sheet"]
    return waiting | {str(state.turn): now}


def deletion_notice(before: StateNotebook, after: StateNotebook, turns: Sequence[Turn]) -> str:
    """Say which important entries the notes of these turns deleted on their own; "" if they deleted none.

    Quests that are over, the dead, and items that the turns speak of leave the page as the story goes. On a page that
    is nearly full the model was asked to make room.
    """
    lost = [
        *(("quests", title) for title, quest in _missing(before.quests, after.quests) if quest.status == "open"),
        *(("people", name) for name, person in _missing(before.people, after.people) if person.alive),
        *(("facts", subject) for subject, _ in _missing(before.facts, after.facts)),
        *(("inventory", item) for item, _ in sorted(_missing(before.inventory, after.inventory))),
    ]
    texts = [str(turn[part]) for turn in turns for part in ("player", "rolls", "reply") if part in turn]
    said, old, new = content_stems("\n".join(texts)), before.as_json(), after.as_json()
    lost = [(field, name) for field, name in lost if field != "inventory" or not _is_spoken_of(name, said)]
    lost = [(field, name) for field, name in lost if not _is_renamed(name, old[field], new[field])]
    if not lost or len(before.render()) > _FULL * before.LIMIT:
        return ""
    texts = [f"{_LABELS[field]} “{name}”" for field, name in lost[:_NAMED]]
    texts += [f"{len(lost) - _NAMED} more"] if len(lost) > _NAMED else []
    hint = f"/why {'.'.join(lost[0])} says after which message."
    return f"The notes dropped something that the story did not: {', '.join(texts)}. {hint}"


def _missing(before: Mapping[str, EntryT], after: Collection[str]) -> list[tuple[str, EntryT]]:
    return [(name, entry) for name, entry in before.items() if name not in after]


def _is_spoken_of(item: str, said: Collection[str]) -> bool:
    """Whether what was said has an item by its head: "cap" of a cap with a feather; either word of a vial of poison."""
    thing = _ABOUT.split(item)[0].strip() or item
    heads = plain_words(thing)[-1:] + plain_words(thing.partition(" of ")[0])[-1:]
    return any(strip_ending(head) in said for head in heads)


def _is_renamed(name: str, before: JSON, after: JSON) -> bool:
    new = (f"{other} {render_value(after[other])}" for other in after.keys() - before.keys())
    return any(content_stems(name) & content_stems(text) for text in new)  # "the innkeeper" is Tansy, innkeeper
