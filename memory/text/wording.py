"""Words of a short text, brought to a form in which two wordings can be compared."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_REMEMBERED = 512  # texts whose words are kept for a while: each is compared with many others
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
# (ending, what stands in its place, letters that must be left)
_ENDINGS = (("ies", "y", 2), ("ied", "y", 2), ("sses", "ss", 2), ("ing", "", 3), ("ed", "", 3), ("es", "", 3),
            ("s", "", 3), ("ly", "", 3))  # fmt: skip


def folded(text: str) -> str:
    """Return a text in small letters without accents."""
    small = text.casefold()
    if small.isascii():
        return small
    return "".join(c for c in unicodedata.normalize("NFKD", small) if not unicodedata.combining(c))


def words_of(text: str) -> list[str]:
    """Split text into lower-case words without accents; numbers up to twelve become digits."""
    return [_NUMBERS.get(word, word) for word in _WORD.findall(folded(text))]


@lru_cache(maxsize=_REMEMBERED)
def normal(text: str) -> str:
    """Return the form in which two texts are held to be the same: no case, accents, punctuation or white space."""
    return " ".join(words_of(text))


@lru_cache(maxsize=_REMEMBERED)
def content(text: str) -> frozenset[str]:
    """Return the stems of the words that carry the meaning; of a text without such words, all of its words."""
    words = words_of(text)
    return frozenset(stem(word) for word in words if word not in _EMPTY) or frozenset(words)


@lru_cache(maxsize=8 * _REMEMBERED)
def stem(word: str) -> str:
    """Take a word's plain English ending away: "promised", "promises" and "promise" are one."""
    for ending, instead, least in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith(("ss", "us", "is")):
            word = word[: -len(ending)] + instead
            if ending in ("ing", "ed") and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@lru_cache(maxsize=_REMEMBERED)
def numbers(text: str) -> frozenset[str]:
    """Return the numbers in a text."""
    return frozenset(word for word in words_of(text) if any(c.isdigit() for c in word))


def negated(text: str) -> bool:
    """Whether a text denies something."""
    return _NEGATION.search(text) is not None


def names(text: str) -> list[str]:
    """Return the words that are written like names, in order, but a first word that may only begin the sentence."""
    found = [match[0] for match in _WORD.finditer(text) if match[0][0].isupper()]
    return [name.casefold() for name in found if name.casefold() not in _EMPTY]
