"""Words of texts: how they are split, stemmed as the store's word index stems them, and compared.

SQLite's FTS5 makes the stems (Porter 1980, without accents), so that a query and the index always agree. Two short
texts are compared by their normal form, the stems of the words that carry meaning, names, numbers, and as duplicates.
"""

import math
import re
import sqlite3
import threading
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib.resources import files
from typing import TypeVar

from questbook.memory.errors import StoreConfigError
from questbook.types import words_in

_Text = TypeVar("_Text")

_WORD = re.compile(r"[^\W_]+")
_MARKS = re.compile(r"[\u0300-\u036f]+")  # accents that no letter is composed with; they count nothing
# Scripts that are written without spaces are indexed as pairs of characters.
_MARKED = re.compile(r"[\u0590-\u1cff\ua800-\uabff\U00011000-\U00011fff]")  # scripts whose words have vowel signs
_SPELLS = {7, 9, *range(84, 133)}  # combining classes of the marks that make another word, as tones of Thai; no accents
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]+")
_ASCII = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128)).encode().ljust(256)
_MOST_WORDS = 64  # of one query


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that lists them."""
    return frozenset(_WORD.findall(text))


_LISTS = tomllib.loads(files("questbook.memory.text").joinpath("words.toml").read_text("utf-8"))
STOP_WORDS = word_set(_LISTS["stop_words"])
"""Words that say nothing about what is sought: articles, pronouns, prepositions, auxiliaries, question words."""


def split_words(text: str) -> list[str]:
    """Split text into lower-case words of letters and digits, and scripts without spaces into pairs of characters."""
    if text.isascii():
        return spaced(text).decode().split()  # several times faster
    text = text.lower()
    if _MARKS.search(text):
        text = _MARKS.sub("", unicodedata.normalize("NFC", text))  # else they would cut a word in two
    split = _WORD.findall(text)
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
    """Return the different words of a query without stop words; with them if it has no others.

    Of more than 64 they are the first 32 and the last 32: a question stands before or after a text that was pasted.
    """
    split = split_words(query)
    words = [word for word in split if word not in STOP_WORDS] or split
    first, half = list(dict.fromkeys(words)), _MOST_WORDS // 2
    last = list(dict.fromkeys(reversed(words)))[half - 1 :: -1]
    return first if len(first) <= _MOST_WORDS else list(dict.fromkeys(first[:half] + last))


def is_latin(text: str) -> bool:
    """Return whether all letters of a text are Latin."""
    return text.isascii() or not any(letter > "\u024f" and letter.isalpha() for letter in text)


def count_tokens(text: str) -> int:
    """Return about how many tokens a text takes in a prompt, as a message: as LangChain counts, without the message."""
    return math.ceil((len(text) + len("user")) / 4) + 3


# Stems

TOKENIZER = "porter unicode61 remove_diacritics 2"
WITHOUT_FTS5 = 'this Python\'s SQLite was built without FTS5: open the store with index["lexical"] = False'
_MOST_KEPT = 50_000  # words whose stems are kept in RAM; a language's everyday vocabulary

_lock = threading.Lock()
_stem_of: dict[str, str] = {}


def stem_words(words: Sequence[str]) -> list[str]:
    """Return the stem of each word of letters and digits; "" for a word in which FTS5 sees none."""
    with suppress(KeyError):
        return [_stem_of[word] for word in words]
    with _lock:
        missing = [word for word in dict.fromkeys(words) if word not in _stem_of]
        if len(_stem_of) + len(missing) > _MOST_KEPT:
            missing = list(dict.fromkeys(words))
            _stem_of.clear()
        _stem_of.update(_ask_fts5(missing))
        return [_stem_of[word] for word in words]


def _ask_fts5(words: Sequence[str]) -> dict[str, str]:
    # With a letter before it, as in the index, where the namespace's number comes first: a "y" is stemmed otherwise
    # at the beginning of a word.
    connection = _connection()
    connection.execute("BEGIN")  # a transaction for each word would take several times as long
    try:
        numbered = ((number, f"x{word}") for number, word in enumerate(words))
        connection.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", numbered)
        rows = connection.execute("SELECT doc, term FROM terms WHERE offset = 0").fetchall()
    finally:
        connection.execute("ROLLBACK")
    return dict.fromkeys(words, "") | {words[number]: term[1:] for number, term in rows}


@cache
def _connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    try:
        options = f"content = '', columnsize = 0, tokenize = '{TOKENIZER}'"
        connection.execute(f"CREATE VIRTUAL TABLE words USING fts5(word, {options})")
    except sqlite3.OperationalError as error:
        raise StoreConfigError(WITHOUT_FTS5) from error  # SQLite was built without it
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(words, instance)")
    return connection


# Comparing two short texts

_COMPARED = 4096  # texts whose words are kept for a while: each is compared with many others
_NEGATION = re.compile(r"\b(?:not|never|no|nobody|nothing|none|nowhere|without|cannot|nor|neither)\b|n['’]t\b", re.I)
_MARK = re.compile(r"(?<!\w)[-+](?=\d)|(?<!\d)\d++(?:[.,:/–-]\d++)+|(?<=\w)[-+#]++(?!\w)")
_EMPTY = word_set(_LISTS["empty"])
_NUMBERS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
            "ten": "10", "eleven": "11", "twelve": "12"}  # fmt: skip
# (ending, what replaces it, letters that must remain)
_ENDINGS = (("ies", "y", 2), ("ied", "y", 2), ("ing", "", 3), ("ed", "", 3), ("es", "", 3),
            ("s", "", 3), ("ly", "", 3))  # fmt: skip
_FILLER = word_set(_LISTS["filler"])
_ALIKE = 0.8  # share of the words of two texts that they have in common, from which on they are much alike


def fold_case(text: str) -> str:
    """Return a text in small letters without accents."""
    small = text.casefold()
    if small.isascii():
        return small
    marks = ((c, unicodedata.combining(c)) for c in unicodedata.normalize("NFKD", small))
    return "".join(c for c, combining in marks if not combining or combining in _SPELLS)


def whole_words(text: str) -> list[str]:
    """Split text as `split_words`, but vowel signs belong to their words, as in Hindi; the word index splits there."""
    return words_in(text.lower()) if _MARKED.search(text) else split_words(text)


def with_cut_words(normal: str) -> str:
    """Return a normal form as versions before 0.3 made it, which cut words at vowel signs and left out tones."""
    kept = (c for c in normal if not unicodedata.combining(c))
    return " ".join("".join(" " if unicodedata.category(c)[0] == "M" else c for c in kept).split())


def plain_words(text: str) -> list[str]:
    """Split text into lower-case words without accents; numbers up to twelve become digits."""
    folded = text if text.isascii() else fold_case(text)
    words = whole_words(folded) if folded.isascii() or _MARKED.search(folded) else _WORD.findall(folded)
    return words if _NUMBERS.keys().isdisjoint(words) else [_NUMBERS.get(word, word) for word in words]


@lru_cache(maxsize=_COMPARED)
def normalize(text: str) -> str:
    """Return the form in which two texts count as the same: no case, accents, punctuation or white space."""
    return " ".join(plain_words(text))


@lru_cache(maxsize=_COMPARED)
def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words that carry the meaning; of a text without such words, all of its words."""
    words = {*plain_words(text)}
    return frozenset(map(strip_ending, words - _EMPTY)) or frozenset(words)


@lru_cache(maxsize=8 * _COMPARED)
def strip_ending(word: str) -> str:
    """Return a word without its plain English ending: "promised", "promises" and "promise" become one."""
    for ending, instead, least in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith(("ss", "us", "is")):
            word = word[: -len(ending)] + instead
            if ending in ("ing", "ed") and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@lru_cache(maxsize=_COMPARED)
def numbers_in(text: str) -> frozenset[str]:
    """Return the numbers in a text."""
    return frozenset(word for word in plain_words(text) if any(map(str.isdigit, word)))


@lru_cache(maxsize=_COMPARED)
def marks_in(text: str) -> tuple[str, ...]:
    """Return what words do not tell apart: numbers of several parts, signs, as in "C++"; of no words, all."""
    found = _MARK.findall(text.replace("−", "-"))
    marks = tuple(re.sub(r"\D+", ".", mark) if mark[0].isdigit() else mark for mark in found)
    return marks if any(map(str.isalnum, text)) else (text.strip(),)


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
    words = whole_words(text)
    return (*([word for word in words if word not in _FILLER] or words), *marks_in(text))


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
