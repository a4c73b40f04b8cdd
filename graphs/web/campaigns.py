"""Routes of the shelf: campaigns and companions, new, renamed, put away, as files; their settings and lore."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from functools import partial
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from questbook.graphs.companion.context import assistant_name
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.campaign_archive import contents_of
from questbook.graphs.embedded.campaign_file import export_campaign, import_campaign
from questbook.graphs.embedded.campaigns import list_campaigns
from questbook.graphs.embedded.databases import open_checkpointer
from questbook.graphs.embedded.embedder import minilm_hint
from questbook.graphs.embedded.saved_game import last_of_threads
from questbook.graphs.errors import InputError, SettingsError
from questbook.graphs.forgetting.forget import Forgetting
from questbook.graphs.web.app_state import COMPANION, GAME, AppState, context_of
from questbook.graphs.web.campaign_record import SETTINGS, change_record, guests_of, put_away, settings_of, shared_with
from questbook.graphs.web.fields import settings_part
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.memory.lore.collection import add_lore, list_lore, remove_lore
from questbook.memory.recall.weights import Weights
from questbook.types import JSON

_MOST = 500  # campaigns on the shelf
_MOST_FILES = 20
_MOST_FIELDS = 20
_MOST_GUESTS = 20
_LONGEST_GUEST = 200  # characters
_REPLY_SECONDS = 120.0  # that an export waits for the reply that is coming
_LORE = frozenset({".txt", ".md", ".markdown", ".html", ".htm", ".csv", ".pdf"})


def campaign_routes(state: AppState) -> list[Route]:
    """Return the routes of the shelf."""

    async def shelf(request: Request) -> Response:
        user = state.person(request)
        async with open_checkpointer(state.home.checkpoints) as checkpointer:
            campaigns = await list_campaigns(checkpointer, user, _MOST)
            companions = [
                saved async for saved in last_of_threads(checkpointer, user)
                if saved.machine == COMPANION and saved.on_own_thread
            ]  # fmt: skip
        away = await asyncio.to_thread(put_away, state.home, user)
        shared = await asyncio.to_thread(shared_with, state.home, user) if state.log_in else []
        hint = await asyncio.to_thread(partial(minilm_hint, state.home, state.context.embeddings, only_first=True))
        return state.html(
            "campaigns.html",
            {
                "campaigns": [saved for saved in campaigns if saved.campaign not in away],
                "away": [saved for saved in campaigns if saved.campaign in away],
                "companions": [(assistant_name(saved.campaign), saved) for saved in companions],
                "shared": [(owner, name, state.place(name, GAME, owner)) for owner, name in shared],
                "place": lambda name, machine=GAME: state.place(name, machine, user),
                "more": len(campaigns) == _MOST,
                "offline": state.context.model == "offline",
                "minilm": hint,
            },
        )

    async def new(request: Request) -> Response:
        name = _name(request.query_params.get("name", ""))
        machine = COMPANION if request.query_params.get("kind") == COMPANION else GAME
        name = name or ("companion" if machine == COMPANION else "default")
        return RedirectResponse(state.place(name, machine, state.person(request)) + "/", 303)

    async def bring(request: Request) -> Response:
        async with request.form(max_files=1, max_fields=_MOST_FIELDS) as form:
            upload = form.get("file")
            if not isinstance(upload, UploadFile):
                raise InputError("Choose a file that was exported from a campaign.")
            with tempfile.TemporaryDirectory() as directory:
                path = await _save(upload, Path(directory) / "campaign.zip")
                contents = await asyncio.to_thread(contents_of, path)
                name = _name(str(form.get("name", ""))) or assistant_name(contents.campaign)
                campaign = await state.take(request, name, contents.machine, state.person(request))
                async with campaign.alone():
                    await import_campaign(campaign.game, path)
                    await campaign.changed()
        return Response(status_code=204, headers={"hx-redirect": state.here(campaign) + "/"})

    return [
        Route("/", shelf),
        Route("/new", new),
        Route("/import", bring, methods=["POST"]),
    ]


def settings_routes(state: AppState) -> list[Route]:
    """Return the routes of one campaign's settings, below its path."""

    async def show(request: Request) -> Response:
        return state.html("settings.html", await _values(state, await state.campaign(request, own=True)))

    async def change(request: Request) -> Response:
        campaign, form = await state.campaign(request, own=True), await request.form()
        settings = _settings_of(form)
        context, name = campaign.game.context, assistant_name(campaign.game.context.campaign)
        base = state.context.model_copy(update={"user": context.user})
        try:
            changed = context_of(base, campaign.game.machine, name, settings)
        except SettingsError as error:  # it begins with the name of the setting, and is shown beside it
            wrong = re.match(r"Setting ([\w.]+)", str(error))
            places = ["weights", *SETTINGS, *(f"weights.{weight}" for weight in Weights.model_fields)]
            place = next((place for place in places if wrong and place == wrong[1]), "")
            answer = state.html("problem.html", {"text": str(error)}, 409)
            answer.headers.update({"hx-retarget": f"#p-{place.replace('.', '-')}"} if place else {})
            return answer
        async with campaign.alone():
            if (store := (await campaign.game.load()).store) is not None:
                await change_record(store, context.user or "", context.campaign, {"settings": settings})
            campaign.game.context = changed
            await campaign.changed(is_same_line=True)
        return state.html("done.html", {"text": "The next turn is played with these settings."})

    async def share(request: Request) -> Response:
        campaign, form = await state.campaign(request, own=True), await request.form()
        guests = list(
            dict.fromkeys(filter(None, (" ".join(n.split()) for n in str(form.get("guests", "")).split(","))))
        )
        if not state.log_in or len(guests) > _MOST_GUESTS or any(len(guest) > _LONGEST_GUEST for guest in guests):
            raise InputError(
                f"A campaign is shared with {_MOST_GUESTS} people at most, each a name of the server's log-in, "
                "separated by commas. Without a log-in there is nobody to share with."
            )
        context, store = campaign.game.context, (await campaign.game.load()).store
        if store is not None:
            await change_record(store, context.user or "", context.campaign, {"guests": guests})
            await campaign.look_again()
        text = f"Shared with {', '.join(guests)}." if guests else "Nobody else sees it."
        return state.html("done.html", {"text": text})

    async def put_on_or_away(request: Request) -> Response:
        campaign, form = await state.campaign(request, own=True), await request.form()
        store, context = (await campaign.game.load()).store, campaign.game.context
        if store is not None:
            await change_record(store, context.user or "", context.campaign, {"put_away": form.get("away") == "1"})
        return Response(status_code=204, headers={"hx-redirect": f"{state.root}/"})

    async def rename(request: Request) -> Response:
        campaign, form = await state.campaign(request, own=True), await request.form()
        name, game = _name(str(form.get("name", ""))), campaign.game
        if not name:
            raise InputError("A campaign needs a name.")
        if name == assistant_name(game.context.campaign):
            raise InputError(f"It is called {name!r} already.")
        async with campaign.alone():
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory) / "campaign.zip"
                await export_campaign(game, path)
                other = await state.take(request, name, game.machine, game.context.user or "")
                async with other.alone():
                    await import_campaign(other.game, path)  # refuses a name that is taken
                    await other.changed()
            if (store := (await game.load()).store) is not None:
                context, user = game.context, game.context.user or ""
                guests = await asyncio.to_thread(guests_of, state.home, user, context.campaign)
                await change_record(store, user, other.game.context.campaign, {"guests": guests})
                await Forgetting(
                    store, game.checkpointer, context.user, context.campaign, [game.thread_id]
                ).forget_campaign()
        await state.leave(campaign)
        return Response(status_code=204, headers={"hx-redirect": state.here(other) + "/"})

    async def send(request: Request) -> Response:
        campaign = await state.campaign(request, own=True)
        await campaign.wait_for_reply(_REPLY_SECONDS)
        directory = await asyncio.to_thread(tempfile.mkdtemp)
        path = Path(directory) / "campaign.zip"
        try:
            async with campaign.alone():
                await export_campaign(campaign.game, path)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, directory)
            raise
        name = "".join(c if c.isalnum() else "-" for c in assistant_name(campaign.game.context.campaign))[:60]
        return FileResponse(
            path,
            filename=f"{name or 'campaign'}.zip",
            media_type="application/zip",
            background=BackgroundTask(shutil.rmtree, directory),
        )

    async def lore(request: Request) -> Response:
        campaign = await state.campaign(request, own=True)
        lines: list[str] = []
        async with request.form(max_files=_MOST_FILES, max_fields=_MOST_FIELDS) as form:
            uploads = [upload for upload in form.getlist("files") if isinstance(upload, UploadFile)]
            with tempfile.TemporaryDirectory() as directory:
                paths = []
                for number, upload in enumerate(uploads):
                    if (name := _lore_name(upload.filename or "", lines)) is not None:
                        place = Path(directory) / name
                        if place in paths:  # two files may have one name
                            place = Path(directory) / str(number) / name
                            await asyncio.to_thread(place.parent.mkdir)
                        paths.append(await _save(upload, place))
                store, context = (await campaign.game.load()).store, campaign.game.context
                if store is not None and paths:
                    below = Path(directory)
                    async for done in add_lore(store, context.user or "", context.campaign, paths, below=below):
                        name = Path(done.path).name
                        pieces = f", {done.file.pieces} pieces" if done.file else ""
                        lines.append(f"{name}: {done.outcome}{pieces}{f'. {done.reason}' if done.reason else ''}")
        return state.html("lore.html", await _values(state, campaign) | {"lines": lines})

    async def remove(request: Request) -> Response:
        campaign, form = await state.campaign(request, own=True), await request.form()
        store, context, name = (await campaign.game.load()).store, campaign.game.context, str(form.get("name", ""))
        if store is not None:
            await remove_lore(store, context.user or "", context.campaign, name)
        return state.html("lore.html", await _values(state, campaign) | {"lines": [f"{name}: removed"]})

    return [
        Route("/settings", show),
        Route("/settings", change, methods=["POST"]),
        Route("/share", share, methods=["POST"]),
        Route("/shelf", put_on_or_away, methods=["POST"]),
        Route("/rename", rename, methods=["POST"]),
        Route("/export", send),
        Route("/lore", lore, methods=["POST"]),
        Route("/lore/remove", remove, methods=["POST"]),
    ]


async def _values(state: AppState, campaign: OpenCampaign) -> dict[str, object]:
    game, name = campaign.game, campaign.game.context.campaign
    own = await asyncio.to_thread(settings_of, state.home, game.context.user or "", game.context.campaign)
    store = (await game.load()).store if game.machine == GAME else None
    files = await list_lore(store, game.context.user or "", game.context.campaign) if store is not None else []
    fields = type(game.context).model_fields
    rows = [
        (settings_part(field, fields[field]), own.get(field, ""), getattr(game.context, field))
        for field in SETTINGS if field in fields
    ]  # fmt: skip
    return {
        "here": state.here(campaign),
        "campaign": assistant_name(game.context.campaign),
        "is_game": game.machine == GAME,
        "has_begun": await game.saved_game() is not None,
        "settings": rows,
        "is_away": name in await asyncio.to_thread(put_away, state.home, game.context.user or ""),
        "can_share": state.log_in and game.machine == GAME,
        "guests": ", ".join(await asyncio.to_thread(guests_of, state.home, game.context.user or "", name)),
        "files": files,
        "lines": [],
        "default_model": Context.model_fields["model"].default,
    }


def _lore_name(filename: str, lines: list[str]) -> str | None:
    """Return the own name of an uploaded file, without any path; None, and a line that says so, if it is no lore."""
    name = Path(filename.replace("\\", "/")).name
    name = "".join(c for c in name if c.isprintable() and c not in '<>:"|?*')[-120:]
    if not name.strip(". ") or Path(name).suffix.lower() not in _LORE:
        lines.append(f"{name or 'a file'}: not read. Lore is text, Markdown, HTML, CSV or PDF.")
        return None
    return name


async def _save(upload: UploadFile, path: Path) -> Path:
    """Write an uploaded file to a path of ours."""
    with await asyncio.to_thread(path.open, "wb") as file:
        await asyncio.to_thread(shutil.copyfileobj, upload.file, file)
    return path


def _settings_of(form: FormData) -> JSON:
    """Read the settings of a form: what is empty stays as it is for all campaigns."""
    settings: JSON = {name: text for name in SETTINGS if (text := str(form.get(name, "")).strip())}
    texts = {name: str(form.get(f"weights.{name}", "")).strip() for name in Weights.model_fields}
    weights = {
        name: [part.strip() for part in text.split(",")] if "," in text else text
        for name, text in texts.items()
        if text
    }
    return settings | ({"weights": weights} if weights else {})


def _name(text: str) -> str:
    return " ".join(text.split())[:60]
