"""Compare two short texts: normal form, stems of the words that carry meaning, numbers, names, duplicates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from questbook.memory.text.words import split_words

_Text = TypeVar("_Text")

_KEPT = 512  # texts whose words are kept for a while: each is compared with many others
_WORD = re.compile(r"[^\W_]+")
_NEGATION = re.compile(r"\b(?:not|never|no|nobody|nothing|none|nowhere|without|cannot|nor|neither)\b|n['’]t\b", re.I)
# What carries no meaning of its own. Words of place ("under", "behind") and numbers are kept: they tell facts apart.
_EMPTY = frozenset(
    {"a", "an", "the", "of", "to", "in", "on", "at", "by", "for", "with", "from", "and", "or", "but"}
    | {"as", "that", "this", "these", "those", "it", "its", "he", "she", "they", "his", "her", "hers"}
    | {"their", "him", "i", "me", "my", "you", "your", "we", "our", "us", "is", "are", "was", "were"}
    | {"be", "been", "being", "am", "has", "have", "had", "having", "do", "does", "did", "will"}
    | {"would", "shall", "should", "can", "could", "may", "might", "must", "who", "whom", "whose"}
    | {"which", "what", "when", "where", "there", "here", "then", "than", "so", "very", "just", "also"}
    | {"into", "onto", "about", "own", "some", "any", "s", "t", "d", "ll", "re", "ve", "m", "one"}
    | {"once", "now", "still", "quite", "really", "too", "them"}
)
_NUMBERS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
            "ten": "10", "eleven": "11", "twelve": "12"}  # fmt: skip
# (ending, what replaces it, letters that must remain)
_ENDINGS = (("ies", "y", 2), ("ied", "y", 2), ("sses", "ss", 2), ("ing", "", 3), ("ed", "", 3), ("es", "", 3),
            ("s", "", 3), ("ly", "", 3))  # fmt: skip

# Contradictions hang on the smallest words ("not", "he", "before"), so that only these few count as filler.
_FILLER = frozenset(
    {"a", "ah", "actually", "an", "haha", "hello", "hey", "hi", "hm", "hmm", "just", "lol", "oh", "ok", "okay"}
    | {"please", "quite", "really", "so", "the", "uh", "um", "very", "well"}
)
_ALIKE = 0.8  # share of the words of two texts that they have in common, from which on they are much alike


def fold_case(text: str) -> str:
    """Return a text in small letters without accents."""
    small = text.casefold()
    if small.isascii():
        return small
    return "".join(c for c in unicodedata.normalize("NFKD", small) if not unicodedata.combining(c))


def plain_words(text: str) -> list[str]:
    """Split text into lower-case words without accents; numbers up to twelve become digits."""
    return [_NUMBERS.get(word, word) for word in _WORD.findall(fold_case(text))]


@lru_cache(maxsize=_KEPT)
def normalize(text: str) -> str:
    """Return the form in which two texts count as the same: no case, accents, punctuation or white space."""
    return " ".join(plain_words(text))


@lru_cache(maxsize=_KEPT)
def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words that carry the meaning; of a text without such words, all of its words."""
    words = plain_words(text)
    return frozenset(strip_ending(word) for word in words if word not in _EMPTY) or frozenset(words)


@lru_cache(maxsize=8 * _KEPT)
def strip_ending(word: str) -> str:
    """Return a word without its plain English ending: "promised", "promises" and "promise" become one."""
    for ending, instead, least in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith(("ss", "us", "is")):
            word = word[: -len(ending)] + instead
            if ending in ("ing", "ed") and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@lru_cache(maxsize=_KEPT)
def numbers_in(text: str) -> frozenset[str]:
    """Return the numbers in a text."""
    return frozenset(word for word in plain_words(text) if not word.isalpha() and any(c.isdigit() for c in word))


def is_negated(text: str) -> bool:
    """Return whether a text denies something."""
    return _NEGATION.search(text) is not None


def names_in(text: str) -> list[str]:
    """Return the capitalised words in order, in small letters, without those that only begin a sentence ("The")."""
    capitalised = [match[0].casefold() for match in _WORD.finditer(text) if match[0][0].isupper()]
    return [name for name in capitalised if name not in _EMPTY]


def essence(text: str) -> tuple[str, ...]:
    """Return what a text says, to compare texts: its words in order without filler; all if it has no others.

    Texts with one essence are duplicates. Nothing else is: a text with another name, number, pronoun or "not" says
    something else, however alike the two look.
    """
    words = split_words(text)
    return tuple(word for word in words if word not in _FILLER) or tuple(words) or (text.strip(),)


def group_duplicates(texts: Iterable[_Text], of: Callable[[_Text], str]) -> list[list[_Text]]:
    """Group texts, or what has one, that are duplicates of each other, in the order of their first members."""
    groups: dict[tuple[str, ...], list[_Text]] = {}
    for text in texts:
        groups.setdefault(essence(of(text)), []).append(text)
    return list(groups.values())


def put_similar_last(texts: Iterable[_Text], of: Callable[[_Text], str]) -> list[_Text]:
    """Put texts that are much like an earlier one (Jaccard index of the words) after all others; leave out none.

    So the few places of a prompt go to different memories, as long as there are any.
    """
    first: list[_Text] = []
    later: list[_Text] = []
    earlier: list[frozenset[str]] = []
    for text in texts:
        words = frozenset(essence(of(text)))
        alike = any(len(words & other) >= _ALIKE * len(words | other) for other in earlier)
        (later if alike else first).append(text)
        earlier.append(words)
    return first + later
