"""Withheld: a turn whose player asked that it not be remembered."""

from __future__ import annotations

from typing import Any

from graphs.phrase import FORGOTTEN
from memory.off_the_record import off_record


def withheld(told: dict[str, Any]) -> dict[str, Any]:
    """Return a turn's words as they are remembered: as they are, or none of them, if the player asked for that.

    That the turn was played is kept, as after `forget`: the tree of what was played must not fall apart. The buffer has
    the words until the turn leaves it, and what of them stands on a page stands there.
    """
    return told | {"player": FORGOTTEN, "reply": FORGOTTEN} if off_record(told["player"]) else told
