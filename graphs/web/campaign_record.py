"""The record of a campaign beside its story: whether it was put away, its own settings, who else may play."""

from __future__ import annotations

from langgraph.store.base import PutOp

from questbook.graphs.local.game import Game
from questbook.graphs.local.home import Home
from questbook.memory.store.any_store import put_all
from questbook.memory.store.database_file import list_paths, read_item
from questbook.memory.timeline.namespaces import campaign_namespace, unescape_label
from questbook.types import JSON

_KEY = "shelf"
SETTINGS = (
    "model", "temperature", "seed", "buffer", "buffer_tokens", "buffer_turns", "summary_offset", "summarizer",
    "summary_tokens", "recall_tokens", "max_cosine_distance", "weights", "reflection", "facts", "guard_secrets",
    "max_roll_rounds", "max_tool_rounds", "max_message_chars", "max_reply_chars", "model_timeout", "update_timeout",
)  # fmt: skip
"""Settings that a campaign may have of its own, in the order of the page."""


def settings_of(home: Home, user: str, campaign: str) -> JSON:
    """Return a campaign's own settings."""
    settings = (read_item(home.memory, _place(user, campaign), _KEY) or {}).get("settings")
    return settings if isinstance(settings, dict) else {}


def put_away(home: Home, user: str) -> set[str]:
    """Return the names of the campaigns that were put away."""
    paths = list_paths(home.memory, campaign_namespace(user, "")[0], _KEY)
    return {
        unescape_label(path[1]) for path in paths if (read_item(home.memory, path, _KEY) or {}).get("put_away") is True
    }


def guests_of(home: Home, owner: str, campaign: str) -> list[str]:
    """Return with whom an owner shares a campaign."""
    guests = (read_item(home.memory, _place(owner, campaign), _KEY) or {}).get("guests")
    return [str(guest) for guest in guests] if isinstance(guests, list) else []


def shared_with(home: Home, person: str) -> list[tuple[str, str]]:
    """Return owner and name of each campaign that others share with a person."""
    labels = [path for path in list_paths(home.memory, None, _KEY) if len(path) == len(_place("", ""))]
    names = [(unescape_label(path[0]), unescape_label(path[1])) for path in labels]
    return [(owner, campaign) for owner, campaign in names if person in guests_of(home, owner, campaign)]


async def change_record(game: Game, change: JSON) -> None:
    """Change what is kept of a game's campaign: {"put_away": …}, {"settings": …}, {"guests": …}."""
    store, place = (await game.load()).store, _place(game.context.user, game.context.campaign)
    if store is not None:
        item = await store.aget(place, _KEY)
        await put_all(store, [PutOp(place, _KEY, (item.value if item else {}) | change, False)])


def _place(user: str, campaign: str) -> tuple[str, ...]:
    return campaign_namespace(user, campaign, _KEY)
