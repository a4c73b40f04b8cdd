"""DungeonState: everything a campaign remembers between two checkpoints."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from questbook.graphs.turn.channels import Last, Own, Refusal
from questbook.graphs.turn.state import ReflectingState, Turn, TurnState, patches
from questbook.memory.facts.fact import Fact
from questbook.memory.facts.validity import text_digest
from questbook.memory.timeline.records import ROLL, Count, shape
from questbook.notebooks import CharacterNotebook, Notebook, StateNotebook
from questbook.types import JSON

_NEW_GAME = re.compile(r"\W*(?:(?:start|begin|play)\s+)?(?:a\s+)?new\s+(?:game|campaign)\s*(?:$|[.,:;!–—-])", re.I)
_ROLLS_KEPT = 20
_ROLL_SHOWN = ("reason", "text", "total", "success", "natural")
_ROLL_KEPT = ("reason", "expression", "advantage", "breakdown", "total", "dc", "success", "natural", "foe")

_WHOLE = AfterValidator(lambda fact: Fact.model_validate(fact) and fact)
_NOTES = shape({"noted": JSON, "location": str, "day": Count, "sheet": JSON}, total=False)
_OLD_NOTES = shape({"from": Count, "through": Count, "patch": JSON})  # of the last turn alone, as in version 0.1.0


class WaitingFact(TypedDict):
    """A fact in the channel `facts`, which waits until its turn has a place on the timeline."""

    turns: tuple[Count, Count]  # first and last turn that it was drawn from
    ordinal: Count  # its number among the facts of the last one
    fact: Annotated[JSON, _WHOLE]  # a `Fact` without its slot
    echoes: str  # key of the memory that it repeats, or ""
    messages: list[str]  # ids of the messages of those turns
    said: str  # id of the person's first one


class DungeonState(ReflectingState):
    """State of one thread of a campaign: the channels of every conversation, and its own."""

    MACHINE: ClassVar[str] = "dungeon_master"
    VIEWER: ClassVar[str] = "character"
    PAGES: ClassVar[dict[str, type[Notebook]]] = {"character": CharacterNotebook, "quest": StateNotebook}
    INTERVIEW: ClassVar[frozenset[str]] = frozenset({"CharacterNotebook", "BeginAdventure"})
    CARRIED: ClassVar[tuple[str, ...]] = (*TurnState.CARRIED, "noted_through", "facts", "unreflected")

    machine: Annotated[str, Own("dungeon_master")] = ""
    """Name of the machine that the thread belongs to; empty before its first turn."""
    character: Annotated[CharacterNotebook, patches(CharacterNotebook)] = Field(default_factory=CharacterNotebook)
    """Who plays; once complete, it switches the game from interview to quest."""
    quest: Annotated[StateNotebook, patches(StateNotebook)] = Field(default_factory=StateNotebook)
    """Where the story is."""
    rolls: Annotated[list[JSON], Last(list[ROLL], most=_ROLLS_KEPT, whole=True)] = Field(default_factory=list)
    """The last 20 dice rolls, and all of the newest turn, each as `dice.Roll` says, with its turn."""
    facts: Annotated[list[JSON], Last(list[WaitingFact])] = Field(default_factory=list)
    """Facts that were noted and are not in the store yet, each as `WaitingFact` says."""
    new_secrets: Annotated[list[JSON], Last(list[dict[str, str]])] = Field(default_factory=list)
    """What the narrator handed over with this turn's reply until it is on the page: {"about", "secret"}."""
    noted: Annotated[JSON, Last(_OLD_NOTES | dict[str, _NOTES], {})] = Field(default_factory=dict)
    """What the records of turns that are not written yet will say, by turn: `noted`, what the notes changed on the
    quest's page ({"from", "through", "patch"} or nothing), `location`, `day`, and `sheet`, what the interview noted."""
    noted_through: Annotated[int, Last] = 0
    """Last turn that `quest` takes account of."""
    note: Annotated[JSON, Last] = Field(default_factory=dict)
    """A wish of the person's for how the next turns are told: {"text", "through"}, the last turn it is for."""

    def _clip_turns(self) -> Iterator[Refusal]:
        yield from super()._clip_turns()
        if ahead := [entry for entry in self.facts if entry["turns"][1] > self.turn]:
            self.facts = [entry for entry in self.facts if entry not in ahead]
            yield Refusal("facts", f"facts: got one of turn {ahead[0]['turns'][1]}; expected at most {self.turn}.")

    @property
    def wish(self) -> str:
        """What the person wishes for this turn; "" if nothing."""
        through = self.note.get("through")
        return str(self.note.get("text", "")) if isinstance(through, int) and self.turn <= through else ""

    def new_campaign(self, thread: str | None) -> str:
        """Return a campaign of the thread's own if its first words ask for a new game."""
        return f"game {thread}" if thread and _NEW_GAME.match(self.words) else ""

    @property
    def has_past(self) -> bool:
        """Whether there is a past to take over: before the character is complete, a new thread starts from nothing."""
        return self.character.complete

    @property
    def may_leave(self) -> int:
        """Last turn that is noted and in the store, so that it may leave the buffer."""
        return min(self.noted_through, self.remembered_through)

    @property
    def learned_through(self) -> int:
        """Last turn whose facts are all in the store."""
        return min([self.turn, *(int(entry["turns"][0]) - 1 for entry in self.facts)])

    def transcript(self, first: int, last: int) -> list[Turn]:
        """Return turns `first` to `last`, those that are still in the buffer, with their dice."""
        turns = []
        for turn in super().transcript(first, last):
            if rolls := self._rolls_of(turn["turn"], _ROLL_SHOWN):
                turn = Turn(turn=turn["turn"], player=turn["player"], rolls=rolls, reply=turn["reply"])
            turns.append(turn)
        return turns

    def record_fields(self, turn: int) -> JSON:
        """Return what a turn's record says of the page, its dice, and its facts: others are another future."""
        facts = [entry["fact"] for entry in self.facts if entry["turns"][1] == turn]
        digest = text_digest(json.dumps(facts, sort_keys=True)) if facts else ""
        rolls = self._rolls_of(turn, _ROLL_KEPT)
        return self._page_then(turn) | {"taught": digest} | ({"rolls": rolls} if rolls else {})

    def _rolls_of(self, turn: int, fields: Sequence[str]) -> list[JSON]:
        rolled = [roll for roll in self.rolls if roll.get("turn") == turn]
        return [{name: roll[name] for name in fields if roll.get(name) is not None} for roll in rolled]

    def _page_then(self, turn: int) -> JSON:
        """Return what the record of a turn says of the page: as it was then, and of this turn as it is now."""
        now = {"location": self.quest.location, "day": self.quest.clock.day, "noted": {}}
        if "patch" in self.noted:  # as version 0.1.0 kept it, of the last turn alone
            return now | {"noted": self.noted if turn == self.turn else {}}
        then: JSON = self.noted.get(str(turn)) or {}
        kept = ("noted", "sheet") if turn == self.turn else then
        return now | {name: then[name] for name in kept if name in then}
