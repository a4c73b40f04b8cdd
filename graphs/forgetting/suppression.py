"""The suppression list: what was forgotten, so that a backup that is restored forgets it again.

A backup is out of reach of forgetting, and a list of forgotten words would hold the forgotten words. So the list holds
digests with a key that the owner keeps elsewhere: a line is a time, a kind, how long the words were, and a digest of
them with user and campaign. Who restores a backup has texts to compare: what makes the same digest is what was
forgotten. Without the key a line tells nothing, and nobody can test a guess. Without a key no list is kept.
"""

import hmac
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from langchain_core.messages import BaseMessage

from questbook.graphs.errors import SettingsError
from questbook.graphs.forgetting.phrase import fold, is_start
from questbook.types import JSON

VARIABLE, KEY_VARIABLE = "QUESTBOOK_FORGOTTEN", "QUESTBOOK_FORGOTTEN_KEY"
_SHORTEST_KEY = 32  # characters
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

    def add(self, kind: Kind, *names: str, words: str = "") -> None:
        """Note, on disk, that words of a user's campaign, a campaign or a user are forgotten from now on.

        If the file cannot be written, it is a SettingsError, and nothing was forgotten.
        """
        at, folded = datetime.now(UTC).isoformat(timespec="seconds"), fold(words)
        line = {"at": at, "kind": kind, "length": len(folded), "digest": self._digest(kind, *names, folded)}
        try:
            with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w") as file:
                file.write(f"{json.dumps(line)}\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            problem = f"Cannot write {self.path}: {error.strerror or error}. Nothing was forgotten"
            raise SettingsError(f"{problem}: correct {VARIABLE}.") from error

    def since(self, time: datetime) -> list[JSON]:
        """Return the lines since a time, which a backup was begun at; a SettingsError if there is no list to read."""
        try:
            lines = [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]
            # They are written in whole seconds.
            return [line for line in lines if datetime.fromisoformat(line["at"]) >= time.replace(microsecond=0)]
        except FileNotFoundError as error:
            hint = "put back the copy of it, or make an empty file if nothing was ever forgotten"
            raise SettingsError(f"There is no {self.path} ({VARIABLE}): {hint}.") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(f"Cannot read {self.path} ({VARIABLE}): {type(error).__name__}.") from error

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
