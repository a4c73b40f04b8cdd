"""Intent: what a player's sentence asks for. The sentences themselves are in intent.toml."""

import re
from functools import cache, reduce
from typing import NamedTuple

from questbook.graphs.offline.storyteller.language import expression, load, pattern
from questbook.types import JSON


class Intent(NamedTuple):
    """What the player wants to do."""

    verb: str  # one that `engine` has an act for, or "" if the sentence was not understood
    what: str  # the thing, place or topic that it is done to or about
    whom: str  # the person or second thing
    said: str
    then: str = ""  # what they mean to do after that, in their words; "" if it was one thing


_BETWEEN = re.compile(r"\s*[,;.]?\s+(?:and\s+then|and|then)\s+|\s*[;.]\s+", re.IGNORECASE)
_HALVES = re.compile(r"\s*(?:,|;|\.|\band then\b|\band\b|\bthen\b|\bto\b(?= (?:ask|look|find|see|talk)))\s+")
_AGAIN = re.compile(r"(?:^|\s+)(?:(?:yet |once )?again|(?:once|one) more(?: time)?)$", re.IGNORECASE)
_DETERMINER = re.compile(r"(?:the|a|an|my|some|his|her|their|that|this|at)\s+", re.IGNORECASE)
_SUBJECT = re.compile(r"(?:about|of|that|if|whether|what|who|where|when|how)\s+", re.IGNORECASE)
_WAY = re.compile(r"\b(?:up|down|in|out|over|across|back)$", re.IGNORECASE)
_PLEASE = re.compile(r"(?<=\w),? please(\W*)$", re.IGNORECASE)
# What makes a carving one: words in quotation marks, or a place.
_PLACE = re.compile(r"[\"“‘']|\b(?:in|on|into|onto|under|behind|beneath|my|word|name|at)\b")
# Verbs that say enough without a thing, a place or a person.
_WHOLE = frozenset(["search", "look", "rest", "wait", "listen", "flee"])
_FIRST = _WHOLE - {"listen"} | {"take", "drop", "give", "buy", "use", "show", "go", "climb", "force", "attack"}
_SECOND = _FIRST | {"plant", "talk", "ask", "tell", "persuade", "intimidate", "sneak", "pick", "cast", "listen"}
_FORMS = [(expression("intent", text), form) for text, form in load("intent")["spoken"]["forms"]]
_LONGEST = 600  # characters that are read for a meaning, so that patterns stay fast


def read(words: str) -> Intent:
    """Read what a player wrote."""
    said = reduce(lambda text, form: form[0].sub(form[1], text), _FORMS, " ".join(words.split())[:_LONGEST])
    said = _PLEASE.sub(r"\1", said)
    if not re.search(r"\w", said):
        return Intent("silence", "", "", said)
    for kind, verb in (("storyteller", "self"), ("injection", "injection")):
        if any(p.search(said) for p in _patterns(kind)):
            return Intent(verb, "", "", said)
    if meant := _statement(said) or _question(said):
        return meant
    claim = next((m for p in _patterns("claim") if (m := p.fullmatch(said))), None)
    return Intent("claim", claim["what"].strip(" .!") or "that", "", said) if claim else _read_deed(said)


def _statement(said: str) -> Intent | None:
    match, kind = next(((m, kind) for kind, p in _statements() if (m := p.match(said))), (None, ""))
    if match is None or said.endswith("?"):
        return None
    parts = match.groupdict()
    fact, whom = parts["what"], (parts.get("whom") or "").strip()
    if kind == "carve" and not _PLACE.search(fact):
        return None
    if whom.endswith(" not"):
        whom, fact = whom.removesuffix(" not"), f"not {fact}"
    return Intent(kind, re.sub(r"^(?:that|this)\s+", "", fact, flags=re.I).strip(" .!;"), whom, said)


def _question(said: str) -> Intent | None:
    """Read a question that memory has to answer, and neither somebody here nor the player's eyes."""
    match = next((m for p in _patterns("memory") if (m := p.fullmatch(said))), None)
    purse, to_somebody = pattern("intent", "memory", "purse"), pattern("intent", "memory", "to_somebody")
    if match is None or purse.match(said) or to_somebody.search(said):
        return None
    subject = match["what"]
    of_way = re.match(r"i\b(?! (?:am|do)\b)", subject, re.I) and re.match(r"where (?:can|do)", said, re.I)
    if of_way or pattern("intent", "memory", "here").match(subject):
        return None
    return Intent("recall", _without(_SUBJECT, subject).strip(" ?.!"), "", said)


def _read_deed(said: str) -> Intent:
    plain = said.strip(" .!?…\"“”'")
    if deeds := _two_deeds(plain):
        return deeds
    if deed := _deed(plain) or _deed(_without(_openers(), plain)):
        return deed._replace(said=said)
    # "I sigh and go to the mill": the second half may be the deed, and a gesture is the least that is meant.
    gesture = None
    for half in _HALVES.split(plain)[:8]:
        deed = _deed(_without(_openers(), half))
        if deed is None or deed.said in ("", plain) or deed.verb == "inventory":
            continue
        if deed.verb != "feel":
            return deed._replace(said=said)
        gesture = gesture or deed._replace(said=said)
    if said.endswith("?") or pattern("intent", "asks").match(said):
        own = pattern("intent", "memory", "of_mine").match(said)
        return gesture or Intent("recall" if own else "question", plain, "", said)
    fact = next(filter(None, map(_statement, re.split(r"(?<=[.;!])\s+", said)[:8])), None)
    return fact._replace(said=said) if fact else gesture or Intent("", plain, "", said)


def _two_deeds(plain: str) -> Intent | None:
    """Read "take the oil and go to the quay" as the first deed, with the second to be thought of afterwards."""
    for between in list(_BETWEEN.finditer(plain))[:4]:
        half = plain[between.end() :]
        first = _deed(_without(_openers(), plain[: between.start()]))
        second = _deed(_without(_openers(), half)) or _statement(half)
        if first is None or second is None or first.verb not in _FIRST or second.verb not in _SECOND:
            continue
        whole = all(deed.what or deed.whom or deed.verb in _WHOLE or _WAY.search(deed.said) for deed in (first, second))
        if whole and (first.verb != second.verb or first.verb not in _WHOLE):
            return first._replace(then=second.said)
    return None


def _deed(text: str) -> Intent | None:
    for verb, sentence in _deeds():
        if match := sentence.fullmatch(text):
            parts = match.groupdict()
            return Intent(verb, _bare(parts.get("what")), _bare(parts.get("whom")), text)
    return None


def _bare(text: str | None) -> str:
    return _without(_DETERMINER, _AGAIN.sub("", (text or "").strip(" .!?,;\"“”'")))


def _without(beginning: re.Pattern[str], text: str) -> str:
    match = beginning.match(text)
    return text[match.end() :] if match else text


@cache
def _patterns(kind: str) -> list[re.Pattern[str]]:
    section: JSON = load("intent")[kind]
    return [expression("intent", f"{section.get('before', '')}(?:{text})") for text in section["patterns"]]


@cache
def _statements() -> list[tuple[str, re.Pattern[str]]]:
    texts = [("carve" if "carves" in entry else "plant", entry["pattern"]) for entry in load("intent")["statement"]]
    return [(verb, expression("intent", rf"^\W*(?:{text})$")) for verb, text in texts]


@cache
def _deeds() -> list[tuple[str, re.Pattern[str]]]:
    return [(deed["verb"], expression("intent", rf"(?:{deed['pattern']})[\s.!?…]*")) for deed in load("intent")["deed"]]


@cache
def _openers() -> re.Pattern[str]:
    openers = load("intent")["openers"]
    return expression("intent", rf"^(?:(?:{openers['words']})[,.\s]+)*(?:(?:{openers['wishes']})\s+)*")
