"""Interview: getting to know the character, a question or two at a time."""

# ruff: noqa: E501 (patterns and their words are easier to read whole)

from __future__ import annotations

import hashlib
import random
import re
from typing import Any

from questbook.graphs.offline.storyteller import portrait
from questbook.graphs.offline.storyteller.tables import saying

JSON = dict[str, Any]

REQUIRED = ("name", "ancestry", "class", "background", "goal")

_QUESTIONS = {
    "name": [
        "What is your name?",
        "What do they call you, the people who are glad to see you?",
        "And what name shall I write at the top of the page?",
    ],
    "ancestry": [
        "What are your people – halfling, elf, human, something rarer?",
        "Of what ancestry are you?",
        "Human, dwarf, elf, something with horns: what are you?",
    ],
    "class": [
        "What is your class: do you live by blade, spell, prayer or quick fingers?",
        "And your calling – fighter, wizard, rogue, bard? What is your class?",
        "When it comes to trouble, what class of trouble are you: rogue, ranger, cleric …?",
    ],
    "background": [
        "What is your background – where did you grow up, and what did you do before this?",
        "What lies behind you? A word or two about your background will do.",
        "Where do you come from, and what did that place make of you?",
    ],
    "goal": [
        "What do you want, more than is good for you? What is your goal?",
        "And your goal: what are you out there looking for?",
        "What would you walk a thousand miles for?",
    ],
}
_ASKS = {
    "name": r"\bname\b|call you",
    "ancestry": r"\bancestry\b|\bpeople\b –|your people|\brace\b|something with horns",
    "class": r"\bclass\b|\bcalling\b|\btrade\b",
    "background": r"\bbackground\b|grow up|come from|behind you|did you do before",
    "goal": r"\bgoal\b|what do you want|looking for|thousand miles|do you seek",
}
_WELCOME = [
    "Welcome to the table. There is a candle, a map with a hole in it, and an empty chair that looks like yours.",
    "Come in out of the rain. Before there is an adventure, there has to be somebody to have it.",
    "Sit down, sit down. Every story begins with somebody; let us find out who.",
]
_TAKEN_UP = {
    "name": [
        "{name}: a name one could shout across a tavern.",
        "{name}. That will look well on a wanted poster.",
        "Well met, {name}.",
    ],
    "ancestry": [
        "{ancestry_a}, then; the doors will be the wrong size, one way or the other.",
        "{ancestry_a}: your people will hear of this.",
    ],
    "class": ["{class_a}! The locks, or the monsters, or both, should be told.", "{class_a} – somebody has to be."],
    "background": [
        "“{background}” – that leaves a mark on a person.",
        "“{background}”: there is a story in that, and it is not over.",
    ],
    "goal": ["“{goal}”: I shall remember that, and so will the road.", "“{goal}” – that is worth a pair of boots."],
    "other": ["Noted, and it suits you.", "I can see it before me.", "Good. I have written that down."],
}
_CHANGED = ["I have corrected the page: {what}.", "Of course – {what}. The ink was still wet."]
_ACKNOWLEDGED = [
    "The page is full, {name}. Now turn it.",
    "That is all I need, {name}. The candle leans; the door opens.",
    "Then we are ready, {name}. It begins.",
]
_AGAIN = [
    "I did not quite get hold of that, and I would rather ask than invent.",
    "Hm. I have turned that over and found nothing for the page on the underside.",
    "My pen stayed dry at that; it is a simple pen.",
]
_IDEAS = {
    "name": "Any name will do: Mira, Tobin Ashdown, Old Kesh, Seraphine of the Nine Doors. Or say “surprise me”.",
    "ancestry": "You could be a human, elf, dwarf, halfling, gnome, half-elf, half-orc, dragonborn or tiefling – or "
    "something rarer, if you can carry it off.",
    "class": "You could be a barbarian, bard, cleric, druid, fighter, monk, paladin, ranger, rogue, sorcerer, warlock or "
    "wizard.",
    "background": "Perhaps you grew up on the docks, served in a losing army, were raised by monks, or kept an inn until "
    "it burned.",
    "goal": "People set out to find somebody, to pay a debt, to clear a name, to see the sea, to get even. What about you?",
}
_CHANCE = {
    "name": [
        "Tamsin Reed",
        "Corwin Ashby",
        "Ilse Marrow",
        "Jory Flint",
        "Nadia Vesk",
        "Perrin Holloway",
        "Wilda Thorne",
    ],
    "ancestry": ["human", "halfling", "elf", "dwarf", "half-elf", "gnome", "tiefling", "half-orc"],
    "class": ["rogue", "fighter", "wizard", "ranger", "bard", "cleric", "druid"],
    "background": [
        "grew up over a candlemaker's shop, the fifth of seven",
        "was a drummer in an army that lost",
        "was raised by the lay brothers of a very poor monastery",
        "worked the river barges until one of them sank",
        "kept the accounts of a smuggler who could not count",
    ],
    "goal": [
        "to find the brother who left one morning and did not come back",
        "to pay off a debt to somebody who does not take coin",
        "to see the city that is on none of the maps",
        "to clear a name that was blackened at home",
        "to win back the fiddle that was lost at cards",
    ],
}
_SURPRISE = re.compile(
    r"\b(?:surprise\s+me|(?:you|u)\s+(?:choose|pick|decide|can\s+(?:choose|pick|decide))|random(?:ly|ise|ize)?|up\s+to\s+you|"
    r"(?:choose|pick|decide|invent|make\s+(?:it|something|one|me|them|everything))\s+(?:for\s+me|up|one|the\s+rest)|whatever\s+you\s+(?:like|want)|"
    r"dealer['’]s\s+choice|anything\s+is\s+fine|fill\s+in\s+the\s+rest|roll\s+(?:one|me)\s+up)\b",
    re.I,
)
_HONEST = re.compile(
    r"\b(?:who|what)\s+are\s+you\b|\bare\s+you\s+(?:an?\s+)?(?:ai|real|human|bot|llm|model|computer|machine)\b", re.I
)
_FIELD_WORDS = {
    "name": r"\bname\b",
    "ancestry": r"\b(?:ancestry|race|people|species)\b",
    "class": r"\b(?:class|calling|job|profession)\b",
    "background": r"\b(?:background|past|backstory|history)\b",
    "goal": r"\b(?:goal|quest|motivation|aim)\b",
}


def answer(
    *, page: JSON, missing: list[str], words: str, asked: str, result: str, seed: int | None
) -> tuple[str, JSON | None]:
    """Answer the player's newest message in the interview.

    Args:
        page: The character's page so far.
        missing: Required fields that are still open.
        words: The newest message; "" after a tool call.
        asked: What was asked last.
        result: What the tool answered, if it was called just now.
        seed: The storyteller's seed.

    Returns:
        The reply, and the patch to note, if anything was learnt.
    """
    chance = source(seed, words, asked, repr(sorted(page.items(), key=lambda field: field[0])), result)
    open_fields = missing or [field for field in REQUIRED if not page.get(field)]
    if result:
        return _after_noting(result, page, open_fields, chance), None
    if _HONEST.search(words):
        return f"{saying('honest')} And now you: {_question(open_fields, chance)}", None
    fields = asked_fields(asked) & set(open_fields) or ({open_fields[0]} if asked and open_fields else set())
    patch = portrait.read(words, [field for field in REQUIRED if field in fields], page)
    patch, drawn = _draw(words, patch, open_fields, chance)
    if not patch:
        return _ask_again(words, asked, open_fields, chance), None
    left = [field for field in open_fields if not patch.get(field)]
    if not left:
        name = str(patch.get("name") or page.get("name"))
        told = _drawn(drawn, patch) if drawn else ""
        return f"{told} {chance.choice(_ACKNOWLEDGED).format(name=name)}".strip(), patch
    return f"{_take_up(patch, page, drawn, chance)} {_question(left, chance)}", patch


def asked_fields(question: str) -> set[str]:
    """Say which fields a question was about; the last sentences count, not what it took up before."""
    asked = " ".join(re.findall(r"[^.!?]*\?", question)[-2:])
    return {field for field, pattern in _ASKS.items() if re.search(pattern, asked, re.I)}


def source(seed: int | None, *parts: str) -> random.Random:
    """Return a source of chance that depends on nothing but its arguments."""
    digest = hashlib.sha256(repr((seed, *parts)).encode("utf-8", "replace")).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


def _draw(words: str, patch: JSON, open_fields: list[str], chance: random.Random) -> tuple[JSON, list[str]]:
    """Fill from the tables what the player leaves to chance."""
    if not _SURPRISE.search(words):
        return patch, []
    # In "surprise me" there is nothing to read; a field that was truly said stands with its own pattern.
    patch = {field: value for field, value in patch.items() if not _SURPRISE.search(str(value))}
    named = [field for field, pattern in _FIELD_WORDS.items() if re.search(pattern, words, re.I)]
    drawn = [field for field in open_fields if field not in patch and (not named or field in named)]
    return patch | {field: chance.choice(_CHANCE[field]) for field in drawn if field in _CHANCE}, drawn


def _drawn(drawn: list[str], patch: JSON) -> str:
    told = "; ".join(f"{field}: {patch[field]}" for field in drawn if field in patch)
    return f"You leave it to me, so I have drawn from the hat – {told}."


def _take_up(patch: JSON, page: JSON, drawn: list[str], chance: random.Random) -> str:
    if drawn:
        return _drawn(drawn, patch)
    changed = [field for field in REQUIRED if field in patch and page.get(field)]
    if changed:
        what = ", ".join(f"{field} {patch[field]}" for field in changed)
        return chance.choice(_CHANGED).replace("{what}", what)
    said = [field for field in REQUIRED if field in patch]
    parts = [_filled(chance.choice(_TAKEN_UP[field]), patch) for field in said[:2]]
    if not said:
        parts = [chance.choice(_TAKEN_UP["other"])]
    return " ".join(parts)


def _filled(text: str, patch: JSON) -> str:
    parts = {field: str(patch.get(field, "")) for field in REQUIRED}
    parts |= {f"{field}_a": _one(str(patch.get(field, ""))) for field in ("ancestry", "class")}
    return re.sub(r"\{(\w+)\}", lambda found: parts.get(found[1], found[0]), text)


def _one(noun: str) -> str:
    return f"{'An' if noun[:1].casefold() in 'aeiou' and noun[:3].casefold() != 'uni' else 'A'} {noun}"


def _question(open_fields: list[str], chance: random.Random) -> str:
    if not open_fields:
        return "Is there anything else I should know about you?"
    asked = [field for field in REQUIRED if field in open_fields][:2]
    return " ".join(chance.choice(_QUESTIONS[field]) for field in asked)


def _ask_again(words: str, asked: str, open_fields: list[str], chance: random.Random) -> str:
    if not asked:
        return f"{chance.choice(_WELCOME)} {_question(open_fields, chance)}"
    wanted = [field for field, pattern in _FIELD_WORDS.items() if re.search(pattern, words, re.I)]
    if re.search(
        r"\b(?:what|which|who)\b.*\b(?:can|could|may|should)\s+i\s+(?:be|play|choose|pick)\b|\b(?:options|choices|help|ideas?|examples?|suggest\w*|list)\b",
        words,
        re.I,
    ) or (words.strip().endswith("?") and wanted):
        listed = wanted or ([f for f in ("ancestry", "class") if f in open_fields] or open_fields[:1])
        return f"{' '.join(_IDEAS[field] for field in listed if field in _IDEAS)} {_question(open_fields[:1], chance)}"
    hesitant = re.search(r"\b(?:don['’]?t\s+know|not\s+sure|dunno|idk|no\s+idea|hm+)\b", words, re.I)
    if hesitant and open_fields:
        return f"No hurry. {_in_other_words(asked, open_fields, chance)}"
    if re.match(
        r"\W*(?:hi|hello|hey|greetings|good\s+\w+|start|begin|play|let['’]s\s+(?:go|start|play|begin))\b", words, re.I
    ):
        return f"Well met! {_in_other_words(asked, open_fields, chance)}"
    return f"{chance.choice(_AGAIN)} {_in_other_words(asked, open_fields, chance)}"


def _in_other_words(asked: str, open_fields: list[str], chance: random.Random) -> str:
    """Ask for one thing that was asked for, with examples and not in the words of the last time."""
    if not open_fields:
        return _question(open_fields, chance)
    fields = asked_fields(asked) & set(open_fields)
    field = next((field for field in REQUIRED if field in fields), open_fields[0])
    others = [question for question in _QUESTIONS[field] if question not in asked]
    return f"{_IDEAS[field]} {chance.choice(others or _QUESTIONS[field])}"


def _after_noting(result: str, page: JSON, open_fields: list[str], chance: random.Random) -> str:
    if re.search(r"\b(?:left as it is|error|expected|no such field|invalid|would render|wrong)\b", result, re.I):
        return f"That would not go on the page ({' '.join(result.split())[:200]}) Say it to me once more, in other words? {_question(open_fields[:1], chance)}"
    if not open_fields:
        return chance.choice(_ACKNOWLEDGED).replace("{name}", str(page.get("name") or "traveller"))
    return _question(open_fields, chance)
