"""Where the LTM extension keeps its databases, and where copies of them may lie."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from questbook.memory.errors import ImportFailedError
from questbook.memory.ltm.characters import EVERYONE
from questbook.memory.timeline.namespaces import unescape_label

DATABASE = "long_term_memory.db"
VECTORS = "long_term_memory_embeddings.zarr"
_ROOT = "bot_memories"  # in the host's directory user_data
_EXPORTS = "bot_csv_outputs"  # beside it
_EXPORT = re.compile(r"\d{8}_\d{6}")  # one export in there


class Source(NamedTuple):
    """One thing that memories are read from.

    Attributes:
        path: The database, the CSV file, or the vectors of a database that is missing.
        kind: Which of them.
        character: Whose memories they are; `EVERYONE` for the one database of the legacy layout.
    """

    path: Path
    kind: Literal["database", "csv", "vectors"]
    character: str

    @property
    def vectors(self) -> Path:
        """Where the vectors of a database are, if there are any."""
        return self.path.parent / VECTORS


def sources(directory: Path) -> list[Source]:
    """Find what can be brought over, in an order of its own.

    Args:
        directory: The directory of the extension, of its memories or exports, of one character, or above them; or a
            database or CSV file. Links to directories are not followed.

    Raises:
        ImportFailedError: There is no such directory, or nothing in it.
    """
    if directory.is_file():
        if directory.suffix.lower() == ".csv":
            return [Source(directory, "csv", _label(directory.stem))]
        return [Source(directory, "database", _owner(directory, directory.parent.resolve()))]
    if not directory.is_dir():
        raise ImportFailedError(
            f"{directory} cannot be read: there is no such file or directory. Give the extension's directory, or its "
            f"user_data/{_ROOT}."
        )
    found = list(_found(directory))
    if not found:
        raise ImportFailedError(
            f"In {directory} there is no {DATABASE}, no {VECTORS} and no CSV file. Give the extension's directory, or "
            f"its user_data/{_ROOT}."
        )
    return found


def _found(directory: Path) -> Iterator[Source]:
    root = directory.resolve()
    paths = sorted(path for path in directory.rglob("*") if path.name in (DATABASE, VECTORS) or _is_csv(path))
    databases = [path for path in paths if path.name == DATABASE and path.is_file()]
    yield from (Source(path, "database", _owner(path, root)) for path in databases)
    for path in paths:
        if path.name == VECTORS and path.is_dir() and path.with_name(DATABASE) not in databases:
            yield Source(path, "vectors", _owner(path, root))
    for path in paths:
        # A host's directory has many a CSV file: only where exports are written, or what was pointed at.
        exported = _EXPORTS in path.parts or _EXPORT.fullmatch(path.parent.name)
        if _is_csv(path) and (exported or (path.parent == directory and not databases)):
            yield Source(path, "csv", _label(path.stem))


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv" and path.is_file()


def _owner(path: Path, root: Path) -> str:
    """Whose a database is: its folder's name, seen from the root of all; a name with "/" is a folder in a folder."""
    folder = path.parent.resolve()
    for above in (folder, *folder.parents):
        if above.name == _ROOT:
            return folder.relative_to(above).as_posix() if folder != above else EVERYONE
    return folder.relative_to(root).as_posix() if folder != root and folder.is_relative_to(root) else EVERYONE


def _label(stem: str) -> str:
    """A CSV file is named after the namespace; ours is escaped."""
    try:
        return unescape_label(stem)
    except ValueError:
        return stem
