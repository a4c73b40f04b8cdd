"""The history of the terminal's prompt: what was typed, one entry after the other, in prompt_toolkit's format.

An entry is a line "# when" and then its lines, each after a "+".
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from questbook.graphs.embedded.home import HomeError


def entries_that(path: Path, hold: Callable[[str], bool]) -> int:
    """Count the entries for which `hold` says yes; a file that is not there has none."""
    return sum(hold(_text(entry)) for entry in _entries(path))


def remove_entries(path: Path, hold: Callable[[str], bool]) -> int:
    """Remove the entries for which `hold` says yes; return how many there were.

    The file is written anew beside the old one and takes its place, so that it is whole at any moment.

    Raises:
        HomeError: The file cannot be read or written.
    """
    entries = _entries(path)
    kept = [entry for entry in entries if not hold(_text(entry))]
    draft = path.with_name(f"{path.name}.part")
    try:
        draft.unlink(missing_ok=True)  # of a run that was stopped
        if len(kept) == len(entries):
            return 0
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(b"".join(line for entry in kept for line in entry))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise _unusable(path, error) from error
    return len(entries) - len(kept)


def _entries(path: Path) -> list[list[bytes]]:
    """Split the file into entries, each the lines that it is made of, byte for byte."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(path, error) from error
    entries: list[list[bytes]] = [[]]
    for line in lines:
        # An entry begins at its comment and ends after its last "+".
        if not line.startswith(b"+") and any(before.startswith(b"+") for before in entries[-1]):
            entries.append([])
        entries[-1].append(line)
    return [entry for entry in entries if entry]


def _text(entry: list[bytes]) -> str:
    said = [line[1:] for line in entry if line.startswith(b"+")] or entry
    return b"".join(said).decode("utf-8", "ignore").rstrip("\n")


def _unusable(path: Path, error: OSError) -> HomeError:
    return HomeError(f"Cannot use {path}: {error.strerror or error}. Mend its permissions, or remove it.")
