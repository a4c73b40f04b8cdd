"""Routes of the memories: search in all, where one comes from, forget words, retract a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from questbook.graphs.dungeon_master.forgetting.provenance import why
from questbook.graphs.embedded.game import Game
from questbook.graphs.errors import HistoryError
from questbook.graphs.interface.forgetting import find_words, forget_words, retract_turn
from questbook.graphs.turn.player_view import shown_memories
from questbook.graphs.web.app_state import AppState
from questbook.graphs.web.edits import by_turn
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.graphs.web.reasons import add_reasons
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.timeline.timeline import read_timeline, record_key
from questbook.types import JSON

_MOST_MATCHES = 20
_LONGEST_QUESTION = 500  # characters
_KINDS = ("exchanges", "facts", "reflections", "lore")


def memory_routes(state: AppState) -> list[Route]:
    """Return the routes, below the path of a campaign."""

    async def search(request: Request) -> Response:
        campaign = await state.campaign(request)
        words = request.query_params.get("words", "").strip()[:_LONGEST_QUESTION]
        matches = await _search(campaign.game, words, _spaces(state, request, campaign.game)) if words else []
        return state.html("search.html", {"words": words, "memories": matches, "here": state.here(campaign)})

    async def memory(request: Request) -> Response:
        campaign = await state.campaign(request)
        key = request.query_params.get("key", "")
        record = await _record(campaign.game, key, _spaces(state, request, campaign.game)) if key else None
        if record is None:
            return state.html("problem.html", {"text": "This memory is no longer there."}, 404)
        values = {
            "here": state.here(campaign),
            "memory": record,
            **await _origin(state, request, campaign.game, record),
        }
        return state.html("memory-card.html", values)

    async def forget(request: Request) -> Response:
        campaign, form = await state.campaign(request, own=True), await request.form()
        words = " ".join(str(form.get("words", "")).split())
        lines, done, sure = [], "", form.get("sure") == "1"
        async with campaign.alone():
            if not sure:
                lines = (await find_words(campaign.game, words)).lines
            if sure or not lines:
                done = await forget_words(campaign.game, words, remove_emptied=form.get("whole") == "1")
            if sure:
                await campaign.changed()
        values = {"here": state.here(campaign), "words": words, "lines": lines, "done": done}
        return state.html("forget.html", values | {"asks": bool(lines)})

    async def retract(request: Request) -> Response:
        campaign, form = await state.campaign(request, own=True), await request.form()
        if form.get("sure") != "1":
            return state.html("retract.html", {"here": state.here(campaign), "turn": str(form.get("turn", ""))})
        async with campaign.alone():
            lines = await retract_turn(campaign.game, str(form.get("turn", "")))
            await campaign.changed()
        values = {"here": state.here(campaign), "words": "", "lines": lines, "done": "", "asks": False}
        return state.html("forget.html", values)

    return [
        Route("/search", search),
        Route("/memory", memory),
        Route("/forget", forget, methods=["POST"]),
        Route("/retract", retract, methods=["POST"]),
    ]


def _spaces(state: AppState, request: Request, game: Game) -> list[tuple[str, ...]]:
    """Return where the memories are that who asks may see; no route shows one that is elsewhere.

    What is known of the owner across campaigns is for themselves alone.
    """
    user = game.context.user or ""
    spaces = [campaign_namespace(user, game.context.campaign, kind) for kind in _KINDS]
    return [*spaces, player_namespace(user, "facts")] if state.is_owner(request, game.context) else spaces


async def _search(game: Game, words: str, spaces: Sequence[tuple[str, ...]]) -> list[JSON]:
    """Return the memories of this line that fit some words best, as the player may see them."""
    saved, store = await game.saved_game(), (await game.load()).store
    if saved is None or store is None:
        return []
    timeline = read_timeline(saved.values)
    matches = await recall(store, spaces, Query(words, timeline=timeline, limit=_MOST_MATCHES))
    shown = shown_memories(
        {**match.value, "key": match.key, "score": match.score, "why": str(match.reason)} for match in matches
    )
    return await asyncio.to_thread(add_reasons, shown, words)


async def _origin(state: AppState, request: Request, game: Game, memory: JSON) -> JSON:
    """Return which messages left a memory, or why nobody knows."""
    if memory.get("player") or memory.get("reply"):
        return {"causes": [], "reason": f"These are the words of turn {memory.get('turn')} themselves."}
    try:
        causes = await why(
            await game.load(), game.config, game.context, str(memory.get("text") or ""),
            of_player=state.is_owner(request, game.context),
        )  # fmt: skip
    except HistoryError:
        return {"causes": [], "reason": "No message of this line left it: it comes from a file, or from another line."}
    mine = [cause for cause in causes if cause.turn == memory.get("turn")] or causes
    return {"causes": by_turn(mine), "reason": ""}


async def recalled_memories(
    state: AppState, request: Request, campaign: OpenCampaign, question: str
) -> list[JSON] | None:
    """Return what was recalled for a message, as far as who asks may see it; None if it is not known.

    Each has its reason, and the branch and line on which it was said.
    """
    memories, game = campaign.memories, campaign.game
    if memories is None:
        return None
    spaces = _spaces(state, request, game)
    places = await asyncio.gather(*(_place(game, str(memory.get("key", "")), spaces) for memory in memories))
    pairs = zip(memories, places, strict=True)
    is_owner = state.is_owner(request, game.context)  # what was forgotten meanwhile was theirs to see
    placed = [memory | (place or {}) for memory, place in pairs if place is not None or is_owner]
    return await asyncio.to_thread(add_reasons, placed, question)


async def _place(game: Game, key: str, spaces: Sequence[tuple[str, ...]]) -> JSON | None:
    """Return the branch and the line on which a memory was written, a fact's as its turn's; None if it is not there."""
    record = await _record(game, key, spaces)
    if record is None:
        return None
    branch, line = record.get("branch"), record.get("line")
    if branch and not line and isinstance(turn := record.get("turn"), int):
        line = (await _record(game, record_key(branch, turn, "exchange"), spaces) or {}).get("line")
    return {"branch": branch, "line": line}


async def _record(game: Game, key: str, spaces: Sequence[tuple[str, ...]]) -> JSON | None:
    """Return a memory by its key, as the player may see it."""
    store = (await game.load()).store
    for space in spaces:
        if store is not None and (item := await store.aget(space, key, refresh_ttl=False)) is not None:
            shown = shown_memories([{**item.value, "key": key}])
            return shown[0] if shown else None
    return None
