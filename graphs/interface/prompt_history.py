"""The file of what was typed at the terminal's prompt, as prompt_toolkit writes it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from questbook.graphs.local.home import HomeError


def count_typed(path: Path, matches: Callable[[str], bool]) -> int:
    """Count the entries of a prompt history for which `matches` is true; a missing file has none.

    Raises:
        HomeError: The file cannot be read.
    """
    return sum(matches(_text(entry)) for entry in _entries(path))


def remove_typed(path: Path, matches: Callable[[str], bool]) -> int:
    """Remove the entries of a prompt history for which `matches` is true; return how many.

    A new file is written beside the old one and replaces it, so that the file is whole at any moment.

    Raises:
        HomeError: The file cannot be read or written.
    """
    entries = _entries(path)
    kept = [entry for entry in entries if not matches(_text(entry))]
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
    """Split a file of prompt_toolkit's into entries: a line "# when", then the lines of the entry, each after a "+"."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(path, error) from error
    entries: list[list[bytes]] = [[]]
    for line in lines:
        if not line.startswith(b"+") and any(before.startswith(b"+") for before in entries[-1]):
            entries.append([])
        entries[-1].append(line)
    return [entry for entry in entries if entry]


def _text(entry: list[bytes]) -> str:
    lines = [line[1:] for line in entry if line.startswith(b"+")] or entry
    return b"".join(lines).decode("utf-8", "ignore").rstrip("\n")


def _unusable(path: Path, error: OSError) -> HomeError:
    return HomeError(f"Cannot use {path}: {error.strerror or error}. Correct its permissions, or remove it.")
