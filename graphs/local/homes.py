"""Which home is meant: `find_home`."""

from __future__ import annotations

import os

from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.home import Home, HomeError

DATABASE = "QUESTBOOK_DATABASE"


def find_home(database: str | None = None) -> Home:
    """Return the home in the database that QUESTBOOK_DATABASE names, or else the data directory.

    The directory is the one that QUESTBOOK_HOME names, or else the user's; it is created if needed. It blocks a moment.

    Args:
        database: URL of a database, "postgresql://…"; None: that of the variable; "": none.

    Raises:
        HomeError: It cannot be created or written, or the URL is none.
    """
    files = FileHome.find()
    url = os.environ.get(DATABASE, "") if database is None else database
    if not url:
        return files
    if not url.startswith(("postgresql://", "postgres://")):
        begin = url.partition(":")[0] + ":" if ":" in url else url
        raise HomeError(f"{DATABASE}: got {begin!r:.40}, expected postgresql://USER@HOST/NAME.")
    try:
        from questbook.graphs.local.postgres_home import PostgresHome
    except ImportError as error:
        raise HomeError(f"PostgreSQL needs {error.name}: pip install 'questbook[postgres]'.") from error
    return PostgresHome(url, files.path)
