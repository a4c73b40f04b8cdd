"""Reading the LTM extension's SQLite database, also a damaged one. Nothing in its directory is changed."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from questbook.memory.errors import ImportFailedError

_TABLE = "long_term_memory"
_TIME = "%Y-%m-%d %H:%M:%S"
NAMELESS = "someone"


class Row(NamedTuple):
    """A message as the extension kept it.

    Attributes:
        id: Its number, which is the row of its vector; -1 if it has none.
        name: Who said it.
        message: What was said.
        said_at: When, ISO 8601 in UTC; "" if what stood there is no time.
    """

    id: int
    name: str
    message: str
    said_at: str


class Rows(NamedTuple):
    """What was read of one source.

    Attributes:
        rows: The messages that can be brought over, by id.
        skipped: What could not be, each with its reason.
        notes: What was brought over, but not as it stood there.
    """

    rows: list[Row]
    skipped: list[str]
    notes: list[str]

    def take(self, row: Row | None, reason: str, note: str) -> None:
        """Take what `row_of` made of one message."""
        if row is None:
            self.skipped.append(reason)
        else:
            self.rows.append(row)
        if note:
            self.notes.append(note)


def read_database(path: Path) -> Rows:
    """Read a database of the extension.

    Of a damaged one, what can be read from its beginning and from its end is read.

    Raises:
        ImportFailedError: It is no database, or nothing of it can be read.
    """
    raw: dict[int, tuple[object, object, object]] = {}
    damage = ""
    with _copied(path) as copy, closing(sqlite3.connect(copy)) as connection:
        connection.text_factory = bytes
        for order in ("ASC", "DESC"):
            try:
                for number, *values in connection.execute(
                    f"SELECT id, name, message, timestamp FROM {_TABLE} ORDER BY id {order}"  # noqa: S608 - constants
                ):
                    place = number if isinstance(number, int) else -1 - len(raw)  # a table without a primary key
                    raw[place] = (values[0], values[1], values[2])
                break
            except sqlite3.DatabaseError as error:
                damage = str(error)
                if "no such" in damage:
                    raise ImportFailedError(f"{path}: {damage}; this is no database of the extension.") from error
    if damage and not raw:
        raise ImportFailedError(f"{path} cannot be read: {damage}.")
    read = _checked([(number, *raw[number]) for number in sorted(raw)])
    if damage:
        read.skipped.append(f"the file is damaged ({damage}): what lay between the rows that were read is lost")
    return read


def row_of(number: int, name: object, message: object, timestamp: object) -> tuple[Row | None, str, str]:
    """Check one row; return it, or None, the reason for which it is skipped, and what is to be noted."""
    text, spoiled = _text(message)
    if not text.strip():
        return None, f"row {number}: the message is empty", ""
    speaker, _ = _text(name)
    said_at = _time(_text(timestamp)[0])
    notes = []
    if spoiled:
        notes.append("bytes that are no UTF-8 were replaced")
    if not speaker.strip():
        notes.append(f"it has no name, so {NAMELESS!r} said it")
    if not said_at:
        notes.append(f"{_text(timestamp)[0]!r:.40} is no time, so when it was said is unknown")
    row = Row(number, speaker.strip() or NAMELESS, text, said_at)
    return row, "", f"row {number}: {'; '.join(notes)}" if notes else ""


def _checked(raw: list[tuple[int, object, object, object]]) -> Rows:
    read = Rows([], [], [])
    for values in raw:
        read.take(*row_of(*values))
    return read


def _text(value: object) -> tuple[str, bool]:
    if value is None:
        return "", False
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
        return text, "\ufffd" in text and "\ufffd".encode() not in value
    text = str(value)
    clean = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be stored
    return clean, clean != text


def _time(text: str) -> str:
    for form in (_TIME, f"{_TIME}.%f"):
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).isoformat(timespec="seconds")
        except ValueError:
            continue
    return ""


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """Copy a database with what SQLite has beside it: to open it in its place could already change it."""
    with tempfile.TemporaryDirectory(prefix="questbook-") as directory:
        copy = Path(directory) / path.name
        try:
            shutil.copyfile(path, copy)
            for suffix in ("-journal", "-wal"):
                if (beside := path.with_name(path.name + suffix)).is_file():
                    shutil.copyfile(beside, copy.with_name(copy.name + suffix))
        except OSError as error:
            raise ImportFailedError(f"{path} cannot be read: {error.strerror or error}.") from error
        yield copy
