"""DungeonState: everything a campaign remembers between two checkpoints."""

from __future__ import annotations

import json
from typing import Annotated, ClassVar

from pydantic import Field

from questbook.graphs.turn.channels import Last, Own
from questbook.graphs.turn.state import TurnState, keep_last, patches
from questbook.memory.facts import ledger
from questbook.notebooks import CharacterNotebook, Notebook, StateNotebook
from questbook.types import JSON

_ROLLS_KEPT = 20
_ROLL_SHOWN = ("reason", "text", "total", "success", "natural")
_ROLL_KEPT = ("reason", "expression", "advantage", "breakdown", "total", "dc", "success", "natural")


class DungeonState(TurnState):
    """State of one thread of a campaign: the channels of every conversation, and its own.

    Attributes:
        character: Who plays; once complete, it switches the game from interview to quest.
        quest: Where the story is.
        rolls: The last 20 dice rolls, as rolled, each with its turn.
        facts: Facts that were noted and are not in the store yet, as `facts.read_new_facts` makes them.
        new_secrets: What the narrator handed over with this turn's reply, until `update_state` has written it:
            {"about", "secret"}.
        unreflected: Importance of the facts that were written since the last reflection, as far as this thread knows.
        reflection_told: Id of the last run in the background whose notices this thread has shown; "": none.
        noted: What the records of turns that are not written yet will say of the quest's page, by turn: `noted`, what
            the notes of that turn changed ({"from", "through", "patch"}, or nothing), `location` and `day`; and
            `sheet`, what the interview noted of the character in it.
        noted_through: Last turn that `quest` takes account of.
        note: A wish of the person's for how the next turns are told: {"text", "through"}, the last turn it is for.
    """

    MACHINE: ClassVar[str] = "dungeon_master"
    PAGES: ClassVar[dict[str, type[Notebook]]] = {"character": CharacterNotebook, "quest": StateNotebook}
    CARRIED: ClassVar[tuple[str, ...]] = (*TurnState.CARRIED, "noted_through", "facts", "unreflected")

    machine: Annotated[str, Own("dungeon_master")] = ""
    character: Annotated[CharacterNotebook, patches(CharacterNotebook)] = Field(default_factory=CharacterNotebook)
    quest: Annotated[StateNotebook, patches(StateNotebook)] = Field(default_factory=StateNotebook)
    rolls: Annotated[list[JSON], keep_last(_ROLLS_KEPT)] = Field(default_factory=list)
    facts: Annotated[list[JSON], Last] = Field(default_factory=list)
    new_secrets: Annotated[list[JSON], Last] = Field(default_factory=list)
    unreflected: Annotated[int, Last] = 0
    reflection_told: Annotated[str, Last] = ""
    noted: Annotated[JSON, Last] = Field(default_factory=dict)
    noted_through: Annotated[int, Last] = 0
    note: Annotated[JSON, Last] = Field(default_factory=dict)

    @property
    def wish(self) -> str:
        """What the person wishes for this turn; "" if nothing."""
        through = self.note.get("through")
        return str(self.note.get("text", "")) if isinstance(through, int) and self.turn <= through else ""

    @property
    def has_past(self) -> bool:
        """Whether there is a past to take over: before the character is complete, a new thread starts from nothing."""
        return self.character.complete

    @property
    def may_leave(self) -> int:
        """Last turn that is noted and in the store, so that it may leave the buffer."""
        return min(self.noted_through, self.remembered_through)

    @property
    def facts_through(self) -> int:
        """Last turn whose facts are all in the store."""
        return min([self.turn, *(int(entry["turns"][0]) - 1 for entry in self.facts)])

    def transcript(self, first: int, last: int) -> list[JSON]:
        """Return turns `first` to `last`, those that are still in the buffer, as JSON objects.

        Each is {"turn", "player", "rolls", "reply"}; rolls are left out where there were none.
        """
        turns = []
        for turn in super().transcript(first, last):
            rolled = [roll for roll in self.rolls if roll.get("turn") == turn["turn"]]
            rolls = [{name: roll[name] for name in _ROLL_SHOWN if roll.get(name) is not None} for roll in rolled]
            reply = turn.pop("reply")
            turns.append(turn | ({"rolls": rolls} if rolls else {}) | {"reply": reply})
        return turns

    def record_fields(self, turn: int) -> JSON:
        """Return what a turn's record says of the page and the facts noted of it, and its dice.

        Two attempts at a turn that differ in their facts alone are two futures.
        """
        facts = [entry["fact"] for entry in self.facts if entry["turns"][1] == turn]
        digest = ledger.text_digest(json.dumps(facts, sort_keys=True)) if facts else ""
        rolled = [roll for roll in self.rolls if roll.get("turn") == turn]
        rolls = [{name: roll[name] for name in _ROLL_KEPT if roll.get(name) is not None} for roll in rolled]
        return self._page_then(turn) | {"taught": digest} | ({"rolls": rolls} if rolls else {})

    def _page_then(self, turn: int) -> JSON:
        """Return what the record of a turn says of the page: as it was then, and of this turn as it is now."""
        now = {"location": self.quest.location, "day": self.quest.clock.day, "noted": {}}
        if "patch" in self.noted:  # as version 0.1.0 kept it, of the last turn alone
            return now | {"noted": self.noted if turn == self.turn else {}}
        then: JSON = self.noted.get(str(turn)) or {}
        kept = ("noted", "sheet") if turn == self.turn else then
        return now | {name: then[name] for name in kept if name in then}
