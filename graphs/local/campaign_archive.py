"""The zip archive that a campaign travels in: its parts, their checksums, and what is refused."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from questbook.graphs.errors import QuestbookError
from questbook.types import JSON

FORMAT = 1
RECORDS, VALUES, CHECKPOINTS = "records.jsonl", "values.jsonl", "checkpoints.jsonl"
_MANIFEST = "manifest.json"
_PARTS = (RECORDS, VALUES, CHECKPOINTS)
_MOST_BYTES = 2_000_000_000  # unpacked
_MOST_TIMES = 200  # larger than its file; games of 1 to 60 turns are 6 to 21 times as large
_ALWAYS_BYTES = 20_000_000  # that may be unpacked, however small the file
_MACHINES = ("dungeon_master", "companion")


class CampaignFileError(QuestbookError):
    """A campaign cannot be written to a file or read from one; the message says why, and nothing was changed."""


class Contents(NamedTuple):
    """What a file holds: name, graph and last turn of the campaign; how many records and checkpoints."""

    campaign: str
    machine: str
    turn: int
    records: int
    checkpoints: int

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Self:
        """Read a manifest."""
        return cls(*(about[field] for field in cls._fields))


def write_archive(path: Path, about: JSON, parts: Mapping[str, list[JSON]]) -> None:
    """Write an archive to a file that does not exist: what its manifest says beside checksums, and the parts' lines."""
    texts = {
        name: "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines) for name, lines in parts.items()
    }
    data = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
    about = about | {"sha256": {name: hashlib.sha256(part).hexdigest() for name, part in data.items()}}
    with path.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        path.chmod(0o600)
        archive.writestr(_MANIFEST, json.dumps(about, indent=2, ensure_ascii=False))
        for name, part in data.items():
            archive.writestr(name, part)


def read_archive(path: Path) -> tuple[JSON, dict[str, list[JSON]]]:
    """Read an archive: its manifest, and the lines of each part.

    Raises:
        CampaignFileError: It is no such file, or is damaged, newer, or far larger inside than outside.
    """
    with _open(path) as (archive, about):
        parts = {name: _part(archive, name) for name in _PARTS}
        for name, part in parts.items():
            if hashlib.sha256(part).hexdigest() != about["sha256"].get(name):
                raise ValueError(f"{name} is not as it was written")
        return about, {name: list(_lines(part)) for name, part in parts.items()}


def contents_of(path: Path) -> Contents:
    """Return what a file says that it holds; only its manifest is read.

    Raises:
        CampaignFileError: It is no such file, newer, or far larger inside than outside.
    """
    with _open(path) as (_, about):
        return Contents.of(about)


@contextmanager
def _open(path: Path) -> Iterator[tuple[zipfile.ZipFile, JSON]]:
    """Open an archive and read its manifest; what goes wrong while it is open is said as a CampaignFileError."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_names(archive)
            about: JSON = json.loads(_part(archive, _MANIFEST))
            _check_manifest(about, path.name)
            yield archive, about
    except OSError as error:
        raise CampaignFileError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        problem = f"{path.name} is no campaign of Questbook's, or is damaged"
        raise CampaignFileError(f"{problem}: {error!s:.200}. Nothing was changed.") from error


def _check_names(archive: zipfile.ZipFile) -> None:
    """Check that an archive holds these parts and nothing else, and unpacks to no more than a campaign does."""
    names, expected = sorted(archive.namelist()), sorted((_MANIFEST, *_PARTS))
    if others := sorted(set(names) - set(expected)):
        raise ValueError(f"it holds {others[0]!r:.80}, expected only {', '.join(expected)}")
    if names != expected:
        twice = [name for name in expected if names.count(name) > 1]
        missing = [name for name in expected if name not in names]
        raise ValueError(f"it holds {twice[0]} twice" if twice else f"it lacks {missing[0]}")
    size = sum(part.file_size for part in archive.infolist())
    packed = sum(part.compress_size for part in archive.infolist())
    if size > min(max(_MOST_TIMES * packed, _ALWAYS_BYTES), _MOST_BYTES):
        raise ValueError(f"it would unpack from {packed:,} to {size:,} bytes, more than a campaign of this size")


def _check_manifest(about: Any, name: str) -> None:
    """Check what a file says of itself; what is missing is a ValueError."""
    number = about.get("format") if isinstance(about, dict) else None
    if isinstance(number, int) and number > FORMAT:
        raise CampaignFileError(
            f"{name} was written by a newer version (format {number}; this one reads {FORMAT}). Nothing was changed; "
            "import it with that version of Questbook."
        )
    if number != FORMAT:
        raise CampaignFileError(f"{name} has format {number!r:.40}; this version reads format {FORMAT}.")
    kinds = {"campaign": str, "machine": str, "thread": str, "turn": int, "records": int, "checkpoints": int}
    for field, kind in (kinds | {"sha256": dict}).items():
        if not isinstance(about.get(field), kind):
            raise ValueError(f"{_MANIFEST} says {about.get(field)!r:.40} for {field!r}, expected {kind.__name__}")
    if about["machine"] not in _MACHINES:
        raise ValueError(f"it belongs to {about['machine']!r:.40}, expected {' or '.join(_MACHINES)}")


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    file: IO[bytes]
    with archive.open(name) as file:  # it reads no more than the archive says of the part's size
        return file.read()


def _lines(part: bytes) -> Iterator[JSON]:
    return (json.loads(line) for line in part.decode("utf-8", "surrogatepass").split("\n") if line)
