"""What stands beside the story: sheet, quest, memories, dice, summary, the tree of lines.

Every panel is made of the player's view; secrets never reach a template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from questbook.graphs.dungeon_master.rules.sheet import modifier
from questbook.graphs.embedded.saved_game import SavedGame
from questbook.graphs.turn.player_view import PlayerView
from questbook.notebooks import CoreNotebook
from questbook.types import JSON

_SHEET = ("ancestry", "class", "background", "appearance", "personality", "alignment", "goal")


class Ability(NamedTuple):
    """An ability score."""

    name: str
    score: int
    modifier: int


def sheet(view: PlayerView) -> JSON:
    """Return the character's sheet: name, level, rows, abilities, kit, what is missing, and hit points."""
    fields = view.character.player_view()
    condition = view.quest.get("condition", {})
    most = condition.get("max_hp") or fields.get("hit_points")
    points = condition.get("hp", most)
    return {
        "name": fields.get("name", ""),
        "level": fields.get("level", 1),
        "rows": [(name, fields[name]) for name in _SHEET if fields.get(name)],
        "abilities": [
            Ability(name[:3].upper(), score, modifier(score)) for name, score in fields.get("abilities", {}).items()
        ],
        "missing": view.character.missing,
        "hp": points,
        "max_hp": most,
        "share": round(100 * points / most) if points is not None and most else None,
        "conditions": condition.get("conditions", {}),
    }


def quest(view: PlayerView) -> JSON:
    """Return the quest's page: place and time, quests, people, inventory, what was learnt."""
    page = view.quest
    clock: Mapping[str, Any] = page.get("clock", {})
    return {
        **{name: page.get(name, "") for name in ("scene", "location", "objective")},
        **{name: page.get(name, {}) for name in ("quests", "people", "inventory", "facts", "fallen")},
        "gold": page.get("gold", 0),
        "day": clock.get("day"),
        "time": clock.get("time", ""),
    }


def value_of(view: PlayerView, page: str, names: Sequence[str]) -> Any:
    """Return what a page says in a field, as the player may see it; None if there is no such field."""
    value: Any = view.character.player_view() if page == "character" else view.quest
    for name in names:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def dice(saved: SavedGame | None) -> list[JSON]:
    """Return the last rolls, the latest first."""
    return list(reversed(saved.values.get("rolls") or [])) if saved else []


def core(saved: SavedGame) -> list[JSON]:
    """Return the sections of a companion's core memory, as they are shown and edited."""
    page = CoreNotebook.load(saved.values.get("core"))
    return [
        {"label": label, "value": (part := page.sections[label]).value, "used": part.used, "limit": part.limit,
         "read_only": part.read_only, "description": part.description}
        for label in page.labels
    ]  # fmt: skip
