"""Which home is meant: `find_home` by the environment, `home_at` by its place."""

import os
from pathlib import Path

from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.home import Home, HomeError

DATABASE = "QUESTBOOK_DATABASE"


def find_home(database: str | None = None) -> Home:
    """Return the home in the database that QUESTBOOK_DATABASE names, or else the data directory (`FileHome.find`).

    It blocks a moment. `database` is a URL in the variable's place; "": none.
    """
    files = FileHome.find()
    url = os.environ.get(DATABASE, "") if database is None else database
    if url and "://" not in url:  # it is not shown: a password may be in it
        raise HomeError(f"{DATABASE}: got no URL, expected postgresql://USER@HOST/NAME.")
    return home_at(url, files.path) if url else files


def home_at(place: str, files: Path) -> Home:
    """Return the home in a directory or a database, by its path or URL; `files`: directory of this machine."""
    if "://" not in place:
        return FileHome.at(place)
    if not place.startswith(("postgresql://", "postgres://")):
        raise HomeError(f"A database: got {place.partition(':')[0]!r:.40}, expected postgresql://USER@HOST/NAME.")
    try:
        from questbook.graphs.local.postgres_home import PostgresHome
    except ImportError as error:
        raise HomeError(f"PostgreSQL needs {error.name}: pip install 'questbook[postgres]'.") from error
    return PostgresHome(place, files)
