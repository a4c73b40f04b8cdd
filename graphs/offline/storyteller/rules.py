"""The rules of play that the storyteller needs: classes, skills, modifiers, checks. The tables are in rules.toml."""

from __future__ import annotations

import re
from typing import NamedTuple

from questbook.graphs.offline.storyteller.language import load, stems
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.types import JSON


class Attack(NamedTuple):
    """How a character strikes: the modifier, the damage die, and what they strike with."""

    modifier: int
    damage: str
    weapon: str


def class_of(character: JSON) -> str:
    """Say which of the twelve classes a character's own word for it comes nearest to; fighter if none."""
    named = stems(str(character.get("class") or ""))
    classes = load("rules")["classes"]
    return next((name for name, about in classes.items() if named & {name, *about["also"].split()}), "fighter")


def modifier(character: JSON, ability: str) -> int:
    """Return an ability's modifier; without a score, the class's own ability counts as 15, others as 10."""
    scores = character.get("abilities")
    score = scores.get(ability) if isinstance(scores, dict) else None
    if not isinstance(score, int):
        score = 15 if ability == _class(character)["ability"] else 10
    return (score - 10) // 2


def attack_of(character: JSON) -> Attack:
    """Return how a character strikes."""
    about = _class(character)
    return Attack(modifier(character, about["ability"]), about["damage"], about["weapon"])


def armour_class(character: JSON) -> int:
    """Return the character's armour class."""
    return max(11 + modifier(character, "dexterity"), int(_class(character).get("armour", 0)))


def d20(bonus: int) -> str:
    """Write a d20 with its modifier."""
    return f"1d20{bonus:+d}" if bonus else "1d20"


def skill_roll(character: JSON, skill: str) -> str:
    """Write the dice of a check: a d20 with the ability's modifier, and the proficiency bonus of the trained."""
    level = character.get("level")
    proficiency = 2 + (level - 1) // 4 if isinstance(level, int) and level > 0 else 2
    bonus = modifier(character, load("rules")["skills"].get(skill, "wisdom"))
    return d20(bonus + proficiency if skill in _class(character)["skills"] else bonus)


def check(scene: Scene, skill: str, dc: int, reason: str) -> bool:
    """Roll a check and say whether it succeeds; one who is battered rolls with disadvantage."""
    conditions = (scene.page.get("condition") or {}).get("conditions") or {}
    advantage = "disadvantage" if "battered" in conditions else None
    return bool(scene.roll(skill_roll(scene.character, skill), f"{skill} {reason}"[:120], dc, advantage)["success"])


def skill_for(verb: str, sentence: str) -> str:
    """Choose the skill for a deed: the one that the sentence names, or one of the ability that it names."""
    said = sentence.casefold()
    tables = load("rules")
    named = next((skill for skill in tables["skills"] if skill.casefold() in said), None)
    by_ability = (skill for ability, skill in tables["ability_skills"].items() if re.search(rf"\b{ability}\b", said))
    return str(named or next(by_ability, None) or tables["verb_skills"].get(verb, "Perception"))


def _class(character: JSON) -> JSON:
    about: JSON = load("rules")["classes"][class_of(character)]
    return about
