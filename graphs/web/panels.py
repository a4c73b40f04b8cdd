"""What stands beside the story: sheet, quest, memories, dice, summary, the tree of lines.

Every panel is made of the player's view; secrets never reach a template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from questbook.graphs.dungeon_master.rules.sheet import modifier
from questbook.graphs.local.saved_game import SavedGame
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
        "open": [name for name in _SHEET if not fields.get(name) and name not in view.character.missing],
        "abilities": [Ability(name, score, modifier(score)) for name, score in fields.get("abilities", {}).items()],
        "kit": fields.get("kit", {}),
        "missing": view.character.missing,
        "hp": points,
        "max_hp": most,
        "share": round(100 * (points or 0) / most) if most else 0,
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


class DiceLog(NamedTuple):
    """The rolls of a line.

    Attributes:
        rolls: All, the latest first, each with its turn.
        checks: How many had a number to reach.
        successes: How many of these reached it.
        d20s: How many showed the face of one d20.
        mean: The mean of these faces.
        best: How many were a natural 20.
        worst: How many were a natural 1.
    """

    rolls: list[JSON]
    checks: int
    successes: int
    d20s: int
    mean: float
    best: int
    worst: int


def dice(saved: SavedGame | None, records: Sequence[JSON] = ()) -> DiceLog:
    """Return the rolls of the line: those of its records, and the last ones, which the checkpoint holds."""
    by_turn = {int(record["turn"]): list(record["rolls"]) for record in records if record.get("rolls")}
    for roll in (saved.values.get("rolls") or []) if saved else []:
        if (turn := int(roll.get("turn") or 0)) not in by_turn or "turn" in by_turn[turn][0]:
            by_turn.setdefault(turn, []).append(roll)
    rolls = [roll | {"turn": turn} for turn in sorted(by_turn, reverse=True) for roll in reversed(by_turn[turn])]
    outcomes = [roll["success"] for roll in rolls if roll.get("dc") is not None]
    faces = [int(roll["natural"]) for roll in rolls if roll.get("natural")]
    mean = sum(faces) / len(faces) if faces else 0.0
    return DiceLog(rolls, len(outcomes), sum(outcomes), len(faces), mean, faces.count(20), faces.count(1))


def core(saved: SavedGame) -> list[JSON]:
    """Return the sections of a companion's core memory, as they are shown and edited; each has an id of its label."""
    page = CoreNotebook.load(saved.values.get("core"))
    return [
        {"id": f"core-{label.encode().hex()}", "label": label, "value": (part := page.sections[label]).text,
         "used": part.used, "limit": part.limit, "read_only": part.read_only,
         "is_list": not isinstance(part.value, str)}
        for label in page.labels
    ]  # fmt: skip
