"""Endpoints that change the pages by hand: a field, an entry that is new, a section of core memory.

Every change goes through the page's own gate (`History.write`), and a refusal is shown at the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from questbook.graphs.dungeon_master.why import FACT, MEMORY, Cause, why
from questbook.graphs.errors import HistoryError, InputError
from questbook.graphs.local.game import Game
from questbook.graphs.web import panels
from questbook.graphs.web.app_state import campaign_of, html
from questbook.graphs.web.fields import Part, part_at, patch_of, read_value
from questbook.graphs.web.play import DONE
from questbook.notebooks import CoreNotebook
from questbook.types import JSON

_LONGEST_NAME = 80
_MOST_CAUSES = 4  # turns that are named


async def field(request: Request) -> Response:
    """Show a field's card: its value, a control for it, and where it comes from."""
    game = (await campaign_of(request)).game
    page, names = request.query_params.get("page", ""), request.query_params.getlist("path")
    part, saved = part_at(page, names), await game.saved_game()
    if part is None or not names or saved is None:
        return html(request, "problem.html", {"text": "There is nothing here that can be changed."}, 404)
    value = panels.value_of(saved.view, page, names)
    values = {"page": page, "names": names, "part": part, "value": value}
    return html(request, "card.html", values | await _origin(game, names, value))


async def change(request: Request) -> Response:
    """Change or delete a field, or add an entry to a list."""
    campaign, form = await campaign_of(request), await request.form()
    page, names = str(form.get("page", "")), [str(name) for name in form.getlist("path")]
    part, saved = part_at(page, names), await campaign.game.saved_game()
    if part is None or not names or saved is None:
        return HTMLResponse("There is no such field.", 404)
    value: Any
    if part.kind == "list" and not form.get("delete"):
        value = _new_entry(part, form, panels.value_of(saved.view, page, names) or {})
    else:
        value = None if form.get("delete") else read_value(part, str(form.get("value", "")))
    async with campaign.change(is_same_line=True):
        await (await campaign.game.history()).write({page: patch_of(names, value)})
    return DONE


async def core(request: Request) -> Response:
    """Change a section of core memory."""
    campaign, form = await campaign_of(request), await request.form()
    async with campaign.change(is_same_line=True):
        saved = await campaign.game.saved_game()
        if saved is None:
            raise InputError("It begins with your first message.")
        patch = _core_patch(CoreNotebook.load(saved.values.get("core")), form)
        await (await campaign.game.history()).write({"core": patch})
    return DONE


ROUTES = [
    Route("/field", field),
    Route("/page", change, methods=["POST"]),
    Route("/core", core, methods=["POST"]),
]
"""Below the path of a campaign."""


async def _origin(game: Game, names: list[str], value: Any) -> JSON:
    """Return which messages set a field, or why none did."""
    if value is None:
        return {"causes": [], "reason": "Nothing is written here yet."}
    try:
        causes = await why(await game.load(), game.config, game.context, ".".join(names))
    except HistoryError as error:
        return {"causes": [], "reason": str(error)}
    return {"causes": by_turn(causes), "reason": ""}


def by_turn(causes: Sequence[Cause]) -> list[JSON]:
    """Return the turns that set a field, the newest first, each with what it set and whether that still holds."""
    turns: dict[tuple[str, int], JSON] = {}
    for cause in causes:
        turn = turns.setdefault((cause.branch, cause.turn), cause._asdict() | {"sets": []})
        name = "" if cause.field in (MEMORY, FACT) else cause.field.split(".")[-1].replace("_", " ")
        if name and cause.value != "":
            turn["sets"].append((name, cause.value, cause.holds))
    return list(turns.values())[:_MOST_CAUSES]


def _new_entry(part: Part, form: FormData, there: Mapping[str, Any]) -> JSON:
    """Make the patch of a list that adds what a form says.

    Raises:
        InputError: It has no name, or the list has one of that name.
    """
    name = " ".join(str(form.get("name", "")).split())
    if not name or len(name) > _LONGEST_NAME:
        raise InputError(f"A new entry needs a name of 1 to {_LONGEST_NAME} characters, got {name!r:.100}.")
    if (same := next((other for other in there if other.casefold() == name.casefold()), None)) is not None:
        raise InputError(f"{same!r} is on the page already. Choose it there to change it.")
    if not part.parts:
        empty = 1 if part.each == "number" else ""
        value = read_value(part._replace(kind=part.each), str(form.get("value", "")))
        return {name: empty if value is None else value}
    values = {each.name: read_value(each, str(form.get(f"part.{each.name}", ""))) for each in part.parts}
    return {name: {inner: value for inner, value in values.items() if value is not None}}


def _core_patch(core: CoreNotebook, form: FormData) -> JSON:
    """Make the patch of core memory that a form asks for: a section new, changed, removed or further up."""
    label, labels = " ".join(str(form.get("label", "")).split()), core.labels
    if form.get("delete"):
        return {"sections": {label: None}}
    if form.get("up") and label in labels:
        place = max(labels.index(label) - 1, 0)
        labels.remove(label)
        return {"order": [*labels[:place], label, *labels[place:]]}
    if form.get("new") and label.casefold() in (other.casefold() for other in labels):
        raise InputError(f"There is a section {label!r} already.")
    text, section = str(form.get("value", "")), core.sections.get(label)
    lines = [line for line in text.splitlines() if line.strip()]
    return {"sections": {label: {"value": text if section is None or isinstance(section.value, str) else lines}}}
