"""`Home`: the directory that holds the games of this machine, and the files in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Self

from questbook.graphs.errors import QuestbookError

VARIABLE = "QUESTBOOK_HOME"


class HomeError(QuestbookError):
    """The data directory, or a file in it, cannot be used; the message names it and says what to do."""


class Home(NamedTuple):
    """The data directory, at `path`. Only its owner may read it, because it holds what players wrote."""

    path: Path

    @classmethod
    def find(cls) -> Self:
        """Return the directory that QUESTBOOK_HOME names, or else the user's data directory. Create it if needed.

        Raises:
            HomeError: It cannot be created or written.
        """
        if named := os.environ.get(VARIABLE, ""):
            try:
                path = Path(named).expanduser().absolute()
            except RuntimeError as error:  # "~name", and there is no such user
                raise _unusable(Path(named), str(error)) from error
        else:
            from platformdirs import user_data_path  # only when it is needed

            path = user_data_path("questbook", appauthor=False)
        home = cls(path)
        try:
            for directory in (path, home.locks):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from error
        if not os.access(path, os.W_OK | os.X_OK):
            raise _unusable(path, "no permission to write")
        return home

    @property
    def checkpoints(self) -> Path:
        """Database of the checkpoints: the state of every thread after every step."""
        return self.path / "checkpoints.db"

    @property
    def memory(self) -> Path:
        """Database of the semantic store: the memories."""
        return self.path / "memory.db"

    @property
    def prompt_history(self) -> Path:
        """File of what was typed at the terminal's prompt, for the arrow keys."""
        return self.path / "history"

    @property
    def locks(self) -> Path:
        """Directory of the campaigns' locks, one file each."""
        return self.path / "campaigns"

    def lock_of(self, thread_id: str) -> Path:
        """Return the lock file of the campaign with this thread id."""
        return self.locks / f"{thread_id}.lock"


def _unusable(path: Path, reason: str) -> HomeError:
    hint = f"Set {VARIABLE} to a directory that you may write, or correct the permissions."
    return HomeError(f"Cannot use {path} to keep games: {reason}. {hint}")
