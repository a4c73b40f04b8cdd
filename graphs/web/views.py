"""Routes that show the page of a campaign, and what stands beside the story."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from questbook.graphs.web import panels
from questbook.graphs.web.app_state import AppState
from questbook.graphs.web.memories import recalled_memories
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.graphs.web.story import records_of, turns_before
from questbook.graphs.web.tree import drawing, height_of, rows_of
from questbook.types import JSON

_PANELS = ("sheet", "quest", "memories", "dice", "summary", "tree", "core")
_ALL = 1_000_000


def view_routes(state: AppState) -> list[Route]:
    """Return the routes, below the path of a campaign."""

    async def show_campaign(request: Request) -> Response:
        campaign = await state.campaign(request)
        values = await state.values_of(campaign)
        return state.html("campaign.html", values | {"memories": await recall_of(request, campaign, values)})

    async def recall_of(request: Request, campaign: OpenCampaign, values: JSON) -> list[JSON] | None:
        last = values["live"] or next(reversed(values["turns"]), None)
        return await recalled_memories(state, request, campaign, last.player if last else "")

    async def panel(request: Request) -> Response:
        campaign, name = await state.campaign(request), request.path_params["panel"]
        if name not in _PANELS:
            return HTMLResponse("There is no such panel.", 404)
        if name in ("memories", "summary"):
            await campaign.look_back()
        values = await state.values_of(campaign)
        if name == "memories":
            values["memories"] = await recall_of(request, campaign, values)
        if name == "dice":
            values["dice"] = panels.dice(await campaign.game.saved_game(), await records_of(campaign.game))
        if name == "tree":
            rows = await rows_of(campaign.game)
            strokes = drawing(rows)
            values |= {"rows": rows, "strokes": strokes, "height": height_of(strokes)}
        return state.html(f"{name}.html", values)

    async def fidelity(request: Request) -> Response:
        campaign = await state.campaign(request)
        await campaign.look_back()
        return state.html(
            "fidelity.html", await state.values_of(campaign) | {"conversation": await turns_before(campaign.game, _ALL)}
        )

    async def behind(request: Request) -> Response:
        if not state.developer:
            return HTMLResponse("Start the server with --developer to see what the model sees.", 404)
        campaign = await state.campaign(request, own=True)  # the prompt has what is known of them from other campaigns
        await campaign.look_back()
        return state.html("behind.html", await state.values_of(campaign) | {"report": campaign.report})

    async def compare(request: Request) -> Response:
        campaign = await state.campaign(request)
        one, other = (request.query_params.get(name, "") for name in ("one", "other"))
        difference = await (await campaign.game.history()).difference(one, other)
        titles = {row.handle: row.title for row in await rows_of(campaign.game)}
        names = [titles.get(one, one), titles.get(other, other or "here")]
        sides = zip(names, (difference.only_before, difference.only_after), strict=True)
        values = {"one": names[0], "other": names[1], "changes": difference.pages, "sides": list(sides)}
        return state.html("compare.html", values)

    return [
        Route("/", show_campaign),
        Route("/panel/{panel}", panel),
        Route("/compare", compare),
        Route("/behind", behind),
        Route("/fidelity", fidelity),
    ]
