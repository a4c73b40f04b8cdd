"""Endpoints that show a campaign: the page, each panel, two places compared, side by side, and the chronicle.

All of it is made of the player's view; secrets never reach a template.
"""

import re
import uuid
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import groupby
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from questbook.graphs.companion.context import assistant_name
from questbook.graphs.dungeon_master.sheet import modifier
from questbook.graphs.interface.text import clean, one_line
from questbook.graphs.local.costs import costs_of
from questbook.graphs.local.game import Game
from questbook.graphs.local.saved_game import SavedGame
from questbook.graphs.turn.player_view import PlayerView
from questbook.graphs.web.app_state import campaign_of, html, note, shows, state_of
from questbook.graphs.web.campaign_pool import GAME
from questbook.graphs.web.memories import recalled_memories
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.graphs.web.play import read_number
from questbook.graphs.web.story import StoryTurn, latest_turns, records_of, rows_of, takes_of, turns_before
from questbook.notebooks import CoreNotebook
from questbook.types import JSON

_PANELS = ("sheet", "quest", "memories", "dice", "summary", "tree", "core")
_ALL = 1_000_000
_SHEET = ("ancestry", "class", "background", "appearance", "personality", "alignment", "goal")


async def show_campaign(request: Request, campaign: OpenCampaign) -> Response:
    """Show the page of a campaign."""
    return html(request, "campaign.html", await _with_memories(request, campaign))


async def story(request: Request, campaign: OpenCampaign) -> Response:
    """Show the story, with the turn that is being played."""
    return html(request, "story.html", await _page_values(campaign))


async def earlier(request: Request, campaign: OpenCampaign) -> Response:
    """Show the turns before one."""
    turns = await turns_before(campaign.game, read_number(request.query_params.get("before", "1")))
    return html(request, "earlier.html", {"turns": turns})


async def panel(request: Request, campaign: OpenCampaign) -> Response:
    """Show one panel."""
    if (name := request.path_params["panel"]) not in _PANELS:
        raise HTTPException(404, "There is no such panel.")
    if name in ("memories", "summary"):
        await campaign.look_back()
    values = await (_with_memories(request, campaign) if name == "memories" else _page_values(campaign))
    if name == "dice":
        values["dice"] = _dice(await campaign.game.saved_game(), await records_of(campaign.game))
    if name == "tree":
        values["rows"] = await rows_of(campaign.game)
    return html(request, f"{name}.html", values)


async def _with_memories(request: Request, campaign: OpenCampaign) -> JSON:
    values = await _page_values(campaign)
    last = values["live"] or values["half"] or next(reversed(values["turns"]), None)
    return values | {"memories": await recalled_memories(request, campaign, last.player if last else "")}


async def fidelity(request: Request, campaign: OpenCampaign) -> Response:
    """Show conversation, summary and buffer side by side."""
    await campaign.look_back()
    conversation = await turns_before(campaign.game, _ALL)
    return html(request, "fidelity.html", await _page_values(campaign) | {"conversation": conversation})


async def behind(request: Request) -> Response:
    """Show a developer what the model saw."""
    if not state_of(request).developer:
        raise HTTPException(404, "Start the server with --developer to see what the model sees.")
    campaign = await campaign_of(request, own=True)  # the prompt has what is known of them from other campaigns
    await campaign.look_back()
    return html(request, "behind.html", await _page_values(campaign) | {"report": campaign.report})


async def compare(request: Request, campaign: OpenCampaign) -> Response:
    """Show what differs between two places."""
    one, other = (request.query_params.get(name, "") for name in ("one", "other"))
    difference = await (await campaign.game.history(only_looks=True)).difference(one, other)
    titles = {row.handle: row.title for row in await rows_of(campaign.game)}
    names = [titles.get(of, f"turn {of}" if of.isdecimal() else of or "here") for of in (one, other)]
    sides = zip(names, (difference.only_before, difference.only_after), strict=True)
    values = {"one": names[0], "other": names[1], "changes": difference.pages, "sides": list(sides)}
    return html(request, "compare.html", values)


async def _page_values(campaign: OpenCampaign) -> JSON:
    """Return what the templates show of a campaign; nothing of it is a secret."""
    # All as of one moment: a turn may end while the checkpoint is read, and the stream tells what came after `number`.
    game, live, report, number = campaign.game, copy(campaign.live), campaign.report, campaign.number
    problem, undo = campaign.problem, campaign.undo
    if live is not None:
        live.rolls = [*live.rolls]
    saved, is_game = await game.saved_game(), game.machine == GAME
    values: Mapping[str, Any] = saved.values if saved else {}
    view = saved.view if saved and is_game else None
    turns = latest_turns(saved) if saved else []
    half = live if live is not None and live.is_over else None
    live = None if live is None or live.is_over or live.is_told else live
    unanswered = saved.unanswered if saved else None
    waits = saved is not None and unanswered is not None and not saved.unread
    if turns and ((live and turns[-1].player == live.player) or waits):
        turns = turns[:-1]  # it is shown as it comes, or as what has no reply
    has_begun = view is not None and view.character.complete
    return {
        "campaign": assistant_name(game.context.campaign),
        "is_game": is_game,
        "is_begun": saved is not None,
        "costs": await costs_of(game.home, game.context.user, game.context.campaign),
        "core": CoreNotebook.load(values.get("core")) if saved and not is_game else None,
        "number": number,
        "ticket": uuid.uuid4().hex,
        "turns": turns,
        "takes": [] if live else await takes_of(game),
        "live": live,
        "unanswered": unanswered,
        "half": half if half and half.player == unanswered else None,
        "work": campaign.work(live.work) if live else "",
        "problem": problem,
        "notices": [each["text"] for each in values.get("notices") or () if saved and each["turn"] == saved.turn],
        "undo": undo,
        "sheet": _sheet(view) if view else None,
        "quest": view.quest if view and has_begun else None,
        "dice": _dice(saved),
        "summary": str(values.get("summary") or ""),
        "fidelity": report.fidelity if report else None,
        "tokens": sum(section["tokens"] for section in report.sections) if report else 0,
        "recap": view.recap().partition("\n\n")[2] if view and has_begun and len(turns) > 1 else "",
        "turn": saved.turn if saved else 0,
        "wish": _wish(saved),
        "line": values.get("line") or "main",
    }


def _wish(saved: SavedGame | None) -> JSON:
    note: JSON = (saved.values.get("note") if saved else None) or {}
    left = int(note.get("through", 0)) - (saved.turn if saved else 0)
    return {"text": note.get("text", ""), "turns": left} if left > 0 else {}


def _sheet(view: PlayerView) -> JSON:
    fields, condition = view.character.player_view(), view.quest.get("condition", {})
    most = condition.get("max_hp") or fields.get("hit_points")
    points = condition.get("hp", most)
    return {
        "name": fields.get("name", ""),
        "level": fields.get("level", 1),
        "rows": [(name, fields[name]) for name in _SHEET if fields.get(name)],
        "open": [name for name in _SHEET if not fields.get(name) and name not in view.character.missing],
        "abilities": [(name, score, modifier(score)) for name, score in fields.get("abilities", {}).items()],
        "kit": fields.get("kit", {}),
        "missing": view.character.missing,
        "hp": points,
        "max_hp": most,
        "share": round(100 * (points or 0) / most) if most else 0,
        "conditions": condition.get("conditions", {}),
    }


def _dice(saved: SavedGame | None, records: Sequence[JSON] = ()) -> JSON:
    """Return the rolls of the line, the latest first: those of its records, and those that the checkpoint holds."""
    by_turn = {int(record["turn"]): list(record["rolls"]) for record in records if record.get("rolls")}
    for roll in (saved.values.get("rolls") or []) if saved else []:
        if (turn := int(roll.get("turn") or 0)) not in by_turn or "turn" in by_turn[turn][0]:
            by_turn.setdefault(turn, []).append(roll)
    rolls = [roll | {"turn": turn} for turn in sorted(by_turn, reverse=True) for roll in reversed(by_turn[turn])]
    outcomes = [roll["success"] for roll in rolls if roll.get("dc") is not None and not roll.get("foe")]
    faces = [int(roll["natural"]) for roll in rolls if roll.get("natural")]
    return {
        "rolls": rolls, "checks": len(outcomes), "successes": sum(outcomes),
        "mean": sum(faces) / len(faces) if faces else None, "best": faces.count(20), "worst": faces.count(1),
    }  # fmt: skip


class Chapter(NamedTuple):
    """One session, counted from 1, with the day on which it was played as ISO 8601 has it ("": unknown)."""

    number: int
    date: str
    turns: list[StoryTurn]


async def chronicle(request: Request, campaign: OpenCampaign) -> Response:
    """Show the chronicle."""
    values = await _chronicle_values(campaign.game) | {"rows": await rows_of(campaign.game)}
    return html(request, "chronicle.html", values | {"campaign": campaign.game.context.campaign})


async def chronicle_file(request: Request, campaign: OpenCampaign) -> Response:
    """Send the chronicle as Markdown."""
    await note(request, "export")
    values = await _chronicle_values(campaign.game)
    return PlainTextResponse(_markdown(**values), media_type="text/markdown; charset=utf-8")


async def _chronicle_values(game: Game) -> JSON:
    saved = await game.saved_game()
    view = saved.view if saved else None
    people: Mapping[str, Any] = view.quest.get("people", {}) if view else {}
    dead = {name: person.get("fate") or "died" for name, person in people.items() if person.get("alive") is False}
    name = view.character.name if view else ""
    sessions = groupby(await records_of(game), lambda record: int(record.get("session") or 1))
    chapters = ((number, list(records)) for number, records in sessions)
    return {
        "title": f"{game.context.campaign}: the tale of {name}" if name else game.context.campaign,
        "chapters": [
            Chapter(number, str(records[0].get("said_at") or "")[:10], [StoryTurn.of(record) for record in records])
            for number, records in chapters
        ],
        "dead": dict(view.quest.get("fallen", {})) | dead if view else {},
    }


def _markdown(title: str, chapters: Sequence[Chapter], dead: Mapping[str, str]) -> str:
    """Write a chronicle as Markdown; what would be markup in the words of people is escaped."""
    lines = [f"# {_plain(title)}", ""]
    for chapter in chapters:
        lines += [f"## Session {chapter.number}" + (f", {chapter.date}" if chapter.date else ""), ""]
        for turn in chapter.turns:
            lines += [*(f"> {_plain(line)}" for line in turn.player.splitlines()), ""] if turn.player else []
            lines += [_reply(turn.reply), ""] if turn.reply else []
    if dead:
        lines += ["## The dead", "", *(f"- **{_plain(name)}**: {_plain(fate)}" for name, fate in dead.items()), ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return _escaped(one_line(text), "\\`*_[]<>#|~")


def _escaped(text: str, marks: str) -> str:
    return "".join(f"\\{c}" if c in marks else c for c in text)


def _reply(text: str) -> str:
    """Write a reply as the page shows it, with emphasis, lists, tables, quotes and rules; all else is escaped."""
    return _escaped(re.sub(r"(?m)^( {0,3})#{1,6} +(.*)", r"\1**\2**", clean(text)), "[]<#~").replace("\\~\\~", "~~")


ROUTES = [
    *(shows(f"/{show.__name__}", show) for show in (story, earlier, compare, fidelity, chronicle)),
    shows("/", show_campaign),
    shows("/panel/{panel}", panel),
    shows("/chronicle.md", chronicle_file),
    Route("/behind", behind),
]
