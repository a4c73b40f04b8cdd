"""How a complete character enters the story, and how the story follows the character's page."""

from __future__ import annotations

from typing import Any

from questbook.graphs.dungeon_master.rules.rules import fill_abilities, hit_points, kit, starting_gold
from questbook.notebooks import CharacterNotebook, StateNotebook


def enter(before: CharacterNotebook, page: CharacterNotebook, quest: StateNotebook) -> dict[str, Any]:
    """Return the patches that a complete character asks for; none if all is in place.

    What is open on the page is filled by the rules: abilities, hit points and, at the start, a kit. Who has not entered
    yet does so in the morning of the first day, unhurt, with their kit and a little gold. Later, the quest follows what
    a person changes on the page: the maximum of the hit points.

    Args:
        before: The character's page as state holds it.
        page: The page as it is now; complete.
        quest: The quest's page; nobody has entered while it knows no maximum of hit points.

    Raises:
        PageFullError: A person has filled the page to its last character.
    """
    starts = quest.condition.max_hp is None
    abilities = fill_abilities(page.abilities.model_dump(), page.class_name, page.ancestry)
    most = page.hit_points or hit_points(page.class_name, page.level, abilities["constitution"])
    filled = {"abilities": abilities, "hit_points": most, "kit": page.kit or (kit(page.class_name) if starts else {})}
    ready = page.apply(filled).page
    patches: dict[str, Any] = {"character": ready.patch_from(before)}
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
