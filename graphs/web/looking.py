"""Routes that show and edit what stands beside the story: panels, pages, memories and where they come from."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from questbook.graphs.dungeon_master.forgetting.provenance import why
from questbook.graphs.errors import HistoryError
from questbook.graphs.turn.player_view import is_secret
from questbook.graphs.web import panels
from questbook.graphs.web.desk import Desk
from questbook.graphs.web.story import turns_before
from questbook.graphs.web.tree import drawing, height_of, rows_of
from questbook.types import JSON

_PANELS = ("sheet", "quest", "memories", "dice", "summary", "tree", "core")
_PAGES = ("character", "quest")
_ALL = 1_000_000
_DEEPEST = 12  # names of a field's path
_DONE = Response(status_code=204)


def looking_routes(desk: Desk) -> list[Route]:
    """Return the routes, below the path of a campaign."""

    async def campaign(request: Request) -> Response:
        return desk.html("campaign.html", await desk.state(await desk.table(request)))

    async def core(request: Request) -> Response:
        table, form = await desk.table(request), await request.form()
        section = {str(form.get("label", "")): {"value": str(form.get("value", ""))}}
        async with table.alone():
            await (await table.game.history()).write({"core": {"sections": section}})
            await table.changed()
        return desk.html("done.html", {"text": "Changed."})

    async def panel(request: Request) -> Response:
        table, name = await desk.table(request), request.path_params["panel"]
        if name not in _PANELS:
            return HTMLResponse("There is no such panel.", 404)
        if name in ("memories", "summary"):
            await table.look_back()
        state = await desk.state(table)
        if name == "tree":
            rows = await rows_of(table.game)
            strokes = drawing(rows)
            state |= {"rows": rows, "strokes": strokes, "height": height_of(strokes)}
        return desk.html(f"{name}.html", state)

    async def fidelity(request: Request) -> Response:
        table = await desk.table(request)
        await table.look_back()
        return desk.html("fidelity.html", await desk.state(table) | {"told": await turns_before(table.game, _ALL)})

    async def behind(request: Request) -> Response:
        if not desk.developer:
            return HTMLResponse("Start the server with --developer to see what the model sees.", 404)
        table = await desk.table(request)
        await table.look_back()
        return desk.html("behind.html", await desk.state(table) | {"report": table.report})

    async def compare(request: Request) -> Response:
        table = await desk.table(request)
        one, other = (request.query_params.get(name, "") for name in ("one", "other"))
        difference = await (await table.game.history()).difference(one, other)
        sides = [(one, difference.only_before), (other or "here", difference.only_after)]
        return desk.html("compare.html", {"one": one, "other": other, "changes": difference.pages, "sides": sides})

    async def field(request: Request) -> Response:
        table = await desk.table(request)
        page, path = request.query_params.get("page", ""), request.query_params.get("path", "")
        names = path.split("/")
        saved = await table.game.saved_game()
        value = panels.value_of(saved.view, page, names) if saved and page in _PAGES else None
        if value is None:
            return desk.html("problem.html", {"text": "This is no longer on the page."}, 404)
        graph, game, reason = await table.game.load(), table.game, ""
        try:
            causes = await why(graph, game.config, game.context, ".".join(names))
        except HistoryError as error:
            causes, reason = [], str(error)
        return desk.html(
            "card.html",
            {
                "here": desk.here(table), "page": page, "path": path, "value": value,
                "label": " · ".join(name.replace("_", " ") for name in names), "causes": causes[:4], "reason": reason,
            },
        )  # fmt: skip

    async def page(request: Request) -> Response:
        table, form = await desk.table(request), await request.form()
        page, path = str(form.get("page", "")), str(form.get("path", "")).split("/")
        if page not in _PAGES or is_secret(path[0]) or len(path) > _DEEPEST:
            return HTMLResponse("There is no such page.", 404)
        patch = _patch(path, "" if form.get("delete") else str(form.get("value", "")))
        async with table.alone():
            await (await table.game.history()).write({page: patch})
            await table.changed()
        return _DONE

    return [
        Route("/", campaign),
        Route("/core", core, methods=["POST"]),
        Route("/panel/{panel}", panel),
        Route("/field", field),
        Route("/compare", compare),
        Route("/behind", behind),
        Route("/fidelity", fidelity),
        Route("/page", page, methods=["POST"]),
    ]


def _patch(path: list[str], text: str) -> JSON:
    """Make a patch that sets one field; nothing, or null, deletes it. A number is written as one."""
    value: object = text.strip() or None
    if isinstance(value, str) and value.lstrip("+-").isdecimal():
        value = int(value)
    elif value in ("true", "false"):
        value = json.loads(str(value))
    for name in reversed(path):
        value = {name: value}
    assert isinstance(value, dict)  # noqa: S101 (a path has one name at least)
    return value
