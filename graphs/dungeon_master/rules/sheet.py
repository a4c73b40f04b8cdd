"""The character sheet: the few rules that fill it, and how a character enters the quest. 5E compatible.

This work includes material taken from the System Reference Document 5.1 ("SRD 5.1") by Wizards of the Coast
LLC and available at https://dnd.wizards.com/resources/systems-reference-document. The SRD 5.1 is licensed
under the Creative Commons Attribution 4.0 International License available at
https://creativecommons.org/licenses/by/4.0/legalcode.

Every function that takes a class or an ancestry takes the player's own words, such as "halfling thief".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from questbook.notebooks import CharacterNotebook, StateNotebook
from questbook.types import JSON

ABILITIES = ("strength", "dexterity", "constitution", "intelligence", "wisdom", "charisma")
STANDARD_ARRAY = (15, 14, 13, 12, 10, 8)  # the usual scores of those who do not roll


class _Class(NamedTuple):
    hit_die: int  # SRD 5.1's
    abilities: str  # most important first: SRD 5.1's multiclassing prerequisites, then our judgement
    gold: int  # ours, around the 15 of an acolyte in SRD 5.1


class _Ancestry(NamedTuple):
    increases: str  # SRD 5.1, without subraces; "any" is the player's choice there
    names: str


_CLASSES = {
    "Barbarian": _Class(12, "str con dex wis cha int", 10),
    "Bard": _Class(8, "cha dex con wis int str", 15),
    "Cleric": _Class(8, "wis con str cha dex int", 15),
    "Druid": _Class(8, "wis con dex int cha str", 10),
    "Fighter": _Class(10, "str con dex wis cha int", 15),
    "Monk": _Class(8, "dex wis con str cha int", 5),
    "Paladin": _Class(10, "str cha con wis dex int", 15),
    "Ranger": _Class(10, "dex wis con str int cha", 15),
    "Rogue": _Class(8, "dex int cha con wis str", 20),
    "Sorcerer": _Class(6, "cha con dex wis int str", 10),
    "Warlock": _Class(8, "cha con dex wis int str", 15),
    "Wizard": _Class(6, "int con dex wis cha str", 15),
}
_ANY_CLASS = _Class(8, "dex con wis cha str int", 10)  # a traveller who can run, endure and keep their eyes open

# The classes' starting equipment in SRD 5.1, cut down to what a story uses.
_KITS = {
    "Barbarian": {"greataxe": 1, "handaxe": 2, "bedroll": 1, "ration": 5},
    "Bard": {"rapier": 1, "lute": 1, "leather armor": 1, "fine clothes": 1},
    "Cleric": {"mace": 1, "shield": 1, "holy symbol": 1, "candle": 5},
    "Druid": {"wooden shield": 1, "sickle": 1, "mistletoe sprig": 1, "ration": 5},
    "Fighter": {"longsword": 1, "shield": 1, "chain mail": 1, "torch": 5},
    "Monk": {"quarterstaff": 1, "dart": 10, "bedroll": 1, "ration": 5},
    "Paladin": {"warhammer": 1, "shield": 1, "chain mail": 1, "holy symbol": 1},
    "Ranger": {"longbow": 1, "arrow": 20, "shortsword": 1, "rope": 1},
    "Rogue": {"shortsword": 1, "dagger": 2, "thieves' tools": 1, "leather armor": 1},
    "Sorcerer": {"dagger": 2, "crystal focus": 1, "torch": 5, "ration": 5},
    "Warlock": {"dagger": 2, "leather armor": 1, "old tome": 1, "lantern": 1},
    "Wizard": {"spellbook": 1, "quarterstaff": 1, "ink and quill": 1, "candle": 5},
}
_PLAIN_KIT = {"dagger": 1, "torch": 3, "ration": 5}

CLASS_WORDS = {
    "Barbarian": "berserker, savage, reaver",
    "Bard": "minstrel, troubadour, skald, singer, musician, poet, storyteller, entertainer, jester",
    "Cleric": "priest, priestess, acolyte, healer",
    "Druid": "shaman, hedge witch, shapeshifter",
    "Fighter": "warrior, soldier, knight, mercenary, sellsword, guard, gladiator, swordsman, veteran",
    "Monk": "martial artist, ascetic",
    "Paladin": "crusader, templar, holy warrior, holy knight",
    "Ranger": "hunter, huntress, archer, scout, tracker, trapper, bounty hunter, witch hunter",
    "Rogue": "thief, thieves, burglar, assassin, pickpocket, smuggler, spy, pirate, treasure hunter",
    "Sorcerer": "sorceress, wild mage",
    "Warlock": "cultist, occultist",
    "Wizard": "mage, witch, magician, enchanter, enchantress, necromancer, conjurer, illusionist, scholar",
}

_ANCESTRIES = {
    "Dwarf": _Ancestry("con+2", "dwarf, dwarven, dwarvish, dwarves"),
    "Elf": _Ancestry("dex+2", "elf, elven, elvish, elves"),
    "Halfling": _Ancestry("dex+2", "halfling, hobbit"),
    "Human": _Ancestry("str+1 dex+1 con+1 int+1 wis+1 cha+1", "human"),
    "Dragonborn": _Ancestry("str+2 cha+1", "dragonborn"),
    "Gnome": _Ancestry("int+2", "gnome, gnomish"),
    "Half-Elf": _Ancestry("cha+2 any+1 any+1", "half elf, half elven, half elvish, half elves, halfelf"),
    "Half-Orc": _Ancestry("str+2 con+1", "half orc, half orcish, halforc, orc, orcish"),
    "Tiefling": _Ancestry("cha+2 int+1", "tiefling"),
}
_OTHER_ANCESTRY = _Ancestry("", "")


def _finder(words: Mapping[str, str]) -> Callable[[str], str | None]:
    """Make a function that finds the first of the comma-separated words, or its plural, and returns its key."""
    keys = {word: key for key, listed in words.items() for word in listed.split(", ")}
    longest_first = "|".join(sorted(map(re.escape, keys), key=len, reverse=True))
    pattern = re.compile(rf"\b({longest_first})s?\b")

    def find(text: str) -> str | None:
        match = pattern.search(re.sub(r"[\s_-]+", " ", text.casefold()))
        return keys[match[1]] if match else None

    return find


_named_class = _finder({name: name.casefold() for name in _CLASSES})
_class_by_word = _finder(CLASS_WORDS)
_named_ancestry = _finder({name: ancestry.names for name, ancestry in _ANCESTRIES.items()})


def class_of(text: str) -> str | None:
    """Return the class (SRD 5.1, "Classes") that the text names, or None: `"halfling thief"` gives `"Rogue"`.

    The name of a class goes before everyday words for one: a "soldier turned wizard" is a Wizard.
    """
    return _named_class(text) or _class_by_word(text)


def ancestry_of(text: str) -> str | None:
    """Return the ancestry (SRD 5.1, "Races") that the text names first, or None: `"elven scout"` gives `"Elf"`."""
    return _named_ancestry(text)


def modifier(score: int) -> int:
    """Return what an ability score adds to a roll: (score - 10) / 2, rounded down (SRD 5.1, "Ability Scores").

    Raises:
        ValueError: The score is not between 1 and 30.
    """
    if not 1 <= score <= 30:
        raise ValueError(f"An ability score of {score} does not exist. Use 1 to 30; 10 is average.")
    return (score - 10) // 2


def hit_die(class_name: str) -> int:
    """Return the sides of the class's hit die (SRD 5.1, "Hit Points" of each class); 8 for a class we do not know."""
    return _class(class_name).hit_die


def ability_order(class_name: str) -> tuple[str, ...]:
    """Return all six abilities, the most important first; an all-round order for a class we do not know.

    The multiclassing prerequisites of SRD 5.1 lead each order; the rest is our judgement.
    """
    return tuple(map(_ability, _class(class_name).abilities.split()))


def starting_gold(class_name: str) -> int:
    """Return the gold pieces at the start: our amounts, of the size of the 15 that an acolyte has in SRD 5.1."""
    return _class(class_name).gold


def kit(class_name: str) -> dict[str, int]:
    """Return the items a character starts with, and how many of each, after SRD 5.1, "Equipment" of each class."""
    return dict(_KITS.get(class_of(class_name) or "", _PLAIN_KIT))


def fill_abilities(chosen: Mapping[str, int | None], class_name: str, ancestry: str = "") -> dict[str, int]:
    """Return all six scores: the player's own as they are, the rest from the standard array.

    A chosen score that is in the array uses it up. What is left goes, highest first, to the abilities that were not
    chosen, in the order that suits the class. The ancestry's increases (SRD 5.1, "Races") are added to those filled
    scores only: a player who names a score means that score. A half-elf's two free increases go to the most important
    filled abilities other than Charisma.

    Raises:
        ValueError: `chosen` names something that is not an ability.
    """
    if unknown := sorted(set(chosen) - set(ABILITIES)):
        raise ValueError(f"{', '.join(unknown)}: not an ability. Use {', '.join(ABILITIES)}.")
    scores = {ability: score for ability, score in chosen.items() if score is not None}
    left = list(STANDARD_ARRAY)
    for score in scores.values():
        if score in left:
            left.remove(score)
    to_fill = [ability for ability in ability_order(class_name) if ability not in scores]
    scores |= dict(zip(to_fill, left, strict=False))

    free = [ability for ability in to_fill if ability != "charisma"]
    increases = _ANCESTRIES.get(ancestry_of(ancestry) or "", _OTHER_ANCESTRY).increases
    for short, bonus in (increase.split("+") for increase in increases.split()):
        ability = (free.pop(0) if free else "") if short == "any" else _ability(short)
        if ability in to_fill:
            scores[ability] += int(bonus)
    return {ability: scores[ability] for ability in ABILITIES}


def hit_points(class_name: str, level: int, constitution: int) -> int:
    """Return the hit point maximum (SRD 5.1, "Hit Points" of each class, with the fixed value at each level).

    The whole hit die at level 1, half of it and one more at each later level, always with the Constitution modifier,
    and never less than one a level.

    Raises:
        ValueError: Level or Constitution is out of range.
    """
    die, extra = hit_die(class_name), modifier(constitution)
    return max(1, die + extra) + (_level(level) - 1) * max(1, die // 2 + 1 + extra)


def fill_sheet(before: CharacterNotebook, page: CharacterNotebook, quest: StateNotebook) -> dict[str, JSON]:
    """Return the patches that a complete character asks for, by channel; none if all is in place.

    The rules fill what is open on the page: abilities, hit points and, at the start, a kit. A character who has not
    entered the quest yet enters it in the morning of the first day, unhurt, with their kit and a little gold. Later,
    the quest follows what a person changes on the page: the maximum of the hit points.

    Args:
        before: The character's page as state holds it.
        page: The page as it is now; complete.
        quest: The quest's page; nobody has entered while it has no maximum of hit points.

    Raises:
        PageFullError: A person has filled the page to its last character.
    """
    starts = quest.condition.max_hp is None
    abilities = fill_abilities(page.abilities.model_dump(), page.class_name, page.ancestry)
    most = page.hit_points or hit_points(page.class_name, page.level, abilities["constitution"])
    filled = {"abilities": abilities, "hit_points": most, "kit": page.kit or (kit(page.class_name) if starts else {})}
    ready = page.apply(filled).page
    patches: dict[str, JSON] = {"character": ready.patch_from(before)}
    if starts:
        patches["quest"] = {
            "condition": {"hp": most, "max_hp": most},
            "inventory": {**ready.kit, **quest.inventory},
            "gold": quest.gold or starting_gold(page.class_name),
            "clock": {"day": quest.clock.day, "time": quest.clock.time or "morning"},
        }
    elif quest.condition.max_hp != most:
        patches["quest"] = {"condition": {"max_hp": most}}
    return {channel: patch for channel, patch in patches.items() if patch}


def _class(text: str) -> _Class:
    return _CLASSES.get(class_of(text) or "", _ANY_CLASS)


def _ability(short: str) -> str:
    return next(ability for ability in ABILITIES if ability.startswith(short))


def _level(level: int) -> int:
    if not 1 <= level <= 20:
        raise ValueError(f"Level {level} does not exist. Use 1 to 20.")
    return level
