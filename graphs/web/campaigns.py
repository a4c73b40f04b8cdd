"""Routes of the campaigns: the list, a campaign's page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from questbook.graphs.embedded.databases import open_checkpointer
from questbook.graphs.terminal.campaigns import list_campaigns
from questbook.graphs.web.desk import Desk, place_of

_MOST = 200


def campaign_routes(desk: Desk) -> list[Route]:
    """Return the routes."""

    async def all_campaigns(_: Request) -> Response:
        async with open_checkpointer(desk.home.checkpoints) as checkpointer:
            campaigns = await list_campaigns(checkpointer, desk.context.user or "", _MOST)
        return desk.html("campaigns.html", {"campaigns": campaigns, "offline": desk.context.model == "offline"})

    async def new(request: Request) -> Response:
        name = " ".join(request.query_params.get("name", "").split())[:200]
        return RedirectResponse(place_of(name or "default"), 303)

    async def campaign(request: Request) -> Response:
        return desk.html("campaign.html", await desk.state(await desk.table(request)))

    return [
        Route("/", all_campaigns),
        Route("/new", new),
        Route("/c/{campaign}", campaign),
    ]
