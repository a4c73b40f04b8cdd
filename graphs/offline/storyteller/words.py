"""Words: what a player's sentence asks for."""

# ruff: noqa: E501 (patterns and their words are easier to read whole)

from __future__ import annotations

import re
from typing import NamedTuple

from questbook.graphs.offline.storyteller.verbs import VERBS


class Intent(NamedTuple):
    """What the player wants to do.

    Attributes:
        verb: One of the verbs that `engine` has acts for, or "" if the sentence was not understood.
        what: The thing, place or topic that it is done to or about.
        whom: The person or second thing.
        said: The player's words, trimmed.
        then: What they mean to do after that, in their words; "" if it was one thing.
    """

    verb: str
    what: str
    whom: str
    said: str
    then: str = ""


_OPENERS = re.compile(
    r"""^(?:(?:ok(?:ay)?|well|so|then|now|alright|all\ right|yes|yeah|sure|um+|hmm+|and|but|please|first|next)[,.\s]+)*
    (?:(?:i\ (?:will|would\ like\ to|want\ to|wish\ to|try\ to|attempt\ to|decide\ to|start\ to|begin\ to|am\ going\ to|
    'd\ like\ to|can|could|then|now|also|just|(?!apply|reply|rely)[a-z]{2,}ly(?=\s))|i'll|i’ll|i'd\ like\ to|
    i’d\ like\ to|can\ i|could\ i|may\ i|let\ me|let's|let’s|let\ us|we|i'm\ going\ to|i|my\ character|try\ to|
    attempt\ to|please|just|(?!apply|reply|rely)[a-z]{2,}ly(?=\s))\s+)*""",
    re.IGNORECASE | re.VERBOSE,
)

_SELF = re.compile(
    r"\b(?:who|what) are you\b\W*$|\bare you (?:an? |the )?(?:\w+ )?(?:ai|a\.i\.|real|human|person|llm|model|bot|computer|robot|"
    r"machine|chatgpt|gpt|claude|program|language model)\b|\bam i (?:talking|speaking) to (?:an? )?"
    r"(?:ai|bot|machine|human|computer|person)\b|\bwhat model\b|\bwhich model\b",
    re.IGNORECASE,
)
_INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|rules?|prompts?|everything above|previous)\b|"
    r"</?\s*(?:quest|character|summary|memories|turns|system|instructions?|missing|secrets?)\b[^>]*>|"
    r"\bsystem prompt\b|^\s*(?:system|assistant|developer)\s*:|\b(?:developer|debug|god|admin) mode\b|\bjailbreak\b|"
    r"\byou are now (?:a|an|my|in)\b|\b(?:reveal|print|show|repeat|list|tell me) (?:me )?(?:your|the|all|all your) "
    r"(?:secrets|prompt|instructions|notebook|page|hidden)\b|\b(?:StateNotebook|CharacterNotebook|roll_dice)\b|\[/?INST\]",
    re.IGNORECASE,
)
_CLAIM = re.compile(
    r"""^\W*(?:(?:suddenly|luckily|then|now|and|so|obviously),?\s+)*(?:
    i\s+(?:suddenly\s+|just\s+|now\s+)?(?:find|found|discover|receive|gain|earn|win|obtain|loot)\b(?!\s+(?:out|a\ way|my\ way))\s*(?P<a>.+)|
    (?:i\s+am|i'm|i’m)\s+(?:now|suddenly|secretly|actually)\s+(?P<b>.+)|
    i\s+(?:level\ up|become|turn\ into|transform\ into|grow\ into)\s*(?P<c>.*)|
    i\s+(?:now\s+)?(?:have|own|possess|carry)\s+(?P<d>.*(?:\d|million|magic|vorpal|legendary|all\ the|army|dragon|infinite).*)|
    (?:give\ me|add|grant\ me|set\ my|make\ me|heal\ me|raise\ my)\s+(?P<e>(?:\+?\d|a\ million|level|hp|gold|full|the\ |all\ |immortal|king|queen|rich|invincible|a\ vorpal|a\ magic).*)|
    i\s+(?:instantly|easily|automatically|immediately)\s+(?P<f>.+)|
    my\s+(?:hp|hit\ points|gold|level|strength|health)\s+(?:is|are|becomes?|goes\ up\ to)\s+(?P<g>.+)|
    (?:the\ )?(?P<h>.+?)\s+(?:dies|drops\ dead|is\ dead\ now|explodes|surrenders|gives\ me\ .+|hands\ me\ .+)
    )\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
_MEMORY = re.compile(
    r"""^\W*(?:(?:ok|so|wait|hm+|again|now|and|but|well)[,.\s]+)*(?:
    (?:(?:please|can\ you|could\ you)\s+)?remind\s+(?:me|myself)\b(?:\s+(?:of|about))?\s*(?P<a>.*)|
    what\s+(?:do|did|can)\s+i\s+(?:already\ |still\ )?(?:know|remember|recall|learn|hear|find\ out)\b(?:\s+(?:about|of))?\s*(?P<b>.*)|
    (?:do|can|did)\s+i\s+(?:know|remember|recall)\s*(?P<c>.*)|
    (?:do\ you\ )?(?:remember|recall)\s+(?P<r>(?:what|who|when|where|how|which|why)\b.+|.+\?)|
    (?:i\s+)?(?:try\ to\ (?:remember|recall)|think\ back\ to)\s+(?P<d>.+)|
    what\s+(?:did|had|was|were|has|have)\s+(?P<e>.+)|
    what\s+(?:is|are|'s|’s)\s+(?P<f>.+)|what['’]s\s+(?P<f2>.+)|
    who\s+(?:is|was|are|were|did|has|had|gave|told|said|killed|sent|owns?)\s+(?P<g>.+)|who['’]s\s+(?P<g2>.+)|
    where\s+(?:is|was|are|were|did|do|does|had|have|can)\s+(?P<h>.+)|where['’]s\s+(?P<h2>.+)|
    when\s+(?:did|was|were|is)\s+(?P<i>.+)|
    which\s+(?P<j>.+\?)|
    how\s+(?:did|many|much|was|were|do|does)\s+(?P<k>.+)|
    why\s+(?:did|was|were|is|are|do|does|had)\s+(?P<l>.+)|
    (?:did|have|has|had|does)\s+(?:i|we|he|she|they|\w+)\s+(?P<m>.+\?)
    )$""",
    re.IGNORECASE | re.VERBOSE,
)
_TO_SOMEBODY = re.compile(
    r"^(?!.*\b(?:remind|remember|recall)\b)(?:\W*(?:have|do|did|are|were|can|could|will|would) you\b|"
    r"(?!.*\b(?:i|we|me|my|us|our)\b)(?!.*\byou (?:just )?(?:say|said|mean|tell)\b).*\b(?:you|your|yours)\b)",
    re.IGNORECASE,
)
"""A question to whoever is here: about them, and neither about the player nor to the storyteller."""
_OF_MINE = re.compile(
    r"\W*(?:what|who|whom|whose|where|when|which|why|how)\b(?!.*\b(?:you|(?:should|can|could|shall|must|may|might|would) (?:i|we))\b).*\b(?:i|me|my|mine|we|our)\b",
    re.IGNORECASE,
)
_PLANT = re.compile(
    r"""^\W*(?:
    (?:please\s+)?(?:remember|note|do\ not\ forget|don't\ forget|don’t\ forget|keep\ in\ mind)\b(?:\s+that\b|\s+this\b)?\s*[:,]?\s*(?P<a>.+)|
    (?:i\s+)?(?:tell|inform|confess\ to|admit\ to|explain\ to|whisper\ to|promise|swear\ to|remind|let|assure|reveal\ to)\s+
        (?P<who1>.+?)\s+(?:know\s+)?(?P<b>(?:that|my|our|i|i'm|i’m|we|the\ \w+\ (?:is|was)|how|what|to)\b.+)|
    (?:i\s+)?(?:say|mention|confess|admit|explain|whisper|promise|swear|vow|declare|announce|think|decide)\s+
        (?:to\s+(?P<who2>\w+)\s+)?(?:that\s+|to\s+myself\s+that\s+)(?P<c>.+)|
    (?P<d>(?:i\s+)?(?:carve|scratch|write|engrave|scrawl|chalk|etch|inscribe|name|christen|hide|bury|stash)\s+.+)|
    (?P<e>(?:my|our)\s+\w[\w'’\s]*?\s(?:is|are|was|were|has|had|lived?s?|died|
        wears?|wore|works?|worked|loves?|loved|hates?|hated|owns?|owned|makes?|made|comes?|came|taught|gave|left|used\ to|always|never)\s.+)|
    (?P<f>i\s+call\s+(?:my|the|this|it|him|her)\s.+)|
    (?P<g>the\s+(?:password|secret\ word|code|passphrase|watchword)\s+is\s+.+)
    )$""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_BETWEEN = re.compile(r"\s*[,;.]?\s+(?:and\s+then|and|then)\s+|\s*[;.]\s+", re.IGNORECASE)
_FIRST = {
    "take",
    "drop",
    "give",
    "buy",
    "use",
    "show",
    "search",
    "look",
    "go",
    "flee",
    "climb",
    "force",
    "attack",
    "rest",
    "wait",
}
_SECOND = _FIRST | {"plant", "talk", "ask", "tell", "persuade", "intimidate", "sneak", "pick", "cast", "listen", "flee"}
_WAY = re.compile(r"\b(?:up|down|in|out|over|across|back)$", re.IGNORECASE)
_WHOLE = {"search", "look", "rest", "wait", "listen", "flee"}
"""Verbs that say enough without a thing, a place or a person."""
_READ = 600
"""Characters that are read for a meaning; patterns stay fast, and nobody plays by the page."""
_ONCE_MORE = re.compile(r"(?:^|\s+)(?:(?:yet |once )?again|(?:once|one) more(?: time)?)$", re.IGNORECASE)
_SUBJECT = re.compile(r"^(?:about|of|that|if|whether|what|who|where|when|how)\s+", re.IGNORECASE)


def read(words: str) -> Intent:
    """Read what a player wrote."""
    said = " ".join(words.split())[:_READ]
    for known in (_odd, _planted, _asked_memory, _claimed):
        if intent := known(said):
            return intent
    return _deed(said)


def _odd(said: str) -> Intent | None:
    if not said or not re.search(r"\w", said):
        return Intent("silence", "", "", said)
    if _SELF.search(said):
        return Intent("self", "", "", said)
    if _INJECTION.search(said):
        return Intent("injection", "", "", said)
    return None


def _planted(said: str) -> Intent | None:
    found = _PLANT.match(said)
    if not found or said.endswith("?"):
        return None
    fact = next(part for name in "abcdefg" if (part := found[name]))
    kind = "carve" if found["d"] else "plant"
    if kind == "carve" and not re.search(r"[\"“‘']|\b(?:in|on|into|onto|under|behind|beneath|my|word|name|at)\b", fact):
        return None
    fact = re.sub(r"^(?:that|this)\s+", "", fact, flags=re.IGNORECASE)
    whom = (found["who1"] or found["who2"] or "").strip()
    if whom.endswith(" not"):
        whom, fact = whom.removesuffix(" not"), f"not {fact}"
    return Intent(kind, fact.strip(" .!;"), whom, said)


def _asked_memory(said: str) -> Intent | None:
    found = _MEMORY.match(said)
    if not found or re.match(r"\W*how (?:much|many) (?:gold|money|coins?|hp|hit points)\b", said, re.I):
        return None
    if _TO_SOMEBODY.search(said):
        return None
    subject = next((part for part in found.groups() if part), "")
    if re.match(
        r"(?:here|this place|there to (?:do|see)|in my (?:bag|pack)|i (?:doing|carrying)|up|next|going on|happening|"
        r"wrong|the (?:matter|problem|trouble|job|task|deal|news)(?= here\W*$|\W*$))\b",
        subject,
        re.I,
    ):
        return None
    if re.match(r"i\b(?! (?:am|do|go)\b)", subject, re.I) and re.match(r"where (?:can|do)", said, re.I):
        return None
    return Intent("recall", _SUBJECT.sub("", subject).strip(" ?.!"), "", said)


def _claimed(said: str) -> Intent | None:
    found = _CLAIM.match(said)
    if not found:
        return None
    return Intent("claim", next((part for part in found.groups() if part), "that").strip(" .!"), "", said)


def _deed(said: str) -> Intent:
    plain = said.strip(" .!?…\"“”'")
    if two := _two_deeds(plain):
        return two
    for text in dict.fromkeys((plain, _OPENERS.sub("", plain, count=1))):
        for verb, pattern in VERBS:
            if found := pattern.fullmatch(text):
                parts = found.groupdict()
                return Intent(verb, _bare(parts.get("what")), _bare(parts.get("whom")), said)
    # "I sigh and go to the mill": the second half may be the deed, and a gesture is the least that is meant.
    gesture: Intent | None = None
    for half in re.split(
        r"\s*(?:,|;|\.|\band then\b|\band\b|\bthen\b|\bto\b(?= (?:ask|look|find|see|talk)))\s+", plain
    )[:8]:
        deed = _match(half)
        if deed is None or deed.said in ("", plain) or deed.verb == "inventory":
            continue
        if deed.verb != "feel":
            return deed._replace(said=said)
        gesture = gesture or deed._replace(said=said)
    if said.endswith("?"):
        return gesture or Intent("recall" if _OF_MINE.match(said) else "question", plain, "", said)
    facts = (_planted(part) for part in re.split(r"(?<=[.;!])\s+", said)[:8])
    fact = next((fact for fact in facts if fact), None)
    return fact._replace(said=said) if fact else gesture or Intent("", plain, "", said)


def _two_deeds(plain: str) -> Intent | None:
    """Read "take the oil and go to the quay" as the first deed, with the second to be thought of afterwards."""
    for between in list(_BETWEEN.finditer(plain))[:4]:
        first, second = (_match(half) for half in (plain[: between.start()], plain[between.end() :]))
        second = second or _planted(plain[between.end() :])
        if first is None or second is None or first.verb not in _FIRST or second.verb not in _SECOND:
            continue
        told = all(deed.what or deed.whom or deed.verb in _WHOLE or _WAY.search(deed.said) for deed in (first, second))
        if told and (first.verb != second.verb or first.verb not in _WHOLE):
            return first._replace(then=second.said)
    return None


def _match(half: str) -> Intent | None:
    text = _OPENERS.sub("", half, count=1)
    for verb, pattern in VERBS:
        if found := pattern.fullmatch(text):
            parts = found.groupdict()
            return Intent(verb, _bare(parts.get("what")), _bare(parts.get("whom")), text)
    return None


def _bare(text: str | None) -> str:
    bare = _ONCE_MORE.sub("", (text or "").strip(" .!?,;\"“”'"))
    return re.sub(r"^(?:the|a|an|my|some|his|her|their|that|this|at)\s+", "", bare, flags=re.IGNORECASE)
