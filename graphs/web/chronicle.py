"""The chronicle: a campaign as a page to read, by session, with the map of its lines and the dead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from questbook.graphs.interface.text import one_line
from questbook.graphs.local.game import Game
from questbook.graphs.web.app_state import campaign_of, html
from questbook.graphs.web.story import StoryTurn, records_of
from questbook.graphs.web.tree import tree_values
from questbook.types import JSON


class Chapter(NamedTuple):
    """One session, counted from 1, with the day on which it was played as ISO 8601 has it ("": unknown)."""

    number: int
    date: str
    turns: list[StoryTurn]


async def page(request: Request) -> Response:
    """Show the chronicle."""
    game = (await campaign_of(request)).game
    values = await _values(game) | await tree_values(game)
    return html(request, "chronicle.html", values | {"campaign": game.context.campaign})


async def markdown(request: Request) -> Response:
    """Send the chronicle as Markdown."""
    values = await _values((await campaign_of(request)).game)
    return PlainTextResponse(as_markdown(**values), media_type="text/markdown; charset=utf-8")


ROUTES = [Route("/chronicle", page), Route("/chronicle.md", markdown)]
"""Below the path of a campaign."""


def as_markdown(title: str, chapters: Sequence[Chapter], dead: Mapping[str, str]) -> str:
    """Write a chronicle as Markdown; what would be markup in the words of people is escaped."""
    lines = [f"# {_plain(title)}", ""]
    for chapter in chapters:
        lines += [f"## Session {chapter.number}" + (f", {chapter.date}" if chapter.date else ""), ""]
        for turn in chapter.turns:
            lines += [*(f"> {_plain(line)}" for line in turn.player.splitlines()), ""] if turn.player else []
            lines += [text for paragraph in turn.paragraphs for text in (_plain(paragraph), "")]
    if dead:
        lines += ["## The dead", "", *(f"- **{_plain(name)}**: {_plain(fate)}" for name, fate in dead.items()), ""]
    return "\n".join(lines)


async def _values(game: Game) -> JSON:
    saved = await game.saved_game()
    view = saved.view if saved else None
    people: Mapping[str, Any] = view.quest.get("people", {}) if view else {}
    dead = {name: person.get("fate") or "died" for name, person in people.items() if person.get("alive") is False}
    name = view.character.name if view else ""
    return {
        "title": f"{game.context.campaign}: the tale of {name}" if name else game.context.campaign,
        "chapters": await chapters_of(game),
        "dead": dict(view.quest.get("fallen", {})) | dead if view else {},
    }


async def chapters_of(game: Game) -> list[Chapter]:
    """Return the turns of the line where the campaign is, by session."""
    chapters = []
    for number, group in groupby(await records_of(game), lambda record: int(record.get("session") or 1)):
        turns = list(group)
        shown = [StoryTurn.of(record) for record in turns]
        chapters.append(Chapter(number, str(turns[0].get("said_at") or "")[:10], shown))
    return chapters


def _plain(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|~" else c for c in one_line(text))
