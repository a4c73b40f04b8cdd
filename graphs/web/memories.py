"""Endpoints of the memories: search in all, where one comes from, forget words, retract a turn."""

import asyncio
from collections.abc import Iterable, Sequence

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from questbook.graphs.errors import InputError
from questbook.graphs.interface.forgetting import find_words, forget_words, retract_turn
from questbook.graphs.local.game import Game
from questbook.graphs.memories.memories import Memories
from questbook.graphs.turn.player_view import shown_memories
from questbook.graphs.web.app_state import acts, check_turn, html, note, shows, state_of
from questbook.graphs.web.edits import origin
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.memory.recall.query import Query, Reason
from questbook.memory.recall.recall import recall
from questbook.memory.text.words import query_words, split_words, stem_words
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.timeline.timeline import record_key, remembered_timeline
from questbook.types import JSON

_MOST_MATCHES = 20
_LONGEST_QUESTION = 500  # characters
_LONGEST_FACT = 1000
_KINDS = ("exchanges", "facts", "reflections")  # that belong to a timeline; lore and what is known of the owner do not
_MOST_WORDS = 6
_CLOSE = 5  # rank by meaning up to which a memory is said to be close


async def search(request: Request, campaign: OpenCampaign) -> Response:
    """Show the memories that fit some words."""
    words = request.query_params.get("words", "").strip()[:_LONGEST_QUESTION]
    matches = await _search(campaign.game, words, _spaces(request, campaign.game)) if words else []
    return html(request, "search.html", {"words": words, "memories": matches})


async def memory(request: Request, campaign: OpenCampaign) -> Response:
    """Show one memory, and where it comes from."""
    game, key = campaign.game, request.query_params.get("key", "")
    record = await _record(game, key, _spaces(request, game)) if key else None
    if record is None:
        return html(request, "problem.html", {"text": "This memory is no longer there."}, 404)
    if record.get("player") or record.get("reply"):
        left = {"causes": [], "reason": f"These are the words of turn {record.get('turn')} themselves."}
    else:
        unknown = "No message of this line left it: it comes from a file, or from another line."
        text, of_player = str(record.get("text") or ""), state_of(request).is_owner(request)
        left = await origin(game, text, unknown, of_player=of_player, turn=record.get("turn"))
    return html(request, "memory-card.html", {"memory": record, **left})


async def forget(request: Request, campaign: OpenCampaign, form: FormData) -> Response:
    """Show what holds some words; once a person is sure, forget them."""
    words, is_sure = " ".join(str(form.get("words", "")).split()), form.get("sure") == "1"
    game, alone, whole = campaign.game, state_of(request).log_in, form.get("whole") == "1"
    if is_sure:
        check_turn(request)
        await note(request, "forget")
    async with campaign.change() if is_sure else campaign.alone():
        lines = [] if is_sure else (await find_words(game, words, alone=alone)).lines
        done = await forget_words(game, words, remove_emptied=whole, alone=alone) if is_sure else ""
    return html(request, "forget.html", {"words": words, "lines": lines, "done": done, "asks": not is_sure})


async def retract(request: Request, campaign: OpenCampaign, form: FormData) -> Response:
    """Ask whether a turn is to be retracted; once a person is sure, do it."""
    turn = str(form.get("turn", ""))
    if form.get("sure") != "1":
        return html(request, "retract.html", {"turn": turn})
    async with campaign.change():
        lines = await retract_turn(campaign.game, turn)
    return html(request, "forget.html", {"words": "", "lines": lines, "done": "", "asks": False})


async def known(request: Request, campaign: OpenCampaign, form: FormData) -> Response:
    """List the facts that are known of the person, with what has ended; correct or delete one for its owner."""
    game = campaign.game
    if (saved := await game.saved_game()) is None:
        return html(request, "known.html", {"memories": []})
    user, timeline = game.context.user, remembered_timeline(saved.values)
    memories = Memories(await game.store(), user, campaign=game.context.campaign, timeline=timeline)
    if key := str(form.get("key", "")):
        text = " ".join(str(form.get("text", "")).split())
        if not form.get("delete") and not 0 < len(text) <= _LONGEST_FACT:
            raise InputError(f"What is known instead? Write 1 to {_LONGEST_FACT:,} characters.")
        if form.get("delete"):
            await note(request, "forget")
        async with campaign.change(is_same_line=True):
            await (memories.delete(key) if form.get("delete") else memories.correct(key, text))
    facts = [one for one in await memories.list(kind="fact") if one.status != "elsewhere" and one.kind != "secret"]
    return html(request, "known.html", {"memories": sorted(facts, key=lambda memory: memory.status != "holds")})


ROUTES = [
    shows("/search", search),
    acts("/known", known, own=True, also_get=True),
    shows("/memory", memory),
    acts("/forget", forget, own=True),
    acts("/retract", retract, own=True),
]


async def recalled_memories(request: Request, campaign: OpenCampaign, question: str) -> list[JSON] | None:
    """Return what was recalled for a message and who asks may see, with reason, branch and line; None: not known."""
    memories, game = campaign.memories, campaign.game
    if memories is None:
        return None
    spaces = _spaces(request, game)
    places = await asyncio.gather(*(_place(game, str(memory.get("key", "")), spaces) for memory in memories))
    is_owner = state_of(request).is_owner(request)  # what was forgotten meanwhile was theirs to see
    pairs = zip(memories, places, strict=True)
    placed = [memory | (place or {}) for memory, place in pairs if place is not None or is_owner]
    return await asyncio.to_thread(add_reasons, placed, question)


def add_reasons(memories: Iterable[JSON], question: str) -> list[JSON]:
    """Return memories, each with "because": in plain words, why it came to a question; "" if nothing says it."""
    asked = query_words(question)
    stems = dict(zip(asked, stem_words(asked), strict=True))
    return [memory | {"because": _because(memory, stems)} for memory in memories]


def _because(memory: JSON, asked: dict[str, str]) -> str:
    if not memory.get("reason"):  # of an LTM database, which knows the distance alone; or it came without a search
        why = str(memory.get("why") or "")
        return "close in meaning" if why.startswith("distance") else why
    reason = Reason(**memory["reason"])
    if reason.because:
        return reason.because
    text = " ".join(str(memory.get(name) or "") for name in ("player", "reply", "text"))
    stems = set(stem_words(split_words(text)))
    shared = [word for word, stem in asked.items() if stem and stem in stems][:_MOST_WORDS]
    parts = {
        f"shares the word{'' if len(shared) == 1 else 's'} {', '.join(shared)}": shared,
        "is about what you named": reason.named > 0,
        "is of the time that you named": reason.time,
        "close in meaning": 0 < (reason.by_meaning or 0) <= _CLOSE,
    }
    return "; ".join(part for part, holds in parts.items() if holds)


def _spaces(request: Request, game: Game) -> list[tuple[str, ...]]:
    """Return where memories are that who asks may see: what is known of the owner in all, for themselves alone."""
    user = game.context.user
    spaces = [campaign_namespace(user, game.context.campaign, kind) for kind in (*_KINDS, "lore")]
    return [*spaces, player_namespace(user, "facts")] if state_of(request).is_owner(request) else spaces


async def _search(game: Game, words: str, spaces: Sequence[tuple[str, ...]]) -> list[JSON]:
    """Return the memories of this line that fit some words best, as the player may see them."""
    if (saved := await game.saved_game()) is None:
        return []
    timeline = remembered_timeline(saved.values)
    query = Query(words, timeline=timeline, lasting=spaces[len(_KINDS) :], limit=_MOST_MATCHES)
    shown = shown_memories(
        {**hit.value, "key": hit.key, "score": hit.score, "why": str(hit.reason), "reason": hit.reason._asdict()}
        for hit in await recall(await game.store(), spaces[: len(_KINDS)], query)
    )
    return [memory for memory in await asyncio.to_thread(add_reasons, shown, words) if memory["because"]]


async def _place(game: Game, key: str, spaces: Sequence[tuple[str, ...]]) -> JSON | None:
    """Return the branch and the line on which a memory was written, a fact's as its turn's; None if it is not there."""
    if (record := await _record(game, key, spaces)) is None:
        return None
    branch, line = record.get("branch"), record.get("line")
    if branch and not line and isinstance(turn := record.get("turn"), int):
        line = (await _record(game, record_key(branch, turn, "exchange"), spaces) or {}).get("line")
    return {"branch": branch, "line": line}


async def _record(game: Game, key: str, spaces: Sequence[tuple[str, ...]]) -> JSON | None:
    """Return a memory by its key, as the player may see it."""
    store = await game.store()
    for space in spaces:
        if (item := await store.aget(space, key, refresh_ttl=False)) is not None:
            return next(iter(shown_memories([{**item.value, "key": key}])), None)
    return None
