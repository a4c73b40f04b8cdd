"""What is a fact in a game: what a player writes is an attempt or a claim, so a fact that rests on it alone is theirs.

A model is asked to tell claims, lies, dreams and hypotheses from facts; `classify_fact` checks that in code.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from questbook.memory.facts.fact import Fact
from questbook.memory.facts.reading import SUPPORT, share_of, sounds_unreal
from questbook.memory.text.words import content_stems, normalize, numbers_in

_ASIDE = re.compile(
    r"\(\((?P<a>.*?)(?:\)\)|$)"  # ((brb)), also unclosed
    r"|[(\[]\s*(?:ooc|out of character)\b[:\s]*(?P<b>[^)\]]*)[)\]]?"  # (OOC: …), [ooc …]
    r"|(?:(?m:^)[^\S\n]*|(?<=[.!?])\s*)(?:ooc|out of character)\s*:\s*(?P<c>[^\n]*)",  # OOC: … to the end of the line
    re.IGNORECASE | re.DOTALL,
)
_PLAYER_NAMES = frozenset(
    {"player", "the player", "player character", "the party", "party", "you", "pc", "everyone", "everybody", "all"}
)


class FactOrigin(NamedTuple):
    """The words that facts may come from.

    Attributes:
        player: What the player wrote in character.
        aside: What the player wrote out of character.
        reply: What the dungeon master, the dice and the pages say.
        names: Names of the player's character.
    """

    player: str
    aside: str
    reply: str
    names: Collection[str] = ()


class PlayerWords(NamedTuple):
    """A player's message in two parts: in character, and out of character."""

    spoken: str
    aside: str


def split_aside(text: str) -> PlayerWords:
    """Split a player's message into what is in character and what is out of character ("((brb))", "OOC: …")."""
    asides = [next((part for part in match.groups() if part), "").strip() for match in _ASIDE.finditer(text)]
    return PlayerWords(_ASIDE.sub(" ", text).strip(), " ".join(aside for aside in asides if aside))


def classify_fact(fact: Fact, origin: FactOrigin) -> Fact:
    """Return a fact as what it is: a fact, the player's preference, a claim, a rumour or a secret.

    Args:
        fact: A fact as a model gave it.
        origin: The words of the turns that it was drawn from.
    """
    names = {word for name in origin.names for word in content_stems(name)}
    words = content_stems(fact.text) - content_stems(fact.subject) - names or content_stems(fact.text)
    spoken, aside, reply = (share_of(words, text) for text in (origin.player, origin.aside, origin.reply))
    if aside > SUPPORT and aside > max(spoken, reply):
        return fact.model_copy(update={"kind": "preference", "of_person": True, "claimed_by": ""})
    if fact.kind in ("event", "trait") and not fact.of_person and not fact.claimed_by:
        only_spoken = reply == 0 and spoken >= SUPPORT
        own_numbers = numbers_in(f"{fact.text} {fact.value}") & numbers_in(origin.player) - numbers_in(origin.reply)
        if only_spoken or own_numbers or _is_self_description(fact, origin):
            speaker = next(iter(origin.names), "") or "the player"
            return fact.model_copy(update={"kind": "rumour", "claimed_by": speaker})
        if sounds_unreal(fact.text):
            return fact.model_copy(update={"kind": "rumour"})
    if fact.kind == "secret" and _is_player(fact.claimed_by, origin):
        return fact.model_copy(update={"kind": "rumour"})  # the speaker knows it, so it is no secret
    if fact.kind in ("event", "trait") and fact.known_by and not any(_is_player(n, origin) for n in fact.known_by):
        return fact.model_copy(update={"kind": "secret"})
    return fact


def _is_self_description(fact: Fact, origin: FactOrigin) -> bool:
    """Whether a fact gives the player's character a value that the player alone has named."""
    value = content_stems(fact.value) if fact.value else frozenset()
    about_self = fact.kind == "trait" and _is_player(fact.subject, origin)
    return (
        about_self and bool(value) and value <= content_stems(origin.player) and not value & content_stems(origin.reply)
    )


def _is_player(name: str, origin: FactOrigin) -> bool:
    who = normalize(name)
    return bool(who) and (who in _PLAYER_NAMES or any(content_stems(name) & content_stems(own) for own in origin.names))
