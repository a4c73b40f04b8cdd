"""Files of the LTM extension: its databases and CSV exports found and read, not changed; a CSV export written."""

import csv
import os
import re
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from questbook.memory.errors import ImportFailedError
from questbook.memory.ltm.memories import EVERYONE, CharacterMemory
from questbook.memory.store.database_file import read_files
from questbook.memory.timeline.namespaces import character_name, escape_label, read_label
from questbook.memory.timeline.records import Stamp, read_time
from questbook.types import JSON

NAMELESS = "someone"  # speaker of a message without a name

_DATABASE = "long_term_memory.db"
_VECTORS = "long_term_memory_embeddings.zarr"
_ROOT = "bot_memories"  # in the host's directory user_data
_EXPORTS = "bot_csv_outputs"  # in user_data too
_EXPORT_NAME = re.compile(r"\d{8}_\d{6}")  # directory of one export
_TABLE = "long_term_memory"
_COLUMNS = ["id", "name", "message", "timestamp"]
_DIGITS = 18  # of a message's number; SQLite has no longer ones
_TIME = "%Y-%m-%d %H:%M:%S"


class Source(NamedTuple):
    """A file or directory to import from, and the character whose memories they are.

    It is the database, the CSV file, or the vectors of a database that is missing; the one database of the legacy
    layout is that of `EVERYONE`.
    """

    path: Path
    kind: Literal["database", "csv", "vectors"]
    character: str

    @property
    def vectors(self) -> Path:
        """Path of the vectors of a database; they may be missing."""
        return self.path.parent / _VECTORS


class Message(NamedTuple):
    """A message as the extension kept it."""

    number: int  # the row of its vector; negative if it has none
    speaker: str
    text: str
    said_at: str  # ISO 8601 in UTC; "" if it was no time

    def record(self) -> JSON:
        """Return the record of the message as a memory."""
        stamp = Stamp(said_at=self.said_at)
        return CharacterMemory(text=self.text, speaker=self.speaker, stamp=stamp, by="ltm").to_json()


@dataclass
class Messages:
    """The messages of one source that can be imported, why the others cannot, and what was changed in the former."""

    read: list[Message] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, number: int, name: object, message: object, timestamp: object) -> None:
        """Add a message from the raw values of a row, or the reason why it is skipped."""
        text, damaged = _decode(message)
        if not text.strip():
            self.skipped.append(f"row {number}: the message is empty")
            return
        speaker, time = _decode(name)[0].strip(), _decode(timestamp)[0]
        said_at = _read_time(time)
        notes = ["bytes that are no UTF-8 were replaced"] if damaged else []
        notes += [] if speaker else [f"it has no name, so {NAMELESS!r} said it"]
        notes += [] if said_at else [f"{time!r:.40} is no time, so when it was said is unknown"]
        self.notes += [f"row {number}: {'; '.join(notes)}"] if notes else []
        self.read.append(Message(number, speaker or NAMELESS, text, said_at))


def find_sources(directory: Path) -> list[Source]:
    """Find the databases, CSV exports and lone vectors below a directory, always in the same order.

    It is the directory of the extension, of its memories or exports, of one character, or above them; or a database or
    CSV file. Links to directories are not followed. If there is nothing to import, it is an ImportFailedError.
    """
    if directory.is_file():
        if directory.suffix.lower() == ".csv":
            return [Source(directory, "csv", read_label(directory.stem))]
        return [Source(directory, "database", _owner(directory, directory.parent.resolve()))]
    give = f"Give the extension's directory, or its user_data/{_ROOT}."
    if not directory.is_dir():
        raise ImportFailedError(f"{directory} cannot be read: there is no such file or directory. {give}")
    if not (sources := list(_walk(directory))):
        raise ImportFailedError(f"In {directory} there is no {_DATABASE}, no {_VECTORS} and no CSV file. {give}")
    return sources


def _walk(directory: Path) -> Iterator[Source]:
    root = directory.resolve()
    paths = sorted(path for path in directory.rglob("*") if path.name in (_DATABASE, _VECTORS) or _is_csv(path))
    databases = [path for path in paths if path.name == _DATABASE and path.is_file()]
    yield from (Source(path, "database", _owner(path, root)) for path in databases)
    for path in paths:
        if path.name == _VECTORS and path.is_dir() and path.with_name(_DATABASE) not in databases:
            yield Source(path, "vectors", _owner(path, root))
    for path in paths:
        # The host has other CSV files: take those of an export, or of the directory that the caller named.
        exported = _EXPORTS in path.parts or _EXPORT_NAME.fullmatch(path.parent.name)
        if _is_csv(path) and (exported or (path.parent == directory and not databases)):
            yield Source(path, "csv", read_label(path.stem))


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv" and path.is_file()


def _owner(path: Path, root: Path) -> str:
    """Return the character of a database: its folder's path below the extension's root, or below the searched one."""
    folder = path.parent.resolve()
    above = next((above for above in (folder, *folder.parents) if above.name == _ROOT), root)
    return folder.relative_to(above).as_posix() if folder != above and folder.is_relative_to(above) else EVERYONE


def read_database(path: Path) -> Messages:
    """Read a database of the extension; a damaged one from its beginning and from its end.

    Another database, or one in which nothing can be read, is an ImportFailedError.
    """
    raw: dict[int, tuple[object, object, object]] = {}
    damage = ""
    with _copy(path) as copy, closing(sqlite3.connect(copy)) as connection:
        connection.text_factory = bytes
        _refuse_code(connection, path)
        for order in ("ASC", "DESC"):
            select = f"SELECT id, name, message, timestamp FROM {_TABLE} ORDER BY id {order}"  # noqa: S608 (constants)
            try:
                for number, name, message, time in connection.execute(select):
                    key = number if isinstance(number, int) else -1 - len(raw)  # a table without a primary key
                    raw[key] = (name, message, time)
                break
            except sqlite3.DatabaseError as error:
                damage = str(error)
                if "no such" in damage:
                    raise ImportFailedError(f"{path}: {damage}; this is no database of the extension.") from error
    if damage and not raw:
        raise ImportFailedError(f"{path} cannot be read: {damage}.")
    messages = Messages()
    for number in sorted(raw):
        messages.add(number, *raw[number])
    if damage:
        messages.skipped.append(f"the file is damaged ({damage}): the rows between those that were read are lost")
    return messages


def _refuse_code(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database in which reading the messages would run what its author wrote: a few bytes could be endless."""
    try:
        table = connection.execute("SELECT type, rootpage FROM sqlite_master WHERE name = ?", (_TABLE,)).fetchone()
        columns = connection.execute(f"PRAGMA table_xinfo({_TABLE})").fetchall()
    except sqlite3.DatabaseError:
        return  # reading the messages says what is wrong
    # A view or a virtual table has no page of its own; a column is hidden if it is computed.
    if table and (table[0] != b"table" or not table[1] or any(hidden for *_, hidden in columns)):
        raise ImportFailedError(f"{path}: {_TABLE} is no plain table; this is no database of the extension.")


def read_csv(path: Path) -> Messages:
    """Read an export of the extension, or of `write_csv`; what is none, or cannot be read, is an ImportFailedError."""
    messages = Messages()
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a message may be longer than csv expects
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if not cells or cells == _COLUMNS:
                    continue
                is_row, columns = len(cells) == len(_COLUMNS), ", ".join(_COLUMNS)
                if not (messages.read or messages.skipped or (is_row and cells[0].isdecimal())):
                    raise ImportFailedError(f"{path} is no export of the extension: its first line is no {columns}.")
                if not is_row:
                    messages.skipped.append(f"line {reader.line_num}: {len(cells)} columns; expected {columns}")
                    continue
                known = cells[0].strip().isdecimal() and len(cells[0]) <= _DIGITS
                messages.add(int(cells[0]) if known else reader.line_num, *cells[1:])
    except csv.Error as error:
        messages.skipped.append(f"line {reader.line_num}: {error}; what follows it was not read")
    except (OSError, UnicodeDecodeError) as error:
        raise ImportFailedError(f"{path} cannot be read: {error}.") from error
    finally:
        csv.field_size_limit(before)
    return messages


def write_csv(directory: Path, character: str, memories: Sequence[Mapping[str, Any]], now: datetime) -> Path:
    """Write memories as the extension exports them: `<directory>/<YYYYMMDD_HHMMSS>/<namespace>.csv` (RFC 4180).

    No header; ordered by time; rows end with CRLF and newlines in a message stay; times are UTC, "" if unknown. The
    namespace is escaped, so that no character's name can lead out of the directory. Only this user may read the file.
    """
    folder = directory / now.strftime("%Y%m%d_%H%M%S")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{escape_label(character_name(character))}.csv"
    ordered = sorted(memories, key=lambda memory: str(memory.get("said_at", "")))
    path.unlink(missing_ok=True)  # so that neither its permissions nor a link in its place count
    private = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(private, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        for number, memory in enumerate(ordered):
            time = read_time(str(memory.get("said_at")))
            said_at = time.astimezone(UTC).strftime(_TIME) if time else ""
            writer.writerow([number, memory.get("speaker", ""), memory.get("text", ""), said_at])
    return path


def _read_time(text: str) -> str:
    for form in (_TIME, f"{_TIME}.%f"):
        with suppress(ValueError):
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).isoformat(timespec="seconds")
    return ""


def _decode(value: object) -> tuple[str, bool]:
    """Return a value as text that can be stored, and whether something in it had to be replaced."""
    value = "" if value is None else value
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
        return text, "\ufffd" in text and "\ufffd".encode() not in value
    text = str(value)
    clean = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be stored
    return clean, clean != text


@contextmanager
def _copy(path: Path) -> Iterator[Path]:
    """Copy a database with SQLite's files beside it: to open the original could already change it."""
    with tempfile.TemporaryDirectory(prefix="questbook-") as directory:
        copy = Path(directory) / path.name
        try:
            path.stat()  # it must be there; the files beside it need not
            for file, block in read_files([path.with_name(path.name + suffix) for suffix in ("", "-journal", "-wal")]):
                with copy.with_name(file.name).open("ab") as out:
                    out.write(block)
        except OSError as error:
            raise ImportFailedError(f"{path} cannot be read: {error.strerror or error}.") from error
        yield copy
