"""The word index on disk: an FTS5 table with a column for each indexed field and porter stems.

FTS5 has one collection of texts, a store has many namespaces. So each word is indexed behind its namespace's number
("12xdragon"), and the list of its texts stays in one namespace. `postings` reads the lists and computes the scores.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from langgraph.store.base import get_text_at_path, tokenize_path

from questbook.memory.errors import StoreConfigError
from questbook.memory.text.words import TOKENIZER, split_words


def namespace_mark(namespace: int) -> str:
    """Return what is written before each word of a namespace in the index."""
    return f"{namespace}x"


class WordColumns:
    """The fields whose words a store indexes: the weight of each, by its path in the value."""

    def __init__(self, columns: Mapping[str, float]) -> None:
        self.columns = dict(columns)
        # The last column is for texts at paths that only a single put named.
        self.weights = [*self.columns.values(), max(self.columns.values(), default=1.0)]

    def create_table(self, connection: sqlite3.Connection) -> None:
        """Create the table, empty; drop an old one.

        Raises:
            StoreConfigError: If SQLite was built without FTS5.
        """
        names = ", ".join(f"c{number}" for number in range(len(self.columns) + 1))
        connection.execute("DROP TABLE IF EXISTS texts")
        # Columns are named by numbers, never by what a user wrote.
        try:
            connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5({names}, tokenize = '{TOKENIZER}')")
        except sqlite3.OperationalError as error:
            if "no such module" not in str(error):
                raise
            raise StoreConfigError(
                'this Python\'s SQLite was built without FTS5: open the store with index["lexical"] = False'
            ) from error
        # FTS5 looks for a word in each segment. With 2 instead of its usual 4 there are half as many segments, and
        # after thousands of single puts a word is found in half the time. Puts take as long as before.
        connection.execute("INSERT INTO texts(texts, rank) VALUES ('automerge', 2)")
        connection.execute("UPDATE namespaces SET texts = 0")

    def words(self, value: Mapping[str, object], paths: Sequence[str] | None) -> tuple[str, ...]:
        """Return the words of a value for each column, separated by blanks; () if there are none.

        `paths` are those that `PutOp.index` names; None: the store's own fields. The last column
        is for paths without one.
        """
        named = list(self.columns) if paths is None else [path for path in self.columns if path in paths]
        others = [] if paths is None else [path for path in paths if path not in self.columns]
        columns = [_words_at(value, [path]) if path in named else "" for path in self.columns]
        columns.append(_words_at(value, others))
        return tuple(columns) if any(columns) else ()


def write_words(connection: sqlite3.Connection, item: int, namespace: int, words: Sequence[str], *, had: bool) -> None:
    """Replace the words of one item. `had`: whether the index has words of it so far."""
    if had:
        connection.execute("DELETE FROM texts WHERE rowid = ?", (item,))
    if words:
        mark = namespace_mark(namespace)
        marked = [mark + column.replace(" ", f" {mark}") if column else "" for column in words]
        names = ", ".join(f"c{number}" for number in range(len(marked)))
        places = ", ".join("?" * len(marked))
        connection.execute(
            f"INSERT INTO texts (rowid, {names}) VALUES (?, {places})",  # noqa: S608 - numbers and question marks
            (item, *marked),
        )
    if change := bool(words) - had:
        connection.execute("UPDATE namespaces SET texts = texts + ? WHERE id = ?", (change, namespace))


def texts_at(value: Mapping[str, object], path: str) -> list[str]:
    """Return the texts of a value at a path, as LangGraph reads paths; "$" is the whole value as JSON."""
    return get_text_at_path(value, _steps(path))


@lru_cache(maxsize=256)
def _steps(path: str) -> str | list[str]:
    return path if path == "$" else tokenize_path(path)


def _words_at(value: Mapping[str, object], paths: Iterable[str]) -> str:
    return " ".join(word for path in paths for text in texts_at(value, path) for word in split_words(text))
