"""Stems of words, as the word index has them: SQLite's FTS5 makes them, so that both sides agree."""

import sqlite3
import threading
from collections.abc import Sequence
from functools import cache

from questbook.memory.errors import StoreConfigError

TOKENIZER = "porter unicode61 remove_diacritics 2"
_MOST_REMEMBERED = 50_000  # words; a language's everyday vocabulary

_lock = threading.Lock()
_known: dict[str, str] = {}


def stems(words: Sequence[str]) -> list[str]:
    """Stem words (Porter 1980), without accents.

    Args:
        words: Single words of letters and digits.

    Returns:
        One stem for each; "" for a word in which FTS5 sees none.

    Raises:
        StoreConfigError: If SQLite was built without FTS5.
    """
    missing = [word for word in dict.fromkeys(words) if word not in _known]
    if missing:
        with _lock:
            if len(_known) + len(missing) > _MOST_REMEMBERED:
                missing = list(dict.fromkeys(words))
                _known.clear()
            _known.update(_stemmed(_connection(), missing))
            return [_known[word] for word in words]
    return [_known.get(word) or _again(word) for word in words]


def _again(word: str) -> str:
    # Another thread may have emptied what is remembered between the two looks.
    with _lock:
        return _known.get(word) or _known.setdefault(word, _stemmed(_connection(), [word])[word])


def _stemmed(connection: sqlite3.Connection, words: Sequence[str]) -> dict[str, str]:
    # With a letter before it, as in the index, where the namespace's sign comes first: a "y" is stemmed otherwise
    # at the beginning of a word.
    connection.execute("BEGIN")  # a transaction for each word would take several times as long
    connection.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", ((n, f"x{w}") for n, w in enumerate(words)))
    found = connection.execute("SELECT doc, term FROM terms WHERE offset = 0").fetchall()
    connection.execute("ROLLBACK")
    return dict.fromkeys(words, "") | {words[number]: term[1:] for number, term in found}


@cache
def _connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    try:
        connection.execute(
            f"CREATE VIRTUAL TABLE words USING fts5(word, content = '', columnsize = 0, tokenize = '{TOKENIZER}')"
        )
    except sqlite3.OperationalError as error:
        raise StoreConfigError(
            'this Python\'s SQLite was built without FTS5: open the store with index["lexical"] = False'
        ) from error
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(words, instance)")
    return connection
