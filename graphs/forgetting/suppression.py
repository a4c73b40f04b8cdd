"""The suppression list: what was forgotten, so that a backup that is restored forgets it again.

A backup is out of reach of forgetting, and a list of forgotten words would hold the forgotten words. So the list holds
digests with a key that the owner keeps elsewhere: a line is a time, a kind, how long the words were, and a digest of
them with user and campaign. Who restores a backup has texts to compare: what makes the same digest is what was
forgotten. Without the key a line tells nothing, and nobody can test a guess. Without a key no list is kept.
"""

import errno
import hmac
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from langchain_core.messages import BaseMessage

from questbook.graphs.errors import SettingsError
from questbook.graphs.forgetting.phrase import fold, is_start
from questbook.types import JSON

VARIABLE, KEY_VARIABLE = "QUESTBOOK_FORGOTTEN", "QUESTBOOK_FORGOTTEN_KEY"
_SHORTEST_KEY = 32  # characters
_TAIL = 1000  # bytes: more than a line has
_AT = re.compile(r'"at": "(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00)"', re.ASCII)
Kind = Literal["words", "campaign", "user"]


class SuppressionList(NamedTuple):
    """The list in a file, and the key of its digests."""

    path: Path
    key: bytes

    @classmethod
    def find(cls) -> Self | None:
        """Return the list that the environment names; None if it names none.

        A file without a key, a key without a file, or a short key is a SettingsError.
        """
        path, key = os.environ.get(VARIABLE, ""), os.environ.get(KEY_VARIABLE, "")
        if not path and not key:
            return None
        if not path or len(key) < _SHORTEST_KEY:
            hint = f"{VARIABLE} is a file outside the data directory, {KEY_VARIABLE} {_SHORTEST_KEY} random characters"
            raise SettingsError(f"The list of what was forgotten needs both: {hint} that are kept elsewhere.")
        return cls(Path(path).expanduser(), key.encode())

    def check(self) -> list[int]:
        """Return the numbers of lines that cannot be read; a SettingsError if no line could be added to the list."""
        with self._explained():
            is_there = self.path.exists()
            if not os.access(self.path if is_there else self.path.parent, os.W_OK):
                raise PermissionError(errno.EACCES, "it cannot be written")
        return self.since(datetime.now(UTC))[1] if is_there else []

    def add(self, kind: Kind, *names: str, words: str = "") -> None:
        """Note, on disk, that words of a user's campaign, a campaign or a user are forgotten; else a SettingsError."""
        now, folded = datetime.now(UTC).isoformat(timespec="seconds"), fold(words)
        line = {"kind": kind, "length": len(folded), "digest": self._digest(kind, *names, folded)}
        with self._explained():  # by a clock that was set back no line comes before a backup that knows the words
            append_line(self.path, lambda end: json.dumps({"at": max([now, *_before(_AT.findall(end))])} | line))

    def since(self, time: datetime) -> tuple[list[JSON], list[int]]:
        """Return the lines since a time, which a backup was begun at, and the numbers of those that cannot be read."""
        lines, unreadable = list[JSON](), list[int]()
        with self._explained():
            texts = self.path.read_bytes().split(b"\n")
        for number, text in enumerate(texts, 1):
            try:
                if text.strip():
                    line = {"kind": "", "digest": "", "length": ""} | json.loads(text)
                    is_since = datetime.fromisoformat(line["at"]) >= time.replace(microsecond=0)  # in whole seconds
                    lines += [line] if int(line["length"]) >= 0 and is_since else []
            except (ArithmeticError, LookupError, TypeError, ValueError):
                unreadable.append(number)
        return lines, unreadable

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            hint = "put back the copy of it, or make an empty file if nothing was ever forgotten"
            raise SettingsError(f"There is no {self.path} ({VARIABLE}): {hint}.") from error
        except OSError as error:
            problem = f"Cannot use {self.path} ({VARIABLE}): {error.strerror or error}"
            raise SettingsError(f"{problem}. It is not wholly forgotten: correct that, and repeat it.") from error

    def names(self, lines: Iterable[JSON], kind: Kind, *names: str) -> bool:
        """Return whether lines say that a campaign (user, campaign) or a user was forgotten."""
        return self._digest(kind, *names, "") in {line["digest"] for line in lines}

    def find_words(self, lines: Iterable[JSON], user: str, campaign: str, texts: Iterable[str]) -> list[str]:
        """Return the forgotten words of a campaign that are in texts, folded, the longest first."""
        wanted = {line["digest"] for line in lines if line["kind"] == "words"}
        lengths = {int(line["length"]) for line in lines if line["kind"] == "words"}
        parts = {part for text in set(texts) for part in _parts(fold(text), lengths)} if wanted else set[str]()
        found = [part for part in parts if self._digest("words", user, campaign, part) in wanted]
        return sorted(found, key=len, reverse=True)

    def _digest(self, *parts: str) -> str:
        return hmac.new(self.key, json.dumps(parts).encode(), "sha256").hexdigest()


def _before(times: Iterable[str]) -> list[str]:
    """Return times that are not more than a day ahead: a clock that was far ahead once is not followed."""
    return [time for time in times if time <= (datetime.now(UTC) + timedelta(days=1)).isoformat()]


def append_line(path: Path, line_after: Callable[[str], str]) -> None:
    """Append a line, made of what the file ends with, to a file that only its owner may read; at an error, nothing."""
    if path.exists() and not path.is_file():  # a pipe, or a container's standard output: it is only written
        with path.open("a", encoding="utf-8") as pipe:
            pipe.write(f"{line_after('')}\n")
        return
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "rb+", buffering=0) as file:
        file.seek(max(file.seek(0, os.SEEK_END) - _TAIL, 0))
        end, written = file.read().decode("utf-8", "replace"), 0
        line = ("\n" * (not f"\n{end}".endswith("\n")) + line_after(end) + "\n").encode()
        try:
            written = file.write(line)  # at once, so that lines of several processes do not mix
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError:
            if (place := file.tell()) == os.fstat(file.fileno()).st_size:  # nobody has written behind it
                file.truncate(place - written)
            raise


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a value: of records, channels, messages."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseMessage):
        yield from texts_in(value.model_dump())
    elif isinstance(value, Mapping):
        yield from texts_in([*value.keys(), *value.values()])
    elif isinstance(value, Iterable) and not isinstance(value, bytes):
        for part in value:
            yield from texts_in(part)


def _parts(text: str, lengths: Iterable[int]) -> Iterator[str]:
    """Yield the parts of a folded text that have one of these lengths and may be a phrase."""
    starts = [at for at in range(len(text)) if is_start(text, at)]
    for length in lengths:
        yield from (text[at : at + length] for at in starts if at + length <= len(text))
