"""The few rules that fill a character sheet: abilities, hit points and kit. 5E compatible.

This work includes material taken from the System Reference Document 5.1 ("SRD 5.1") by Wizards of the Coast
LLC and available at https://dnd.wizards.com/resources/systems-reference-document. The SRD 5.1 is licensed
under the Creative Commons Attribution 4.0 International License available at
https://creativecommons.org/licenses/by/4.0/legalcode.

Every function that takes a class or an ancestry takes the player's own words, such as "halfling thief".
"""

import re
from collections.abc import Callable, Mapping

ABILITIES = ("strength", "dexterity", "constitution", "intelligence", "wisdom", "charisma")
STANDARD_ARRAY = (15, 14, 13, 12, 10, 8)  # the usual scores of those who do not roll

# Hit die; abilities, most important first; gold pieces. The dice are SRD 5.1's. The orders start from its
# multiclassing prerequisites and go on by our judgement; the gold is ours, around an SRD acolyte's 15.
_CLASSES = {
    "Barbarian": (12, "str con dex wis cha int", 10),
    "Bard": (8, "cha dex con wis int str", 15),
    "Cleric": (8, "wis con str cha dex int", 15),
    "Druid": (8, "wis con dex int cha str", 10),
    "Fighter": (10, "str con dex wis cha int", 15),
    "Monk": (8, "dex wis con str cha int", 5),
    "Paladin": (10, "str cha con wis dex int", 15),
    "Ranger": (10, "dex wis con str int cha", 15),
    "Rogue": (8, "dex int cha con wis str", 20),
    "Sorcerer": (6, "cha con dex wis int str", 10),
    "Warlock": (8, "cha con dex wis int str", 15),
    "Wizard": (6, "int con dex wis cha str", 15),
}
_ANYONE = (8, "dex con wis cha str int", 10)  # a traveller who can run, endure and keep their eyes open

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

_CALLED = {
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

# SRD 5.1: increases without subraces ("any" is the player's choice there), and speed in feet. Then the names.
_ANCESTRIES = {
    "Dwarf": ("con+2", 25, "dwarf, dwarven, dwarvish, dwarves"),
    "Elf": ("dex+2", 30, "elf, elven, elvish, elves"),
    "Halfling": ("dex+2", 25, "halfling, hobbit"),
    "Human": ("str+1 dex+1 con+1 int+1 wis+1 cha+1", 30, "human"),
    "Dragonborn": ("str+2 cha+1", 30, "dragonborn"),
    "Gnome": ("int+2", 25, "gnome, gnomish"),
    "Half-Elf": ("cha+2 any+1 any+1", 30, "half elf, half elven, half elvish, half elves, halfelf"),
    "Half-Orc": ("str+2 con+1", 30, "half orc, half orcish, halforc, orc, orcish"),
    "Tiefling": ("cha+2 int+1", 30, "tiefling"),
}
_STRANGER = ("", 30, "")


def _finder(words: Mapping[str, str]) -> Callable[[str], str | None]:
    """Looks for the first of the comma-separated words, or its plural, and gives its key."""
    keys = {word: key for key, listed in words.items() for word in listed.split(", ")}
    longest_first = "|".join(sorted(map(re.escape, keys), key=len, reverse=True))
    pattern = re.compile(rf"\b({longest_first})s?\b")

    def find(text: str) -> str | None:
        match = pattern.search(re.sub(r"[\s_-]+", " ", text.casefold()))
        return keys[match[1]] if match else None

    return find


_named_class = _finder({name: name.casefold() for name in _CLASSES})
_called_class = _finder(_CALLED)
_named_ancestry = _finder({name: words for name, (_, _, words) in _ANCESTRIES.items()})


def class_of(text: str) -> str | None:
    """The class (SRD 5.1, "Classes") that the text names, or None: `"halfling thief"` gives `"Rogue"`.

    The name of a class goes before everyday words for one: a "soldier turned wizard" is a Wizard.
    """
    return _named_class(text) or _called_class(text)


def ancestry_of(text: str) -> str | None:
    """The ancestry (SRD 5.1, "Races") that the text names first, or None: `"elven scout"` gives `"Elf"`."""
    return _named_ancestry(text)


def modifier(score: int) -> int:
    """What an ability score adds to a roll: (score - 10) / 2, rounded down (SRD 5.1, "Ability Scores").

    Raises:
        ValueError: The score is not between 1 and 30.
    """
    if not 1 <= score <= 30:
        raise ValueError(f"An ability score of {score} does not exist. Use 1 to 30; 10 is average.")
    return (score - 10) // 2


def proficiency(level: int) -> int:
    """The proficiency bonus, +2 at level 1 to +6 at level 20 (SRD 5.1, "Beyond 1st Level").

    Raises:
        ValueError: The level is not between 1 and 20.
    """
    return 2 + (_level(level) - 1) // 4


def hit_die(class_name: str) -> int:
    """Sides of the class's hit die (SRD 5.1, "Hit Points" of each class); 8 for a class we do not know."""
    return _class(class_name)[0]


def ability_order(class_name: str) -> tuple[str, ...]:
    """All six abilities, the most important first; an all-round order for a class we do not know.

    The multiclassing prerequisites of SRD 5.1 lead each order; the rest is our judgement.
    """
    return tuple(map(_ability, _class(class_name)[1].split()))


def starting_gold(class_name: str) -> int:
    """Gold pieces at the start: our amounts, of the size of the 15 that an acolyte has in SRD 5.1."""
    return _class(class_name)[2]


def kit(class_name: str) -> dict[str, int]:
    """Items and how many of each a character starts with, after SRD 5.1, "Equipment" of each class."""
    return dict(_KITS.get(class_of(class_name) or "", _PLAIN_KIT))


def speed(ancestry: str) -> int:
    """Walking speed in feet per round (SRD 5.1, "Races"); 30 for an ancestry we do not know."""
    return _ANCESTRIES.get(ancestry_of(ancestry) or "", _STRANGER)[1]


def fill_abilities(chosen: Mapping[str, int | None], class_name: str, ancestry: str = "") -> dict[str, int]:
    """All six scores: the player's own as they are, the rest from the standard array.

    A chosen score that is in the array uses it up. What is left goes, highest first, to the abilities that
    were not chosen, in the order that suits the class. The ancestry's increases (SRD 5.1, "Races") are added
    to those filled scores only: a player who names a score means that score. A half-elf's two free increases
    go to the most important filled abilities other than Charisma.

    Args:
        chosen: Scores by ability; None or absent means not chosen.
        class_name: A class, or the player's words for one.
        ancestry: An ancestry, or the player's words for one.

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
    increases = _ANCESTRIES.get(ancestry_of(ancestry) or "", _STRANGER)[0]
    for short, bonus in (increase.split("+") for increase in increases.split()):
        ability = (free.pop(0) if free else "") if short == "any" else _ability(short)
        if ability in to_fill:
            scores[ability] += int(bonus)
    return {ability: scores[ability] for ability in ABILITIES}


def hit_points(class_name: str, level: int, constitution: int) -> int:
    """Hit point maximum (SRD 5.1, "Hit Points" of each class, with the fixed value at each level).

    The whole hit die at level 1, half of it and one more at each later level, always with the Constitution
    modifier, and never less than one a level.

    Args:
        class_name: A class, or the player's words for one.
        level: 1 to 20.
        constitution: The ability score, 1 to 30.

    Raises:
        ValueError: Level or Constitution is out of range.
    """
    die, extra = hit_die(class_name), modifier(constitution)
    return max(1, die + extra) + (_level(level) - 1) * max(1, die // 2 + 1 + extra)


def _class(text: str) -> tuple[int, str, int]:
    return _CLASSES.get(class_of(text) or "", _ANYONE)


def _ability(short: str) -> str:
    return next(ability for ability in ABILITIES if ability.startswith(short))


def _level(level: int) -> int:
    if not 1 <= level <= 20:
        raise ValueError(f"Level {level} does not exist. Use 1 to 20.")
    return level
