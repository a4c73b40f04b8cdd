"""Split texts into words, as the store's word index does, and pick the words of a query that are looked up."""

import math
import re

_WORD = re.compile(r"[^\W_]+")
# Scripts that are written without spaces are indexed as pairs of characters.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]+")
_ASCII = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128)).encode().ljust(256)
_MOST_WORDS = 64  # of one query

STOP_WORDS = frozenset(
    _WORD.findall(
        """
        a about after again all also am an and any are as at be because been before being but by can could did
        do does doing done for from had has have having he her here hers him his how i if in into is it its
        just me might mine more most must my no nor not now of off on once only or other our ours out over own
        s same shall she should so some such t than that the their theirs them then there these they this
        those through to too under until up us very was we were what when where which while who whom whose why
        will with would you your yours d ll m re ve don didn doesn isn wasn won
        """
    )
)
"""Words that say nothing about what is sought: articles, pronouns, prepositions, auxiliaries, question words."""


def split_words(text: str) -> list[str]:
    """Split text into lower-case words of letters and digits, and scripts without spaces into pairs of characters."""
    if text.isascii():
        return spaced(text).decode().split()  # several times faster
    split = _WORD.findall(text.lower())
    if not _UNSPACED.search(text):
        return split
    words: list[str] = []
    for word in split:
        rest = 0
        for run in _UNSPACED.finditer(word):
            words += [word[rest : run.start()]] if run.start() > rest else []
            pairs = [run[0][n : n + 2] for n in range(len(run[0]) - 1)]
            words += pairs or [run[0]]
            rest = run.end()
        words += [word[rest:]] if rest < len(word) else []
    return words


def spaced(text: str) -> bytes:
    """Return the words of a text, as `split_words` splits it, in UTF-8, with one or more blanks between them."""
    return text.encode().translate(_ASCII) if text.isascii() else " ".join(split_words(text)).encode()


def query_words(query: str) -> list[str]:
    """Return the different words of a query without stop words, at most 64; with them if it has no others."""
    words = list(dict.fromkeys(split_words(query)))
    return ([word for word in words if word not in STOP_WORDS] or words)[:_MOST_WORDS]


def is_latin(text: str) -> bool:
    """Return whether all letters of a text are Latin."""
    return text.isascii() or not any(letter > "\u024f" and letter.isalpha() for letter in text)


def count_tokens(text: str) -> int:
    """Return about how many tokens a text takes in a prompt, as a message: as LangChain counts, without the message."""
    return math.ceil((len(text) + len("user")) / 4) + 3
