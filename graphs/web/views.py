"""Routes that show the page of a campaign, and what stands beside the story."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from questbook.graphs.web import panels
from questbook.graphs.web.desk import Desk
from questbook.graphs.web.memories import recalled_memories
from questbook.graphs.web.story import records_of, turns_before
from questbook.graphs.web.table import Table
from questbook.graphs.web.tree import drawing, height_of, rows_of
from questbook.types import JSON

_PANELS = ("sheet", "quest", "memories", "dice", "summary", "tree", "core")
_ALL = 1_000_000


def view_routes(desk: Desk) -> list[Route]:
    """Return the routes, below the path of a campaign."""

    async def campaign(request: Request) -> Response:
        table = await desk.table(request)
        state = await desk.state(table)
        return desk.html("campaign.html", state | {"memories": await recall_of(request, table, state)})

    async def recall_of(request: Request, table: Table, state: JSON) -> list[JSON] | None:
        last = state["passage"] or next(reversed(state["turns"]), None)
        return await recalled_memories(desk, request, table, last.player if last else "")

    async def panel(request: Request) -> Response:
        table, name = await desk.table(request), request.path_params["panel"]
        if name not in _PANELS:
            return HTMLResponse("There is no such panel.", 404)
        if name in ("memories", "summary"):
            await table.look_back()
        state = await desk.state(table)
        if name == "memories":
            state["memories"] = await recall_of(request, table, state)
        if name == "dice":
            state["dice"] = panels.dice(await table.game.saved_game(), await records_of(table.game))
        if name == "tree":
            rows = await rows_of(table.game)
            strokes = drawing(rows)
            state |= {"rows": rows, "strokes": strokes, "height": height_of(strokes)}
        return desk.html(f"{name}.html", state)

    async def fidelity(request: Request) -> Response:
        table = await desk.table(request)
        await table.look_back()
        return desk.html(
            "fidelity.html", await desk.state(table) | {"conversation": await turns_before(table.game, _ALL)}
        )

    async def behind(request: Request) -> Response:
        if not desk.developer:
            return HTMLResponse("Start the server with --developer to see what the model sees.", 404)
        table = await desk.table(request, own=True)  # the prompt has what is known of them from other campaigns
        await table.look_back()
        return desk.html("behind.html", await desk.state(table) | {"report": table.report})

    async def compare(request: Request) -> Response:
        table = await desk.table(request)
        one, other = (request.query_params.get(name, "") for name in ("one", "other"))
        difference = await (await table.game.history()).difference(one, other)
        titles = {row.handle: row.title for row in await rows_of(table.game)}
        names = [titles.get(one, one), titles.get(other, other or "here")]
        sides = zip(names, (difference.only_before, difference.only_after), strict=True)
        values = {"one": names[0], "other": names[1], "changes": difference.pages, "sides": list(sides)}
        return desk.html("compare.html", values)

    return [
        Route("/", campaign),
        Route("/panel/{panel}", panel),
        Route("/compare", compare),
        Route("/behind", behind),
        Route("/fidelity", fidelity),
    ]
