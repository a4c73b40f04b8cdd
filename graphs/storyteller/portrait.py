"""Portrait: what a player's free sentences say about their character, and nothing that they do not say."""

# ruff: noqa: E501 (patterns and their words are easier to read whole)

from __future__ import annotations

import re
from typing import Any

from graphs.storyteller.tables import CALLINGS

JSON = dict[str, Any]

ANCESTRIES = [
    "half-elf", "half elf", "half-orc", "half orc", "wood elf", "high elf", "dark elf", "hill dwarf", "mountain dwarf",
    "lightfoot halfling", "forest gnome", "rock gnome", "human", "elf", "dwarf", "halfling", "gnome", "orc", "tiefling",
    "dragonborn", "drow", "goliath", "aasimar", "goblin", "kobold", "tabaxi", "firbolg", "genasi", "changeling",
    "warforged", "kenku", "tortle", "fairy", "satyr", "centaur", "triton", "lizardfolk", "bugbear", "hobgoblin",
]  # fmt: skip
CLASSES = sorted(
    {*CALLINGS, *(word for words in CALLINGS.values() for word in words.split())} - {"bounty", "captain", "guard"}
)
_PLURALS = {"elves": "elf", "dwarves": "dwarf", "humans": "human"}

_ANCESTRY = re.compile(r"\b(" + "|".join(map(re.escape, ANCESTRIES)) + r"|elven|elvish|dwarven|orcish|gnomish)\b", re.I)
_CLASS = re.compile(r"\b(" + "|".join(sorted(CLASSES, key=len, reverse=True)) + r")\b", re.I)
_SHORT = {
    "str": "strength",
    "dex": "dexterity",
    "con": "constitution",
    "int": "intelligence",
    "wis": "wisdom",
    "cha": "charisma",
}
_SCORE = re.compile(
    r"\b(str|dex|con|int|wis|cha)(?:ength|terity|stitution|elligence|dom|risma)?\b\s*(?:is|of|at|:|=)?\s*(\d{1,3})\b",
    re.I,
)
_SCORE_FIRST = re.compile(
    r"\b(\d{1,2})\s+(?:in\s+)?(str|dex|con|int|wis|cha)(?:ength|terity|stitution|elligence|dom|risma)?\b", re.I
)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "my": 1, "the": 1, "some": 1, "his": 1, "her": 1, "two": 2, "three": 3, "four": 4,
            "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12, "twenty": 20}  # fmt: skip

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
    rf"^\W*(?P<name>(?-i:{_NAME}))(?:\s+is\s+(?:my\s+name|what\s+they\s+call\s+me|the\s+name)|,\s+(?:an?|the)\s)", re.I
)
_NOT_NAMES = {
    "i",
    "a",
    "an",
    "the",
    "not",
    "now",
    "just",
    "from",
    "very",
    "really",
    "so",
    "quite",
    "too",
    "here",
    "ready",
    "sure",
    "yes",
    "no",
    "ok",
    "okay",
    "sorry",
    "maybe",
    "looking",
    "searching",
    "hunting",
    "going",
    "trying",
    "afraid",
    "tired",
    "old",
    "young",
    "new",
    "shy",
    "brave",
    "happy",
    "sad",
    "lost",
    "born",
    "raised",
    "and",
    "but",
    "well",
    "done",
    "good",
    "fine",
    "back",
    "actually",
    "level",
    "about",
    "surprise",
    "random",
    "you",
    "whatever",
    "anything",
    "something",
    "dunno",
    "idk",
    "hello",
    "hi",
    "hey",
    "help",
    "what",
    "who",
    "why",
    "how",
}

_VERBS = (
    r"(?:grew|was|were|want|wants|wanted|seek|seeks|seeking|need|needs|am|is|look|looks|looking|hope|hopes|hoping|dream|dreams|"
    r"used|served|spent|worked|lived|came|comes|come|left|lost|ran|fled|trained|studied|escaped|have|has|had|carry|carries|"
    r"wear|wears|search|searches|searching|hunt|hunts|hunting|swore|vowed|plan|plans|intend|intends|would|will|must|my|now|"
    r"i|she|he|they|i['’]m|raised|born|once|grown|got|gets|like|likes|love|loves|hate|hates|fear|fears|never|always|trying|out|on|former|formerly|ex)\b"
)
_CLAUSES = re.compile(
    rf"(?<=[.!?;\n])\s+|\s*[;\n]\s*|,?\s+who(?:['’]s)?\s+(?={_VERBS})|,?\s+(?:and|but|so|because|then)\s+(?={_VERBS})|,\s+(?={_VERBS})",
    re.I,
)
_LEAD = r"^\W*(?:(?:so|well|and|but|now|basically|actually|really|also|then|currently|ok|oh)\s+)*(?:(?:i|she|he|they|my character)\s+)?(?:(?:really|just|only|now|also|do|still|desperately|mostly|simply)\s+)*"
_GOAL = re.compile(
    _LEAD
    + r"""(?P<goal>(?:(?:my|her|his|their)\s+(?:goal|aim|quest|dream|mission|purpose|objective|ambition|wish|plan|one\s+wish)\s*(?:is|:|=|would\s+be)\s*(?P<named>.+))|
    (?:goal|aim|quest|motivation)\s*(?:is|:|=)\s*(?P<named2>.+)|
    (?:(?:am|is|['’]m|i['’]m|are|was|['’]s)\s+)?(?:out\s+to|looking\s+(?:for|to)|look(?:s)?\s+for|search(?:ing|es)?\s+for|in\s+search\s+of|seek(?:s|ing)?|hunt(?:s|ing)\s+(?:for|down)?|hoping\s+(?:to|for)|
       hopes?\s+(?:to|for)|trying\s+to|tries\s+to|determined\s+to|on\s+a\s+(?:quest|mission|journey)|after\s+(?:my|the|a|her|his|revenge)|
       here\s+to|sworn\s+to|swore|vow(?:s|ed)?|dream(?:s|ing)?\s+(?:of|to)|plan(?:s|ning)?\s+to|intend(?:s|ing)?\s+to|need(?:s)?|must|have\s+to|has\s+to|
       wants?|wanted|would\s+like|['’]d\s+like|wish(?:es)?|long(?:s|ing)?\s+(?:to|for)|going\s+to|will|live(?:s)?\s+for|to\s+(?:find|avenge|become|get|save|rescue|prove|learn|kill|restore|free|win|build|discover|clear|bring|earn|pay|see|be|steal|destroy|protect|return|break|make))\b.*)$""",
    re.I | re.X | re.S,
)
_BACKGROUND = re.compile(
    _LEAD
    + r"""(?P<background>(?:(?:my|her|his|their)\s+(?:background|past|backstory|story)\s*(?:is|was|:|=)\s*(?P<named>.+))|
    (?:background|backstory)\s*(?:is|:|=)\s*(?P<named2>.+)|
    (?:(?:was|were|am|is|['’]m|i['’]m|been)\s+)?(?:grew\s+up|grown\s+up|raised|born|brought\s+up|used\s+to|formerly|once|served|spent|worked|lived|trained|studied|escaped|orphaned|abandoned|
       exiled|banished|apprenticed|came\s+from|comes?\s+from|from\s+(?:the|a|an|[A-Z])|left|ran\s+away|fled|(?:an?\s+)?(?:former|ex-)\s?\w+|an?\s+(?:former|ex[- ]|retired|runaway|disgraced|failed|deserter|orphan|outcast|exiled?|noble|sailor|farm|soldier|criminal|hermit|folk\s+hero|
       sage|urchin|acolyte|charlatan|entertainer|guild|outlander|merchant|miner|fisher|blacksmith|smith|hunter['’]s|baker|innkeeper|temple|stable|street)|was\s+an?|used\s+to\s+be|had\s+been|has\s+been|years\s+ago)\b.*)$""",
    re.I | re.X | re.S,
)
_LOOKS_ADJ = r"(?:very\s+|quite\s+|rather\s+|extremely\s+)?(?:tall|short|stocky|slender|slim|thin|lanky|burly|muscular|broad-shouldered|bald|old|young|scarred|pale|freckled|one-eyed|bearded|wiry|plump|tiny|huge|lean|handsome|beautiful|ugly|weathered|tattooed|gaunt|dark-haired|red-haired|blonde|blond|grey-haired|white-haired|dark-skinned|green-eyed|blue-eyed|heavyset|petite)"
_FEATURE = r"(?:hair|haired|eyes?|beard|scars?|tattoos?|skin|braids?|freckles|horns?|tail|nose|moustache|face|limp|ears|teeth|wings|scales|build|eyepatch|cloak|coat|robes?|hood|hat|boots|mask)"
_LOOKS = [
    re.compile(
        rf"\b(?:{_LOOKS_ADJ}(?:\s*,\s*|\s+and\s+|\s*,?\s+but\s+|\s+))*{_LOOKS_ADJ}\b(?:[,\s]+with\s+[^.;,]*\b{_FEATURE}\b(?:\s+and\s+[^.;,]*\b{_FEATURE}\b)?)?",
        re.I,
    ),
    re.compile(
        rf"\b(?:with|has|have|having|got)\s+(?P<f>(?:an?\s+|the\s+)?[^.;,]{{0,40}}\b{_FEATURE}\b(?:\s+(?:and|on|over|across|down|like)\s+[^.;,]+)?)",
        re.I,
    ),
    re.compile(r"\b(?P<f>wear(?:s|ing)?\s+[^.;]+)", re.I),
    re.compile(r"\b(?:i|she|he)\s+looks?\s+(?P<f>like\s+[^.;]+|(?!for|to|after|at)\w[^.;]+)", re.I),
    re.compile(rf"\b(?:my|her|his)\s+(?P<f>{_FEATURE}\s+(?:is|are)\s+[^.;,]+)", re.I),
]
_TRAIT = re.compile(
    r"\b(?:very\s+|quite\s+|a\s+bit\s+|rather\s+|too\s+)?(?:shy|stubborn|brave|curious|reckless|cautious|kind|cruel|greedy|loyal|honest|sarcastic|cheerful|grumpy|quiet|loud|proud|humble|"
    r"hot-headed|hot-tempered|calm|patient|impatient|clever|witty|gloomy|optimistic|pessimistic|suspicious|trusting|generous|vengeful|ambitious|lazy|friendly|cold|"
    r"charming|arrogant|bitter|gentle|fierce|nervous|timid|bold|impulsive|superstitious|pious|cynical|melancholy|mischievous|talkative|cowardly|fearless|"
    r"easygoing|determined|restless|polite|rude|moody|playful|serious|secretive|protective|forgetful)\b",
    re.I,
)
_HABIT = re.compile(
    r"^\W*(?:(?:and|but|also)\s+)?(?:i|she|he|my character)\s+(?P<t>(?:never|always|love|loves|hate|hates|fear|fears|can['’]t\s+stand|am\s+afraid|is\s+afraid|talk\s+too|trust|trusts|don['’]t\s+trust|tend\s+to|often)\b.*)$",
    re.I,
)
_KIT = re.compile(
    r"\b(?:i\s+|she\s+|he\s+|and\s+)?(?:carry(?:ing)?|carries|have|has|own|owns|bring|brings|brought|pack(?:ed)?|took|armed\s+with|equipped\s+with|wield(?:s|ing)?|got|kit(?:\s+is|:)|equipment(?:\s+is|:)|gear(?:\s+is|:))\s+(?P<kit>.+)$",
    re.I,
)
_NOT_KIT = re.compile(
    rf"\b(?:{_FEATURE}|sister|brother|mother|father|parents?|wife|husband|son|daughter|child|children|family|friends?|dream|goal|debt|question|idea|secret|name|fear|"
    r"been|to|never|always|no|not|nothing|lost|plan|score|problem|temper|heart|years?|way|reason|background|past|level|strength|dexterity|constitution|"
    r"intelligence|wisdom|charisma|str|dex|con|int|wis|cha|it|that|this|grudge|curse|vision|nightmares|who|which|anything|everything|out|over)\b",
    re.I,
)
_MINE = re.compile(
    r"^\W*(?:(?:hi|hello|hey|well|ok|okay|so|actually|no|sorry|wait|hmm+|yes|yeah|oh|then|and|maybe|perhaps|probably|rather)[\s,.!]+)*(?:i['’]?m\b|i\s+am\b|i['’]?d\b|i['’]?ll\b|i\s+(?:want|would|will|choose|pick|play)\b|she['’]?s\b|he['’]?s\b|let['’]s|make\s+(?:me|her|him|it)\b|playing\b|play\b|be\b|an?\b|the\b|as\b|my\s+(?:class|ancestry|race|character|people)\b|class\b|race\b|ancestry\b|level\b|(?-i:[A-Z])[\w'’-]*,)",
    re.I,
)


def read(words: str, asked: list[str], known: JSON) -> JSON:
    """Read a message for what it says about the character.

    Args:
        words: The player's message.
        asked: Fields that the last question was about.
        known: The page as it stands.

    Returns:
        A merge patch over the character's page: only what was said, and only what is new.
    """
    said = ". ".join(line.strip(" .") for line in words.split("\n") if line.strip(" .")).strip()[:2000]
    found: JSON = {}
    if not said:
        return found
    name = _name(said, known)
    if name:
        found["name"] = name
    clauses = [part.strip(" ,") for part in _CLAUSES.split(said) if part and part.strip(" ,")]
    for clause in clauses:
        _read_clause(clause, len(clauses), asked, found, name)
    _labelled(said, found)
    _numbers(said, found)
    _direct(said, asked, found)
    found = {
        field: value if not isinstance(value, str) else value[: 78 if field in ("name", "ancestry", "class") else 398]
        for field, value in found.items()
    }
    return {field: value for field, value in found.items() if value and value != known.get(field)}


def _read_clause(clause: str, clauses: int, asked: list[str], found: JSON, name: str) -> None:
    goal, past = _GOAL.match(clause), _BACKGROUND.match(clause)
    mine = bool(_MINE.match(clause)) or len(clause.split()) <= 4 or bool(name and clause.startswith(name))
    kit = _KIT.search(clause)
    if mine or (set(asked) & {"ancestry", "class"} and clauses == 1 and len(clause.split()) < 9):
        before = (
            re.split(r"\b(?:from|of|by|with|hunting|against|to)\b", clause, maxsplit=1)[0] if not goal else clause[:40]
        )
        bare = clause if set(asked) & {"ancestry", "class"} and len(clause.split()) < 9 else before
        if (
            (people := _ANCESTRY.search(bare))
            and "ancestry" not in found
            and not re.search(r"\bnot an?\s*$", bare[: people.start()], re.I)
        ):
            found["ancestry"] = _as_people(people[1])
        if (calling := _CLASS.search(bare)) and "class" not in found:
            whence = re.search(r"\bfrom\s+(?:the|an?|[A-Z])[^,.;]*", clause[calling.end() :])
            if whence and "background" not in found:
                found["background"] = _neat(whence[0])
            found["class"] = calling[1].lower() if not calling[1][0].isupper() else calling[1]
    chosen = re.fullmatch(
        r".*\b(?:to\s+(?:be|play)(?:\s+as)?|play(?:ing)?(?:\s+as)?|like\s+to\s+be)\s+an?\s+(.+)", clause, re.I
    )
    if chosen and (_ANCESTRY.search(chosen[1]) or _CLASS.search(chosen[1])) and len(chosen[1].split()) <= 4:
        _take(found, "ancestry", _ANCESTRY, chosen[1])
        _take(found, "class", _CLASS, chosen[1])
        return
    if kit and not _NOT_KIT.search(kit["kit"]):
        _carry(kit["kit"], found)
    elif goal and "goal" not in found and len(clause.split()) > 1:
        found["goal"] = _neat(goal["named"] or goal["named2"] or goal["goal"])
    elif past and len(clause.split()) > 1:
        told = _neat(past["named"] or past["named2"] or past["background"])
        found["background"] = f"{found['background']}; {told}" if found.get("background") else told
    if not goal or not found.get("goal"):
        _appearance(clause, found)
    habit = _HABIT.match(clause)
    if habit and not goal:
        _join(found, "personality", _neat(habit["t"]))
    elif not goal and not past and (traits := [t[0] for t in _TRAIT.finditer(clause)]) and mine:
        _join(found, "personality", ", ".join(traits))


def _labelled(said: str, found: JSON) -> None:
    """Read a filled-in form: "Race: tiefling. Class: warlock."."""
    labels = {
        "race": "ancestry",
        "species": "ancestry",
        "ancestry": "ancestry",
        "class": "class",
        "background": "background",
        "goal": "goal",
        "appearance": "appearance",
        "personality": "personality",
        "looks": "appearance",
    }
    for match in re.finditer(
        r"\b(race|species|ancestry|class|background|goal|appearance|looks|personality)\s*(?::|=)\s*([^.;\n]+)",
        said,
        re.I,
    ):
        found[labels[match[1].casefold()]] = _neat(re.split(r",\s*\w+\s*[:=]", match[2], maxsplit=1)[0])


def _take(found: JSON, field: str, pattern: re.Pattern[str], text: str) -> None:
    if match := pattern.search(text):
        found[field] = _as_people(match[1]) if field == "ancestry" else match[1]


def _name(said: str, known: JSON) -> str:
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
            and not (
                re.search(
                    r"\b(?:sister|brother|father|mother|friend|dog|horse|village|town|home|sword|master|enemy|wife|husband|son|daughter)\b[^.]{0,20}$",
                    said[: match.start()],
                    re.I,
                )
            )
        ):
            return name
    if (match := _IS_NAME.match(said) or _IS_NAME_AFTER.match(said)) and _nameable(match["name"]):
        return match["name"].strip()
    if not known.get("name") and (match := _LOW_NAME.match(said)) and _nameable(match["name"]):
        return match["name"].capitalize()
    return ""


def _nameable(text: str) -> bool:
    first = text.split()[0].casefold().strip("'’-")
    return not (
        first in _NOT_NAMES
        or _ANCESTRY.fullmatch(first)
        or _CLASS.fullmatch(first)
        or _TRAIT.fullmatch(first)
        or re.fullmatch(_LOOKS_ADJ, first, re.I)
        or len(text) > 70
    )


def _direct(said: str, asked: list[str], found: JSON) -> None:
    """Take a short answer as the answer to what was asked."""
    if said.endswith("?") or not asked or len(said) > 400 or _evasive(said):
        return
    plain = re.sub(
        r"^\W*(?:(?:i\s+think|maybe|perhaps|probably|um+|well|hmm+|just|let['’]s\s+say|i['’]?d\s+say|how\s+about|say|it['’]?s|it\s+is|i['’]?m|i\s+am|a|an|the)\s+)*",
        "",
        said,
        flags=re.I,
    ).strip(" .!,")
    said_plainly = said.strip(" .!,")
    open_fields = [field for field in asked if field not in found]
    if (
        "name" in open_fields
        and not (set(found) - {"appearance", "personality"})
        and 0 < len(plain.split()) <= 4
        and _nameable(plain)
    ):
        found["name"] = plain if plain != plain.lower() else plain.title()
        return
    if len(asked) > 1 and found:
        return
    for field in open_fields:
        if field in ("ancestry", "class") and 0 < len(plain.split()) <= 3 and not found:
            found[field] = plain
            return
        if (
            field in ("background", "goal")
            and not set(found) & {"background", "goal", "name", "kit"}
            and len(said_plainly) > 2
        ):
            found[field] = _neat(said_plainly)
            return


def _evasive(said: str) -> bool:
    return bool(
        re.match(
            r"\W*(?:i\s+(?:do\s+not|don['’]t|dont)\s+(?:know|care)|no(?:pe)?|yes|yeah|ok(?:ay)?|dunno|idk|not\s+sure|hi|hello|hey|help|thanks?(?:\s+you)?|maybe|hm+|um+|sure|what|why|none|nothing|skip|pass|whatever)\b[\s.!…]*$",
            said,
            re.I,
        )
    )


def _numbers(said: str, found: JSON) -> None:
    if (
        level := re.search(
            r"\blevel\s*(?:is\s*|:\s*|=\s*)?(\d{1,2})\b|\b(\d{1,2})(?:st|nd|rd|th)[- ]level\b", said, re.I
        )
    ) and 1 <= (value := int(level[1] or level[2])) <= 20:
        found["level"] = value
    scores = [(m[1], m[2]) for m in _SCORE.finditer(said)] or [(m[2], m[1]) for m in _SCORE_FIRST.finditer(said)]
    chosen = {_SHORT[short.casefold()]: int(score) for short, score in scores if 1 <= int(score) <= 30}
    if chosen:
        found["abilities"] = chosen


def _carry(text: str, found: JSON) -> None:
    kit: dict[str, int] = {}
    for part in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", text.strip(" .!"))[:12]:
        words = part.strip(" .!").split()
        number = 1
        if words and (words[0].casefold() in _NUMBERS or words[0].isdecimal()):
            number = min(999, max(1, _NUMBERS.get(words[0].casefold()) or int(words[0])))
            words = words[1:]
        item = " ".join(words)
        if number > 1 and item.endswith("s") and not item.endswith("ss"):
            item = item[:-2] if item.endswith(("shes", "ches", "sses", "xes")) else item[:-1]
        if item and len(words) <= 5:
            kit[item] = number
    if kit:
        found["kit"] = {**found.get("kit", {}), **kit}


def _appearance(clause: str, found: JSON) -> None:
    seen: list[str] = []
    for pattern in _LOOKS:
        for match in pattern.finditer(clause):
            text = _neat(match.groupdict().get("f") or match[0])
            if text and not any(text in other or other in text for other in seen):
                seen.append(text)
    if seen:
        _join(found, "appearance", ", ".join(seen))


def _join(found: JSON, field: str, text: str) -> None:
    found[field] = f"{found[field]}, {text}" if found.get(field) and text not in found[field] else text


def _as_people(text: str) -> str:
    adjective = {"elven": "elf", "elvish": "elf", "dwarven": "dwarf", "orcish": "orc", "gnomish": "gnome"}
    return adjective.get(text.casefold(), text if not text.isupper() else text.lower())


def _neat(text: str) -> str:
    return " ".join(text.split()).strip(' .,;:!"“”')
