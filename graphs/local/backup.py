"""A data directory copied while games are played, and put back: `back_up`, `restore`.

Checkpoints are copied before memories: what is played meanwhile is then in memory alone, and stays aside.
"""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.home import HomeError
from questbook.memory.store.database_file import create_file, find_damage

_SINCE = "begun-at"  # beside the copies: when they were begun, ISO 8601


def back_up(home: FileHome, directory: Path) -> None:
    """Copy both databases of a data directory into a new or empty directory; games may be played meanwhile."""
    begun = datetime.now(UTC)
    if home.path.resolve() in (place := directory.resolve(), *place.parents):
        raise HomeError(f"{directory} is in the data directory {home.path}. Name a directory outside of it.")
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise HomeError(f"{directory} is not empty. Name a new directory for each backup.")
        for file in (home.checkpoints, home.memory):
            _copy(file, directory / file.name)
        (directory / _SINCE).write_text(begun.isoformat(), "ascii")  # last: without it, it is no backup
    except (OSError, sqlite3.Error) as error:
        raise HomeError(f"{directory} is no whole backup: {error}. Remove it, and try again.") from error


def restore(home: FileHome, directory: Path) -> datetime:
    """Put the databases of a sound backup into a data directory that has none; return when the backup was begun."""
    copies = {file: directory / file.name for file in (home.checkpoints, home.memory)}
    try:
        if directory.is_dir() and not (directory / _SINCE).exists():
            raise HomeError(f"{directory} is no whole backup: it has no {_SINCE}, which is written last. Take another.")
        begun = datetime.fromisoformat((directory / _SINCE).read_text("ascii"))
        for file, copy in copies.items():
            if file.exists():
                raise HomeError(f"{file} is there. Move it away, or set QUESTBOOK_HOME to an empty directory.")
            if damage := "it is missing" if not copy.exists() else find_damage(copy):
                raise HomeError(f"{copy} cannot be used: {damage}. Nothing was changed; take another backup.")
        for file, copy in copies.items():
            _copy(copy, file)
    except (OSError, ValueError, sqlite3.Error) as error:
        raise HomeError(f"Cannot restore {directory} to {home.path}: {error}. Use an empty directory again.") from error
    return begun


def _copy(file: Path, copy: Path) -> None:
    """Copy a database as it is at one moment, by SQLite's own means, into a file that only its owner may read."""
    create_file(copy)
    how = f"{file.resolve(strict=True).as_uri()}?mode=ro"
    with closing(sqlite3.connect(how, uri=True)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)  # all pages in one step: the copy is of one moment, and nobody waits for it
