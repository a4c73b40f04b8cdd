"""Words: what a player's sentence asks for."""

# ruff: noqa: E501 (patterns and their words are easier to read whole)

from __future__ import annotations

import re
from typing import NamedTuple


class Intent(NamedTuple):
    """What the player wants to do.

    Attributes:
        verb: One of the verbs of `_VERBS`, or "" if the sentence was not understood.
        what: The thing, place or topic that it is done to or about.
        whom: The person or second thing.
        said: The player's words, trimmed.
    """

    verb: str
    what: str
    whom: str
    said: str


_OPENERS = re.compile(
    r"""^(?:(?:ok(?:ay)?|well|so|then|now|alright|all\ right|yes|yeah|sure|um+|hmm+|and|but|please|first|next)[,.\s]+)*
    (?:(?:i\ (?:will|would\ like\ to|want\ to|wish\ to|try\ to|attempt\ to|decide\ to|start\ to|begin\ to|am\ going\ to|
    'd\ like\ to|can|could|quickly|quietly|carefully|slowly|silently|then|now|also|just)|i'll|i’ll|i'd\ like\ to|
    i’d\ like\ to|can\ i|could\ i|may\ i|let\ me|let's|let’s|let\ us|we|i'm\ going\ to|i|my\ character|try\ to|
    attempt\ to|please|carefully|quietly|slowly|quickly|just)\s+)*""",
    re.IGNORECASE | re.VERBOSE,
)

_WITH = r"(?:\s+(?:with|using|by)\s+(?P<whom>.+))?"
_THING = r"(?P<what>.+?)"

_VERBS: list[tuple[str, str]] = [
    (
        "inventory",
        r"(?:check (?:my )?)?(?:inventory|inv|i|bag|pack|belongings|gear|pockets)|"
        r"how (?:much|many) (?:gold|money|coins?)(?: pieces)?(?: do i have| have i(?: got)?| is left)?|what (?:do i have|am i carrying|do i carry|is in my (?:bag|pack|pockets?))(?: with me| on me)?|"
        r"(?:look|check|go) (?:in|into|through) my (?:bag|pack|pockets?|things|gear)",
    ),
    (
        "status",
        r"(?:status|sheet|stats|hp|health|how am i(?: doing)?|how do i feel|(?:check )?my (?:health|wounds|hp))",
    ),
    (
        "help",
        r"help|what (?:can|should|could) i do(?: now| here| next)?|what now|options|hint|commands|"
        r"i (?:do not|don't|don’t) know what to do|what are my options",
    ),
    (
        "rest",
        r"(?P<what>(?:take |have )?(?:a |some )?(?:short |long |good )?(?:rest|sleep|nap|camp|doze)\b.*|(?:take|have) (?:a |some )?(?:short |quick )?break\b.*|"
        r"(?:make|set up|pitch) camp\b.*|lie down\b.*|sit down\b.*|sleep\b.*|go to (?:sleep|bed)\b.*|recover\b.*|"
        r"bandage\b.*|tend (?:to )?my wounds.*)",
    ),
    (
        "wait",
        r"(?:wait|stay(?: here)?|stand (?:still|by|watch)|do nothing|pass(?: the)? time|linger|watch and wait)"
        r"\b(?P<what>.*)",
    ),
    ("roll", r"(?:make|roll)(?: an?| for)? (?P<what>\w[\w ]*?)(?: check| roll| save)?"),
    ("listen", r"(?:listen|eavesdrop)\b(?:\s+(?:to|at|for|in on)\s+)?(?P<what>.*)"),
    (
        "sneak",
        r"(?:sneak|hide|creep|slip|tiptoe|skulk|stay hidden|lurk)\b\s*"
        r"(?:past|by|around|into|in|to|through|behind|up to|from|up on)?\s*(?P<what>.*)",
    ),
    (
        "climb",
        r"(?:climb|scale|clamber|jump|leap|swim|vault|balance|dive|swing|wade)\b\s*"
        r"(?:up|down|over|across|onto|into|on|to|through|out|off|along)?\s*(?P<what>.*)",
    ),
    (
        "force",
        r"(?:force|break|smash|kick|bash|pry|prise|push|shove|lift|heave|pull|drag|bend|move)\b\s*"
        r"(?:in|down|open|up|at|on)?\s*(?P<what>.+?)(?:\s+(?:open|down|aside|away|apart))?" + _WITH,
    ),
    (
        "pick",
        r"(?:pick|jimmy|tease|unpick)\s+(?:at )?(?:the |a |its )?(?P<what>(?:.* )?(?:lock|door|chest|gate|"
        r"padlock|pocket|pockets|purse).*)",
    ),
    ("pick", r"(?:pickpocket|steal from|rob|cut .+ purse)\s*(?P<what>.*)"),
    (
        "track",
        r"(?:track|follow (?:the |its |their |his |her )?(?:tracks?|trail|footprints?|prints|spoor))\b\s*"
        r"(?P<what>.*)",
    ),
    (
        "persuade",
        r"(?:persuade|convince|charm|beg|plead with|flatter|bargain with|reason with|negotiate with|calm|soothe|"
        r"comfort|reassure|appeal to|haggle with|seduce|befriend|pet|tame|win over|talk sense into)\s+"
        r"(?P<whom>.+?)(?:\s+(?:to|that|into|about|for|with)\s+(?P<what>.+))?",
    ),
    (
        "intimidate",
        r"(?:intimidate|threaten|scare|bully|frighten|menace|shout at|yell at|glare at)\s+(?P<whom>.+?)"
        r"(?:\s+(?:to|into|with|about|that)\s+(?P<what>.+))?",
    ),
    (
        "deceive",
        r"(?:deceive|lie to|bluff|trick|fool|con|mislead|distract)\s+(?P<whom>.+?)"
        r"(?:\s+(?:that|into|about|with|by)\s+(?P<what>.+))?",
    ),
    ("bribe", r"bribe\s+(?P<whom>.+?)(?:\s+with\s+(?P<what>.+))?"),
    (
        "search",
        r"(?:search|look (?:for|under|behind|inside|in|through)|rummage|investigate|scour|hunt for|dig|"
        r"check for|feel (?:for|along)|ransack|find|seek)\b\s*(?:for|through|in|around|about|under)?\s*(?P<what>.*)",
    ),
    (
        "ask",
        r"(?:ask|question|interrogate|quiz|press)\s+(?P<whom>.+?)\s+(?:about|for|on|of|regarding|where|if|whether|"
        r"what|why|how|who|when|to tell me(?: about)?|to)\s+(?P<what>.+)",
    ),
    ("ask", r"(?:ask|inquire|enquire)\s+(?:around )?(?:about|after|for)\s+(?P<what>.+)"),
    ("ask", r"(?:what|how) about\s+(?P<what>.+)"),
    ("ask", r"tell me (?:more )?(?:about|of|where|what|why|how|who)\s+(?P<what>.+)"),
    ("ask", r"(?:talk|speak|chat)\s+(?:to|with)\s+(?P<whom>.+?)\s+about\s+(?P<what>.+)"),
    ("tell", r"(?:tell|inform|warn|remind|show)\s+(?P<whom>.+?)\s+(?:about|of)\s+(?P<what>.+)"),
    (
        "give",
        r"(?:give|hand|offer|pass|return|bring|show|present|sell|deliver|pay|feed|lend)(?: over| back)?\s+"
        r"(?P<what>.+?)\s+(?:back\s+)?to\s+(?P<whom>.+)",
    ),
    (
        "give",
        r"(?:give|hand|offer|pay|show|bring|feed|lend)\s+(?P<whom>.+?)\s+"
        r"(?P<what>(?:the|a|an|my|some|her|his|their|\d+)\s+.+)",
    ),
    ("show", r"(?:show|hold up|hold out|present)\s+(?P<what>.+)"),
    (
        "talk",
        r"(?:talk|speak|chat|converse|greet|approach|address|hail|meet|visit|call out|say (?:hello|hi|good \w+)|"
        r"introduce myself|wave)\b\s*(?:to|with|at|up to)?\s*(?P<whom>.*)",
    ),
    ("talk", r"(?:hello|hi|hey|greetings|good (?:day|morning|evening|afternoon))\b[,!. ]*(?P<whom>.*)"),
    ("buy", r"(?:buy|purchase|barter for|trade for|order)\s+" + _THING + r"(?:\s+(?:from|off)\s+(?P<whom>.+))?"),
    (
        "take",
        r"(?:take|grab|pick up|get|collect|steal|pocket|snatch|gather|lift|loot|fetch|retrieve|keep|pull out)\s+"
        r"(?:up )?" + _THING + r"(?:\s+(?:from|off|out of)\s+(?P<whom>.+))?",
    ),
    ("drop", r"(?:drop|discard|leave behind|throw away|put down|get rid of|toss away)\s+" + _THING),
    (
        "attack",
        r"(?:attack|fight|hit|kill|stab|shoot|strike|slay|punch|charge|slash|assault|murder|wound|hurt|behead|"
        r"swing (?:my \w+ )?at|lunge at|throw myself at|rush|ambush|backstab|smite|finish(?: off)?)\s*"
        r"(?P<what>.*?)" + _WITH,
    ),
    ("attack", r"(?:cast|fire|loose|throw|hurl|shoot)\s+(?P<whom>.+?)\s+at\s+(?P<what>.+)"),
    (
        "cast",
        r"(?:cast|conjure|summon|invoke|weave|detect magic)\b\s*(?P<what>.*?)(?:\s+(?:on|over|into)\s+(?P<whom>.+))?",
    ),
    (
        "flee",
        r"(?:flee|run away|run|escape|retreat|get out|back away|withdraw|leave|go back|turn back|return|exit)"
        r"(?: here| now| at once)?",
    ),
    ("use", r"(?:use|apply|try)\s+" + _THING + r"(?:\s+(?:on|in|with|at|to|against|for|into)\s+(?P<whom>.+))?"),
    (
        "use",
        r"(?:light|ignite|kindle|open|unlock|drink|ring|blow|play|pour|burn|unroll|wear|put on|eat|sharpen|fill|"
        r"turn|wind|close|shut|repair|mend|fix|free|untie|cut|release|destroy|extinguish|plant|bury|place|put|set|"
        r"lay|throw|tie|hang|insert|lower|raise|rub|sound|seal|smother|cover)\s+(?:up |out |down |back )?"
        + _THING
        + r"(?:\s+(?:on|in|with|at|to|against|into|onto|over|under|from|upon|using|for)\s+(?P<whom>.+))?",
    ),
    (
        "look",
        r"(?:look|l|look around|look about|gaze|survey|observe|where am i|what do i see|what is here|what's here|"
        r"describe (?:the )?(?:room|place|scene)|take a look(?: around)?|scan)(?:\s+(?:around|about)\b)?"
        r"(?:\s+(?:me|myself|here|the (?:room|place|area)))?",
    ),
    (
        "look",
        r"(?:look|gaze|stare|peer|glance|peek)\s+(?:closely |carefully )?(?:at|into|through|over|up at|down at|up|"
        r"down|out of|out|around|about|towards?|in|on)\s+" + _THING,
    ),
    (
        "look",
        r"(?:examine|inspect|study|read|watch|describe|check(?: out)?|observe|survey|smell|touch|taste|feel|sniff)"
        r"\s+" + _THING,
    ),
    (
        "go",
        r"(?:go|walk|head|run|travel|move|enter|follow|proceed|sail|ride|march|leave|depart|hurry|continue|step|"
        r"journey|row|crawl|wander|stroll|climb|descend|cross|come|return|go back|advance|make my way|set off|set out)"
        r"\b\s*(?:back\s+)?(?:to|into|towards?|in|inside|for|through|over|up to|down to|up|down|out to|out of|out|"
        r"along|across|onto|via|back to|from)?\s*(?P<what>.*)",
    ),
    (
        "go",
        r"(?P<what>north|south|east|west|up|down|inside|outside|in|out|back|n|s|e|w|ne|nw|se|sw|"
        r"northeast|northwest|southeast|southwest|upstairs|downstairs)",
    ),
    (
        "feel",
        r"(?P<what>sing|dance|pray|laugh|shout|scream|yell|eat|drink|cry|weep|joke|think|ponder|meditate|dream|"
        r"whistle|smile|bow|nod|perform|tell a joke|juggle|curse|swear|yes|yeah|no|sure|ok(?:ay)?|accept|agree|deal|refuse|decline|never|thanks?|thank you)\b(?:(?! and | then ).)*",
    ),
]
_COMPILED = [(verb, re.compile(rf"(?:{pattern})[\s.!?…]*", re.IGNORECASE)) for verb, pattern in _VERBS]

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
_PLANT = re.compile(
    r"""^\W*(?:
    (?:please\s+)?(?:remember|note|do\ not\ forget|don't\ forget|don’t\ forget|keep\ in\ mind)\b(?:\s+that\b|\s+this\b)?\s*[:,]?\s*(?P<a>.+)|
    (?:i\s+)?(?:tell|inform|confess\ to|admit\ to|explain\ to|whisper\ to|promise|swear\ to|remind|let|assure|reveal\ to)\s+
        (?P<who1>.+?)\s+(?:know\s+)?(?P<b>(?:that|my|our|i|i'm|i’m|we|the\ \w+\ (?:is|was)|how|to)\b.+)|
    (?:i\s+)?(?:say|mention|confess|admit|explain|whisper|promise|swear|vow|declare|announce|think|decide)\s+
        (?:to\s+(?P<who2>\w+)\s+)?(?:that\s+|to\s+myself\s+that\s+)(?P<c>.+)|
    (?P<d>(?:i\s+)?(?:carve|scratch|write|engrave|scrawl|chalk|etch|inscribe|name|christen|hide|bury|stash)\s+.+)|
    (?P<e>(?:my|our)\s+\w[\w'’\s]*?\s(?:is|are|was|were|has|had|lives?|died)\s.+)|
    (?P<f>i\s+call\s+(?:my|the|this|it|him|her)\s.+)|
    (?P<g>the\s+(?:password|secret\ word|code|passphrase|watchword)\s+is\s+.+)
    )$""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_READ = 600
"""Characters that are read for a meaning; patterns stay fast, and nobody plays by the page."""
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
    return Intent(kind, fact.strip(" .!"), (found["who1"] or found["who2"] or "").strip(), said)


def _asked_memory(said: str) -> Intent | None:
    found = _MEMORY.match(said)
    if not found or re.match(r"\W*how (?:much|many) (?:gold|money|coins?|hp|hit points)\b", said, re.I):
        return None
    subject = next((part for part in found.groups() if part), "")
    if re.match(
        r"(?:here|this place|there to (?:do|see)|in my (?:bag|pack)|i (?:doing|carrying)|up|next)\b", subject, re.I
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
    for text in dict.fromkeys((plain, _OPENERS.sub("", plain, count=1))):
        for verb, pattern in _COMPILED:
            if found := pattern.fullmatch(text):
                parts = found.groupdict()
                return Intent(verb, _bare(parts.get("what")), _bare(parts.get("whom")), said)
    # "I sigh and go to the mill": the second half may be the deed.
    for half in re.split(
        r"\s*(?:,|;|\.|\band then\b|\band\b|\bthen\b|\bto\b(?= (?:ask|look|find|see|talk)))\s+", plain
    )[:8]:
        text = _OPENERS.sub("", half, count=1)
        for verb, pattern in _COMPILED:
            if text != plain and text and verb != "inventory" and (found := pattern.fullmatch(text)):
                parts = found.groupdict()
                return Intent(verb, _bare(parts.get("what")), _bare(parts.get("whom")), said)
    return Intent("question" if said.endswith("?") else "", plain, "", said)


def _bare(text: str | None) -> str:
    bare = (text or "").strip(" .!?,;\"“”'")
    return re.sub(r"^(?:the|a|an|my|some|his|her|their|that|this|at)\s+", "", bare, flags=re.IGNORECASE)
