"""Portrait: what a player's free sentences say about their character, and nothing that they do not say."""

# ruff: noqa: E501 (patterns and their words are easier to read whole)

from __future__ import annotations

import re
from typing import Any

from questbook.graphs.offline.storyteller.besides import answer_in, beside, may_be_called, may_be_kind
from questbook.graphs.offline.storyteller.folk import ANCESTRY, CLASS, ancestry
from questbook.graphs.offline.storyteller.likeness import HABIT, TRAIT, appearance, join
from questbook.graphs.offline.storyteller.naming import find_name, nameable
from questbook.graphs.offline.storyteller.phrases import neat
from questbook.graphs.offline.storyteller.sheet import KIT, NOT_KIT, carry, numbers

JSON = dict[str, Any]

_VERBS = (
    r"(?:grew|was|were|want|wants|wanted|seek|seeks|seeking|need|needs|am|is|look|looks|looking|hope|hopes|hoping|dream|dreams|"
    r"used|served|spent|worked|lived|came|comes|come|left|lost|ran|fled|trained|studied|escaped|have|has|had|carry|carries|"
    r"wear|wears|search|searches|searching|hunt|hunts|hunting|swore|vowed|plan|plans|intend|intends|would|will|must|my|now|"
    r"i|she|he|they|i['’]m|raised|born|once|grown|got|gets|like|likes|love|loves|hate|hates|fear|fears|never|always|trying|out|on|former|formerly|ex)\b"
)
_CLAUSES = re.compile(
    rf"(?<=[.!?;\n])\s+|\s*[;\n]\s*|,?\s+who(?:['’]s)?\s+(?={_VERBS})|,?\s+(?:and|but|so|because|then)\s+(?={_VERBS})|,\s+(?={_VERBS})"
    r"|(?<=\w)\s+(?=(?:raised|brought\s+up|born|trained)\s+(?:in|by|on|among|at|under|as)\s)(?<!\bwas\s)(?<!\bi\s)",
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
       exiled|banished|apprenticed|came\s+from|comes?\s+from|lives?\s+in|from\s+(?!(?:now|what|where|you|me|it|that|this|here|there|time)\b)\w[\w'’-]*|left|ran\s+away|fled|(?:an?\s+)?(?:former|ex-)\s?\w+|an?\s+(?:former|ex[- ]|retired|runaway|disgraced|failed|deserter|orphan|outcast|exiled?|noble|sailor|farm|soldier|criminal|hermit|folk\s+hero|
       sage|urchin|acolyte|charlatan|entertainer|guild|outlander|merchant|miner|fisher|blacksmith|smith|hunter['’]s|baker|innkeeper|temple|stable|street)|was\s+an?|used\s+to\s+be|had\s+been|has\s+been|years\s+ago)\b.*)$""",
    re.I | re.X | re.S,
)
_WISHED = re.compile(
    r"^\W*(?:(?:hi|hello|hey|ok|okay|so|well|greetings|yes|yeah|sure)[\s,.!]+)*(?:"
    r"(?:i\s+(?:want|would\s+like|wish)|i['’]d\s+like|i\s+wanna|let\s+me|can\s+i)\s+(?:to\s+)?(?:be|play)\s+(?:as\s+)?|"
    r"my\s+character\s+is\s+)"
    r"(?=(?P<name>(?-i:[A-Z])[\w'’-]*)|an?\s+(?P<kind>[^,.;]*))",
    re.I,
)
_ONCE = re.compile(
    r"^(?:(?:i|she|he|they)\s+)(?:once\s+)?(?P<what>(?:was|used\s+to\s+be|had\s+been)\s+(?:once\s+)?(?:an?|the)\s+.+)",
    re.I,
)
_WHENCE = re.compile(r"^(?:(?:i|she|he)(?:['’]?(?:m|s)|\s+(?:am|is))\s+|(?:im|am|is)\s+)?(?=from\s)", re.I)
_SET_RIGHT = re.compile(
    r"^\W*(?:actually|no|sorry|wait|rather|correction|i\s+mean)\b|\bnot\s+from\b|\bbackground\b", re.I
)
_OF_OTHERS = re.compile(
    r"^\W*(?:(?:my|our|the|an?|his|her|their|your|this|that)\s+(?:\w+\s+){1,3}?(?:is|was|are|were|has|had)\b|i\s+(?:\w+ly\s+)?(?:see|saw|hate|hated|like|liked|love|loved|"
    r"know|knew|met|meet|kill\w*|fear|feared|fought|fight|hunt\w*|trust\w*|serve[ds]?|follow\w*|attack\w*|don['’]?t|do\s+not|am\s+not|never|used|have|had)\b|i['’]m\s+not\b|there\s+(?:is|was)\b|not\b|(?:kill|hunt|fight|find|avenge|save|protect|free|defeat|destroy|stop|rescue|revenge|meet|marry|help)\b)",
    re.I,
)
_CHOICE = re.compile(
    r"\b(?:be|play|playing|become|choose|pick|as|want|like|wish|will|go\s+with)\s+(?:(?:as|for)\s+)?(?:an?\s+)?(?:(?!to\b)[\w-]+\s+){0,2}$",
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
    said = _as_being(said, asked, known)
    name = find_name(said, known)
    if name:
        found["name"] = name
    clauses = [part.strip(" ,") for part in _CLAUSES.split(said) if part and part.strip(" ,")]
    for clause in clauses:
        _read_clause(clause, len(clauses), asked, found, name)
    _labelled(said, found)
    numbers(said, found)
    _direct(said, asked, found)
    whence = str(found.get("background", "")).casefold().startswith(("from ", "was ", "used to be ", "had been "))
    if whence and known.get("background") and not _SET_RIGHT.search(said):
        del found["background"]
    found = {
        field: value if not isinstance(value, str) else value[: 78 if field in ("name", "ancestry", "class") else 398]
        for field, value in found.items()
    }
    return {field: value for field, value in found.items() if value and value != known.get(field)}


def _as_being(said: str, asked: list[str], known: JSON) -> str:
    """Read "I want to be Bran, a dwarf cleric" as "I'm Bran, a dwarf cleric": who wishes to be somebody is that one."""
    wished = _WISHED.match(said)
    if wished is None or (asked and not set(asked) & {"name", "ancestry", "class"}):
        return said
    name, kind = wished["name"], wished["kind"] or ""
    meant = nameable(name) and not known.get("name") if name else ANCESTRY.search(kind) or CLASS.search(kind)
    return f"I'm {said[wished.end() :]}" if meant else said


def _read_clause(clause: str, clauses: int, asked: list[str], found: JSON, name: str) -> None:
    if beside(clause):
        return
    if once := _ONCE.match(clause):  # what they were is where they come from, not what they are
        found.setdefault("background", once["what"].strip(" ."))
        return
    goal, past = _GOAL.match(clause), _BACKGROUND.match(clause)
    mine = bool(_MINE.match(clause)) or len(clause.split()) <= 4 or bool(name and clause.startswith(name))
    kit = KIT.search(clause)
    if mine or (set(asked) & {"ancestry", "class"} and clauses == 1 and len(clause.split()) < 9):
        before = (
            re.split(r"\b(?:from|of|by|with|on|over|hunting|against|to)\b", clause, maxsplit=1)[0]
            if not goal
            else clause[:40]
        )
        bare = clause if set(asked) & {"ancestry", "class"} and len(clause.split()) < 9 else before
        people, calling = (_own(pattern, bare, chosen_by_goal=bool(goal)) for pattern in (ANCESTRY, CLASS))
        if people and "ancestry" not in found:
            found["ancestry"] = ancestry(people[1])
        if calling and "class" not in found:
            found["class"] = calling[1].lower() if not calling[1][0].isupper() else calling[1]
        if (last := calling or people) and "background" not in found and not past:
            whence = re.search(r"\bfrom\s+(?:the|an?|[A-Z])[^,.;]*", clause[last.end() :])
            found |= {"background": neat(whence[0])} if whence else {}
    chosen = re.fullmatch(
        r".*\b(?:to\s+(?:be|play)(?:\s+as)?|play(?:ing)?(?:\s+as)?|like\s+to\s+be)\s+an?\s+(.+)", clause, re.I
    )
    if chosen and (ANCESTRY.search(chosen[1]) or CLASS.search(chosen[1])) and len(chosen[1].split()) <= 4:
        _take(found, "ancestry", ANCESTRY, chosen[1])
        _take(found, "class", CLASS, chosen[1])
        return
    if kit and not NOT_KIT.search(kit["kit"]):
        carry(kit["kit"], found)
    elif goal and "goal" not in found and len(clause.split()) > 1:
        found["goal"] = neat(goal["named"] or goal["named2"] or goal["goal"])
    elif past and len(re.split(r"[\s-]+", clause)) > 1:
        told = _WHENCE.sub("", neat(past["named"] or past["named2"] or past["background"]))
        found["background"] = f"{found['background']}; {told}" if found.get("background") else told
    if not goal or not found.get("goal"):
        appearance(clause, found)
    habit = HABIT.match(clause)
    if habit and not goal:
        join(found, "personality", neat(habit["t"]))
    elif not goal and not past and (traits := [t[0] for t in TRAIT.finditer(clause)]) and mine:
        join(found, "personality", ", ".join(traits))


def _own(pattern: re.Pattern[str], clause: str, *, chosen_by_goal: bool) -> re.Match[str] | None:
    """Find an ancestry or a class that is the character's own: not one that they hunt, hate or are not."""
    found = pattern.search(clause)
    if found is None or _OF_OTHERS.search(clause) or re.search(r"\bnot an?\s*$", clause[: found.start()], re.I):
        return None
    return found if not chosen_by_goal or _CHOICE.search(clause[: found.start()]) else None


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
        found[labels[match[1].casefold()]] = neat(re.split(r",\s*\w+\s*[:=]", match[2], maxsplit=1)[0])


def _take(found: JSON, field: str, pattern: re.Pattern[str], text: str) -> None:
    if match := pattern.search(text):
        found[field] = ancestry(match[1]) if field == "ancestry" else match[1]


def _direct(said: str, asked: list[str], found: JSON) -> None:
    """Take a short answer as the answer to what was asked."""
    if said.endswith("?") or not asked or len(said) > 400 or beside(said):
        return
    said = answer_in(said)
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
        and may_be_called(plain)
        and not re.search(r"\ban?\s+" + re.escape(plain), said, re.I)
        and nameable(plain)
    ):
        found["name"] = plain if plain != plain.lower() else plain.title()
        if (
            "appearance" in found and found["appearance"].casefold() in plain.casefold()
        ):  # "Old Kesh" may be as young as you like
            del found["appearance"]
        return
    if len(asked) > 1 and found:
        return
    for field in open_fields:
        if field in ("ancestry", "class") and not found and may_be_kind(plain):
            found[field] = plain
            return
        if (
            field in ("background", "goal")
            and not set(found) & {"background", "goal", "name", "kit"}
            and len(said_plainly) > 2
            and not set(found) & ({"ancestry"} if field == "background" else {"ancestry", "class"})
        ):
            found[field] = neat(said_plainly)
            return
