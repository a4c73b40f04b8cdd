"""The routes of the page, and the stream by which the server tells it what happens."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.game import Game, open_game
from questbook.graphs.embedded.home import Home
from questbook.graphs.errors import QuestbookError
from questbook.graphs.web import panels
from questbook.graphs.web.guard import Guard, new_token
from questbook.graphs.web.story import latest_turns, turns_before
from questbook.graphs.web.table import Moment, Table
from questbook.memory.errors import StoreError
from questbook.types import JSON

_HERE = Path(__file__).parent
_BEAT_SECONDS = 15.0
_WORK = {
    "recall": "The dungeon master remembers…",
    "build_character": "The dungeon master thinks…",
    "run_quest": "The dungeon master thinks…",
    "roll_dice": "The dice are rolling…",
}


class Tables:
    """The campaigns that are open in this server.

    Args:
        context: The settings of every game.
        home: The data directory.
    """

    def __init__(self, context: Context, home: Home) -> None:
        self.context, self.home = context, home
        self._tables: dict[str, Table] = {}
        self._resources = AsyncExitStack()
        self._opening = asyncio.Lock()

    async def open(self, campaign: str) -> Table:
        """Return the table of a campaign; open it if it is not."""
        async with self._opening:
            if campaign not in self._tables:
                context = self.context.model_copy(update={"campaign": campaign})
                game = await self._resources.enter_async_context(open_game(Context.of(context), self.home))
                if await game.saved_game() is None:
                    await game.enter()
                table = self._tables[campaign] = Table(game)
                if (saved := await game.saved_game()) and saved.unanswered is not None:
                    await table.play(game.resume())
            return self._tables[campaign]

    async def close(self) -> None:
        """Close all."""
        for table in self._tables.values():
            await table.close()
        await self._resources.aclose()


class Page:
    """Answers the requests of the page.

    Args:
        tables: The open campaigns.
        token: What the page sends with each change.
    """

    def __init__(self, tables: Tables, token: str) -> None:
        self._tables, self._token = tables, token
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True, enable_async=False,
        )  # fmt: skip
        self._templates.globals |= {"token": token, "place": _place}

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/", self.home),
            Route("/c/{campaign}", self.campaign),
            Route("/c/{campaign}/events", self.events),
            Route("/c/{campaign}/story", self.story),
            Route("/c/{campaign}/earlier", self.earlier),
            Route("/c/{campaign}/panel/{panel}", self.panel),
            Route("/c/{campaign}/say", self.say, methods=["POST"]),
            Route("/c/{campaign}/stop", self.stop, methods=["POST"]),
            Route("/c/{campaign}/retry", self.retry, methods=["POST"]),
            Route("/c/{campaign}/undo", self.undo, methods=["POST"]),
            Route("/c/{campaign}/go", self.go, methods=["POST"]),
        ]

    async def home(self, request: Request) -> Response:
        """Go to the campaign that the settings name."""
        return RedirectResponse(request.url_for("campaign", campaign=self._tables.context.campaign).path, 303)

    async def campaign(self, request: Request) -> Response:
        """Show a campaign, whole."""
        table = await self._table(request)
        saved = await table.game.saved_game()
        return self._html("campaign.html", await self._state(table) | {"is_new": saved is None})

    async def story(self, request: Request) -> Response:
        """Show the story alone."""
        return self._html("story.html", await self._state(await self._table(request)))

    async def earlier(self, request: Request) -> Response:
        """Show the turns before one."""
        table = await self._table(request)
        before = _number(request.query_params.get("before", "1"))
        turns = await turns_before(table.game, before)
        return self._html("earlier.html", {"turns": turns, "campaign": table.game.context.campaign})

    async def panel(self, request: Request) -> Response:
        """Show a panel alone."""
        table, name = await self._table(request), request.path_params["panel"]
        if name not in ("sheet", "quest", "memories", "dice", "summary", "tree"):
            return HTMLResponse("There is no such panel.", 404)
        state = await self._state(table)
        if name == "tree":
            state["lines"] = await panels.lines(table.game)
        return self._html(f"{name}.html", state)

    async def events(self, request: Request) -> Response:
        """Tell a page what happens, as server-sent events."""
        table = await self._table(request)
        after = _number(request.headers.get("last-event-id") or request.query_params.get("after", "0"))
        return StreamingResponse(
            _stream(table, after), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def say(self, request: Request) -> Response:
        """Send the player's message."""
        table, form = await self._table(request), await request.form()
        text = str(form.get("text", ""))
        if not text.strip() or not table.take(str(form.get("ticket", ""))):
            return Response(status_code=204)
        await table.play(table.game.send(text), text)
        return self._html("say.html", {"ticket": uuid.uuid4().hex, "campaign": table.game.context.campaign})

    async def stop(self, request: Request) -> Response:
        """Stop the reply that is coming."""
        await (await self._table(request)).stop()
        return Response(status_code=204)

    async def retry(self, request: Request) -> Response:
        """Play the last turn again."""
        table, form = await self._table(request), await request.form()
        await table.quiet()
        saved = await table.game.saved_game()
        last = latest_turns(saved, 1) if saved else []
        await table.play(await _begun(table.game.retry(dice=form.get("dice") == "1")), last[0].player if last else "")
        return Response(status_code=204)

    async def undo(self, request: Request) -> Response:
        """Take the last turn back."""
        table = await self._table(request)
        await table.quiet()
        await (await table.game.history()).undo()
        await table.changed()
        return Response(status_code=204)

    async def go(self, request: Request) -> Response:
        """Go to a line or a turn."""
        table, form = await self._table(request), await request.form()
        await table.quiet()
        await (await table.game.history()).go(str(form.get("where", "")))
        await table.changed()
        return Response(status_code=204)

    async def refuse(self, request: Request, error: Exception) -> Response:  # noqa: ARG002 (Starlette's handler)
        """Say what was refused."""
        return self._html("problem.html", {"text": str(error)}, 409)

    async def _table(self, request: Request) -> Table:
        return await self._tables.open(request.path_params["campaign"])

    async def _state(self, table: Table) -> JSON:
        saved = await table.game.saved_game()
        view = saved.view if saved else None
        turns = latest_turns(saved) if saved else []
        if table.passage is not None and turns and turns[-1].player == table.passage.player:
            turns = turns[:-1]  # it is shown as it comes
        return {
            "campaign": table.game.context.campaign,
            "number": table.number,
            "ticket": uuid.uuid4().hex,
            "turns": turns,
            "passage": table.passage,
            "work": _WORK.get(table.passage.work, "The dungeon master thinks…") if table.passage else "",
            "problem": table.problem,
            "sheet": panels.sheet(view) if view else None,
            "quest": panels.quest(view) if view and view.character.complete else None,
            "memories": table.memories,
            "rolls": panels.dice_totals(saved),
            "summary": view.summary if view else "",
            "turn": saved.turn if saved else 0,
        }

    def _html(self, name: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(name).render(values), status)


def create_app(context: Context, home: Home | None = None) -> Starlette:
    """Make the page's app.

    Args:
        context: The settings; its user owns the campaigns, its campaign is shown first.
        home: The data directory; None: `Home.find()`.
    """
    token = new_token()
    tables = Tables(context, home or Home.find())
    page = Page(tables, token)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await tables.close()

    return Starlette(
        routes=[*page.routes(), Mount("/static", StaticFiles(directory=_HERE / "static"), name="static")],
        middleware=[Middleware(Guard, token=token)],
        exception_handlers={QuestbookError: page.refuse, StoreError: page.refuse},
        lifespan=lifespan,
    )


async def _begun(events: Any) -> Any:
    """Return events whose errors come now, before anything is told: the first event is waited for."""
    first = await anext(events, None)

    async def again() -> AsyncIterator[Any]:
        if first is not None:
            yield first
        async for event in events:
            yield event

    return again()


async def _stream(table: Table, after: int) -> AsyncIterator[str]:
    moments = table.moments(after)
    yield "retry: 1000\n\n"
    waiting: asyncio.Task[Moment | None] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(moments))
            done, _ = await asyncio.wait({waiting}, timeout=_BEAT_SECONDS)
            if not done:
                yield ": still here\n\n"
                continue
            moment, waiting = waiting.result(), None
            if moment is None:
                yield f"id: {table.number}\nevent: pages\ndata: {{}}\n\n"
            else:
                yield f"id: {moment.number}\nevent: {moment.kind}\ndata: {json.dumps(moment.data)}\n\n"
    finally:
        if waiting is not None:
            waiting.cancel()


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 12 else 0


def _place(campaign: str) -> str:
    return f"/c/{quote(campaign, safe='')}"
