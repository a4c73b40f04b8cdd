"""Names of attributes: one for each, however it is worded, so that it has one slot; and what a plain sentence says.

The words are in attributes.toml, English and German.
"""

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from questbook.memory.text.words import normalize

PERSON = "the user"  # the subject of what an assistant knows of the person

_TEXTS = files("questbook.memory.facts").joinpath("attributes.toml").read_text("utf-8")
_WORDS: dict[str, dict[str, str]] = tomllib.loads(_TEXTS)
_NAMES = {normalize(synonym): name for name, words in _WORDS["synonyms"].items() for synonym in words.split("|")}
_IDLE = frozenset(
    {"the", "a", "an", "current", "present", "new", "latest", "his", "her", "their", "my"}
    | {"aktuelle", "aktueller", "aktuelles", "neue", "neuer", "neues", "derzeitige", "derzeitiger"}
)
_BEFORE_0_3 = frozenset({"location", "home", "fate", "debt", "occupation", "attitude", "goal", "fear", "state", "name"})
_SINGLE = frozenset(_WORDS["synonyms"]) - {"location", "state", "attitude", "goal", "fear", "debt", "instruction"}

_SUBJECT = re.compile(r"^(?:the user|user|der (?:be)?nutzer|die (?:be)?nutzerin)(?=\b)", re.I)
_NOT = re.compile(r"(?i)^(?:no longer|does not|doesn['’]t) (?=live|work|drive)|^(?=(?:wohnt|lebt|arbeitet) nicht mehr)")
_ENDING = re.compile(
    r"(?:[, ]+(?:now|any ?more|any longer|these days|instead|currently|jetzt|gezogen|umgezogen))*[.!]?$", re.I
)
_DIET = re.compile(
    r"(?i)^(?:is|ist|eats?)(?: now| jetzt)?(?: a| an| strictly)? (vegan|vegetarian|pescatarian|vegetarisch|vegane?r?)\b"
)
_ITS = re.compile(
    r"^['’]?s?\s+(?P<attribute>[^\W\d_][\w -]{1,40}?) (?:is|are|ist|sind)(?: now| jetzt| nun)? (?P<value>.+)$", re.I
)
_LONGEST = 1_000  # characters of a sentence that are read; a fact has no more


class Property(NamedTuple):
    """A property of a subject, and its value."""

    subject: str
    attribute: str
    value: str


@lru_cache(maxsize=512)
def attribute_name(attribute: str) -> str:
    """Return the one name of an attribute: "favourite fruit" and "Lieblingsobst" are "favorite fruit"."""
    name = normalize(attribute)
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith("lieblings") and len(name) > len("lieblings"):
        rest = name.removeprefix("lieblings").strip()
        return f"favorite {_WORDS['lieblings'].get(rest, rest)}"
    words = [_WORDS["spellings"].get(word, word) for word in name.split()]
    if words[:2] == ["name", "of"]:
        words = [*(word for word in words[2:] if word != "the"), "name"]
    if "s" in words[:-1]:  # "the user's car", "the cat's name"
        words = words[words.index("s") + 1 :] if "user" in words[: words.index("s")] else [w for w in words if w != "s"]
    while len(words) > 1 and words[0] in _IDLE:
        words = words[1:]
    kept = " ".join(words)
    return _NAMES.get(kept, kept)


def earlier_attribute_name(attribute: str) -> str:
    """Return the name that an attribute had before Questbook 0.3, under which older stores keep its slot."""
    name = normalize(attribute)
    return new if (new := _NAMES.get(name, name)) in _BEFORE_0_3 else name


def stated_property(text: str, subject: str = "") -> Property | None:
    """Return the property that a plain sentence gives a value, English or German; None if there is none.

    Only properties of which one value holds at a time are read: of two sentences about them the later one is so.
    Without a subject it is read from the sentence, where it is the person: "The user lives in Oslo."
    """
    text, own = text[:_LONGEST], re.escape(subject.removeprefix("the ").removeprefix("The "))
    match = re.match(rf"(?:the )?{own}", text, re.I) if subject else _SUBJECT.match(text)
    if match is None:
        return None
    subject, rest = subject or PERSON, text[match.end() :]
    end = _ENDING.search(rest)
    said = rest[: end.start()] if end else rest
    if (its := _ITS.match(said)) and said[:1] in "'’s":
        name = attribute_name(its["attribute"])
        single = name in _SINGLE or name.startswith("favorite ")
        return Property(subject, name, its["value"]) if single else None
    said = said.strip()
    ended = _NOT.search(said)
    said = said[ended.end() :].replace(" nicht mehr ", " ", 1) if ended else said
    if diet := _DIET.match(said):
        return Property(subject, "diet", diet[1])
    for attribute, verb in _WORDS["verbs"].items():
        if (match := re.match(rf"(?:{verb}) (?P<value>.+)$", said, re.I)) and "," not in match["value"]:
            value = re.sub(r"^(?:an?|eine?n?) ", "", match["value"])
            return Property(subject, attribute, f"no longer {value}" if ended else value)
    return None
