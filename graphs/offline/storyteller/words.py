"""Words compared: without endings, without small words, and across tenses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from questbook.graphs.offline.storyteller.texts import load


@cache
def vocabulary(name: str) -> frozenset[str]:
    """Return one of the lists in words.toml."""
    return frozenset(load("words")[name].split())


def stems(text: str) -> set[str]:
    """Break text into lower-case words without plain endings and small words."""
    return {stem(word) for word in _split(text)} - vocabulary("small")


def stem(word: str) -> str:
    """Strip plural endings: "barrels" and "barrel" are one word."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def match(text: str, entries: Mapping[str, str]) -> str | None:
    """Find the entry (id to description) that shares most words with a text; None if none shares any."""
    wanted = stems(text)
    best, most = None, 0.0
    for name, description in entries.items() if wanted else ():
        shared = len(wanted & stems(description)) + (0.5 if stems(name) <= wanted else 0)
        if shared > most:
            best, most = name, shared
    return best


def short(name: str) -> str:
    """Say a name as people say it: "Maren" for "Maren Holt", but "Old Tobb" whole."""
    first = name.split()[0] if name.split() else name
    return name if first.casefold() in vocabulary("titles") else first


def calls(text: str, name: str) -> bool:
    """Whether a text calls somebody by name: "Tobb" will do for "Old Tobb", but "old" will not."""
    return bool((stems(short(name)) - vocabulary("titles")) & stems(text))


def roots(text: str) -> list[str]:
    """Return the words that count in a search of memory, in order, each once, in one form."""
    words = (word for word in _split(text) if word not in vocabulary("plain"))
    return list(dict.fromkeys(_alike().get(word) or _alike().get(stem(word)) or stem(word) for word in words))


def bases(words: list[str]) -> set[str]:
    """Add to words what past forms may come from: "kicked" answers to "kick", "hoped" to "hope", "robbed" to "rob"."""
    past = [word for word in words if len(word) > 4 and word.endswith("ed")]
    return {*words, *(word[:-cut] for word in past for cut in (1, 2, 3))}


def _split(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold().replace("'s", "").replace("’s", ""))


@cache
def _alike() -> dict[str, str]:
    return {form: word for word, forms in load("words")["alike"].items() for form in forms.split()}
