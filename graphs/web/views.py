"""Endpoints that show the page of a campaign, and what is beside the story."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from questbook.graphs.web import panels
from questbook.graphs.web.app_state import campaign_of, html, state_of
from questbook.graphs.web.memories import recalled_memories
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.graphs.web.story import records_of, turns_before
from questbook.graphs.web.tree import rows_of, tree_values
from questbook.types import JSON

_PANELS = ("sheet", "quest", "memories", "dice", "summary", "tree", "core")
_ALL = 1_000_000


async def show_campaign(request: Request) -> Response:
    """Show the page of a campaign."""
    campaign = await campaign_of(request)
    return html(request, "campaign.html", await _with_memories(request, campaign))


async def panel(request: Request) -> Response:
    """Show one panel."""
    campaign, name = await campaign_of(request), request.path_params["panel"]
    if name not in _PANELS:
        return HTMLResponse("There is no such panel.", 404)
    if name in ("memories", "summary"):
        await campaign.look_back()
    values = await (_with_memories(request, campaign) if name == "memories" else panels.page_values(campaign))
    if name == "dice":
        values["dice"] = panels.dice(await campaign.game.saved_game(), await records_of(campaign.game))
    if name == "tree":
        values |= await tree_values(campaign.game)
    return html(request, f"{name}.html", values)


async def _with_memories(request: Request, campaign: OpenCampaign) -> JSON:
    values = await panels.page_values(campaign)
    last = values["live"] or next(reversed(values["turns"]), None)
    return values | {"memories": await recalled_memories(request, campaign, last.player if last else "")}


async def fidelity(request: Request) -> Response:
    """Show conversation, summary and buffer side by side."""
    campaign = await campaign_of(request)
    await campaign.look_back()
    conversation = await turns_before(campaign.game, _ALL)
    return html(request, "fidelity.html", await panels.page_values(campaign) | {"conversation": conversation})


async def behind(request: Request) -> Response:
    """Show a developer what the model saw."""
    if not state_of(request).developer:
        return HTMLResponse("Start the server with --developer to see what the model sees.", 404)
    campaign = await campaign_of(request, own=True)  # the prompt has what is known of them from other campaigns
    await campaign.look_back()
    return html(request, "behind.html", await panels.page_values(campaign) | {"report": campaign.report})


async def compare(request: Request) -> Response:
    """Show what differs between two places."""
    campaign = await campaign_of(request)
    one, other = (request.query_params.get(name, "") for name in ("one", "other"))
    difference = await (await campaign.game.history()).difference(one, other)
    titles = {row.handle: row.title for row in await rows_of(campaign.game)}
    names = [titles.get(one, one), titles.get(other, other or "here")]
    sides = zip(names, (difference.only_before, difference.only_after), strict=True)
    values = {"one": names[0], "other": names[1], "changes": difference.pages, "sides": list(sides)}
    return html(request, "compare.html", values)


ROUTES = [
    Route("/", show_campaign),
    Route("/panel/{panel}", panel),
    Route("/compare", compare),
    Route("/behind", behind),
    Route("/fidelity", fidelity),
]
"""Below the path of a campaign."""
