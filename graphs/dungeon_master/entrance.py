"""How a complete character enters the story."""

from __future__ import annotations

from typing import Any

from graphs.dungeon_master.rules import fill_abilities, hit_points, kit, starting_gold
from notebooks import CharacterNotebook, diff_patch


def enter(before: CharacterNotebook, page: CharacterNotebook) -> dict[str, Any]:
    """Return the patches with which the quest begins.

    What the player left open is filled by the rules (abilities, hit points, kit); the story starts in the morning of
    the first day, the character unhurt, with their kit and a little gold.

    Args:
        before: The page as state holds it.
        page: The page as it is now; complete.
    """
    abilities = fill_abilities(page.abilities.model_dump(), page.class_name, page.ancestry)
    most = page.hit_points or hit_points(page.class_name, page.level, abilities["constitution"])
    filled = {"abilities": abilities, "hit_points": most, "kit": page.kit or kit(page.class_name)}
    ready = page.patched(filled).page
    quest = {
        "condition": {"hp": most, "max_hp": most},
        "inventory": dict(ready.kit),
        "gold": starting_gold(page.class_name),
        "clock": {"day": 1, "time": "morning"},
    }
    return {"character": diff_patch(before.as_json(), ready.as_json()), "quest": quest}
