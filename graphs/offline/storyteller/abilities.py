"""Abilities: what a character adds to the dice, and the check that asks them."""

from __future__ import annotations

from typing import Any

from questbook.graphs.offline.storyteller import callings
from questbook.graphs.offline.storyteller.scene import Scene

JSON = dict[str, Any]


def modifier(character: JSON, ability: str) -> int:
    """Return an ability's modifier; without a score, the calling's own ability counts as 15, others as 10."""
    scores = character.get("abilities")
    score = scores.get(ability) if isinstance(scores, dict) else None
    if not isinstance(score, int):
        score = 15 if ability == callings.WEAPONS[callings.kind(character)][0] else 10
    return (score - 10) // 2


def skill_bonus(character: JSON, skill: str) -> int:
    """Return what a character adds to a check of a skill."""
    level = character.get("level")
    proficiency = 2 + (level - 1) // 4 if isinstance(level, int) and level > 0 else 2
    trained = skill in callings.SKILLED[callings.kind(character)]
    return modifier(character, callings.SKILLS.get(skill, "wisdom")) + (proficiency if trained else 0)


def d20(bonus: int) -> str:
    """Write a d20 with its modifier."""
    return f"1d20{bonus:+d}" if bonus else "1d20"


def armour(character: JSON) -> int:
    """Return the character's armour class."""
    return max(11 + modifier(character, "dexterity"), callings.ARMOUR.get(callings.kind(character), 0))


def check(scene: Scene, skill: str, dc: int, what: str) -> bool:
    """Roll a check; whoever is battered rolls with disadvantage."""
    conditions = (scene.page.get("condition") or {}).get("conditions") or {}
    advantage = "disadvantage" if "battered" in conditions else None
    rolled = scene.roll(d20(skill_bonus(scene.character, skill)), f"{skill} {what}"[:120], dc, advantage)
    return bool(rolled["success"])
