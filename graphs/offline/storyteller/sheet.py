"""Sheet: level, scores and kit, as players write them."""

# ruff: noqa: E501 (patterns and their words are easier to read whole)

from __future__ import annotations

import re
from typing import Any

from questbook.graphs.offline.storyteller.likeness import FEATURE

JSON = dict[str, Any]

_SHORT = {
    "str": "strength",
    "dex": "dexterity",
    "con": "constitution",
    "int": "intelligence",
    "wis": "wisdom",
    "cha": "charisma",
}
_SCORE = re.compile(
    r"\b(str|dex|con|int|wis|cha)(?:ength|terity|stitution|elligence|dom|risma)?\b\s*(?:is|of|at|:|=)?\s*(\d{1,3})\b",
    re.I,
)
_SCORE_FIRST = re.compile(
    r"\b(\d{1,2})\s+(?:in\s+)?(str|dex|con|int|wis|cha)(?:ength|terity|stitution|elligence|dom|risma)?\b", re.I
)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "my": 1, "the": 1, "some": 1, "his": 1, "her": 1, "two": 2, "three": 3, "four": 4,
            "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12, "twenty": 20}  # fmt: skip

KIT = re.compile(
    r"\b(?:i\s+|she\s+|he\s+|and\s+)?(?:carry(?:ing)?|carries|have|has|own|owns|bring|brings|brought|pack(?:ed)?|took|armed\s+with|equipped\s+with|wield(?:s|ing)?|got|kit(?:\s+is|:)|equipment(?:\s+is|:)|gear(?:\s+is|:))\s+(?P<kit>.+)$",
    re.I,
)
NOT_KIT = re.compile(
    rf"\b(?:{FEATURE}|sister|brother|mother|father|parents?|wife|husband|son|daughter|child|children|family|friends?|dream|goal|debt|question|idea|secret|name|fear|"
    r"been|to|never|always|no|not|nothing|lost|plan|score|problem|temper|heart|years?|way|reason|background|past|level|strength|dexterity|constitution|"
    r"intelligence|wisdom|charisma|str|dex|con|int|wis|cha|it|that|this|grudge|curse|vision|nightmares|who|which|anything|everything|out|over)\b",
    re.I,
)


def numbers(said: str, found: JSON) -> None:
    """Read the level and the ability scores."""
    if (
        level := re.search(
            r"\blevel\s*(?:is\s*|:\s*|=\s*)?(\d{1,2})\b|\b(\d{1,2})(?:st|nd|rd|th)[- ]level\b", said, re.I
        )
    ) and 1 <= (value := int(level[1] or level[2])) <= 20:
        found["level"] = value
    scores = [(m[1], m[2]) for m in _SCORE.finditer(said)] or [(m[2], m[1]) for m in _SCORE_FIRST.finditer(said)]
    chosen = {_SHORT[short.casefold()]: int(score) for short, score in scores if 1 <= int(score) <= 30}
    if chosen:
        found["abilities"] = chosen


def carry(text: str, found: JSON) -> None:
    """Read a list of things: "a rope and two daggers"."""
    kit: dict[str, int] = {}
    for part in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", text.strip(" .!"))[:12]:
        words = part.strip(" .!").split()
        number = 1
        if words and (words[0].casefold() in _NUMBERS or words[0].isdecimal()):
            number = min(999, max(1, _NUMBERS.get(words[0].casefold()) or int(words[0])))
            words = words[1:]
        item = " ".join(words)
        if number > 1 and item.endswith("s") and not item.endswith("ss"):
            item = item[:-2] if item.endswith(("shes", "ches", "sses", "xes")) else item[:-1]
        if item and len(words) <= 5:
            kit[item] = number
    if kit:
        found["kit"] = {**found.get("kit", {}), **kit}
