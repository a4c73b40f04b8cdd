"""Endpoints of whole campaigns: the list, new ones, one from a file; the settings, guests, name and lore of one."""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from questbook.graphs.companion.context import assistant_name
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import InputError, SettingsError
from questbook.graphs.interface.forgetting import forgetting_of
from questbook.graphs.interface.text import clean, number_of
from questbook.graphs.local.campaign_file import contents_of, export_campaign, import_campaign
from questbook.graphs.local.databases import minilm_hint
from questbook.graphs.local.game import Game
from questbook.graphs.local.saved_game import last_of_threads, list_campaigns
from questbook.graphs.web import campaign_pool
from questbook.graphs.web.app_state import AppState, acts, campaign_of, check_kept, html, note, shows, state_of
from questbook.graphs.web.campaign_pool import COMPANION, GAME, SETTINGS
from questbook.graphs.web.edits import settings_part
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.graphs.web.sign_in import PERSON
from questbook.memory.lore.collection import add_lore, list_lore, remove_lore
from questbook.memory.recall.query import Weights
from questbook.types import JSON

_MOST = 500  # campaigns that are listed
_MOST_FILES = _MOST_FIELDS = _MOST_GUESTS = 20
_LONGEST_GUEST = 200  # characters
_MOST_MEMORY = 400_000_000  # bytes that a campaign from a file may need: about 2,000 turns
_REPLY_SECONDS = 120.0  # that an export waits for the reply that is coming
_LORE_SECONDS = 60.0  # to wait until lore that is changed elsewhere has been read
_LORE = frozenset({".txt", ".text", ".md", ".markdown", ".html", ".htm", ".csv", ".pdf"})


async def show_all(request: Request) -> Response:
    """Show the campaigns and companions of a person, and those that others share with them."""
    state = state_of(request)
    user, home = state.person(request), state.home
    async with home.open_checkpointer() as checkpointer:
        campaigns = await list_campaigns(checkpointer, user, _MOST)
        lasts = [saved async for saved in last_of_threads(checkpointer, user) if saved.on_own_thread]
    away = await campaign_pool.put_away(home, user)
    shared = await campaign_pool.shared_with(home, user) if state.log_in else []
    values = {
        "campaigns": [saved for saved in campaigns if saved.campaign not in away],
        "away": [saved for saved in campaigns if saved.campaign in away],
        "companions": [(assistant_name(saved.campaign), saved) for saved in lasts if saved.machine == COMPANION],
        "shared": [(owner, name, state.url(name, GAME, owner)) for owner, name in shared],
        "url": lambda name, machine=GAME: state.url(name, machine, user),
        "more": len(campaigns) == _MOST,
        "offline": state.context.model == "offline",
        "minilm": await minilm_hint(home, state.context.embeddings, only_first=True),
    }
    return html(request, "campaigns.html", values)


async def new(request: Request) -> Response:
    """Go to the page of a campaign, or companion, that begins with its first message."""
    machine = COMPANION if request.query_params.get("kind") == COMPANION else GAME
    state, usual = state_of(request), "companion" if machine == COMPANION else "default"
    if not (name := short_name(request.query_params.get("name", usual))):
        raise InputError("A new campaign needs a name. Go back, and write one.")
    state.pool.renamed.pop((machine, state.person(request), name), None)  # this name is meant, and no new one of it
    return RedirectResponse(state.url(name, machine, state.person(request)) + "/", 303)


async def bring(request: Request) -> Response:
    """Import a campaign from a file."""
    state = state_of(request)
    await check_kept(request, is_new=True)
    async with state.importing[request.scope[PERSON]], request.form(max_files=1, max_fields=_MOST_FIELDS) as form:
        upload = form.get("file")
        if not isinstance(upload, UploadFile):
            raise InputError("Choose a file that was exported from a campaign.")
        async with _temporary() as directory:
            path = await save(upload, directory / "campaign.zip")
            contents = await asyncio.to_thread(contents_of, path)
            name = short_name(form.get("name")) or assistant_name(contents.campaign)
            campaign = await state.pool.get(request.scope, name, contents.machine, state.person(request))
            async with campaign.change():
                await import_campaign(campaign.game, path, most_memory=_MOST_MEMORY)
                await _take_settings(state, campaign.game)
    return redirect(state.url(name, contents.machine, state.person(request)) + "/")


async def show(request: Request, campaign: OpenCampaign) -> Response:
    """Show the settings."""
    return html(request, "settings.html", await _values(request, campaign))


async def change(request: Request, campaign: OpenCampaign, form: FormData) -> Response:
    """Change the campaign's own settings; a refusal is shown beside the setting that it names."""
    game, settings, state = campaign.game, _settings_of(form), state_of(request)
    base, name = state.context.model_copy(update={"user": game.context.user}), assistant_name(game.context.campaign)
    try:
        common, changed = (campaign_pool.context_of(base, game.machine, name, of) for of in ({}, settings))
        for field, most in campaign_pool.lifted(common, changed).items() if state.quotas else ():
            rule = f"got {getattr(changed, field)}, and on this server no campaign has more than {most}"
            raise SettingsError(f"Setting {field}: {rule}. Nothing was changed.")
    except SettingsError as error:  # it begins with the name of the setting
        answer = html(request, "problem.html", {"text": str(error)}, 409)
        wrong = re.match(r"Setting ([\w.]+)", str(error))
        if wrong and wrong[1] in ("weights", *SETTINGS, *(f"weights.{weight}" for weight in Weights.model_fields)):
            answer.headers["hx-retarget"] = f"#p-{wrong[1].replace('.', '-')}"
        return answer
    async with campaign.change(is_same_line=True):
        await campaign_pool.change_record(campaign, {"settings": settings})
        game.context = changed
    return html(request, "done.html", {"text": "The next turn is played with these settings."})


async def share(request: Request, campaign: OpenCampaign, form: FormData) -> Response:
    """Share the campaign with the people that a form names, and with nobody else."""
    names = (" ".join(name.split()) for name in str(form.get("guests", "")).split(","))
    guests = list(dict.fromkeys(filter(None, names)))
    if not state_of(request).log_in or len(guests) > _MOST_GUESTS or any(len(name) > _LONGEST_GUEST for name in guests):
        rule = f"shared with {_MOST_GUESTS} people at most, each a name of the server's log-in, separated by commas"
        raise InputError(f"A campaign is {rule}. Without a log-in there is nobody to share with.")
    await note(request, "share", guests=guests)
    await campaign_pool.change_record(campaign, {"guests": guests})
    await campaign.ask_again()
    text = f"Shared with {', '.join(guests)}." if guests else "Nobody else sees it."
    return html(request, "done.html", {"text": text})


async def put_away_or_back(request: Request, campaign: OpenCampaign, form: FormData) -> Response:
    """Put the campaign away, or back."""
    await campaign_pool.change_record(campaign, {"put_away": form.get("away") == "1"})
    return redirect(f"{state_of(request).root}/")


async def rename(request: Request, campaign: OpenCampaign, form: FormData) -> Response:
    """Give the campaign another name: export it, import it under the new name, and forget the old one."""
    name, game, state = short_name(form.get("name")), campaign.game, state_of(request)
    user, old = game.context.user, game.context.campaign
    if not name:
        raise InputError("A campaign needs a name.")
    if name == assistant_name(old):
        raise InputError(f"It is called {name!r} already.")
    await note(request, "rename", to=name)
    async with state.importing[f"renaming {request.scope[PERSON]}"], campaign.alone():  # else two wait for each other
        async with _temporary() as directory:
            path = directory / "campaign.zip"
            await export_campaign(game, path)
            other = await state.pool.get(request.scope, name, game.machine, user)
            async with other.change():
                await import_campaign(other.game, path)  # refuses a name that is taken
                await _take_settings(state, other.game)
        await campaign_pool.change_record(other, {"guests": await campaign_pool.guests_of(state.home, user, old)})
        state.pool.note_name(campaign.key, name)
        await (await forgetting_of(game)).forget_campaign()
    await state.pool.leave(campaign)
    return redirect(state.url(name, game.machine, user) + "/")


async def export(request: Request, campaign: OpenCampaign) -> Response:
    """Send the campaign as one file, after the reply that is coming."""
    await note(request, "export")
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
    remove = BackgroundTask(shutil.rmtree, directory)
    return FileResponse(path, filename=f"{name or 'campaign'}.zip", media_type="application/zip", background=remove)


async def bring_lore(request: Request) -> Response:
    """Add files to the campaign's lore."""
    campaign = await campaign_of(request, own=True)
    if request.method == "HEAD":  # as `acts`
        return Response(status_code=204)
    await check_kept(request)
    lines: list[str] = []
    async with request.form(max_files=_MOST_FILES, max_fields=_MOST_FIELDS) as form:
        uploads = [upload for upload in form.getlist("files") if isinstance(upload, UploadFile)]
        async with _temporary() as directory:
            paths = []
            for number, upload in enumerate(uploads):
                if (name := _lore_name(upload.filename or "", lines)) is not None:
                    place = directory / name
                    if place in paths:  # two files may have one name
                        place = directory / str(number) / name
                        await asyncio.to_thread(place.parent.mkdir)
                    paths.append(await save(upload, place))
            store, context = await campaign.game.store(), campaign.game.context
            async with _lore_lock(request, campaign):
                async for done in add_lore(store, context.user, context.campaign, paths, below=directory):
                    pieces = f", {number_of(done.file.pieces, 'piece')}" if done.file else ""
                    reason = f": {done.reason}" if done.reason else ""
                    lines.append(f"{Path(done.path).name}: {done.outcome}{pieces}{reason}")
    return html(request, "lore.html", await _values(request, campaign) | {"lines": lines})


def _lore_lock(request: Request, campaign: OpenCampaign) -> AbstractAsyncContextManager[object]:
    busy = "The lore of this campaign is being changed elsewhere. Try again when that is done."
    return state_of(request).home.hold(f"{campaign.game.thread_id}.lore", busy, _LORE_SECONDS)


async def drop_lore(request: Request, campaign: OpenCampaign, form: FormData) -> Response:
    """Remove a file from the campaign's lore."""
    store, context, name = await campaign.game.store(), campaign.game.context, str(form.get("name", ""))
    async with _lore_lock(request, campaign):
        await remove_lore(store, context.user, context.campaign, name)
    return html(request, "lore.html", await _values(request, campaign) | {"lines": [f"{name}: removed"]})


ROUTES = [Route("/", show_all), Route("/new", new), Route("/import", bring, methods=["POST"])]
OF_ONE = [
    shows("/settings", show, own=True),
    acts("/settings", change, own=True),
    acts("/share", share, own=True),
    acts("/put-away", put_away_or_back, own=True),
    acts("/rename", rename, own=True),
    shows("/export", export, own=True),
    Route("/lore", bring_lore, methods=["HEAD", "POST"]),
    acts("/lore/remove", drop_lore, own=True),
]


@asynccontextmanager
async def _temporary() -> AsyncIterator[Path]:
    """Make a directory that is removed afterwards, without holding up the others."""
    made = await asyncio.to_thread(tempfile.TemporaryDirectory)
    try:
        yield Path(made.name)
    finally:
        await asyncio.to_thread(made.cleanup)


def redirect(path: str) -> Response:
    """Have htmx go to another page."""
    return Response(status_code=204, headers={"hx-redirect": path})


def short_name(text: object) -> str:
    """Read the name of a campaign that a browser sends; "" if it is none."""
    return " ".join(clean(str(text or "")).split())[:60]


async def save(upload: UploadFile, path: Path) -> Path:
    """Write an uploaded file to a path of ours."""
    with await asyncio.to_thread(path.open, "wb") as file:
        await asyncio.to_thread(shutil.copyfileobj, upload.file, file)
    return path


async def _take_settings(state: AppState, game: Game) -> None:
    """Play a campaign that was brought here with its own settings from now on."""
    base, name = state.context.model_copy(update={"user": game.context.user}), game.context.campaign
    settings = await campaign_pool.settings_of(state.home, game.context.user, name)
    game.context = campaign_pool.context_of(base, game.machine, assistant_name(name), settings, caps=bool(state.quotas))


async def _values(request: Request, campaign: OpenCampaign) -> JSON:
    state, game, context = state_of(request), campaign.game, campaign.game.context
    user, name = context.user, context.campaign
    own = await campaign_pool.settings_of(state.home, user, name)
    is_game, fields = game.machine == GAME, type(context).model_fields
    asked = [field for field in SETTINGS if field in fields]
    return {
        "campaign": assistant_name(name),
        "is_game": is_game,
        "has_begun": await game.saved_game() is not None,
        "settings": [(settings_part(each, fields[each]), own.get(each, ""), getattr(context, each)) for each in asked],
        "is_away": name in await campaign_pool.put_away(state.home, user),
        "can_share": state.log_in and is_game,
        "guests": ", ".join(await campaign_pool.guests_of(state.home, user, name)),
        "files": await list_lore(await game.store(), user, name) if is_game else [],
        "lines": [],
        "default_model": Context.model_fields["model"].default,
    }  # fmt: skip


def _lore_name(filename: str, lines: list[str]) -> str | None:
    """Return the own name of an uploaded file, without any path; None, and a line that says so, if it is no lore."""
    name = Path(filename.replace("\\", "/")).name
    name = "".join(c for c in name if c.isprintable() and c not in '<>:"|?*')
    name = os.fsencode(name[-120:])[-200:].decode("utf-8", "ignore")  # as much as a file system takes
    if not name.strip(". ") or Path(name).suffix.lower() not in _LORE:
        lines.append(f"{name or 'a file'}: not read. Lore is text, Markdown, HTML, CSV or PDF.")
        return None
    return name


def _settings_of(form: FormData) -> JSON:
    """Read the settings of a form: what is empty stays as it is for all campaigns."""
    settings: JSON = {name: text for name in SETTINGS if (text := str(form.get(name, "")).strip())}
    texts = {name: str(form.get(f"weights.{name}", "")).strip() for name in Weights.model_fields}
    lists = {name: [part.strip() for part in text.split(",")] for name, text in texts.items() if text}
    weights = {name: parts if len(parts) > 1 else parts[0] for name, parts in lists.items()}
    return settings | ({"weights": weights} if weights else {})
