"""Pages as rows of label and text for a person; empty fields are left out."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from questbook.graphs.dungeon_master.sheet import modifier
from questbook.graphs.interface.text import one_line, plain
from questbook.graphs.turn.player_view import PlayerView
from questbook.memory.recall.times import phrase_age

if TYPE_CHECKING:
    from questbook.graphs.history.view import ChangedEntry
    from questbook.graphs.local.game import Game

Rows = list[tuple[str, str]]
_ENTRY_WIDTH, _WHY_WIDTH = 80, 100
_BY_CODE = frozenset({"hit_points", "max_hp", "fallen"})  # no message sets these by name


def sheet_rows(view: PlayerView) -> Rows:
    """Return the character sheet."""
    page = view.character
    fields = page.player_view()
    scores: Mapping[str, int] = fields.pop("abilities", {})
    kit: Mapping[str, int] = fields.pop("kit", {})
    rows = [(_label(field), str(value)) for field, value in fields.items()]
    if scores:
        shown = (f"{name[:3].upper()} {score} ({modifier(score):+d})" for name, score in scores.items())
        rows.append(("Abilities", "  ".join(shown)))
    if kit:
        rows.append(("Kit", _items(kit)))
    if page.missing:
        rows.append(("Still missing", ", ".join(page.missing)))
    return rows


def quest_rows(view: PlayerView) -> Rows:
    """Return what the player knows of the quest."""
    rows: Rows = []
    for field, value in view.quest.items():
        if text := _FORMATS[field](value) if field in _FORMATS else _inline(value, "\n"):
            rows.append((_label(field), text))
    return rows


def entry_rows(view: PlayerView) -> Rows:
    """Return what both pages hold, by the names that `/why` knows: entries of collections one by one."""
    rows: Rows = []
    for field, value in {**view.character.player_view(), **view.quest}.items():
        if field in _BY_CODE:
            continue
        parts = value if isinstance(value, Mapping) and field != "abilities" else {}
        rows += [(f"{field}.{name}", _inline(part)) for name, part in parts.items() if name not in _BY_CODE]
        rows += [] if parts else [(field, _inline(value))]
    return [(name, one_line(text, _ENTRY_WIDTH)) for name, text in rows]


async def why_rows(game: "Game", what: str) -> list[tuple[str, str, str, str]]:
    """Return rows (turn, when, what was noted, the player's words) on what set a field or left a memory."""
    from questbook.graphs.dungeon_master.why import MEMORY, why

    rows, now = [], datetime.now(UTC).astimezone()
    for cause in await why(await game.load(), game.config, game.context, what):
        first, last = cause.turns
        value = "deleted by the notes of this turn" if cause.value is None else cause.value
        noted = "memory" if cause.field == MEMORY else f"{cause.field}: {value}"
        noted += "" if cause.holds else " (changed since)"
        turn = str(last) if first == last else f"{first}–{last}"
        said = one_line(cause.player, _WHY_WIDTH)
        rows.append((turn, phrase_age(cause.said_at, now), one_line(noted, _WHY_WIDTH), said))
        rows += [("", "", one_line(plain(f"drawn from: {text}"), _WHY_WIDTH), "") for text in cause.drawn_from]
    return rows


def difference_rows(changes: "Iterable[ChangedEntry]") -> Rows:
    """Return what differs between two turns: before → after."""

    def either(value: Any) -> str:
        return "–" if value is None else _inline(value) or "–"

    return [
        (": ".join((_label(change.path[0]), *change.path[1:])), f"{either(change.before)} → {either(change.after)}")
        for change in changes
    ]


def _label(field: str) -> str:
    return {"class": "Class", "fallen": "The dead"}.get(field, field.replace("_", " ").capitalize())


def _inline(value: Any, between: str = "; ") -> str:
    if isinstance(value, Mapping):
        return between.join(f"{name}: {_inline(part)}" for name, part in value.items())
    return str(value)


def _items(value: Mapping[str, int]) -> str:
    return ", ".join(item if quantity == 1 else f"{item} ×{quantity}" for item, quantity in value.items())


def _quests(value: Mapping[str, Mapping[str, str]]) -> str:
    return "\n".join(
        f"{title} ({quest.get('status', 'open')})" + (f": {quest['notes']}" if quest.get("notes") else "")
        for title, quest in value.items()
    )


def _people(value: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for name, person in value.items():
        parts = [str(person[part]) for part in ("role", "attitude") if person.get(part)]
        parts += [f"last seen {person['last_seen']}"] if person.get("last_seen") else []
        if not person.get("alive", True):
            parts.append(f"dead: {person['fate']}" if person.get("fate") else "dead")
        lines.append(f"{name}: {', '.join(parts)}" if parts else name)
    return "\n".join(lines)


def _condition(value: Mapping[str, Any]) -> str:
    most = f"/{value['max_hp']}" if "max_hp" in value else ""
    lines = [f"{value['hp']}{most} hit points"] if "hp" in value else []
    lines += [f"{name}: {note}" if note else name for name, note in value.get("conditions", {}).items()]
    return "\n".join(lines)


_FORMATS: dict[str, Callable[[Any], str]] = {
    "quests": _quests,
    "people": _people,
    "inventory": _items,
    "condition": _condition,
    "clock": lambda value: f"day {value['day']}" + (f", {value['time']}" if value.get("time") else ""),
}
