"""StateNotebook: where the story stands. The model is asked after every reply what changed."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field

from questbook.notebooks.base import Change, Entry, Notebook, Scope, Update, every_turn
from questbook.notebooks.errors import PatchError
from questbook.notebooks.patch import Number, Whole
from questbook.notebooks.schema import obvious
from questbook.types import JSON, words_in

_STATUS = {
    "open": {"active", "in progress", "ongoing", "started", "new", "current", "accepted"},
    "done": {"complete", "completed", "finished", "solved", "success", "succeeded", "resolved"},
    "failed": {"lost", "abandoned", "failure"},
}
_ALIVE = {"alive": True, "living": True, "dead": False, "deceased": False, "killed": False, "slain": False}
_MAX_FALLEN = 50
_SIGN = re.compile(r"\+(?=\d)|(?<![^\s(\[])-(?=\d)|(?<=\w)[+#]++(?!\w)")  # "Ring +1" is not "Ring -1", nor "C" "C++"


def _status(value: object) -> object:
    word = value.strip().casefold() if isinstance(value, str) else ""
    return next((status for status, words in _STATUS.items() if word in words), word or value)


def _fold(text: str) -> str:
    """Return the form of a name or a fate in which different spellings are equal."""
    letters = unicodedata.normalize("NFKC", text).casefold()
    return " ".join([*words_in(letters), *_SIGN.findall(letters.replace("−", "-"))]) or letters.strip()


Status = Annotated[Literal["open", "done", "failed"], BeforeValidator(_status)]


class Quest(Entry):
    """One quest."""

    WORDS: ClassVar[Mapping[str, str]] = {"status": "state progress", "notes": "description details summary objective"}

    status: Status = obvious("Whether it goes on.", "open")
    notes: str = obvious("What is known and what is to do, in a sentence.", "")


class Person(Entry):
    """A person whom the player has met or heard of."""

    WORDS: ClassVar[Mapping[str, str]] = {
        "role": "job occupation title profession class", "attitude": "status mood disposition relationship",
        "last_seen": "location place where whereabouts", "alive": "is_alive living",
    }  # fmt: skip

    role: str = obvious("Innkeeper, guard, …", "")
    attitude: str = obvious("Towards the player's character.", "")
    last_seen: str = obvious("Where and when.", "")
    alive: bool = obvious("Whether they live.", default=True)
    fate: str = Field(default="", description="How they died, or came back.")


class Condition(Entry):
    """Hit points and conditions of the player's character."""

    WORDS: ClassVar[Mapping[str, str]] = {"hp": "hit_points current_hp health", "max_hp": "max_hit_points maximum_hp"}

    hp: Number | None = obvious("Hit points now.", None)
    max_hp: int | None = Field(default=None, ge=1, description="The most.", json_schema_extra={"engine": True})
    conditions: dict[str, str] = obvious('Condition to a note: {"poisoned": "until dawn"}.', {})


class Clock(Entry):
    """Day and time of the story."""

    day: Whole = obvious("Day of the adventure, from 1.", 1, ge=1, le=1_000_000)
    time: str = obvious("Time of day: dawn, noon, dusk, night, …", "")


class StateNotebook(Notebook):
    """Where the story stands. The model is asked after every reply; no call means no change."""

    TOOL: ClassVar[str] = (
        "Note only what changed, as totals; null deletes an entry. quests are by title, people by name, facts and "
        "secrets by subject."
    )

    WORDS: ClassVar[Mapping[str, str]] = {
        "location": "place where", "objective": "goal aim", "quests": "missions tasks", "scene": "situation",
        "people": "npcs characters persons", "inventory": "items equipment possessions gear", "facts": "knowledge",
        "gold": "gold_pieces gp money coins",
    }  # fmt: skip
    CHANNEL: ClassVar[str] = "quest"
    UPDATE: ClassVar[Update] = every_turn
    SCOPE: ClassVar[Scope] = "campaign"
    LIMIT: ClassVar[int] = 6000
    SECRET: ClassVar[frozenset[str]] = frozenset({"secrets"})
    CHANGING: ClassVar[tuple[str, ...]] = ("facts", "objective", "condition", "gold", "clock", "location", "scene")

    scene: str = Field(default="", description="Right now, in a sentence.")
    location: str = obvious("Where the character is.", "")
    objective: str = obvious("What the character is trying to do next.", "")
    quests: dict[str, Quest] = obvious("By title.", {})
    people: dict[str, Person] = obvious("By name.", {})
    inventory: dict[str, Number] = Field(default={}, description="How many of each; 0 removes.")
    gold: Number = obvious("Gold pieces that the character has now.", 0)
    condition: Condition = obvious("How the player's character fares.", Condition())
    clock: Clock = obvious("Story time.", Clock())
    facts: dict[str, str] = obvious("Subject to what the player has learnt of it.", {})
    secrets: dict[str, str] = obvious("What only the dungeon master knows; never shown.", {})
    fallen: dict[str, str] = Field(
        default={},
        description="The last 50 dead who were deleted from people, with their fate: none returns by mistake.",
        json_schema_extra={"engine": True},
    )

    def normalize(self, patch: JSON) -> JSON:
        """Return the patch with names spelled as on the page: "Rope" and "rope" are one item; "dead" is no attitude."""
        page = self.as_json()
        for field in ("quests", "people", "inventory", "facts", "secrets"):
            entries = patch.get(field)
            if isinstance(entries, Mapping):
                spellings = {_fold(name): name for name in page[field]}
                named = [(name, entry) for key, entry in entries.items() if (name := " ".join(str(key).split()))]
                patch[field] = changed = dict[str, Any]()
                for name, entry in named:
                    spelled = spellings.setdefault(_fold(name), name)
                    if entry or not changed.get(spelled):  # a new spelling comes with the deletion of the old one
                        changed[spelled] = entry
        for person in patch["people"].values() if isinstance(patch.get("people"), Mapping) else ():
            if isinstance(person, dict) and (word := str(person.get("attitude")).strip(" .").casefold()) in _ALIVE:
                person.setdefault("alive", _ALIVE[word])  # "status: dead" says nothing of whom they like
                del person["attitude"]
        return patch

    def enforce(self, before: Self) -> Change[Self]:
        """Clamp the numbers. A dead person who is alive after the patch, without a new `fate`, is a PatchError."""
        self._refuse_return(before)
        dead = {name: person.fate or "died" for name, person in before.people.items() if not person.alive}
        fallen = self.fallen | {name: fate for name, fate in dead.items() if name not in self.people}
        present = {_fold(name) for name in self.people}
        left = [(name, fate) for name, fate in fallen.items() if _fold(name) not in present]
        notes, changed = list[str](), JSON(fallen=dict(left[-_MAX_FALLEN:]))
        if self.gold < 0:
            notes.append(f"gold: {self.gold} became 0.")
            changed["gold"] = 0
        if any(quantity <= 0 for quantity in self.inventory.values()):
            notes += [f"inventory.{item}: {n} became 0." for item, n in self.inventory.items() if n < 0]
            changed["inventory"] = {item: n for item, n in self.inventory.items() if n > 0}
        hp, most = self.condition.hp, self.condition.max_hp
        if hp is not None:
            clamped = max(0, hp if most is None else min(hp, most))
            if clamped != hp:
                notes.append(f"condition.hp: {hp} became {clamped}.")
                changed["condition"] = self.condition.model_copy(update={"hp": clamped})
        return Change(self.model_copy(update=changed), notes)

    def _refuse_return(self, before: Self) -> None:
        dead = {_fold(name): fate for name, fate in before.fallen.items()}
        dead |= {_fold(name): person.fate for name, person in before.people.items() if not person.alive}
        problems = [
            f"people.{name}.alive: {name} is dead ({dead[_fold(name)] or 'no cause noted'}) and stays dead; "
            "if they truly returned, say how in a new `fate`."
            for name, person in self.people.items()
            if person.alive and _fold(name) in dead and _fold(person.fate) in ("", _fold(dead[_fold(name)]))
        ]
        if problems:
            raise PatchError(type(self).__name__, problems)
