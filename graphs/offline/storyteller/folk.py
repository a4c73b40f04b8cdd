"""Folk: ancestries and classes, as players say them."""

from __future__ import annotations

import re

from questbook.graphs.offline.storyteller.callings import CALLINGS

ANCESTRIES = [
    "half-elf", "half elf", "half-orc", "half orc", "wood elf", "high elf", "dark elf", "hill dwarf", "mountain dwarf",
    "lightfoot halfling", "forest gnome", "rock gnome", "human", "elf", "dwarf", "halfling", "gnome", "orc", "tiefling",
    "dragonborn", "drow", "goliath", "aasimar", "goblin", "kobold", "tabaxi", "firbolg", "genasi", "changeling",
    "warforged", "kenku", "tortle", "fairy", "satyr", "centaur", "triton", "lizardfolk", "bugbear", "hobgoblin",
]  # fmt: skip
CLASSES = sorted(
    {*CALLINGS, *(word for words in CALLINGS.values() for word in words.split())} - {"bounty", "captain", "guard"}
)
_PLURALS = {"elves": "elf", "dwarves": "dwarf", "humans": "human"}

ANCESTRY = re.compile(r"\b(" + "|".join(map(re.escape, ANCESTRIES)) + r"|elven|elvish|dwarven|orcish|gnomish)\b", re.I)
CLASS = re.compile(r"\b(" + "|".join(sorted(CLASSES, key=len, reverse=True)) + r")\b", re.I)


def ancestry(text: str) -> str:
    """Say what somebody is whom an adjective describes: "elven" is an elf."""
    adjective = {"elven": "elf", "elvish": "elf", "dwarven": "dwarf", "orcish": "orc", "gnomish": "gnome"}
    return adjective.get(text.casefold(), text if not text.isupper() else text.lower())
