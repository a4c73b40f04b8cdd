r"""When a message counts as being in a prompt: enough of its words stand there, in runs as they were said.

A person's message counts if half of its words are in the prompt in runs of eight or more, an assistant's if a run of
twenty is; a message shorter than its run counts if it is there whole. Words are what blanks separate, without case
and without punctuation at their ends. Where a prompt leaves something out ("…"), a run ends. The escapes of a
prompt's sections (`&lt;`, `\u003c`, `\n`) are undone first.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import NamedTuple

PERSON_RUN, REPLY_RUN = 8, 20  # words
_PERSON_SHARE = 0.5
_GAP = ""  # no word is empty
_UNICODE = re.compile(r"\\u([0-9a-f]{4})", re.IGNORECASE)
_CONTROL = re.compile(r"\\[nrtbf]")
_TOKEN = re.compile(r"…|[^\s…]+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


class Message(NamedTuple):
    """One message of a conversation."""

    id: int | str
    is_person: bool
    text: str


class Shown:
    """The words of a prompt, asked which messages are there."""

    def __init__(self, *texts: str) -> None:
        words = [word for text in texts for word in [*_split(text), _GAP]]
        self._runs = {run: _runs(words, run) for run in (PERSON_RUN, REPLY_RUN)}
        self._line = f" {' '.join(words)} "

    def has(self, message: Message) -> bool:
        """Return whether a message counts as being there."""
        words = [word for word in _split(message.text) if word]
        run = PERSON_RUN if message.is_person else REPLY_RUN
        if len(words) < run:
            return f" {' '.join(words)} " in self._line
        shown = self._runs[run]
        starts = [n for n in range(len(words) - run + 1) if tuple(words[n : n + run]) in shown]
        if not message.is_person:
            return bool(starts)
        covered = {place for start in starts for place in range(start, start + run)}
        return len(covered) >= _PERSON_SHARE * len(words)

    def share(self, messages: Sequence[Message]) -> float:
        """Return the share of messages that are there."""
        return sum(map(self.has, messages)) / len(messages)


def _split(text: str) -> list[str]:
    plain = _CONTROL.sub(" ", _UNICODE.sub(lambda code: chr(int(code[1], 16)), html.unescape(text)))
    tokens = _TOKEN.findall(plain.casefold())
    return [word for token in tokens if (word := _GAP if token == "…" else _EDGES.sub("", token)) or token == "…"]


def _runs(words: Sequence[str], length: int) -> set[tuple[str, ...]]:
    runs = (tuple(words[n : n + length]) for n in range(len(words) - length + 1))
    return {run for run in runs if _GAP not in run}
