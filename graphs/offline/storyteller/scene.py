"""Scene: one turn being told. It gathers the text and the patch together, so that they always agree."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from questbook.graphs.offline.storyteller.phrases import spoken
from questbook.graphs.offline.storyteller.tale import Tale, fill, short, tale
from questbook.notebooks import merge_patch

JSON = dict[str, Any]

HOURS = ["dawn", "morning", "noon", "afternoon", "dusk", "night"]


class RollWantedError(Exception):
    """The telling cannot go on before the dice have said how; carries the arguments of `roll_dice`."""

    def __init__(self, call: JSON) -> None:
        super().__init__(call)
        self.call = call


@dataclass
class Scene:
    """The page as it is changing in this turn, the words said so far, and the dice already thrown.

    Attributes:
        page: The quest's page as JSON; `note` changes it.
        character: The character's page as JSON.
        words: What the player wrote.
        rolls: Results of `roll_dice` in this turn, in order.
        seed: The storyteller's seed.
        dice: Whether dice may be asked for; without them chance decides quietly.
        patch: What has changed so far.
        said: Sentences and paragraphs told so far.
        quiet: Nothing happened that the page must hold (a memory, a sheet): no time passes.
    """

    page: JSON
    character: JSON
    words: str
    rolls: Sequence[JSON] = ()
    seed: int | None = None
    dice: bool = True
    patch: JSON = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    quiet: bool = False
    happening: str = ""
    _thrown: int = 0

    # -- reading the page -------------------------------------------------------------------------------------------

    @property
    def secrets(self) -> JSON:
        """What only the storyteller knows; strings by name."""
        found = self.page.get("secrets")
        return found if isinstance(found, dict) else {}

    @property
    def tale(self) -> Tale | None:
        """The adventure under way."""
        key, _, telling = str(self.secrets.get("tale", "")).partition(" ")
        return tale(key, int(telling) if telling.isdecimal() else 0)

    @property
    def story(self) -> Tale:
        """The adventure under way, for deeds: none is told before a tale has opened."""
        if (story := self.tale) is None:
            raise LookupError("no tale is under way")
        return story

    @property
    def beat(self) -> int:
        """How many acts this campaign has had."""
        return _number(self.secrets.get("beat"))

    @property
    def name(self) -> str:
        """What the character is called in passing."""
        return short(str(self.character.get("name") or "")) or "stranger"

    def location(self) -> str:
        """Where the character is, as a place of the tale: a hand-edited location is read generously."""
        story = self.tale
        if story is None:
            return str(self.page.get("location") or "the road")
        here = str(self.page.get("location") or "")
        return here if here in story["places"] else story.place(here) or str(story["start"])

    def did(self, deed: str) -> bool:
        """Whether something has happened in this tale."""
        return deed in listed(self.secrets.get("deeds"))

    def done(self, needs: Any) -> bool:
        """Whether everything in a list of deeds has happened; "a|b" takes either."""
        wanted = [needs] if isinstance(needs, str) else list(needs or [])
        return all(any(self.did(way) for way in need.split("|")) for need in wanted if need)

    def people_here(self) -> list[str]:
        """List ids of the living who are where the character is."""
        story, here = self.tale, self.location()
        return [] if story is None else [i for i, who in story["people"].items() if self._stands(i, who, here)]

    def _stands(self, person: str, who: Mapping[str, Any], here: str) -> bool:
        moved = str(self.secrets.get("moved", ""))
        at = next((m.split("@", 1)[1] for m in listed(moved) if m.startswith(f"{person}@")), who["at"])
        comes = self.done(who.get("needs")) and not (who.get("leaves") and self.done(who["leaves"]))
        return bool(at == here) and comes and self.alive(person)

    def alive(self, person: str) -> bool:
        """Whether a person of the tale lives; the page decides."""
        story = self.tale
        name = story.names[person] if story else person
        entry = (self.page.get("people") or {}).get(name) or {}
        fallen = {n.casefold() for n in self.page.get("fallen") or {}}
        return entry.get("alive", True) is not False and name.casefold() not in fallen

    def foes_here(self) -> list[str]:
        """List foes who stand where the character is."""
        story, here = self.tale, self.location()
        if story is None:
            return []
        return [
            f
            for f, foe in story.part("foes").items()
            if foe["at"] == here and self.done(foe.get("needs")) and not self.gone(f)
        ]

    def gone(self, foe: str) -> bool:
        """Whether a foe was beaten, calmed or driven off."""
        story = self.tale
        sets = str(story["foes"][foe].get("sets", f"beat {foe}")) if story else ""
        return self.did(sets) or self.did(f"calmed {foe}")

    def things_here(self) -> list[str]:
        """List things that lie here and can be seen."""
        story, here = self.tale, self.location()
        left = [m.split("@", 1)[0] for m in listed(self.secrets.get("left")) if m.endswith(f"@{here}")]
        if story is None:
            return left
        lying = [
            i
            for i, thing in story.part("items").items()
            if thing.get("at") == here and self.done(thing.get("needs")) and not self.did(f"took {i}")
        ]
        return lying + left

    def carried(self) -> dict[str, int]:
        """Return the inventory."""
        found = self.page.get("inventory")
        return {k: _number(v) for k, v in found.items() if _number(v) > 0} if isinstance(found, dict) else {}

    def hit_points(self) -> tuple[int, int]:
        """Return hit points now and at most."""
        condition = self.page.get("condition") or {}
        most = _number(condition.get("max_hp")) or _number(self.character.get("hit_points")) or 10
        now = condition.get("hp")
        return (most if now is None else min(_number(now), most)), most

    # -- telling ----------------------------------------------------------------------------------------------------

    def say(self, text: str, *, apart: bool = False) -> None:
        """Tell something: in the same paragraph, or apart in one of its own."""
        text = fill(text, self._placeholders()).strip()
        if text:
            self.said.append(("\n\n" if apart and self.said else "") + text)

    def text(self) -> str:
        """Everything told so far."""
        return " ".join(self.said).replace(" \n\n", "\n\n").strip()

    def pick(self, options: Sequence[str], salt: str = "") -> str:
        """Choose one of some texts. The beat walks through the table, so that none returns before its time."""
        if not options:
            return ""
        start = self.chance(f"{salt}{options[0]}", fixed=True).randrange(len(options))
        return options[(start + self.beat) % len(options)]

    def chance(self, salt: str = "", *, fixed: bool = False) -> random.Random:
        """Return a source of chance that depends on seed, tale, turn and words alone; `fixed` leaves the turn out."""
        moment = [] if fixed else [self.beat, self.location(), self.words]
        key = repr([self.seed, self.secrets.get("tale", ""), self.character.get("name", ""), salt, *moment])
        return random.Random(int.from_bytes(hashlib.sha256(key.encode("utf-8", "replace")).digest()[:8], "big"))

    def _placeholders(self) -> dict[str, str]:
        known = {k: str(self.character.get(k) or "") for k in ("ancestry", "class", "background")}
        goal = spoken(str(self.character.get("goal") or "")) or "something you have not named yet"
        named = {"name": self.name, "goal": goal, "goal_c": goal[:1].upper() + goal[1:]}
        return {k: v or "traveller" for k, v in known.items()} | named

    # -- changing the page ------------------------------------------------------------------------------------------

    def note(self, patch: JSON) -> None:
        """Change the page by a merge patch."""
        self.patch = compose(self.patch, patch)
        self.page = merge_patch(self.page, patch)

    def keep(self, name: str, value: str | None) -> None:
        """Keep a secret; None forgets it."""
        self.note({"secrets": {name: value or None}})

    def mark(self, *deeds: str) -> None:
        """Remember that things have happened in this tale."""
        new = [deed for deed in deeds if deed and not self.did(deed)]
        if new:
            self.keep("deeds", "; ".join([*listed(self.secrets.get("deeds")), *new]))

    def learn(self, fact: str) -> None:
        """Note a fact written as "Subject: what is known"."""
        subject, _, known = fact.partition(": ")
        if subject and known:
            self.note({"facts": {fill(subject, self._placeholders()): fill(known, self._placeholders())}})

    def meet(self, person: str, attitude: str | None = None) -> None:
        """Note a person of the tale as met here and now."""
        story = self.tale
        if story is None:
            return
        who, name = story["people"][person], story.names[person]
        entry = (self.page.get("people") or {}).get(name) or {}
        seen = f"{self.location()}, day {self.day()}"
        mood = attitude or entry.get("attitude") or who["attitude"]
        self.note({"people": {name: {"role": who["role"], "attitude": mood, "last_seen": seen}}})

    def gain(self, item: str, number: int = 1) -> None:
        """Add to the inventory, or take from it."""
        total = self.carried().get(item, 0) + number
        self.note({"inventory": {item: max(0, total) or None}})

    def pay(self, gold: int) -> None:
        """Add gold, or take some."""
        self.note({"gold": max(0, _number(self.page.get("gold")) + gold)})

    def day(self) -> int:
        """Return the day of the adventure."""
        return max(1, _number((self.page.get("clock") or {}).get("day") or 1))

    def hour(self) -> str:
        """Return the time of day."""
        time = str((self.page.get("clock") or {}).get("time") or "")
        return time if time in HOURS else "morning"

    def pass_time(self, *, to_dawn: bool = False) -> None:
        """Let the next time of day come; after the night, a new day."""
        at = HOURS.index(self.hour())
        if to_dawn or at + 1 == len(HOURS):
            self.note({"clock": {"day": min(self.day() + 1, 1_000_000), "time": HOURS[0]}})
        else:
            self.note({"clock": {"day": self.day(), "time": HOURS[at + 1]}})

    # -- dice -------------------------------------------------------------------------------------------------------

    def roll(self, expression: str, reason: str, dc: int | None = None, advantage: str | None = None) -> JSON:
        """Return the next roll of this turn; if it has not been thrown yet, stop here and ask for it."""
        if self._thrown < len(self.rolls):
            found = dict(self.rolls[self._thrown])
            self._thrown += 1
            total = _number(found.get("total"))
            if found.get("success") is None:
                found["success"] = dc is None or total >= dc
            return found | {"total": total}
        call: JSON = {"expression": expression, "reason": reason}
        call |= {"dc": dc} if dc is not None else {}
        call |= {"advantage": advantage} if advantage else {}
        if self.dice:
            self._wants(call)
        die = self.chance(f"{expression} {reason} {self._thrown}")
        self._thrown += 1
        return {"total": 3, "success": dc is None or die.random() < (23 - dc) / 20, "natural": None}

    def _wants(self, call: JSON) -> NoReturn:
        raise RollWantedError(call)


def listed(text: Any) -> list[str]:
    """Read a secret that holds a list: "a; b; c"."""
    return [part.strip() for part in str(text or "").split(";") if part.strip()]


def compose(first: JSON, second: JSON) -> JSON:
    """Make one merge patch of two that follow each other; unlike merging into a page, null stays null."""
    composed = dict(first)
    for name, value in second.items():
        before = composed.get(name)
        composed[name] = compose(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return composed


def _number(value: Any) -> int:
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):  # a hand-edited secret may say anything
        return 0
