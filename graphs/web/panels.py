"""What the templates show of a campaign: the story's last turns, and beside them sheet, quest, dice, summary.

All of it is made of the player's view; secrets never reach a template.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from questbook.graphs.companion.context import assistant_name
from questbook.graphs.dungeon_master.sheet import modifier
from questbook.graphs.local.costs import costs_of
from questbook.graphs.local.saved_game import SavedGame
from questbook.graphs.turn.player_view import PlayerView
from questbook.graphs.web.campaign_pool import GAME
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.graphs.web.story import PARAGRAPHS, latest_turns, takes_of
from questbook.notebooks import CoreNotebook
from questbook.types import JSON

_SHEET = ("ancestry", "class", "background", "appearance", "personality", "alignment", "goal")


async def page_values(campaign: OpenCampaign) -> JSON:
    """Return what the templates show of a campaign; nothing of it is a secret."""
    game, live, report = campaign.game, campaign.live, campaign.report
    saved, is_game = await game.saved_game(), game.machine == GAME
    values: Mapping[str, Any] = saved.values if saved else {}
    view = saved.view if saved and is_game else None
    turns = latest_turns(saved) if saved else []
    if live is not None and turns and turns[-1].player == live.player:
        turns = turns[:-1]  # it is shown as it comes
    has_begun = view is not None and view.character.complete
    return {
        "campaign": assistant_name(game.context.campaign),
        "is_game": is_game,
        "costs": await asyncio.to_thread(costs_of, game.home, game.context.user, game.context.campaign),
        "core": core(saved) if saved and not is_game else None,
        "number": campaign.number,
        "ticket": uuid.uuid4().hex,
        "turns": turns,
        "takes": [] if live else await takes_of(game),
        "live": live,
        "work": campaign.work(live.work) if live else "",
        "problem": campaign.problem,
        "undo": campaign.undo,
        "sheet": sheet(view) if view else None,
        "quest": view.quest if view and has_begun else None,
        "dice": dice(saved),
        "summary": str(values.get("summary") or ""),
        "fidelity": report.fidelity if report else None,
        "tokens": sum(section["tokens"] for section in report.sections) if report else 0,
        "recap": PARAGRAPHS.split(view.recap()) if view and has_begun and len(turns) > 1 else [],
        "turn": saved.turn if saved else 0,
        "wish": _wish(saved),
        "line": values.get("line") or "main",
    }


def _wish(saved: SavedGame | None) -> JSON:
    note: JSON = (saved.values.get("note") if saved else None) or {}
    left = int(note.get("through", 0)) - (saved.turn if saved else 0)
    return {"text": note.get("text", ""), "turns": left} if left > 0 else {}


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


def value_of(view: PlayerView, page: str, names: Sequence[str]) -> Any:
    """Return what a page says in a field, as the player may see it; None if there is no such field."""
    value: Any = view.character.player_view() if page == "character" else view.quest
    for name in names:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


class DiceLog(NamedTuple):
    """The rolls of a line, the latest first; how many had a number to reach and reached it; the faces of its d20s."""

    rolls: list[JSON]
    checks: int
    successes: int
    d20s: int
    mean: float
    best: int  # natural 20s
    worst: int  # natural 1s


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
