"""Names: those of several words that a question names, such as “the Quiet Anvil”, and what has them as they stand.

Of a name that is made of common words, each word is in hundreds of records, and some of them have both, each of another
name; word for word it is in few. So it is looked for by itself, too, and a record that has it as it stands weighs more
than one in which its words are scattered.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from questbook.memory.text.wording import fold_case
from questbook.memory.text.words import STOP_WORDS

_MOST = 3  # names of one question
_LONGEST = 5  # words of a name; what is longer is a headline
_WORD = re.compile(r"[^\W_]+")
_WITHIN = re.compile(r"[^\S\n]+|[-‐'’]")  # what stands between two words of a name
_OPENS = frozenset('.!?:;…"“”„«»\n')  # what follows is capitalised whatever it is


def names_of(question: str, but: Iterable[str] = ()) -> list[str]:
    """Return the names of several words that a question has, in small letters, without articles; at most three.

    They are told by their capitals: two words or more in a row, of which what begins a sentence is no more than the
    first of two. A question without capitals names nobody so, and neither does one all in capitals.

    Args:
        question: Any text.
        but: Words, in small letters, that are no part of a name.
    """
    if question.isupper():
        return []
    question = unicodedata.normalize("NFC", question)
    out, found = STOP_WORDS.union(but), dict[str, None]()
    for run in _capitalised(question):
        words = [fold_case(word[0]) for word in run]
        kept = [number for number, word in enumerate(words) if word not in out]
        if len(kept) > 2 and _begins(question, run[kept[0]].start()):
            del kept[0]
        name = words[kept[0] : kept[-1] + 1] if len(kept) > 1 else []
        if 0 < len(name) <= _LONGEST:
            found[" ".join(name)] = None
        if len(found) == _MOST:
            break
    return list(found)


def holds(text: str, names: Iterable[str]) -> bool:
    """Whether a text has one of some names, as `names_of` returns them, word for word."""
    told = fold_case(text)
    return any(all(word in told for word in name.split()) and _pattern(name).search(told) for name in names)


@lru_cache(maxsize=64)
def _pattern(name: str) -> re.Pattern[str]:
    words = r"[\W_]+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<![^\W_]){words}(?![^\W_])")


def _begins(question: str, place: int) -> bool:
    """Whether a sentence begins at a place."""
    before = question[:place].rstrip(" \t")
    return not before or before[-1] in _OPENS


def _capitalised(question: str) -> list[list[re.Match[str]]]:
    """Return the capitalised words of a question, those in a row together."""
    runs: list[list[re.Match[str]]] = []
    end = -1  # of the last word, if it was capitalised
    for word in _WORD.finditer(question):
        if not word[0][0].isupper() or word[0] == "I":
            end = -1
            continue
        if end >= 0 and _WITHIN.fullmatch(question, end, word.start()):
            runs[-1].append(word)
        else:
            runs.append([word])
        end = word.end()
    return runs
