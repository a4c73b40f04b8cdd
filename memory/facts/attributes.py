"""Names of attributes: one for each, however it is worded, so that it has one slot; and what a plain sentence says."""

import re
from functools import lru_cache
from typing import NamedTuple

from questbook.memory.text.words import normalize

PERSON = "the user"  # the subject of what an assistant knows of the person

# Other words for an attribute, so that "home" and "lives in" are one slot. English, then German.
_SYNONYMS = {
    "location": "place|whereabouts|position|where|hiding place|hidden|hideout|current location|ort|aufenthaltsort",
    "home": "residence|lives in|lives at|lives|dwelling|address|city|town|home city|home town now|place of residence"
    "|city of residence|living place|wohnort|wohnung|zuhause|wohnt in|adresse|stadt",
    "fate": "death|cause of death|how he died|how she died|manner of death|died|tod",
    "debt": "owes|debts|owed|schulden",
    "occupation": "job|role|profession|trade|work|works as|job title|employment|career|beruf|arbeit|stelle|tätigkeit",
    "employer": "company|works at|works for|workplace|firm|arbeitgeber|firma",
    "attitude": "feelings|disposition|attitude to the player|opinion|haltung",
    "goal": "aim|wants|objective|ambition|desire|ziel",
    "fear": "afraid of|fears|phobia|angst",
    "state": "status|condition|zustand",
    "name": "called|full name|heißt",
    "partner": "spouse|husband|wife|girlfriend|boyfriend|fiance|fiancee|significant other|life partner|married to"
    "|partnerin|ehemann|ehefrau|ehepartner|verlobter|verlobte|lebensgefährte|lebensgefährtin",
    "marital status": "relationship status|civil status|familienstand|beziehungsstatus",
    "car": "vehicle|drives|automobile|car model|type of car|auto|wagen|fahrzeug|pkw",
    "diet": "eating habits|dietary preference|dietary preferences|dietary habits|diet type|eating style|ernährung"
    "|ernährungsweise|essgewohnheiten",
    "phone": "smartphone|mobile|mobile phone|cell phone|cellphone|phone model|handy|telefon",
    "phone number": "telephone number|mobile number|cell number|handynummer|telefonnummer",
    "email": "e mail|email address|e mail address|mail address|mailadresse",
    "gym day": "workout day|training day|day of training|exercise day|gym weekday|trainingstag|sporttag",
    "birthday": "date of birth|birth date|birthdate|born on|geburtstag|geburtsdatum",
    "age": "years old|alter",
    "doctor": "physician|gp|family doctor|arzt|hausarzt|ärztin|hausärztin",
    "dentist": "zahnarzt|zahnärztin",
    "boss": "manager|supervisor|line manager|chef|chefin|vorgesetzter|vorgesetzte",
    "bedtime": "sleep time|time to bed|schlafenszeit",
    "hometown": "place of birth|birthplace|geburtsort|heimatstadt",
    "instruction": "standing instruction|instructions|rule|anweisung|regel",
}  # fmt: skip
_NAMES = {normalize(synonym): name for name, synonyms in _SYNONYMS.items() for synonym in synonyms.split("|")}
# (before, after), each a whole word: American spelling for British, and English for German after "Lieblings-".
_SPELLINGS = {
    "favourite": "favorite", "fav": "favorite", "preferred": "favorite", "colour": "color", "neighbour": "neighbor",
    "theatre": "theater", "centre": "center", "programme": "program", "licence": "license", "grey": "gray",
    "film": "movie", "flavour": "flavor", "tyre": "tire", "jewellery": "jewelry",
}  # fmt: skip
_LIEBLINGS = {
    "farbe": "color", "essen": "food", "gericht": "dish", "frucht": "fruit", "obst": "fruit", "buch": "book",
    "film": "movie", "musik": "music", "lied": "song", "sport": "sport", "tier": "animal", "getrank": "drink",
    "restaurant": "restaurant", "stadt": "city", "serie": "series", "spiel": "game", "autor": "author",
}  # fmt: skip
_IDLE = frozenset(
    {"the", "a", "an", "current", "present", "new", "latest", "his", "her", "their", "my"}
    | {"aktuelle", "aktueller", "aktuelles", "neue", "neuer", "neues", "derzeitige", "derzeitiger"}
)
_BEFORE_0_3 = frozenset({"location", "home", "fate", "debt", "occupation", "attitude", "goal", "fear", "state", "name"})
_SINGLE = frozenset(_SYNONYMS) - {"location", "state", "attitude", "goal", "fear", "debt", "instruction"}

_SUBJECT = re.compile(r"^(?:the user|user|der (?:be)?nutzer|die (?:be)?nutzerin)(?=\b)", re.I)
_VERBS = {
    "home": r"(?:now |still |currently )?(?:lives?|resides?|wohnt|lebt)(?: now| jetzt| nun)? (?:in|at|on)"
    r"|(?:has |have )?moved to|(?:ist|zieht)(?: jetzt| nun)? nach",
    "occupation": r"(?:now )?works? (?:now )?as|arbeitet (?:jetzt |nun )?als",
    "employer": r"(?:now )?works? (?:for|at)|arbeitet (?:bei|für)",
    "car": r"(?:now )?drives?|fährt(?= eine?n? )",
    "partner": r"is (?:now )?married to|ist (?:jetzt )?verheiratet mit",
    "name": r"is called|is named|heißt",
    "birthday": r"was born on|wurde geboren am",
}
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
        return f"favorite {_LIEBLINGS.get(rest, rest)}"
    words = [_SPELLINGS.get(word, word) for word in name.split()]
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
    text = text[:_LONGEST]
    own = re.escape(subject.removeprefix("the ").removeprefix("The "))
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
    for attribute, verb in _VERBS.items():
        if (match := re.match(rf"(?:{verb}) (?P<value>.+)$", said, re.I)) and "," not in match["value"]:
            value = re.sub(r"^(?:an?|eine?n?) ", "", match["value"])
            return Property(subject, attribute, f"no longer {value}" if ended else value)
    return None
