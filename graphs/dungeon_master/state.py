"""DungeonState: everything a campaign remembers between two checkpoints."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from questbook.graphs.turn.pages import patches
from questbook.graphs.turn.turn_state import TurnState
from questbook.notebooks import CharacterNotebook, Notebook, StateNotebook

JSON = dict[str, Any]

_ROLLS_KEPT = 20


def keep_rolls(current: list[JSON], new: list[JSON]) -> list[JSON]:
    """Append rolls; the last 20 stay."""
    return [*current, *new][-_ROLLS_KEPT:]


class DungeonState(TurnState):
    """State of one thread of a campaign: the channels of every conversation, and its own.

    Attributes:
        character: Who plays; once complete, it switches the game from interview to quest.
        quest: Where the story stands.
        rolls: The last 20 dice rolls, as rolled, each with its turn.
        facts: Facts that were noted and do not stand in the store yet, as `note_facts` keeps them.
        unreflected: Importance of the facts that were written since the last reflection, as far as this thread knows.
        reflection_told: Id of the last run in the background whose notices this thread has told; "": none.
        noted: What the records of turns that are not written yet will say of the quest's page, by turn: `noted`, what
            the notes of that turn changed ({"from", "through", "patch"}, or nothing), `location` and `day`.
        noted_through: Last turn that `quest` takes account of.
    """

    PAGES: ClassVar[dict[str, type[Notebook]]] = {"character": CharacterNotebook, "quest": StateNotebook}
    CARRIED: ClassVar[tuple[str, ...]] = (*TurnState.CARRIED, "noted_through", "facts", "unreflected")

    character: Annotated[CharacterNotebook, patches(CharacterNotebook)] = Field(default_factory=CharacterNotebook)
    quest: Annotated[StateNotebook, patches(StateNotebook)] = Field(default_factory=StateNotebook)
    rolls: Annotated[list[JSON], keep_rolls] = Field(default_factory=list)
    facts: list[JSON] = Field(default_factory=list)
    unreflected: int = 0
    reflection_told: str = ""
    noted: JSON = Field(default_factory=dict)
    noted_through: int = 0

    def noted_after(self, turn: int) -> JSON:
        """What the record of a turn says of the page: as it was then, and of this turn as it is now."""
        now = {"location": self.quest.location, "day": self.quest.clock.day, "noted": {}}
        if "patch" in self.noted:  # as version 0.1.0 kept it, of the last turn alone
            return now | {"noted": self.noted if turn == self.turn else {}}
        then: JSON = self.noted.get(str(turn)) or now
        return now | {"noted": then["noted"]} if turn == self.turn else then

    @property
    def begun(self) -> bool:
        """Whether there is a past to take over: before the character is complete, a new thread begins anew."""
        return self.character.complete
