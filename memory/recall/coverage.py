"""Coverage: how much of a question's words a record has, and how much it needs so that it comes at all.

A record that shares nothing with a question but a common word would only fill the prompt. How much is enough depends on
whom the question names, because a name that nobody ever said is the best sign that nothing is known (measured:
docs/figures.md, "What was never told").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from questbook.memory.recall.names import name_words
from questbook.memory.recall.times import TIME_WORDS
from questbook.memory.text.bm25 import WordTable
from questbook.memory.text.wording import fold_case
from questbook.memory.text.words import query_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OF_KNOWN, OF_NOBODY, OF_STRANGERS = 1 / 10, 1 / 5, 1 / 3
"""Coverage that a record needs: if the question names someone whom a record names, if it names nobody, and if it names
only those whom no record names."""

_ASKING_WORDS = (
    "know", "knew", "known", "tell", "told", "say", "said", "hear", "heard", "think", "mean", "mention", "remember",
    "recall",
)  # fmt: skip
_ALIKE = 0.85  # of two spellings of one name, such as Gretta and Greta; difflib's ratio
_SHORT = 3  # letters: Tim is no misspelling of "Time"
_CAPITALISED = re.compile(r"(?<![^\W_])[^\W\d_][^\W_]{3,}")


class Named(NamedTuple):
    """What a question names.

    Attributes:
        words: The words by which it names somebody (`questbook.memory.recall.names.name_words`).
        known: Whether it names the speaker or subject of a record.
        time: Whether it names a time.
    """

    words: Sequence[str]
    known: bool
    time: bool


def covers(
    table: WordTable, weights: Sequence[float], texts: Sequence[str], named: Named, *, knows_meaning: bool
) -> NDArray[np.bool_]:
    """Return which records cover enough of a question, or of a hint: by its weight, less of it counts.

    Args:
        table: The words of the question and its hints in the records.
        weights: Of the question, which is the heaviest, and of the hints.
        texts: What the records say.
        named: What the question names.
        knows_meaning: Whether the store's embedder knows more than spelling. Then a record without the words may fit,
            unless the question names only those whom no record names.
    """
    import numpy as np

    required = _required_coverage(named, table, texts)
    if knows_meaning and required != OF_STRANGERS:
        return np.ones(len(texts), np.bool_)
    ignored = (*_ASKING_WORDS, *(TIME_WORDS if named.time else ()))
    shares = [table.coverage(number, ignored) * (weight / max(weights)) for number, weight in enumerate(weights)]
    enough: NDArray[np.bool_] = np.max(shares, axis=0) >= required
    return enough


def fits(question: str, texts: Sequence[str]) -> list[bool]:
    """Return which texts cover enough of a question, by their words alone."""
    if not texts:
        return []
    table = WordTable(texts, [query_words(question)])
    named = Named(name_words(question), known=False, time=False)
    enough: list[bool] = covers(table, [1.0], texts, named, knows_meaning=False).tolist()
    return enough


def _required_coverage(named: Named, table: WordTable, texts: Sequence[str]) -> float:
    if named.known or any(table.has(name) or _is_misspelt(name, texts) for name in named.words):
        return OF_KNOWN
    return OF_STRANGERS if named.words else OF_NOBODY


def _is_misspelt(name: str, texts: Sequence[str]) -> bool:
    """Return whether a name of the texts that begins alike is another spelling of a name."""
    words = {word for text in texts for word in _CAPITALISED.findall(text) if word[0].isupper()}
    alike = {folded for word in words if (folded := fold_case(word))[0] == name[0]}
    return len(name) > _SHORT and bool(get_close_matches(name, alike, 1, _ALIKE))
