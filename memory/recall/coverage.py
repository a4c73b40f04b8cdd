"""Coverage: how much of a question's words a record has, and how much it needs so that it comes at all.

A record that shares nothing with a question but a common word would only fill the prompt. How much is enough depends on
whom the question names, because a name that nobody ever said is the best sign that nothing is known (measured:
docs/figures.md, "What was never told").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from questbook.memory.recall.names import name_words
from questbook.memory.recall.times import TIME_WORDS
from questbook.memory.text.bm25 import WordTable
from questbook.memory.text.comparison import fold_case
from questbook.memory.text.stems import TextWords
from questbook.memory.text.words import is_latin, query_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OF_KNOWN, OF_NOBODY, OF_STRANGERS = 1 / 10, 1 / 5, 1 / 3
"""Coverage that a record needs: if the question names someone whom a record names, if it names nobody, and if it names
only those whom no record names."""

_CLOSE, _FAR = 0.5, 0.2  # shares of the best cosine (docs/figures.md, "What changed")
_ASKING_WORDS = (
    "know", "knew", "known", "tell", "told", "say", "said", "hear", "heard", "think", "mean", "mention", "remember",
    "recall",
)  # fmt: skip
_ALIKE = 0.85  # of two spellings of one word, such as Gretta and Greta; difflib's ratio
_LONGER, _OTHER = 2, 3  # letters that one of two spellings may have more, and that only one of them may have
_CAPITALISED = re.compile(r"(?<![^\W_])[^\W\d_a-z][^\W\d_]*")
_SHORT = 3  # letters: Tim is no misspelling of "time"


class Named(NamedTuple):
    """What a question names.

    Attributes:
        words: The words by which it names a person, as the records spell them (`name_words` in
            `questbook.memory.recall.names`).
        known: Whether it names the speaker or subject of a record.
        time: Whether it names a time.
        latin: Whether it is written in Latin letters. No stop words and stems of others are known, and half of the
            pairs of characters of a script without spaces are no words: no text has them.
    """

    words: Sequence[str]
    known: bool
    time: bool
    latin: bool = True


class Closeness(NamedTuple):
    """How close in meaning to a question some texts are: which are close, and which are far from it."""

    close: NDArray[np.bool_]
    far: NDArray[np.bool_]


def covers(
    table: WordTable, weights: Sequence[float], named: Named, closeness: Closeness | None = None
) -> NDArray[np.bool_]:
    """Return which records cover enough of a question, or of a hint: by its weight, less of it counts.

    Args:
        table: The words of the question and its hints in the records.
        weights: Of the question, which is the heaviest, and of the hints.
        named: What the question names.
        closeness: How close the records are in meaning, if the store's embedder knows more than spelling. One that is
            close needs no words of the question, and one that is far does not come for its words alone, unless the
            question names only those whom no record names.
    """
    import numpy as np

    required = _required_coverage(named, table)
    ignored = (*_ASKING_WORDS, *(TIME_WORDS if named.time else ()))
    shares = [table.coverage(number, ignored) * (weight / max(weights)) for number, weight in enumerate(weights)]
    enough: NDArray[np.bool_] = np.max(shares, axis=0) >= required
    if closeness is None or required == OF_STRANGERS:
        return enough
    return (enough & ~closeness.far) | closeness.close


def compare_meanings(cosines: NDArray[np.float64], weights: Sequence[float]) -> Closeness:
    """Compare each candidate's cosine with the best one.

    Args:
        cosines: Shape (texts, candidates); NaN where the store gave none: not known to be close or far.
        weights: Of the texts. A text without weight only proposes candidates.
    """
    import numpy as np

    nearest = np.fmax.reduce(cosines[np.asarray(weights) > 0])  # passes over NaN
    best = np.nanmax(nearest, initial=0.0)
    return Closeness(nearest >= _CLOSE * best, nearest < _FAR * best)


def find_spellings(
    words: Iterable[str], names: Sequence[str], texts: Sequence[str], text_words: TextWords
) -> dict[str, str]:
    """Return how texts spell words that none of them has: "greta" for "gretta", "книгу" for "книга".

    Args:
        words: The words, in small letters.
        names: Words that are written as names; a text must write the other spelling as one, too.
        texts: The texts.
        text_words: Their words.
    """
    missing = [word for word in words if len(word) > _SHORT]
    if not missing:
        return {}
    capitalised = set(_CAPITALISED.findall("\n".join(texts))) if set(missing) & set(names) else set[str]()
    written_as_names = {fold_case(word) for word in capitalised if word[0].isupper()}
    spellings: dict[str, str] = {}
    for word in missing:
        candidates = written_as_names if word in names else text_words.spelled_like(word, _LONGER)
        others = [each for each in candidates if each[0] == word[0] and abs(len(each) - len(word)) <= _LONGER]
        letters = set(word)
        alike = get_close_matches(
            word, [each for each in others if len(letters.symmetric_difference(each)) <= _OTHER], 1, _ALIKE
        )
        if not alike and not is_latin(word):
            alike = sorted(other for other in others if _are_alike(word, other))
        spellings |= {word: alike[0]} if alike else {}
    return spellings


def fits(question: str, texts: Sequence[str]) -> list[bool]:
    """Return which texts cover enough of a question, by their words alone."""
    if not texts:
        return []
    words, names = query_words(question), name_words(question)
    table, spellings = count_words(texts, [words], names)
    named = Named([spellings.get(name, name) for name in names], known=False, time=False, latin=is_latin(question))
    enough: list[bool] = covers(table, [1.0], named).tolist()
    return enough


def count_words(
    texts: Sequence[str],
    searched: Sequence[Sequence[str]],
    names: Sequence[str],
    rows: NDArray[np.intp] | None = None,
    nearby: float = 0.0,
) -> tuple[WordTable, dict[str, str]]:
    """Count words in texts, those that none of them has as the texts spell them; return the spellings.

    Args:
        texts: The texts.
        searched: The words of each query, in small letters.
        names: Words that are written as names.
        rows: As in `WordTable`; so is `nearby`.
        nearby: What a word is worth nearby.
    """
    text_words = TextWords(texts)
    table = WordTable(text_words, searched, rows, nearby)
    missing = {word: None for words in searched for word in words if not table.has(word)}
    spellings = find_spellings(missing, names, texts, text_words)
    if not spellings:
        return table, {}
    respelt = [[spellings.get(word, word) for word in words] for words in searched]
    return WordTable(text_words, respelt, rows, nearby), spellings


def _required_coverage(named: Named, table: WordTable) -> float:
    if named.known or any(table.has(name) for name in named.words):
        return OF_KNOWN
    return OF_STRANGERS if named.words else OF_NOBODY if named.latin else OF_KNOWN


def _are_alike(word: str, other: str) -> bool:
    """Return whether a word of another script than Latin has another's beginning: no stems of such words are known."""
    reach = max(min(_SHORT + 1, len(word) - 1), len(word) - 2)
    return word[:reach] == other[:reach]
