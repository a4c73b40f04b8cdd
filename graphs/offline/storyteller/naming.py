"""Naming: which words of a sentence are the character's name."""

# ruff: noqa: E501 (patterns and their words are easier to read whole)

from __future__ import annotations

import re
from typing import Any

from questbook.graphs.offline.storyteller.besides import beside, is_mood
from questbook.graphs.offline.storyteller.folk import ANCESTRY, CLASS
from questbook.graphs.offline.storyteller.likeness import LOOKS, TRAIT

JSON = dict[str, Any]

_NAME_WORD = r"[A-Z][\w'’-]*"
_NAME = rf"{_NAME_WORD}(?:(?:\s+(?:of|the|von|van|de|del|der|du|la|le|al|bin|ibn|mac|o['’]))*\s+(?-i:{_NAME_WORD}))*"
_SAID_NAME = re.compile(
    r"\b(?:my\s+(?:character['’]?s?\s+|full\s+|real\s+)?name(?:['’]s|\s+is|\s+shall\s+be|\s+will\s+be|:)|(?:the\s+|character\s+)?name(?:['’]s|\s+is|\s*:|\s*=)|"
    r"(?:they|people|friends|everyone|folks?|you\s+(?:can|may)|just|please)?\s*calls?\s+(?:me|her|him|them)|(?:i\s+)?go(?:es)?\s+by(?:\s+the\s+name(?:\s+of)?)?|"
    r"(?:known|introduce\s+myself)\s+as|(?:named|called)|i\s+am\s+called)\s+"
    r"(?:now\s+|actually\s+|just\s+|simply\s+|it['’]s\s+)?[\"“'‘]?(?P<name>[^\W\d][^,.;:!?\n\"”]*)",
    re.I,
)
_IS_NAME = re.compile(
    rf"^\W*(?:hi|hello|hey|well|ok|okay|so|actually|no|sorry|wait|greetings|good \w+)?[\s,!.]*(?:i['’]?m|i\s+am|this\s+is|my\s+character\s+is|it['’]s|it\s+is|meet|playing(?:\s+as)?|i['’]?ll\s+(?:be|play)(?:\s+as)?)\s+(?P<name>(?-i:{_NAME}))",
    re.I,
)
_LOW_NAME = re.compile(
    r"^\W*(?:hi|hello|hey)?[\s,!.]*i['’]?\s?a?m\s+(?P<name>[a-z][\w'’-]{1,20})\s*(?:,|\band\b)\s*(?:i['’]?m\s+)?an?\s",
    re.I,
)
_IS_NAME_AFTER = re.compile(
    rf"^\W*(?:(?:hi|hello|hey|greetings)\b[\s,!.]*)?(?P<name>(?-i:{_NAME}))(?:\s+is\s+(?:my\s+name|what\s+they\s+call\s+me|the\s+name)|,\s+(?:an?|the)\s"
    rf"|\s*[,.:;–-]\s+(?:[\w-]+\s+){{0,2}}?(?:{ANCESTRY.pattern}|{CLASS.pattern}))",
    re.I,
)
_NOT_NAMES = {
    "i", "a", "an", "the", "not", "now", "just", "from", "very", "really", "so", "quite", "too", "here",
    "ready", "sure", "yes", "no", "ok", "okay", "sorry", "maybe", "looking", "searching", "hunting", "going",
    "trying", "afraid", "tired", "old", "young", "new", "shy", "brave", "happy", "sad", "lost", "born",
    "raised", "and", "but", "well", "done", "good", "fine", "back", "actually", "level", "about", "surprise",
    "random", "you", "whatever", "anything", "something", "dunno", "idk", "hello", "hi", "hey", "help", "what",
    "who", "why", "how",
}  # fmt: skip

_NO_NAME_BEGINS = {"not", "no", "none", "nothing", "nobody", "what", "whatever", "my", "your", "later", "irrelevant"}


def find_name(said: str, known: JSON) -> str:
    """Find the name that a message gives the character; "" if it gives none."""
    if match := _SAID_NAME.search(said):
        raw = re.split(
            r"\s+(?:and|but|because|who|i['’]m|i|from|a|an|not|please|since|now|instead|too|for|if|or|with|when|though)\b",
            match["name"].strip(),
            maxsplit=1,
            flags=re.I,
        )[0]
        words = raw.split()[:5]
        if any(w[0].isupper() for w in words):  # "Mira the halfling" keeps what is part of the name
            while words and not words[-1][0].isupper():
                words.pop()
        else:
            words = [w.capitalize() for w in words[:2]]
        name = " ".join(words).strip("'\"”“ ")
        if (
            name
            and name.casefold() not in _NOT_NAMES
            and name.split()[0].casefold() not in _NO_NAME_BEGINS
            and not (beside(name) or (raw == raw.lower() and is_mood(name)))
            and not (
                re.search(
                    r"\b(?:sister|brother|father|mother|friend|dog|horse|village|town|home|sword|master|enemy|wife|husband|son|daughter)\b[^.]{0,20}$",
                    said[: match.start()],
                    re.I,
                )
            )
        ):
            return name
    if (match := _IS_NAME.match(said) or _IS_NAME_AFTER.match(said)) and nameable(match["name"]):
        return match["name"].strip()
    if not known.get("name") and (match := _LOW_NAME.match(said)) and nameable(match["name"]):
        return match["name"].capitalize()
    return ""


def nameable(text: str) -> bool:
    """Whether words may be a name: they are not a plain word, an ancestry, a class, or a trait."""
    if re.match(r"(?:Old|Young)\s+[A-Z]", text):
        text = text.split(maxsplit=1)[1]
    first = text.split()[0].casefold().strip("'’-")
    return not (
        first in _NOT_NAMES
        or (len(text.split()) == 1 and is_mood(first))
        or ANCESTRY.fullmatch(first)
        or CLASS.fullmatch(first)
        or TRAIT.fullmatch(first)
        or re.fullmatch(LOOKS, first, re.I)
        or len(text) > 70
    )
