"""Scene: one turn being told, and the tale in it. It gathers text and patch together, so that they always agree."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from questbook.graphs.offline.storyteller.language import fill, load, match, seeded, series, short, spoken, table, upper
from questbook.notebooks import merge_patch
from questbook.types import JSON

HOURS = ["dawn", "morning", "noon", "afternoon", "dusk", "night"]


@dataclass(frozen=True)
class Tale:
    """An adventure with the names of one telling: places, people, things, foes, and how it can end."""

    key: str  # name of its file
    telling: int  # how many times the campaign has been through all tales; each telling has other names
    names: Mapping[str, str]  # person's id to full name
    text: Mapping[str, Any] = field(repr=False)  # all that the file says, names filled in

    def __getitem__(self, part: str) -> Any:
        return self.text[part]

    def part(self, name: str) -> Any:
        """Return a part that a tale may leave out: it is empty then."""
        return self.text.get(name, {})

    @property
    def title(self) -> str:
        """Title of the quest on the page; a later telling is numbered."""
        again = "" if self.telling == 0 else f", told again ({self.telling + 1})"
        return f"{self.text['title']}{again}"

    def person(self, words: str, among: Iterable[str] | None = None) -> str | None:
        """Find the person whom words name by name or role; the id."""
        ids = self.names if among is None else among
        return match(words, ids, {i: f"{name} {self.text['people'][i]['role']}" for i, name in self.names.items()})

    def find(self, part: str, words: str, among: Iterable[str] | None = None) -> str | None:
        """Find the place, thing or foe that words name: `part` is "places", "items" or "foes"."""
        entries = self.part(part)
        names = entries if among is None else among
        return match(words, names, {i: f"{i} {entry.get('as', '')}" for i, entry in entries.items()})


@cache
def keys() -> tuple[str, ...]:
    """List the tales there are."""
    folder = files("questbook.graphs.offline.storyteller").joinpath("tales")
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


@cache
def tale(key: str, telling: int = 0) -> Tale:
    """Return the tale of one of the `keys`, with the names of this telling."""
    text = load(f"tales/{key}")
    names = {}
    for i, person in text["people"].items():
        # A dead namesake must never get up again, so later tellings number their people.
        again, at = divmod(telling, len(person["names"]))
        names[i] = person["names"][at] + (f" ({again + 1})" if again else "")
    parts = {i: short(name) for i, name in names.items()} | {f"{i}_full": name for i, name in names.items()}
    return Tale(key=key, telling=telling, names=names, text=fill(text, parts))


class RollWantedError(Exception):
    """The telling cannot go on before the dice have said how; its argument is those of `roll_dice`."""


@dataclass
class Scene:
    """The page as it is changing in this turn, the words said so far, and the dice already rolled."""

    page: JSON  # the quest's page; `note` changes it
    character: JSON
    words: str
    rolls: Sequence[JSON] = ()
    seed: int | None = None
    dice: bool = True  # whether dice may be asked for; without them chance decides quietly
    patch: JSON = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)  # sentences and paragraphs told so far
    quiet: bool = False  # nothing happened that the page must hold (a memory, a sheet): no time passes
    offers: bool = True  # whether the turn ends with choices
    happening: str = ""  # what the page's field `scene` will say; "" for where the character is
    struck: bool = False  # whether a foe has struck at the character in this turn
    fallen: bool = False  # whether the character has fallen in this turn
    unanswered: str = ""  # what the player asked and nobody here knows
    _rolled: int = 0

    # What the page says.
    @property
    def secrets(self) -> JSON:
        """What only the storyteller knows; strings by name."""
        return dict(self.page.get("secrets", {}))

    @property
    def tale(self) -> Tale | None:
        """The adventure under way."""
        key, _, telling = str(self.secrets.get("tale", "")).partition(" ")
        return tale(key, int(telling) if telling.isdecimal() else 0) if key in keys() else None

    @property
    def story(self) -> Tale:
        """The adventure under way; between two, the people of the page, each where they were seen last."""
        if story := self.tale:
            return story
        text, people = fill(load("between"), {"place": self.location()}), {}
        for name, entry in self.page.get("people", {}).items():
            known = {part: str(entry[part]) for part in ("role", "attitude") if entry.get(part)}
            seen = {"at": str(entry.get("last_seen") or "").partition(", day ")[0]}
            people[name] = fill(text["person"], {"who": short(name)}) | known | seen
        return Tale("", 0, {name: name for name in people}, text | {"people": people})

    @property
    def beat(self) -> int:
        """How many acts this campaign has had."""
        return whole(self.secrets.get("beat"))

    @property
    def name(self) -> str:
        """What the character is called in passing."""
        return short(str(self.character.get("name") or "")) or "stranger"

    @property
    def death(self) -> str:
        """How the character died; "" while they live."""
        return str(self.page.get("condition", {}).get("conditions", {}).get("dead") or "")

    def location(self) -> str:
        """Where the character is, as a place of the tale: a hand-edited location is read generously."""
        here = str(self.page.get("location") or "")
        if (story := self.tale) is None:
            return here or "the road"
        return here if here in story["places"] else story.find("places", here) or str(story["start"])

    def did(self, deed: str) -> bool:
        """Whether something has happened in this tale."""
        return deed in listed(self.secrets.get("deeds"))

    def did_all(self, needs: Any) -> bool:
        """Whether everything in a list of deeds has happened; "a|b" takes either."""
        return all(any(self.did(way) for way in need.split("|")) for need in _several(needs) if need)

    def ways(self) -> str:
        """List the ways from here: "Gull Quay (north, uphill) or the Old Road"."""
        places = self.story["places"][self.location()]["ways"]
        return series([f"{place} ({way})" for place, way in places.items()], "or")

    def open_here(self, part: str) -> list[JSON]:
        """List entries of a part of the tale that are about this place, not done yet, and possible now."""
        entries = [entry for entry in self.story.part(part) or [] if entry["at"] == self.location()]
        return [dict(e) for e in entries if not self.did_all(e["sets"]) and self.did_all(e.get("needs"))]

    def people_here(self) -> list[str]:
        """List ids of the living who are where the character is."""
        there = [(i, who) for i, who in self.story["people"].items() if who["at"] == self.location()]
        return [i for i, who in there if not (who.get("leaves") and self.did_all(who["leaves"])) and self.alive(i)]

    def entry(self, person: str) -> JSON:
        """Return what the page says of a person of the tale; {} if it says nothing."""
        return dict(self.page.get("people", {}).get(self.story.names[person], {}))

    def alive(self, person: str) -> bool:
        """Whether a person of the tale lives; the page decides."""
        fallen = {name.casefold() for name in self.page.get("fallen", {})}
        return self.entry(person).get("alive", True) is not False and self.story.names[person].casefold() not in fallen

    def foes_at(self, *places: str) -> list[str]:
        """List the foes who stand at some places and were not beaten, calmed or driven off."""
        foes = self.story.part("foes").items()
        there = {name: foe for name, foe in foes if foe["at"] in places and self.did_all(foe.get("needs"))}
        standing = [name for name, foe in there.items() if not self.did(foe["sets"])]
        return [name for name in standing if not self.did(f"calmed {name}")]

    def foes_here(self) -> list[str]:
        """List the foes who stand where the character is."""
        return self.foes_at(self.location())

    def things_here(self) -> list[str]:
        """List things that lie here and can be seen."""
        here, items = self.location(), self.story.part("items")
        return [n for n, thing in items.items() if thing.get("at") == here and not self.did(f"took {n}")]

    def carried(self) -> dict[str, int]:
        """Return the inventory."""
        return {k: whole(v) for k, v in self.page.get("inventory", {}).items() if whole(v) > 0}

    def gold(self) -> int:
        """Return the gold in the purse."""
        return whole(self.page.get("gold"))

    def hit_points(self) -> tuple[int, int]:
        """Return hit points now and at most."""
        condition = self.page.get("condition", {})
        most = whole(condition.get("max_hp")) or whole(self.character.get("hit_points")) or 10
        now = condition.get("hp")
        return (most if now is None else min(whole(now), most)), most

    # What is told.
    def say(self, text: str, *, apart: bool = False) -> None:
        """Tell something: in the same paragraph, or apart in one of its own."""
        if text := fill(text, self._placeholders()).strip():
            self.pieces.append(("\n\n" if apart and self.pieces else "") + text)

    def tell(self, occasion: str, *, apart: bool = False, **parts: str) -> None:
        """Tell one of the texts that tables.toml has for an occasion, with its placeholders filled."""
        self.say(fill(self.pick(table(occasion), occasion), parts), apart=apart)

    def aside(self, text: str, *, offers: bool = False) -> None:
        """Tell something that costs no time and leaves the page as it is."""
        self.quiet, self.offers = True, offers
        self.say(text)

    def text(self) -> str:
        """Everything told so far."""
        return " ".join(self.pieces).replace(" \n\n", "\n\n").strip()

    def pick(self, options: Sequence[str], salt: str = "") -> str:
        """Choose one of some texts. The beat walks through the table, so that none returns before its time."""
        if not options:
            return ""
        start = self.chance(f"{salt}{options[0]}", fixed=True).randrange(len(options))
        return options[(start + self.beat) % len(options)]

    def chance(self, salt: str = "", *, fixed: bool = False) -> random.Random:
        """Return a source of chance that depends on seed, tale, turn and words alone; `fixed` leaves the turn out."""
        moment = [] if fixed else [self.beat, self.location(), self.words]
        return seeded([self.seed, self.secrets.get("tale", ""), self.character.get("name", ""), salt, *moment])

    def _placeholders(self) -> dict[str, str]:
        goal = spoken(str(self.character.get("goal") or "")) or "something you have not named yet"
        return {"name": self.name, "goal": goal, "goal_c": upper(goal)}

    # What changes.
    def note(self, patch: JSON) -> None:
        """Change the page by a merge patch."""
        self.patch, self.page = compose(self.patch, patch), merge_patch(self.page, patch)

    def keep(self, name: str, value: str | None) -> None:
        """Keep a secret; None forgets it."""
        self.note({"secrets": {name: value or None}})

    def mark(self, *deeds: str) -> None:
        """Remember that things have happened in this tale."""
        if new := [deed for deed in deeds if deed and not self.did(deed)]:
            self.keep("deeds", "; ".join([*listed(self.secrets.get("deeds")), *new]))

    def learn(self, fact: str) -> None:
        """Note a fact written as "Subject: what is known"."""
        subject, _, known = fact.partition(": ")
        if subject and known:
            self.note({"facts": {fill(subject, self._placeholders()): fill(known, self._placeholders())}})

    def meet(self, person: str, attitude: str | None = None) -> None:
        """Note a person of the tale as met here and now."""
        who, name = self.story["people"][person], self.story.names[person]
        seen = f"{self.location()}, day {self.day()}"
        mood = attitude or self.entry(person).get("attitude") or who["attitude"]
        self.note({"people": {name: {"role": who["role"], "attitude": mood, "last_seen": seen}}})

    def gain(self, item: str, number: int = 1) -> None:
        """Add to the inventory, or take from it."""
        self.note({"inventory": {item: max(0, self.carried().get(item, 0) + number) or None}})

    def pay(self, gold: int) -> None:
        """Add gold, or take some."""
        self.note({"gold": max(0, self.gold() + gold)})

    def day(self) -> int:
        """Return the day of the adventure."""
        return max(1, whole(self.page.get("clock", {}).get("day", 1)))

    def hour(self) -> str:
        """Return the time of day."""
        time = str(self.page.get("clock", {}).get("time"))
        return time if time in HOURS else "morning"

    def pass_time(self, *, to_dawn: bool = False) -> None:
        """Let the next time of day come; after the night, a new day."""
        at = HOURS.index(self.hour())
        night = to_dawn or at + 1 == len(HOURS)
        day, hour = (min(self.day() + 1, 1_000_000), HOURS[0]) if night else (self.day(), HOURS[at + 1])
        self.note({"clock": {"day": day, "time": hour}})

    def happen(self, event: JSON) -> None:
        """Tell an event of the tale and do what it does: deeds, facts, things, gold."""
        self.say(str(event.get("text", "")))
        self.mark(*_several(event.get("sets")))
        for fact in _several(event.get("fact")):
            self.learn(fact)
        for item in _several(event.get("gains")):
            self.gain(item)
            self.mark(f"took {item}")
        if event.get("spends") in self.carried():
            self.gain(event["spends"], -1)
        if event.get("gold"):
            self.pay(int(event["gold"]))
        if event.get("objective"):
            self.note({"objective": event["objective"]})

    # Dice.
    def roll(
        self, expression: str, reason: str, dc: int | None = None, advantage: str | None = None, *, foe: bool = False
    ) -> JSON:
        """Return the next roll of this turn; a RollWantedError asks for it. `foe`: it is against the player."""
        number, self._rolled = self._rolled, self._rolled + 1
        if number < len(self.rolls):
            roll = dict(self.rolls[number])
            total, success = whole(roll.get("total")), roll.get("success")
            return roll | {"total": total, "success": (dc is None or total >= dc) if success is None else success}
        if self.dice:
            call: JSON = {"expression": expression, "reason": reason, "dc": dc, "advantage": advantage}
            call["foe"] = foe or None
            raise RollWantedError({name: value for name, value in call.items() if value is not None})
        die = self.chance(f"{expression} {reason} {number}")
        return {"total": 3, "success": dc is None or die.random() < (23 - dc) / 20, "natural": None}


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


def _several(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])


def whole(value: Any) -> int:
    """Read a whole number; 0 if it is none, as a hand-edited secret may say anything."""
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return 0
