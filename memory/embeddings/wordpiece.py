"""Cutting text into the word pieces that BERT models know (uncased), in plain Python.

Follows the published description of WordPiece: the longest piece of a word that is in the vocabulary, then
the longest continuation, and so on (Wu et al. 2016); before that, cleaning, lower-casing, stripping accents,
and splitting at white space, at punctuation and around Chinese characters (Devlin et al. 2018).
"""

import unicodedata
from functools import lru_cache

_LONGEST_WORD = 100  # characters; longer ones are unknown, as in the published tokenizer
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """A tokenizer.

    Args:
        vocabulary: One piece per line, its number being the line's; continuations begin with "##".
        longest: Most tokens of a text, with the two that mark its ends; the rest is cut off.
    """

    def __init__(self, vocabulary: str, longest: int = 256) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary.split("\n")) if piece}
        self._first, self._last = self._numbers["[CLS]"], self._numbers["[SEP]"]
        self._unknown = self._numbers["[UNK]"]
        self._longest = longest
        self._pieces = lru_cache(maxsize=20_000)(self._cut)  # texts repeat their words

    def tokens(self, text: str) -> list[int]:
        """Numbers of a text's pieces, between the marks of its ends.

        Args:
            text: Any text.

        Returns:
            At least two and at most `longest` numbers.
        """
        found = [self._first]
        for word in _words(text):
            found += self._pieces(word)
            if len(found) >= self._longest:
                break
        return [*found[: self._longest - 1], self._last]

    def _cut(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST_WORD:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if mark + word[start:end] in self._numbers), None)
            if end is None:
                return (self._unknown,)
            pieces.append(self._numbers[mark + word[start:end]])
            start = end
        return tuple(pieces)


def _words(text: str) -> list[str]:
    spaced = "".join(_cleaned(letter) for letter in text)
    plain = "".join(c for c in unicodedata.normalize("NFD", spaced) if unicodedata.category(c) != "Mn")
    return "".join(f" {c} " if _is_punctuation(c) else c for c in map(str.lower, plain)).split()


@lru_cache(maxsize=4_096)
def _cleaned(letter: str) -> str:
    if letter in "\t\n\r" or unicodedata.category(letter) == "Zs":
        return " "
    code = ord(letter)
    if code in (0, 0xFFFD) or unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if any(low <= code <= high for low, high in _CHINESE):
        return f" {letter} "
    return letter


@lru_cache(maxsize=4_096)
def _is_punctuation(letter: str) -> bool:
    # All signs of ASCII count, also those that Unicode files under symbols.
    return unicodedata.category(letter).startswith("P") or (
        letter.isascii() and letter.isprintable() and not letter.isalnum() and letter != " "
    )
