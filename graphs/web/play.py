"""Routes that play: say, stop, try again, edit, go elsewhere; and the stream of what happens."""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from questbook.graphs.errors import InputError
from questbook.graphs.web.app_state import AppState
from questbook.graphs.web.open_campaign import OpenCampaign, Update
from questbook.graphs.web.story import latest_turns, rewrite_reply, turns_before, undo_of

_BEAT_SECONDS = 15.0
_LONGEST_STREAM = 300.0  # seconds: the browser then opens it again, and has to be logged in still
_MOST_STREAMS = 200
_LONGEST_WISH = 600  # characters
_MOST_TURNS = 99
_COMMAND = re.compile(
    r"\s*/(?:sheet|quest|memories|prompt|campaigns|undo|retry|edit|branch|branches|go|diff|recap|forget|retract|why"
    r"|help|quit)\b"
)
_DONE = Response(status_code=204)
_END = Update(0, "", {})


def play_routes(state: AppState) -> list[Route]:
    """Return the routes, below the path of a campaign."""

    async def story(request: Request) -> Response:
        return state.html("story.html", await state.values_of(await state.campaign(request)))

    async def earlier(request: Request) -> Response:
        campaign = await state.campaign(request)
        turns = await turns_before(campaign.game, number_of(request.query_params.get("before", "1")))
        return state.html("earlier.html", {"turns": turns, "here": state.here(campaign)})

    async def events(request: Request) -> Response:
        campaign = await state.campaign(request)
        if state.streams >= _MOST_STREAMS:
            return PlainTextResponse(
                f"{_MOST_STREAMS} pages are open, and no more can be told what happens. Close some.", 503
            )
        after = number_of(request.headers.get("last-event-id") or request.query_params.get("after", "0"))
        return _CountedStream(state, _stream(campaign, after, partial(state.admits, request)))

    async def say(request: Request) -> Response:
        campaign, form = await state.campaign(request), await request.form()
        said = str(form.get("text", ""))
        if _COMMAND.match(said):
            raise InputError(
                f"{said.split()[0]} is a command of the terminal. Here the buttons below your message do it; "
                "lines, memories and settings are beside the story."
            )
        if said.strip():
            await campaign.say(await state.words_of(request, campaign, said), str(form.get("ticket", "")))
        return state.html("ticket.html", {"ticket": uuid.uuid4().hex})

    async def stop(request: Request) -> Response:
        await (await state.campaign(request)).stop()
        return _DONE

    async def retry(request: Request) -> Response:
        campaign, form = await state.campaign(request), await request.form()
        async with campaign.alone():
            saved = await campaign.game.saved_game()
            last = latest_turns(saved, 1) if saved else []
            await campaign.play(campaign.game.retry(dice=form.get("dice") == "1"), last[0].player if last else "")
        return _DONE

    async def edit(request: Request) -> Response:
        campaign, form = await state.campaign(request), await request.form()
        text = str(form.get("text", "")).strip()
        if text:
            text = await state.words_of(request, campaign, text)
            async with campaign.alone():
                await _check_turn(campaign, form)
                await campaign.play(campaign.game.edit(text), text)
        return _DONE

    async def rewrite(request: Request) -> Response:
        campaign, form = await state.campaign(request), await request.form()
        text = str(form.get("text", "")).strip()
        if text:
            async with campaign.alone():
                await _check_turn(campaign, form)
                config = await rewrite_reply(await campaign.game.history(), text)
                if config is not None:
                    async for _ in campaign.game.replay(config):
                        pass
                await campaign.changed(is_same_line=True)
        return _DONE

    async def undo(request: Request) -> Response:
        campaign = await state.campaign(request)
        async with campaign.alone():
            saved = await campaign.game.saved_game()
            await (await campaign.game.history()).undo()
            await campaign.changed(undo_of(saved) if saved else None, is_same_line=True)
        return _DONE

    async def go(request: Request) -> Response:
        campaign, form = await state.campaign(request), await request.form()
        async with campaign.alone():
            await (await campaign.game.history()).go(str(form.get("where", "")))
            await campaign.changed()
        return _DONE

    async def wish(request: Request) -> Response:
        campaign, form = await state.campaign(request), await request.form()
        text = " ".join(str(form.get("text", "")).split())[:_LONGEST_WISH]
        turns = min(max(number_of(str(form.get("turns", ""))), 1), _MOST_TURNS)
        async with campaign.alone():
            history = await campaign.game.history()
            turn = (await history.current_state()).values["turn"]
            await history.write({"note": {"text": text, "through": turn + turns} if text else {}})
            await campaign.changed(is_same_line=True)
        return _DONE

    async def name_line(request: Request) -> Response:
        campaign, form = await state.campaign(request), await request.form()
        async with campaign.alone():
            await (await campaign.game.history()).name_line(str(form.get("name", "")))
            await campaign.changed(is_same_line=True)
        return _DONE

    changes = {
        "say": say, "stop": stop, "retry": retry, "edit": edit, "rewrite": rewrite, "undo": undo, "go": go,
        "line": name_line, "wish": wish,
    }  # fmt: skip
    looks = {"story": story, "earlier": earlier, "events": events}
    return [
        *(Route(f"/{name}", route, methods=["POST"]) for name, route in changes.items()),
        *(Route(f"/{name}", route) for name, route in looks.items()),
    ]


async def _check_turn(campaign: OpenCampaign, form: FormData) -> None:
    """Refuse words for a turn that is no longer the last one, since somebody else has played on or gone elsewhere.

    Raises:
        InputError: It is not.
    """
    saved, turn = await campaign.game.saved_game(), str(form.get("turn", ""))
    if turn and saved is not None and turn != str(saved.turn):
        raise InputError(
            f"These words are for turn {turn:.20}, and the story is at turn {saved.turn} now. Nothing was changed. Go "
            "back to that turn, or copy your words and close this field."
        )


class _CountedStream(StreamingResponse):
    """A stream that counts from when it is let in: of many at once, none has begun when the last is let in."""

    def __init__(self, state: AppState, lines: AsyncIterator[str]) -> None:
        super().__init__(lines, media_type="text/event-stream", headers={"cache-control": "no-store"})
        self._desk = state
        state.streams += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, to its end or until nobody listens."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._desk.streams -= 1


async def _stream(campaign: OpenCampaign, after: int, admits: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
    """Yield the lines of a stream; who may watch is asked again before each."""
    moments = campaign.updates(after)
    waiting: asyncio.Task[Update | None] | None = None
    ends = time.monotonic() + _LONGEST_STREAM
    try:
        yield "retry: 1000\n\n"
        while time.monotonic() < ends:
            waiting = waiting or asyncio.create_task(_next(moments))
            done, _ = await asyncio.wait({waiting}, timeout=_BEAT_SECONDS)
            if not await admits():
                yield "event: gone\ndata: {}\n\n"
                return
            if not done:
                yield ": still here\n\n"
                continue
            moment, waiting = waiting.result(), None
            if moment is _END:
                return
            if moment is None:
                yield f"id: {campaign.number}\nevent: pages\ndata: {{}}\n\n"
            else:
                yield f"id: {moment.number}\nevent: {moment.kind}\ndata: {json.dumps(moment.data)}\n\n"
    finally:
        if waiting is not None:
            waiting.cancel()


async def _next(moments: AsyncIterator[Any]) -> Any:
    try:
        return await anext(moments)
    except StopAsyncIteration:
        return _END


def number_of(text: str) -> int:
    """Read a number that a browser sends; 0 if it is none."""
    return int(text) if text.isdecimal() and len(text) < 16 else 0
