"""Callings: the twelve classes, what people call themselves who are of one, and what each is good at."""

from __future__ import annotations

from typing import Any

from questbook.graphs.offline.storyteller.tale import stems

JSON = dict[str, Any]

CALLINGS = {
    "barbarian": "berserker savage",
    "bard": "minstrel singer skald musician poet storyteller entertainer troubadour",
    "cleric": "priest priestess healer acolyte nun",
    "druid": "shaman witch herbalist",
    "fighter": "warrior soldier knight mercenary guard swordsman swordswoman gladiator sellsword duelist captain",
    "monk": "martial brawler",
    "paladin": "crusader templar",
    "ranger": "hunter scout archer tracker bounty outlander",
    "rogue": "thief assassin burglar pickpocket spy smuggler pirate swashbuckler cutpurse bandit",
    "sorcerer": "sorceress",
    "warlock": "occultist cultist hexblade",
    "wizard": "mage magician scholar necromancer illusionist alchemist artificer enchanter",
}
"""The twelve classes, and what else people call themselves."""

WEAPONS = {
    "barbarian": ("strength", "1d12", "axe"),
    "bard": ("dexterity", "1d8", "rapier"),
    "cleric": ("strength", "1d6", "mace"),
    "druid": ("wisdom", "1d8", "thorn-staff"),
    "fighter": ("strength", "1d8", "sword"),
    "monk": ("dexterity", "1d6", "quick hands"),
    "paladin": ("strength", "1d8", "sword"),
    "ranger": ("dexterity", "1d8", "bow"),
    "rogue": ("dexterity", "1d6", "short blade"),
    "sorcerer": ("charisma", "1d8", "bolt of raw magic"),
    "warlock": ("charisma", "1d10", "dark fire"),
    "wizard": ("intelligence", "1d10", "bolt of fire"),
}
"""Class to the ability it fights with, its damage die, and what it strikes with."""

ARMOUR = {"fighter": 16, "paladin": 16, "cleric": 15, "ranger": 14, "barbarian": 14, "monk": 14, "druid": 13}
"""Class to the least armour class that its usual gear gives; others go by 11 and Dexterity."""

SKILLED = {
    "barbarian": {"Athletics", "Intimidation", "Survival", "Perception"},
    "bard": {"Persuasion", "Performance", "Deception", "Acrobatics", "Insight"},
    "cleric": {"Insight", "Medicine", "Religion", "Persuasion"},
    "druid": {"Nature", "Survival", "Animal Handling", "Perception"},
    "fighter": {"Athletics", "Intimidation", "Perception"},
    "monk": {"Acrobatics", "Stealth", "Insight"},
    "paladin": {"Athletics", "Persuasion", "Religion"},
    "ranger": {"Stealth", "Survival", "Perception", "Nature", "Animal Handling"},
    "rogue": {"Stealth", "Sleight of Hand", "Acrobatics", "Deception", "Investigation", "Perception"},
    "sorcerer": {"Arcana", "Persuasion", "Deception"},
    "warlock": {"Arcana", "Deception", "Intimidation"},
    "wizard": {"Arcana", "History", "Investigation"},
}
"""Class to the skills that it adds its proficiency to."""

SKILLS = {
    "Athletics": "strength",
    "Acrobatics": "dexterity",
    "Sleight of Hand": "dexterity",
    "Stealth": "dexterity",
    "Arcana": "intelligence",
    "History": "intelligence",
    "Investigation": "intelligence",
    "Nature": "intelligence",
    "Religion": "intelligence",
    "Animal Handling": "wisdom",
    "Insight": "wisdom",
    "Medicine": "wisdom",
    "Perception": "wisdom",
    "Survival": "wisdom",
    "Deception": "charisma",
    "Intimidation": "charisma",
    "Performance": "charisma",
    "Persuasion": "charisma",
}
"""Skill to ability; SRD 5.1."""


def kind(character: JSON) -> str:
    """Say which of the twelve classes a character's calling comes nearest to; fighter if none."""
    said = stems(str(character.get("class") or ""))
    for name, others in CALLINGS.items():
        if name in said or said & set(others.split()):
            return name
    return "fighter"
