"""Tale: one hand-written adventure, read from tales/*.toml and filled with the names of the people in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from questbook.graphs.offline.storyteller.language import fill, load, match, short


@dataclass(frozen=True)
class Tale:
    """An adventure with the names of one telling: places, people, things, foes, and how it can end."""

    key: str
    """Name of its file."""
    telling: int
    """How many times the campaign has been through all tales; each telling has other names."""
    names: Mapping[str, str]
    """Person's id to full name."""
    text: Mapping[str, Any] = field(repr=False)
    """All that the file says, names filled in."""

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
        """Find the person whom words name by name or role; the id."""
        ids = self.names if among is None else among
        return match(words, {i: f"{self.names[i]} {self.text['people'][i]['role']}" for i in ids})

    def place(self, words: str, among: Iterable[str] | None = None) -> str | None:
        """Find the place that words name."""
        return match(words, self._entries("places", among))

    def item(self, words: str, among: Iterable[str] | None = None) -> str | None:
        """Find the thing that words name."""
        return match(words, self._entries("items", among))

    def foe(self, words: str, among: Iterable[str] | None = None) -> str | None:
        """Find the foe that words name."""
        return match(words, self._entries("foes", among))

    def other(self, words: str) -> str | None:
        """Find the place, thing or foe that words name."""
        return match(words, self._entries("places") | self._entries("items") | self._entries("foes"))

    def _entries(self, part: str, among: Iterable[str] | None = None) -> dict[str, str]:
        entries = self.part(part)
        return {i: f"{i} {entries.get(i, {}).get('as', '')}" for i in (entries if among is None else among)}


@cache
def keys() -> tuple[str, ...]:
    """List the tales there are."""
    folder = files("questbook.graphs.offline.storyteller").joinpath("tales")
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


@cache
def tale(key: str, telling: int = 0) -> Tale | None:
    """Return a tale with the names of this telling; None if there is no such tale."""
    if key not in keys():
        return None
    text = load(f"tales/{key}")
    names = {i: _name(person["names"], telling) for i, person in text["people"].items()}
    parts = {i: short(name) for i, name in names.items()} | {f"{i}_full": name for i, name in names.items()}
    return Tale(key=key, telling=telling, names=names, text=fill(text, parts))


def _name(names: list[str], telling: int) -> str:
    # A dead namesake must never get up again, so later tellings number their people.
    number, name = telling // len(names) + 1, names[telling % len(names)]
    return name if number == 1 else f"{name} ({number})"
