"""Named: whom a question names, of those who speak or are spoken of in records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from questbook.memory.text.words import STOP_WORDS, split_words

_WORD = re.compile(r"[^\W\d_]+")
_SHORTEST = 3  # letters of a nickname: "Mel" for Melanie


def named_in(query: str, names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return those of some names that a query names, each with the query's words that do, in small letters.

    A name is named by any of its words, or by a capitalised word that it begins with ("Mel" for Melanie).
    """
    asked = _WORD.findall(query)
    small = {word.lower() for word in asked}
    begun = {word.lower() for word in asked if word[0].isupper() and len(word.lower()) >= _SHORTEST}
    found = {}
    for name in names:
        parts = set(split_words(name)) - STOP_WORDS
        words = small & parts
        words |= {word for word in begun if any(part.startswith(word) for part in parts)}
        if words:
            found[name] = frozenset(words)
    return found


def bonus(value: Mapping[str, Any], speakers: Mapping[str, Any], subjects: Mapping[str, Any]) -> float:
    """Return 1 if a record's speaker or subject is named, -1 if another speaker alone is, else 0.

    Args:
        value: The record.
        speakers: The speakers that the query names.
        subjects: The subjects that it names.
    """
    if value.get("subject") in subjects:
        return 1.0
    speaker = value.get("speaker")
    if not isinstance(speaker, str) or len(speakers) != 1:
        return 0.0  # a question that names both says nothing about who answers
    return 1.0 if speaker in speakers else -1.0


def without(query: str, words: Iterable[str]) -> str:
    """Return a query without some words (in small letters); the query itself if nothing else is asked."""
    out = set(words)
    rest = re.sub(r"[^\W\d_]+(?:['’]s\b)?", lambda found: "" if _bare(found[0]) in out else found[0], query)
    return " ".join(rest.split()) if split_words(rest) else query


def _bare(word: str) -> str:
    return re.split(r"['’]", word)[0].lower()
