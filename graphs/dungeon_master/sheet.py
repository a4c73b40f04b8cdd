"""The character sheet: the few rules that fill it, and how a character enters the quest. 5E compatible.

This work includes material taken from the System Reference Document 5.1 ("SRD 5.1") by Wizards of the Coast
LLC and available at https://dnd.wizards.com/resources/systems-reference-document. The SRD 5.1 is licensed
under the Creative Commons Attribution 4.0 International License available at
https://creativecommons.org/licenses/by/4.0/legalcode.

Every function that takes a class or an ancestry takes the player's own words, such as "halfling thief".
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from itertools import takewhile
from typing import NamedTuple

from questbook.notebooks import CharacterNotebook, StateNotebook
from questbook.types import JSON

ABILITIES = ("strength", "dexterity", "constitution", "intelligence", "wisdom", "charisma")
STANDARD_ARRAY = (15, 14, 13, 12, 10, 8)  # the usual scores of those who do not roll


class ClassRules(NamedTuple):
    """What a class means for a character."""

    hit_die: int  # its sides, SRD 5.1's
    abilities: tuple[str, ...]  # most important first: SRD 5.1's multiclassing prerequisites, then our judgement
    gold: int  # ours, around the 15 of an acolyte in SRD 5.1
    kit: Mapping[str, int]  # the class's starting equipment in SRD 5.1, cut down to what a story uses


def _ability(short: str) -> str:
    return next(ability for ability in ABILITIES if ability.startswith(short))


def _rules(hit_die: int, abilities: str, gold: int, kit: str) -> ClassRules:
    counts = {item: int(count or 1) for count, item in re.findall(r"(?:(\d+) )?([^,]+)(?:, )?", kit)}
    return ClassRules(hit_die, tuple(map(_ability, abilities.split())), gold, counts)


_TABLES: JSON = tomllib.loads(files("questbook.graphs.dungeon_master").joinpath("sheet.toml").read_text("utf-8"))
_CLASSES = {name: _rules(*rules) for name, rules in _TABLES["classes"].items()}
_ANY_CLASS = _rules(8, "dex con wis cha str int", 10, "dagger, 3 torch, 5 ration")
"""A traveller who can run, endure and keep their eyes open."""

CLASS_WORDS: dict[str, str] = _TABLES["words"]
_ANCESTRIES: dict[str, tuple[str, str]] = _TABLES["ancestries"]


def _finder(words: Mapping[str, str]) -> Callable[[str], str | None]:
    """Make a function that finds the first of the comma-separated words, or its plural, and returns its key."""
    keys = {word: key for key, listed in words.items() for word in listed.split(", ")}
    pattern = re.compile(rf"\b({'|'.join(sorted(map(re.escape, keys), reverse=True))})s?\b")  # the longer first

    def find(text: str) -> str | None:
        match = pattern.search(re.sub(r"[\s_-]+", " ", text.casefold()))
        return keys[match[1]] if match else None

    return find


_named_class = _finder({name: name.casefold() for name in _CLASSES})
_class_by_word = _finder(CLASS_WORDS)
ancestry_of = _finder({name: names for name, (_, names) in _ANCESTRIES.items()})
"""Returns the ancestry (SRD 5.1, "Races") that a text names first, or None: `"elven scout"` gives `"Elf"`."""

_I_AM, _A = (
    re.compile(rf"(?:\b(\w{{1,8}})[^\w.!?;]{{1,3}})?{words}\s+(?=((?:[\w'’-]+\s+){{0,{most}}}[\w-]+))", re.IGNORECASE)
    for words, most in ((r"\bI(?: am|['’]m)", 3), (r"\ban?", 2))
)
_ENTRY = re.compile(
    r"(?im)(?:^|[,:]|\bis|\bbe the) ?((?:[\w'’-]+ ){0,2}?)((?:half[ -])?[\w-]*[^\Ws])(?= ?(?:[,.;!]|$|of\b))"
)
_OTHERS = frozenset(
    ["about", "against", "by", "find", "for", "from", "hate", "kill", "killed", "like", "no", "not", "of", "to", "with"]
)
"""Words before which "a dwarf" is somebody else."""


def class_of(text: str) -> str | None:
    """Return the class (SRD 5.1, "Classes") that the text names, or None: `"halfling thief"` gives `"Rogue"`.

    The name of a class goes before everyday words for one: a "soldier turned wizard" is a Wizard.
    """
    return _named_class(text) or _class_by_word(text)


def ancestry_said(texts: Iterable[str]) -> str | None:
    """Return the ancestry that a player gives their character, in the messages of an interview; None if none.

    It is a short answer, or comes after "I am", else after "a", else stands alone ("Bo, dwarf"); not after "by", "not".
    """
    said = list(texts)
    short = (("", text) for text in said if len(text.split()) <= 3)  # a short answer
    longer = (match.groups("") for pattern in (_I_AM, _A, _ENTRY) for text in said for match in pattern.finditer(text))
    for before, words in (*short, *longer):
        own = takewhile(lambda word: word not in _OTHERS, words.casefold().split())
        if _OTHERS.isdisjoint(before.casefold().split()) and (ancestry := ancestry_of(" ".join(own))):
            return ancestry
    return None


def modifier(score: int) -> int:
    """Return what an ability score adds to a roll: (score - 10) / 2, rounded down (SRD 5.1, "Ability Scores")."""
    return (score - 10) // 2


def modifiers(character: CharacterNotebook) -> str:
    """Return what a character adds to rolls: "STR -1, DEX +3, …, proficiency +2" (SRD 5.1, "Beyond 1st Level")."""
    added = {name[:3].upper(): modifier(score) for name, score in character.abilities if score is not None}
    added["proficiency"] = 2 + (character.level - 1) // 4
    return ", ".join(f"{name} {bonus:+}" for name, bonus in added.items())


def rules_of(class_name: str) -> ClassRules:
    """Return what a class means, given the player's words for one; all-round rules for a class we do not know."""
    return _CLASSES.get(class_of(class_name) or "", _ANY_CLASS)


def fill_abilities(chosen: Mapping[str, int | None], class_name: str, ancestry: str = "") -> dict[str, int]:
    """Return all six scores: the player's own as they are, the rest from the standard array.

    A chosen score that is in the array uses it up. What is left goes, highest first, to the other abilities, in the
    order that suits the class. The ancestry's increases (SRD 5.1, "Races") are added to those scores only: a player who
    names a score means that score. A half-elf's two free ones go to the most important other than Charisma.
    """
    scores = {ability: score for ability, score in chosen.items() if score is not None}
    left = list(STANDARD_ARRAY)
    for score in scores.values():
        if score in left:
            left.remove(score)
    to_fill = [ability for ability in rules_of(class_name).abilities if ability not in scores]
    scores |= dict(zip(to_fill, left, strict=False))

    free = [ability for ability in to_fill if ability != "charisma"]
    increases, _ = _ANCESTRIES.get(ancestry_of(ancestry) or "", ("", ""))
    for short, bonus in (increase.split("+") for increase in increases.split()):
        ability = (free.pop(0) if free else "") if short == "any" else _ability(short)
        if ability in to_fill:
            scores[ability] += int(bonus)
    return {ability: scores[ability] for ability in ABILITIES}


def hit_points(class_name: str, level: int, constitution: int) -> int:
    """Return the hit point maximum (SRD 5.1, "Hit Points" of each class, with the fixed value at each level)."""
    die, extra = rules_of(class_name).hit_die, modifier(constitution)
    return max(1, die + extra) + (level - 1) * max(1, die // 2 + 1 + extra)


def fill_sheet(before: CharacterNotebook, page: CharacterNotebook, quest: StateNotebook) -> dict[str, JSON]:
    """Return the patches that a complete character asks for, by channel; none if all is in place.

    The rules fill what is open on the page: abilities, hit points and, at the start, a kit. A character who has not
    entered the quest yet, which then has no maximum of hit points, enters it in the morning of the first day, unhurt,
    with their kit and a little gold. Later, the quest follows the maximum of hit points: the rules', or what a person
    set. `before` is the character's page as state holds it, `page` as it is now, complete.
    """
    condition, rules, starts = quest.condition, rules_of(page.class_name), quest.condition.max_hp is None
    abilities = fill_abilities(page.abilities.model_dump(), page.class_name, page.ancestry)
    most, was = hit_points(page.class_name, page.level, abilities["constitution"]), before.abilities.constitution
    if page.hit_points not in (None, hit_points(before.class_name, before.level, was) if was else None):
        most = page.hit_points
    filled = {"abilities": abilities, "hit_points": most, "kit": page.kit or (dict(rules.kit) if starts else {})}
    ready = page.apply(filled).page
    patches: dict[str, JSON] = {"character": ready.patch_from(before)}
    if starts:
        patches["quest"] = {
            "condition": {"hp": most, "max_hp": most},
            "inventory": {**ready.kit, **quest.inventory},
            "gold": quest.gold or rules.gold,
            "clock": {"day": quest.clock.day, "time": quest.clock.time or "morning"},
        }
    elif condition.max_hp != most:  # who is unhurt stays so
        patches["quest"] = {"condition": {"max_hp": most} | ({"hp": most} if condition.hp == condition.max_hp else {})}
    return {channel: patch for channel, patch in patches.items() if patch}
