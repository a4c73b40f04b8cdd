"""Endpoints of the list of campaigns: all of a person's, a new one, one from a file."""

from __future__ import annotations

import asyncio
import tempfile
from functools import partial
from pathlib import Path

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from questbook.graphs.companion.context import assistant_name
from questbook.graphs.errors import InputError
from questbook.graphs.local.campaign_file import contents_of, import_campaign
from questbook.graphs.local.databases import minilm_hint, open_checkpointer
from questbook.graphs.local.saved_game import last_of_threads, list_campaigns
from questbook.graphs.web.app_state import html, state_of
from questbook.graphs.web.campaign_pool import COMPANION, GAME
from questbook.graphs.web.campaign_record import put_away, shared_with
from questbook.graphs.web.settings import redirect, save, short_name

_MOST = 500  # campaigns that are listed
_MOST_FIELDS = 20


async def show_all(request: Request) -> Response:
    """Show the campaigns and companions of a person, and those that others share with them."""
    state = state_of(request)
    user, home = state.person(request), state.home
    async with open_checkpointer(home.checkpoints) as checkpointer:
        campaigns = await list_campaigns(checkpointer, user, _MOST)
        companions = [
            saved async for saved in last_of_threads(checkpointer, user)
            if saved.machine == COMPANION and saved.on_own_thread
        ]  # fmt: skip
    away = await asyncio.to_thread(put_away, home, user)
    shared = await asyncio.to_thread(shared_with, home, user) if state.log_in else []
    values = {
        "campaigns": [saved for saved in campaigns if saved.campaign not in away],
        "away": [saved for saved in campaigns if saved.campaign in away],
        "companions": [(assistant_name(saved.campaign), saved) for saved in companions],
        "shared": [(owner, name, state.url(name, GAME, owner)) for owner, name in shared],
        "url": lambda name, machine=GAME: state.url(name, machine, user),
        "more": len(campaigns) == _MOST,
        "offline": state.context.model == "offline",
        "minilm": await asyncio.to_thread(partial(minilm_hint, home, state.context.embeddings, only_first=True)),
    }
    return html(request, "campaigns.html", values)


async def new(request: Request) -> Response:
    """Go to the page of a campaign, or companion, that begins with its first message."""
    machine = COMPANION if request.query_params.get("kind") == COMPANION else GAME
    name = short_name(request.query_params.get("name")) or ("companion" if machine == COMPANION else "default")
    state = state_of(request)
    return RedirectResponse(state.url(name, machine, state.person(request)) + "/", 303)


async def bring(request: Request) -> Response:
    """Import a campaign from a file."""
    state = state_of(request)
    async with request.form(max_files=1, max_fields=_MOST_FIELDS) as form:
        upload = form.get("file")
        if not isinstance(upload, UploadFile):
            raise InputError("Choose a file that was exported from a campaign.")
        with tempfile.TemporaryDirectory() as directory:
            path = await save(upload, Path(directory) / "campaign.zip")
            contents = await asyncio.to_thread(contents_of, path)
            name = short_name(form.get("name")) or assistant_name(contents.campaign)
            campaign = await state.pool.get(request.scope, name, contents.machine, state.person(request))
            async with campaign.change():
                await import_campaign(campaign.game, path)
    return redirect(state.url_of(campaign) + "/")


ROUTES = [Route("/", show_all), Route("/new", new), Route("/import", bring, methods=["POST"])]
