"""Fiction: what was said and is no fact of the world is kept as what it is.

The model is asked to tell claims, lies, dreams and ifs apart; this is what code holds to besides, whatever the model
says. Talk out of character is marked as such by whoever types it, so it is found exactly. What a player writes is an
attempt or a claim: a fact that rests on nothing but their words is theirs.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from questbook.memory.facts.facts import Fact
from questbook.memory.text.wording import content_stems, normalize, numbers_in

_ASIDE = re.compile(
    r"\(\((?P<a>.*?)(?:\)\)|$)"  # ((brb)), also unclosed
    r"|[(\[]\s*(?:ooc|out of character)\b[:\s]*(?P<b>[^)\]]*)[)\]]?"  # (OOC: …), [ooc …]
    r"|(?:^|(?<=[\n.!?]))\s*(?:ooc|out of character)\s*:\s*(?P<c>[^\n]*)",  # OOC: … to the end of the line
    re.IGNORECASE | re.DOTALL,
)
_UNREAL = re.compile(
    r"\b(?:what if|suppos(?:e|es|ed|ing) (?:that )?\w+|hypothetical(?:ly)?|imagin(?:e|es|ed|ing)|pretend(?:s|ed|ing)?"
    r"|dream(?:s|t|ed|ing)?|in (?:a|the|his|her|their) (?:dream|vision|nightmare)|would have|could have|might have"
    r"|if only|rumou?r(?:s|ed)?|allegedly|supposedly)\b|^if\b",
    re.IGNORECASE,
)
_RESTS = 0.5  # of a fact's words: so many must stand where it is said to come from


class Told(NamedTuple):
    """Where facts may come from.

    Attributes:
        player: What the player wrote, in character.
        aside: What the player wrote out of character.
        reply: What the dungeon master and the dice said, and what their pages say.
        names: What the player's character is called.
    """

    player: str
    aside: str
    reply: str
    names: Collection[str] = ()


def apart(text: str) -> tuple[str, str]:
    """Part a player's words into what was said in character and what was said out of it."""
    asides = [next((part for part in found.groups() if part), "").strip() for found in _ASIDE.finditer(text)]
    return _ASIDE.sub(" ", text).strip(), " ".join(aside for aside in asides if aside)


def placed(fact: Fact, told: Told) -> Fact:
    """Return a fact as what it is: of the world, of the player, or a claim.

    Args:
        fact: A fact as a model gave it.
        told: The turns that it was taken from.
    """
    own = {word for name in told.names for word in content_stems(name)}
    words = content_stems(fact.text) - content_stems(fact.subject) - own or content_stems(fact.text)
    spoken, aside, reply = (_share(words, text) for text in (told.player, told.aside, told.reply))
    if aside > _RESTS and aside > max(spoken, reply):
        return fact.model_copy(update={"kind": "preference", "of_player": True, "claimed_by": ""})
    if fact.kind in ("event", "trait") and not fact.of_player and not fact.claimed_by:
        claimed = reply == 0 and spoken >= _RESTS
        invented = numbers_in(f"{fact.text} {fact.value}") & numbers_in(told.player) - numbers_in(told.reply)
        if claimed or invented or _says_of_self(fact, told):
            return fact.model_copy(update={"kind": "rumour", "claimed_by": _speaker(told)})
        if _UNREAL.search(fact.text):
            return fact.model_copy(update={"kind": "rumour"})
    if fact.kind == "secret" and _is_player(fact.claimed_by, told):
        return fact.model_copy(update={"kind": "rumour"})  # who says it knows it
    if fact.kind in ("event", "trait") and fact.known_by and not any(_is_player(name, told) for name in fact.known_by):
        return fact.model_copy(update={"kind": "secret"})
    return fact


def _says_of_self(fact: Fact, told: Told) -> bool:
    """Whether a fact says of the player's character what nobody but the player has said, whatever else was told."""
    value = content_stems(fact.value) if fact.value else frozenset()
    about_self = fact.kind == "trait" and _is_player(fact.subject, told)
    return about_self and bool(value) and value <= content_stems(told.player) and not value & content_stems(told.reply)


def _share(words: frozenset[str] | set[str], text: str) -> float:
    return len(words & content_stems(text)) / len(words) if words and text.strip() else 0.0


def _speaker(told: Told) -> str:
    return next(iter(told.names), "") or "the player"


def _is_player(name: str, told: Told) -> bool:
    said = normalize(name)
    known = {
        "player",
        "the player",
        "player character",
        "the party",
        "party",
        "you",
        "pc",
        "everyone",
        "everybody",
        "all",
    }
    return bool(said) and (said in known or any(content_stems(name) & content_stems(own) for own in told.names))
