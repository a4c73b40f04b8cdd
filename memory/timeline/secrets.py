"""Secrets: what a player's view must not hold, whatever a model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_PLAYERS = frozenset({"player", "the player", "you", "everyone", "everybody", "all"})


def may_know(value: Mapping[str, Any], viewer: Sequence[str] = ()) -> bool:
    """Whether a player may see a record: it is no secret, and if it names who knows it, the player is among them.

    Args:
        value: The record: `kind`, `known_by`.
        viewer: Names of the player's character, besides "player" and "you".
    """
    if value.get("kind") == "secret":
        return False
    known_by = value.get("known_by")
    if not known_by or not isinstance(known_by, Sequence):
        return True
    names = [known_by] if isinstance(known_by, str) else known_by
    allowed = _PLAYERS | {name.casefold().strip() for name in viewer}
    return any(str(name).casefold().strip() in allowed for name in names)
