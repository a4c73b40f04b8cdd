"""Search by words: one FTS5 table with a column for each indexed field, porter stems.

FTS5 knows one collection, a store has many namespaces. Every word is therefore indexed with its namespace's
number before it ("12xdragon"), which makes each list of matches local to a namespace however large the file
is. `postings` reckons the scores.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from langgraph.store.base import get_text_at_path, tokenize_path

from questbook.memory.errors import StoreConfigError
from questbook.memory.text.stems import TOKENIZER
from questbook.memory.text.words import split_words


class Lexical:
    """The word index of one store.

    Args:
        columns: Weight of each indexed field, by its path in the value. Weights are relative.
    """

    def __init__(self, columns: Mapping[str, float]) -> None:
        self.columns = dict(columns)
        # The last column is for texts at paths that only a single put named.
        self.weights = [*self.columns.values(), max(self.columns.values(), default=1.0)]

    def create(self, connection: sqlite3.Connection) -> None:
        """Make the table anew, empty.

        Args:
            connection: In a write transaction.

        Raises:
            StoreConfigError: If SQLite was built without FTS5.
        """
        names = ", ".join(f"c{number}" for number in range(len(self.columns) + 1))
        connection.execute("DROP TABLE IF EXISTS texts")
        # The names are numbers, never what a user wrote.
        try:
            connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5({names}, tokenize = '{TOKENIZER}')")
        except sqlite3.OperationalError as error:
            if "no such module" not in str(error):
                raise
            raise StoreConfigError(
                'this Python\'s SQLite was built without FTS5: open the store with index["lexical"] = False'
            ) from error
        # A word is looked for in each segment: with half of FTS5's usual 4 there are half as many, and after thousands
        # of single puts a word is found in half the time. Puts take as long as before.
        connection.execute("INSERT INTO texts(texts, rank) VALUES ('automerge', 2)")
        connection.execute("UPDATE namespaces SET texts = 0")

    def texts(self, value: Mapping[str, object], paths: Sequence[str] | None) -> tuple[str, ...]:
        """What of a value goes into the index.

        Args:
            value: An item's value.
            paths: `PutOp.index` if it names paths; None for the store's own fields.

        Returns:
            The words of each column, the last one being for paths that have no column; () if there are none.
        """
        named = list(self.columns) if paths is None else [path for path in self.columns if path in paths]
        others = [] if paths is None else [path for path in paths if path not in self.columns]
        words = [" ".join(_words(value, [path])) if path in named else "" for path in self.columns] + [
            " ".join(_words(value, others))
        ]
        return tuple(words) if any(words) else ()


def write_texts(connection: sqlite3.Connection, namespace: int, item: int, had: bool, texts: Sequence[str]) -> None:
    """Replace what the index holds of one item.

    Args:
        connection: In a write transaction.
        namespace: The item's namespace.
        item: Its id.
        had: Whether the index holds anything of it.
        texts: The words of each column, or () for nothing.
    """
    if had:
        connection.execute("DELETE FROM texts WHERE rowid = ?", (item,))
    if texts:
        sign = f"{namespace}x"
        signed = [sign + words.replace(" ", f" {sign}") if words else "" for words in texts]
        marks = ", ".join("?" * len(signed))
        connection.execute(
            f"INSERT INTO texts (rowid, {', '.join(f'c{n}' for n in range(len(signed)))}) "  # noqa: S608 - numbers
            f"VALUES (?, {marks})",
            (item, *signed),
        )
    if change := bool(texts) - had:
        connection.execute("UPDATE namespaces SET texts = texts + ? WHERE id = ?", (change, namespace))


def _words(value: Mapping[str, object], paths: Iterable[str]) -> list[str]:
    return [word for path in paths for text in texts_at(value, path) for word in split_words(text)]


def texts_at(value: Mapping[str, object], path: str) -> list[str]:
    """The texts of a value at a path, as LangGraph reads paths; "$" is the whole value as JSON."""
    return get_text_at_path(value, _steps(path))


@lru_cache(maxsize=256)
def _steps(path: str) -> str | list[str]:
    return path if path == "$" else tokenize_path(path)
