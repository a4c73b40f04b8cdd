"""Endpoints that play: say, stop, try again, edit, go elsewhere; and the stream of what happens."""

import asyncio
import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from questbook.graphs.errors import InputError
from questbook.graphs.local.home import HomeError
from questbook.graphs.web.app_state import acts, check_turn, html, shows, state_of
from questbook.graphs.web.campaign_pool import guests_of, who_gives_way
from questbook.graphs.web.open_campaign import OpenCampaign, StreamUpdate
from questbook.graphs.web.sign_in import PERSON
from questbook.graphs.web.story import latest_turns, rewrite_reply, undo_of
from questbook.memory.errors import StoreError

_BEAT_SECONDS = 15.0
_LONGEST_STREAM = 300.0  # seconds: the browser then opens it again, and has to be logged in still
_MOST_STREAMS = 200
_LONGEST_WISH = 600  # characters
_MOST_TURNS = 99
_COMMAND = re.compile(
    r"\s*/(?:sheet|quest|memories|prompt|campaigns|undo|retry|edit|branch|branches|go|diff|recap|forget|retract|why"
    r"|help|quit)\b"
)


async def events(request: Request, campaign: OpenCampaign) -> Response:
    """Stream what happens after an update, as server-sent events."""
    state = state_of(request)
    if campaign.is_preview:
        await campaign.close_game()
    if state.quotas:
        state.quotas.check_open("pages", sum(stream.person == request.scope[PERSON] for stream in state.streams))
    if len(state.streams) >= _MOST_STREAMS:
        if (holder := who_gives_way((stream.person for stream in state.streams), request.scope[PERSON])) is None:
            problem = f"{_MOST_STREAMS} pages are open, and no more can be told what happens. Close some."
            return PlainTextResponse(problem, 503)
        next(stream for stream in state.streams if stream.person == holder).end()
    after = read_number(request.headers.get("last-event-id") or request.query_params.get("after", "0"))
    seconds = 0.0 if "brief" in request.query_params else _LONGEST_STREAM
    return EventStream(request, _stream(campaign, after, partial(state.admits, request), seconds))


async def say(request: Request, campaign: OpenCampaign, form: FormData) -> Response:
    """Begin to play a turn; the answer is a new ticket, or the page where its script has not run yet."""
    said = str(form.get("text", ""))
    if _COMMAND.match(said):
        hint = "Here the buttons below your message do it; lines, memories and settings are beside the story."
        raise InputError(f"{said.split()[0]} is a command of the terminal. {hint}")
    if said.strip():
        check_turn(request)
        await campaign.say(await _words_of(request, campaign, said), str(form.get("ticket", "")))
    if "hx-request" not in request.headers:
        return RedirectResponse("./", 303)
    return html(request, "ticket.html", {"ticket": uuid.uuid4().hex})


async def stop(_request: Request, campaign: OpenCampaign, _form: FormData) -> None:
    """Stop the reply that is coming."""
    await campaign.stop()


async def retry(request: Request, campaign: OpenCampaign, form: FormData) -> None:
    """Play the last turn again, with "dice" other rolls too; go on with one that was stopped or has failed."""
    async with campaign.alone():
        check_turn(request)
        saved = await campaign.game.saved_game()
        if saved and saved.unanswered is not None:
            await campaign.play(campaign.game.resume(), saved.unanswered, is_kept=True)
            return
        await _check_turn(campaign, form)
        last = latest_turns(saved, 1) if saved else []
        await campaign.play(campaign.game.retry(dice=form.get("dice") == "1"), last[0].player if last else "")


async def edit(request: Request, campaign: OpenCampaign, form: FormData) -> None:
    """Play the last turn again with other words of the player."""
    text = await _words_of(request, campaign, _text_in(form))
    check_turn(request)
    async with campaign.alone():
        await _check_turn(campaign, form)
        await campaign.play(campaign.game.edit(text), text)


async def rewrite(request: Request, campaign: OpenCampaign, form: FormData) -> None:
    """Put a person's words in the place of the last reply; its notes are made again, so it counts as a turn."""
    if len(text := _text_in(form)) > (most := campaign.game.context.max_reply_chars):
        raise InputError(f"The reply has {len(text):,} characters; it may have {most:,} at most. Shorten it.")
    check_turn(request)
    async with campaign.change(is_same_line=True):
        await _check_turn(campaign, form)
        if (config := await rewrite_reply(await campaign.game.history(), text)) is not None:
            async for _event in campaign.game.replay(config):
                pass


async def undo(_: Request, campaign: OpenCampaign, form: FormData) -> None:
    """Take the last "turn" back, once also with a double click; a message without a reply alone."""
    async with campaign.change(is_same_line=True):
        saved, history = await campaign.game.saved_game(), await campaign.game.history()
        campaign.undo = campaign.undo and campaign.undo._replace()  # it stays if nothing is done now
        if form.get("message") or (saved and saved.unanswered is not None):
            await history.take_back()
        elif saved is None or read_number(str(form.get("turn", ""))) <= saved.turn:
            await _check_turn(campaign, form)
            await history.undo()
            campaign.undo = undo_of(saved) if saved else None


async def go(_: Request, campaign: OpenCampaign, form: FormData) -> None:
    """Go to the end of a line, a branch or a turn."""
    async with campaign.change():
        await (await campaign.game.history()).go(str(form.get("where", "")))


async def wish(_: Request, campaign: OpenCampaign, form: FormData) -> None:
    """Keep how the next turns should be told; no words end it."""
    text = " ".join(str(form.get("text", "")).split())[:_LONGEST_WISH]
    turns = min(max(read_number(str(form.get("turns", ""))), 1), _MOST_TURNS)
    async with campaign.change(is_same_line=True):
        history = await campaign.game.history()
        turn = (await history.current_state()).values["turn"]
        await history.write({"note": {"text": text, "through": turn + turns} if text else {}})


async def name_line(_: Request, campaign: OpenCampaign, form: FormData) -> None:
    """Name the line from here on."""
    async with campaign.change(is_same_line=True):
        await (await campaign.game.history()).name_line(str(form.get("name", "")))


_CHANGES = {act.__name__: act for act in (say, stop, retry, edit, rewrite, undo, go, wish)} | {"line": name_line}
ROUTES = [*(acts(f"/{name}", act) for name, act in _CHANGES.items()), shows("/events", events)]


def _text_in(form: FormData) -> str:
    if not (text := str(form.get("text", "")).strip()):
        raise InputError("Nothing is written here, so nothing was changed. Write the new words, or close the field.")
    return text


async def _words_of(request: Request, campaign: OpenCampaign, text: str) -> str:
    """Return what a person said, under their name where several may play."""
    person, context, state = request.scope.get(PERSON), campaign.game.context, state_of(request)
    if not person or text.startswith(f"{person}: "):  # so it is kept, and comes back to be edited
        return text
    return f"{person}: {text}" if state.crowd or await guests_of(state.home, context.user, context.campaign) else text


async def _check_turn(campaign: OpenCampaign, form: FormData) -> None:
    """Refuse what is meant for a turn that is not the last one any more: others have played on, or gone elsewhere."""
    saved, turn = await campaign.game.saved_game(), str(form.get("turn", ""))
    if turn and saved is not None and turn != str(saved.turn):
        problem = f"This is for turn {turn:.20}, and the story is at turn {saved.turn} now. Nothing was changed."
        raise InputError(f"{problem} Go back to that turn, or copy what you wrote and close its field.")


class EventStream(StreamingResponse):
    """A stream that counts from when it is let in: of many at once, none has begun when the last is let in."""

    def __init__(self, request: Request, lines: AsyncIterator[str]) -> None:
        super().__init__(lines, media_type="text/event-stream", headers={"cache-control": "no-store"})
        self.person, self._streams, self._time = request.scope[PERSON], state_of(request).streams, asyncio.timeout(None)
        self._streams.append(self)

    def end(self) -> None:
        """End it, so that another person may have one."""
        self._streams.remove(self)
        self._time.reschedule(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        try:
            async with self._time:
                await super().__call__(scope, receive, send)
        except TimeoutError:
            await send({"type": "http.response.body", "body": b""})
        finally:
            if self in self._streams:
                self._streams.remove(self)


async def _stream(
    campaign: OpenCampaign, after: int, admits: Callable[[], Awaitable[bool]], seconds: float
) -> AsyncIterator[str]:
    """Yield the lines of a stream; who may watch is asked again before each. With 0 seconds, only what is there."""
    updates, ends = campaign.updates(after), time.monotonic() + seconds
    waiting: asyncio.Task[StreamUpdate | None] | None = None
    try:
        yield f"retry: {3000 if not seconds else 100 if campaign.is_preview else 1000}\n\n"
        while time.monotonic() < ends or (not seconds and after < campaign.number):
            waiting = waiting or asyncio.create_task(_next(updates))
            done, _ = await asyncio.wait({waiting}, timeout=_BEAT_SECONDS)
            try:
                is_in = await admits()
            except (HomeError, StoreError):  # it cannot be said now: the browser asks again
                return
            if not is_in:
                yield "event: gone\ndata: {}\n\n"
                return
            if not done:
                yield ": still here\n\n"
                continue
            update, waiting = waiting.result() or StreamUpdate(campaign.number, "pages", {}), None
            if not update.kind:
                return
            after = update.number
            yield f"id: {update.number}\nevent: {update.kind}\ndata: {json.dumps(update.data)}\n\n"
    finally:
        if waiting is not None:
            waiting.cancel()


async def _next(updates: AsyncIterator[StreamUpdate | None]) -> StreamUpdate | None:
    """Return the next update; one without a kind at the end."""
    try:
        return await anext(updates)  # with a default, Python 3.11 fails where the iterator has waited
    except StopAsyncIteration:
        return StreamUpdate(0, "", {})


def read_number(text: str) -> int:
    """Read a number that a browser sends; 0 if it is none."""
    return int(text) if text.isdecimal() and len(text) < 16 else 0
