"""Duplicates: texts that say the same but for filler, case, punctuation and line breaks.

Nothing else counts as a duplicate: a text with another name, number, pronoun or "not" says something else, however
alike the two look, and what was said later must stay beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from questbook.memory.store.lexical import split_words

_Text = TypeVar("_Text")

# Contradictions hang on the smallest words ("not", "he", "before"), so that only these few count as filler.
_FILLER = frozenset(
    {"a", "ah", "actually", "an", "haha", "hello", "hey", "hi", "hm", "hmm", "just", "lol", "oh", "ok", "okay"}
    | {"please", "quite", "really", "so", "the", "uh", "um", "very", "well"}
)
_ALIKE = 0.8  # share of the words of two texts that they have in common, from which on they are much alike


def essence(text: str) -> tuple[str, ...]:
    """Return what a text says, for comparison: its words in their order, without filler; all, if it has no others."""
    words = split_words(text)
    return tuple(word for word in words if word not in _FILLER) or tuple(words) or (text.strip(),)


def fold(texts: Iterable[_Text], of: Callable[[_Text], str]) -> list[list[_Text]]:
    """Put together what is said more than once.

    Args:
        texts: In any order.
        of: Gives the text.

    Returns:
        Groups of duplicates, in the order of their first members.
    """
    groups: dict[tuple[str, ...], list[_Text]] = {}
    for text in texts:
        groups.setdefault(essence(of(text)), []).append(text)
    return list(groups.values())


def varied(texts: Iterable[_Text], of: Callable[[_Text], str]) -> list[_Text]:
    """Put texts that are much like an earlier one after all others; nothing is left out.

    So that the few places of a prompt go to different memories, as long as there are any (Jaccard index of the words).
    """
    first: list[_Text] = []
    later: list[_Text] = []
    seen: list[frozenset[str]] = []
    for text in texts:
        words = frozenset(essence(of(text)))
        alike = any(len(words & other) >= _ALIKE * len(words | other) for other in seen)
        (later if alike else first).append(text)
        seen.append(words)
    return first + later
