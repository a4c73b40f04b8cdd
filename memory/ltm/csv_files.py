"""The LTM extension's CSV exports: id, name, message, timestamp, without a header (RFC 4180, UTF-8)."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from questbook.memory.errors import ImportFailedError
from questbook.memory.ltm.database import Rows, row_of
from questbook.memory.timeline.namespaces import character_name, escape_label

_COLUMNS = ["id", "name", "message", "timestamp"]


def read_csv(path: Path) -> Rows:
    """Read an export of the extension, or of `write_csv`.

    Raises:
        ImportFailedError: It cannot be read, or is no text in UTF-8.
    """
    read = Rows([], [], [])
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a message may be longer than csv expects
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if not cells or cells == _COLUMNS:
                    continue
                if not read.rows and not read.skipped and not (cells[0].isdecimal() and len(cells) == len(_COLUMNS)):
                    raise ImportFailedError(
                        f"{path} is no export of the extension: its first line is no {', '.join(_COLUMNS)}."
                    )
                if len(cells) != len(_COLUMNS):
                    reason = f"line {reader.line_num}: {len(cells)} columns; expected {', '.join(_COLUMNS)}"
                    read.skipped.append(reason)
                    continue
                number = int(cells[0]) if cells[0].strip().isdecimal() else reader.line_num
                read.take(*row_of(number, *cells[1:]))
    except csv.Error as error:
        read.skipped.append(f"line {reader.line_num}: {error}; what follows it was not read")
    except (OSError, UnicodeDecodeError) as error:
        raise ImportFailedError(f"{path} cannot be read: {error}.") from error
    finally:
        csv.field_size_limit(before)
    return read


def write_csv(directory: Path, character: str, memories: Sequence[Mapping[str, Any]], now: datetime) -> Path:
    """Write memories as the extension's export does: `<directory>/<YYYYMMDD_HHMMSS>/<namespace>.csv`.

    Ordered by time; records end with CRLF, newlines in a message stay; times are UTC. A memory whose time is unknown
    has an empty one. The namespace is escaped, so that no name can leave the directory.

    Args:
        directory: Where the exports go; made if there is none.
        character: Whose memories.
        memories: Their records.
        now: Names the export.

    Returns:
        The file.

    Raises:
        OSError: It cannot be written.
    """
    folder = directory / now.strftime("%Y%m%d_%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{escape_label(character_name(character))}.csv"
    ordered = sorted(memories, key=lambda memory: str(memory.get("said_at", "")))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        for number, memory in enumerate(ordered):
            writer.writerow([number, memory.get("speaker", ""), memory.get("text", ""), _time(memory.get("said_at"))])
    return path


def _time(said_at: object) -> str:
    try:
        return datetime.fromisoformat(str(said_at)).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return ""
