"""Likeness: what a character looks like, and what they are like."""

# ruff: noqa: E501 (patterns and their words are easier to read whole)

from __future__ import annotations

import re
from typing import Any

from questbook.graphs.offline.storyteller.phrases import neat

JSON = dict[str, Any]

LOOKS = r"(?:very\s+|quite\s+|rather\s+|extremely\s+)?(?:tall|short|stocky|slender|slim|thin|lanky|burly|muscular|broad-shouldered|bald|old|young|scarred|pale|freckled|one-eyed|bearded|wiry|plump|tiny|huge|lean|handsome|beautiful|ugly|weathered|tattooed|gaunt|dark-haired|red-haired|blonde|blond|grey-haired|white-haired|dark-skinned|green-eyed|blue-eyed|heavyset|petite)"
FEATURE = r"(?:hair|haired|eyes?|beard|scars?|tattoos?|skin|braids?|freckles|horns?|tail|nose|moustache|face|limp|ears|teeth|wings|scales|build|eyepatch|cloak|coat|robes?|hood|hat|boots|mask)"
_SEEN = [
    re.compile(
        rf"\b(?:{LOOKS}(?:\s*,\s*|\s+and\s+|\s*,?\s+but\s+|\s+))*{LOOKS}\b(?:[,\s]+with\s+[^.;,]*\b{FEATURE}\b(?:\s+and\s+[^.;,]*\b{FEATURE}\b)?)?",
        re.I,
    ),
    re.compile(
        rf"\b(?:with|has|have|having|got)\s+(?P<f>(?:an?\s+|the\s+)?[^.;,]{{0,40}}\b{FEATURE}\b(?:\s+(?:and|on|over|across|down|like)\s+[^.;,]+)?)",
        re.I,
    ),
    re.compile(r"\b(?P<f>wear(?:s|ing)?\s+[^.;]+)", re.I),
    re.compile(r"\b(?:i|she|he)\s+looks?\s+(?P<f>like\s+[^.;]+|(?!for|to|after|at)\w[^.;]+)", re.I),
    re.compile(rf"\b(?:my|her|his)\s+(?P<f>{FEATURE}\s+(?:is|are)\s+[^.;,]+)", re.I),
]
TRAIT = re.compile(
    r"\b(?:very\s+|quite\s+|a\s+bit\s+|rather\s+|too\s+)?(?:shy|stubborn|brave|curious|reckless|cautious|kind|cruel|greedy|loyal|honest|sarcastic|cheerful|grumpy|quiet|loud|proud|humble|"
    r"hot-headed|hot-tempered|calm|patient|impatient|clever|witty|gloomy|optimistic|pessimistic|suspicious|trusting|generous|vengeful|ambitious|lazy|friendly|cold|"
    r"charming|arrogant|bitter|gentle|fierce|nervous|timid|bold|impulsive|superstitious|pious|cynical|melancholy|mischievous|talkative|cowardly|fearless|"
    r"easygoing|determined|restless|polite|rude|moody|playful|serious|secretive|protective|forgetful)\b",
    re.I,
)
HABIT = re.compile(
    r"^\W*(?:(?:and|but|also)\s+)?(?:i|she|he|my character)\s+(?P<t>(?:never|always|love|loves|hate|hates|fear|fears|can['’]t\s+stand|am\s+afraid|is\s+afraid|talk\s+too|trust|trusts|don['’]t\s+trust|tend\s+to|often)\b.*)$",
    re.I,
)


def appearance(clause: str, found: JSON) -> None:
    """Read looks and clothes out of a clause."""
    seen: list[str] = []
    for pattern in _SEEN:
        for match in pattern.finditer(clause):
            text = neat(match.groupdict().get("f") or match[0])
            if text and not any(text in other or other in text for other in seen):
                seen.append(text)
    if seen:
        join(found, "appearance", ", ".join(seen))


def join(found: JSON, field: str, text: str) -> None:
    """Add to a field what it does not say yet."""
    found[field] = f"{found[field]}, {text}" if found.get(field) and text not in found[field] else text
