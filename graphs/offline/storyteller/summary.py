"""Summary: an extract of what was said and what came of it, within a number of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

JSON = dict[str, Any]

_DEFAULT_WORDS = 240
_TOLD = re.compile(
    r"\b(?:remember|tell|told|promise|swear|swore|carve|write|bury|hide|my|name|secret|password)\b", re.I
)
_WEIGHTY = re.compile(
    r"\b(?:dead|dies|killed|gold|key|gives?|takes?|learn|found|find|over|pays?|opens?|wakes?)\b", re.I
)


def limit(instructions: str) -> int:
    """Read the number of words that the instructions allow."""
    found = re.search(r"at most (\d+) words", instructions)
    return max(10, int(found[1])) if found else _DEFAULT_WORDS


def condense(summary: str, turns: Sequence[JSON], words: int) -> str:
    """Fold turns into a summary of at most `words` words: what weighs least and is oldest goes first."""
    lines = [line.strip() for line in re.split(r"\n+", summary) if line.strip()]
    lines += [line for turn in turns if (line := _line(turn))]
    while len(lines) > 1 and _count(lines) > words:
        lines.pop(min(range(len(lines)), key=lambda at: (_weight(lines[at]) + at / len(lines), at)))
    kept = "\n".join(lines).split(" ")
    return " ".join(kept[:words]).strip() or "Nothing has happened yet."


def _line(turn: JSON) -> str:
    player = _clip(str(turn.get("player") or ""), 30)
    reply = re.split(r"(?<=[.!?])\s+(?=[A-Z“])", " ".join(str(turn.get("reply") or "").split()))
    asked = player.endswith("?")
    best = (
        max(reply[:6], key=lambda s: len(_WEIGHTY.findall(s)) + len(re.findall(r"(?<=\s)[A-Z]\w+", s)) / 3)
        if reply
        else ""
    )
    number = f"Turn {turn['turn']}: " if isinstance(turn.get("turn"), int) else ""
    said = f"“{player}” " if player else ""
    return f"{number}{said}{_clip(best, 10 if asked else 24)}".strip()


def _weight(line: str) -> float:
    # What no turn is named for was a summary already: somebody found it worth keeping.
    kept = 1.5 * (not line.startswith("Turn "))
    return (
        kept
        + 2.0 * bool(_TOLD.search(line))
        + bool(_WEIGHTY.search(line))
        + 0.5 * bool(re.search(r"\s[A-Z][a-z]", line))
    )


def _clip(text: str, words: int) -> str:
    parts = text.split()
    return " ".join(parts[:words]) + (" …" if len(parts) > words else "")


def _count(lines: Sequence[str]) -> int:
    return sum(len(line.split()) for line in lines)
