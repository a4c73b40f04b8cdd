"""The timeline model's records: what turns leave behind, as the lists of places hold it, and which facts of it hold."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

HOUSES = ["mill", "crypt", "ford"]
"""So few that they come again: told on another branch, a fact is new there."""


class Exchange(NamedTuple):
    """What was said in a turn."""

    turn: int
    player: str
    reply: str


class Fact(NamedTuple):
    """What a turn taught. "Goran's home is the mill." fills a slot, of which one value holds at a time."""

    turn: int
    kind: str
    text: str

    @property
    def slot(self) -> tuple[str, str] | None:
        about, fills, _ = self.text.partition(" is the ")
        return (self.kind, about) if fills else None

    def handed(self) -> dict[str, str]:
        """The fact as the model hands it over."""
        subject, _, rest = self.text.rstrip(".").partition("'s ")
        attribute, _, value = rest.partition(" is the ")
        filled = {"subject": subject, "attribute": attribute, "value": value} if self.slot else {}
        return {"text": self.text, "kind": self.kind, **filled}


Record: TypeAlias = Exchange | Fact


def teach(said: random.Random, number: int) -> list[Fact]:
    """Facts for a turn that has no number yet: none, one or two of plain, secret, changing, secret and changing."""
    facts = [
        Fact(0, "event", f"Oda paid {number} crowns."),
        Fact(0, "secret", f"Oda stole {number} rubies."),
        Fact(0, "trait", f"Goran's home is the {said.choice(HOUSES)}."),
        Fact(0, "secret", f"Isolde's lair is the {said.choice(HOUSES)}."),
    ]
    return said.sample(facts, said.choice([0, 1, 1, 2]))


def learnt(known: Iterable[Record], taught: Sequence[Fact], turn: int) -> list[Fact]:
    """Those of a turn's facts that are written: what only says what its slot holds already is not."""
    held, new = {fact.slot: fact.text for fact in facts_of(known)}, []
    for fact in taught:
        if fact.slot is None or held.get(fact.slot) != fact.text:
            new.append(fact._replace(turn=turn))
        held[fact.slot] = fact.text
    return new


def holding(known: Iterable[Record]) -> set[Fact]:
    """The facts that hold: the last of each slot, and all that fill none."""
    return set({fact.slot or fact: fact for fact in facts_of(known)}.values())


def facts_of(known: Iterable[Record]) -> list[Fact]:
    return [one for one in known if isinstance(one, Fact)]


def exchanges_of(known: Iterable[Record]) -> list[Exchange]:
    return [one for one in known if isinstance(one, Exchange)]


def read(value: Mapping[str, Any]) -> Record:
    """Read what a store holds, or what a prompt tells of it."""
    if "reply" in value:
        return Exchange(value["turn"], value["player"], value["reply"])
    kind = value.get("kind") or next(name for name in value if name not in ("turn", "age"))
    return Fact(value["turn"], kind, value["text"] if "text" in value else value[kind])
