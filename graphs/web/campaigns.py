"""Routes of the shelf: campaigns and companions, new, renamed, put away, as files; their settings and lore."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from questbook.graphs.companion.context import assistant_name
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.campaign_file import campaign_in, export_campaign, import_campaign
from questbook.graphs.embedded.campaigns import list_campaigns
from questbook.graphs.embedded.databases import open_checkpointer
from questbook.graphs.embedded.saved_game import last_of_threads
from questbook.graphs.errors import InputError
from questbook.graphs.forgetting.forget import Forgetting
from questbook.graphs.web.desk import COMPANION, GAME, Desk, context_of
from questbook.graphs.web.shelf import SETTINGS, keep_on_shelf, put_away, settings_of
from questbook.graphs.web.table import Table
from questbook.memory.lore.collection import add_lore, list_lore, remove_lore

_MOST = 200  # campaigns on the shelf
_MOST_FILES = 20
_LORE = frozenset({".txt", ".md", ".markdown", ".html", ".htm", ".csv", ".pdf"})


def campaign_routes(desk: Desk) -> list[Route]:
    """Return the routes of the shelf."""

    async def shelf(_: Request) -> Response:
        user = desk.context.user or ""
        async with open_checkpointer(desk.home.checkpoints) as checkpointer:
            campaigns = await list_campaigns(checkpointer, user, _MOST)
            companions = [
                saved async for saved in last_of_threads(checkpointer, user)
                if saved.machine == COMPANION and saved.on_own_thread
            ]  # fmt: skip
        away = await asyncio.to_thread(put_away, desk.home, user)
        return desk.html(
            "campaigns.html",
            {
                "campaigns": [saved for saved in campaigns if saved.campaign not in away],
                "away": [saved for saved in campaigns if saved.campaign in away],
                "companions": [(assistant_name(saved.campaign), saved) for saved in companions],
                "offline": desk.context.model == "offline",
            },
        )

    async def new(request: Request) -> Response:
        name = _name(request.query_params.get("name", ""))
        machine = COMPANION if request.query_params.get("kind") == COMPANION else GAME
        return RedirectResponse(desk.place(name or ("companion" if machine == COMPANION else "default"), machine), 303)

    async def bring(request: Request) -> Response:
        async with request.form(max_files=1) as form:
            upload = form.get("file")
            if not isinstance(upload, UploadFile):
                raise InputError("Choose a file that was exported from a campaign.")
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory) / "campaign.zip"
                await asyncio.to_thread(path.write_bytes, await upload.read())
                name = _name(str(form.get("name", ""))) or await asyncio.to_thread(campaign_in, path)
                table = await desk.open(name)
                await import_campaign(table.game, path)
        await table.changed()
        return Response(status_code=204, headers={"hx-redirect": desk.place(name)})

    return [
        Route("/", shelf),
        Route("/new", new),
        Route("/import", bring, methods=["POST"]),
    ]


def settings_routes(desk: Desk) -> list[Route]:
    """Return the routes of one campaign's settings, below its path."""

    async def show(request: Request) -> Response:
        table = await desk.table(request)
        return desk.html("settings.html", await _values(desk, table))

    async def change(request: Request) -> Response:
        table, form = await desk.table(request), await request.form()
        settings = {name: text for name in SETTINGS if (text := str(form.get(name, "")).strip())}
        name, machine = assistant_name(table.game.context.campaign), table.game.machine
        context = context_of(desk.context, machine, name, settings)  # refuses what is not allowed
        await table.quiet()
        store = (await table.game.load()).store
        if store is not None and machine == GAME:
            await keep_on_shelf(store, context.user or "", context.campaign, {"settings": settings})
        table.game.context = context
        await table.changed()
        return desk.html("done.html", {"text": "The next turn is played with these settings."})

    async def put_on_or_away(request: Request) -> Response:
        table, form = await desk.table(request), await request.form()
        store, context = (await table.game.load()).store, table.game.context
        if store is not None:
            await keep_on_shelf(store, context.user or "", context.campaign, {"put_away": form.get("away") == "1"})
        return Response(status_code=204, headers={"hx-redirect": f"{desk.root}/"})

    async def rename(request: Request) -> Response:
        table, form = await desk.table(request), await request.form()
        name = _name(str(form.get("name", "")))
        if not name:
            raise InputError("A campaign needs a name.")
        await table.quiet()
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "campaign.zip"
            await export_campaign(table.game, path)
            other = await desk.open(name)
            await import_campaign(other.game, path)  # refuses a name that is taken
            await other.changed()
        store, game = (await table.game.load()).store, table.game
        if store is not None:
            context = game.context
            await Forgetting(
                store, game.checkpointer, context.user, context.campaign, [game.thread_id]
            ).forget_campaign()
        await desk.leave(table)
        return Response(status_code=204, headers={"hx-redirect": desk.place(name)})

    async def send(request: Request) -> Response:
        table = await desk.table(request)
        await table.quiet()
        directory = await asyncio.to_thread(tempfile.mkdtemp)
        path = Path(directory) / "campaign.zip"
        await export_campaign(table.game, path)
        name = "".join(c if c.isalnum() else "-" for c in table.game.context.campaign)[:60] or "campaign"
        return FileResponse(
            path, filename=f"{name}.zip", media_type="application/zip", background=BackgroundTask(_remove, path)
        )

    async def lore(request: Request) -> Response:
        table = await desk.table(request)
        lines: list[str] = []
        async with request.form(max_files=_MOST_FILES) as form:
            uploads = [upload for upload in form.getlist("files") if isinstance(upload, UploadFile)]
            with tempfile.TemporaryDirectory() as directory:
                paths = [path for upload in uploads if (path := await _kept(upload, Path(directory), lines))]
                store, context = (await table.game.load()).store, table.game.context
                if store is not None and paths:
                    async for done in add_lore(store, context.user or "", context.campaign, paths):
                        name = Path(done.path).name
                        pieces = f", {done.file.pieces} pieces" if done.file else ""
                        lines.append(f"{name}: {done.outcome}{pieces}{f'. {done.reason}' if done.reason else ''}")
        return desk.html("lore.html", await _values(desk, table) | {"lines": lines})

    async def remove(request: Request) -> Response:
        table, form = await desk.table(request), await request.form()
        store, context, name = (await table.game.load()).store, table.game.context, str(form.get("name", ""))
        if store is not None:
            await remove_lore(store, context.user or "", context.campaign, name)
        return desk.html("lore.html", await _values(desk, table) | {"lines": [f"{name}: removed"]})

    return [
        Route("/settings", show),
        Route("/settings", change, methods=["POST"]),
        Route("/shelf", put_on_or_away, methods=["POST"]),
        Route("/rename", rename, methods=["POST"]),
        Route("/export", send),
        Route("/lore", lore, methods=["POST"]),
        Route("/lore/remove", remove, methods=["POST"]),
    ]


def _remove(path: Path) -> None:
    """Remove a file that was sent, and its directory."""
    path.unlink()
    path.parent.rmdir()


async def _values(desk: Desk, table: Table) -> dict[str, object]:
    game = table.game
    own = await asyncio.to_thread(settings_of, desk.home, game.context.user or "", game.context.campaign)
    store = (await game.load()).store if game.machine == GAME else None
    files = await list_lore(store, game.context.user or "", game.context.campaign) if store is not None else []
    fields = type(game.context).model_fields
    rows = [
        (name, own.get(name, ""), getattr(game.context, name), fields[name].description)
        for name in SETTINGS if name in fields
    ]  # fmt: skip
    return {
        "here": desk.here(table),
        "campaign": assistant_name(game.context.campaign),
        "is_game": game.machine == GAME,
        "settings": rows,
        "files": files,
        "lines": [],
        "default_model": Context.model_fields["model"].default,
    }


async def _kept(upload: UploadFile, directory: Path, lines: list[str]) -> Path | None:
    """Keep an uploaded file for reading, under its own name without any path; None if it is of another kind."""
    name = Path(str(upload.filename or "").replace("\\", "/")).name
    name = "".join(c for c in name if c.isprintable() and c not in '<>:"|?*')[:120]
    if not name.strip(". ") or Path(name).suffix.lower() not in _LORE:
        lines.append(f"{name or 'a file'}: not read. Lore is text, Markdown, HTML, CSV or PDF.")
        return None
    path = directory / name
    await asyncio.to_thread(path.write_bytes, await upload.read())
    return path


def _name(text: str) -> str:
    return " ".join(text.split())[:60]
