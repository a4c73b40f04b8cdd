"""Tale: one hand-written adventure, read from tales/*.toml and filled with the names of the people in it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

JSON = dict[str, Any]

TITLES = {
    "old",
    "sister",
    "brother",
    "captain",
    "master",
    "mother",
    "father",
    "lady",
    "lord",
    "widow",
    "young",
    "dame",
}
"""Words before a name that are no name by themselves."""
_SMALL = {"a", "an", "the", "of", "to", "at", "in", "on", "my", "and", "with", "that", "this", "some", "big", "little"}


@dataclass(frozen=True)
class Tale:
    """An adventure with the names of one telling: places, people, things, foes, and how it can end.

    Attributes:
        key: Name of its file.
        telling: How many times the campaign has been through all tales; each telling has other names.
        names: Person's id to full name.
        text: Everything else the file says, names filled in.
    """

    key: str
    telling: int
    names: Mapping[str, str]
    text: Mapping[str, Any] = field(repr=False)

    def __getitem__(self, part: str) -> Any:
        return self.text[part]

    def part(self, name: str) -> Any:
        """Return a part that a tale may leave out: it is empty then."""
        return self.text.get(name, {})

    @property
    def title(self) -> str:
        """Title of the quest on the page; a later telling is numbered."""
        again = "" if self.telling == 0 else f", told again ({self.telling + 1})"
        return f"{self.text['title']}{again}"

    def person(self, words: str, among: Iterable[str] | None = None) -> str | None:
        """Find the person whom words name; the id."""
        ids = list(self.names if among is None else among)
        entries = {i: f"{self.names[i]} {self.text['people'][i]['role']}" for i in ids}
        return match(words, entries)

    def place(self, words: str, among: Iterable[str] | None = None) -> str | None:
        """Find the place that words name."""
        places = self.text["places"]
        return match(words, {p: f"{p} {places[p].get('as', '')}" for p in (places if among is None else among)})

    def item(self, words: str, among: Iterable[str] | None = None) -> str | None:
        """Find the thing that words name."""
        items = self.part("items")
        entries = {i: f"{i} {items.get(i, {}).get('as', '')}" for i in (items if among is None else among)}
        return match(words, entries)

    def foe(self, words: str, among: Iterable[str]) -> str | None:
        """Find the foe that words name."""
        foes = self.part("foes")
        return match(words, {f: f"{f} {foes[f].get('as', '')}" for f in among})


def match(words: str, entries: Mapping[str, str]) -> str | None:
    """Find the entry that shares most words with `words`; None if none shares any."""
    said = stems(words)
    if not said:
        return None
    best, most = None, 0.0
    for name, known in entries.items():
        shared = len(said & stems(known)) + (0.5 if stems(name) <= said else 0)
        if shared > most:
            best, most = name, shared
    return best


def stems(words: str) -> set[str]:
    """Break text into lower-case words without their plain endings."""
    found = re.findall(r"[^\W_]+", words.casefold().replace("'s", "").replace("’s", ""))
    return {stem(word) for word in found} - _SMALL


def stem(word: str) -> str:
    """Strip plural endings: "barrels" and "barrel" are one word."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def short(name: str) -> str:
    """Say a name as people say it: "Maren" for "Maren Holt", but "Old Tobb" whole."""
    first = name.split()[0] if name.split() else name
    return name if first.casefold() in TITLES else first


def called(name: str, words: str) -> bool:
    """Whether words call somebody by name: "Tobb" will do for "Old Tobb", but "old" will not."""
    return bool((stems(short(name)) - TITLES) & stems(words))


def keys() -> list[str]:
    """List the tales there are."""
    return sorted(_written())


@cache
def tale(key: str, telling: int = 0) -> Tale | None:
    """Return a tale with the names of this telling; None if there is no such tale."""
    written = _written().get(key)
    if written is None:
        return None
    names = {i: _name(person["names"], telling) for i, person in written["people"].items()}
    said = {i: short(name) for i, name in names.items()} | {f"{i}_full": name for i, name in names.items()}
    filled: JSON = fill(written, said)
    return Tale(key=key, telling=telling, names=names, text=filled)


def fill(value: Any, names: Mapping[str, str]) -> Any:
    """Put names for {placeholders} in every text of a JSON value; unknown ones stay for later."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], found[0]), value)
    if isinstance(value, Mapping):
        return {fill(name, names): fill(part, names) for name, part in value.items()}
    if isinstance(value, list):
        return [fill(part, names) for part in value]
    return value


def _name(names: list[str], telling: int) -> str:
    if telling < len(names):
        return names[telling]
    # A dead namesake must never get up again, so later tellings number their people.
    return f"{names[telling % len(names)]} the {_ordinal(telling // len(names) + 1)}"


def _ordinal(number: int) -> str:
    words = ["Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth"]
    return words[number - 2] if number - 2 < len(words) else f"{number}th"


@cache
def _written() -> dict[str, JSON]:
    found = {}
    for file in files("questbook.graphs.offline.storyteller").joinpath("tales").iterdir():
        if file.name.endswith(".toml"):
            found[file.name.removesuffix(".toml")] = tomllib.loads(file.read_text(encoding="utf-8"))
    return found
