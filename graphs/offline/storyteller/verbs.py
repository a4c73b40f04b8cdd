"""Verbs: the sentences for each deed, as patterns; the first that fits a sentence decides what is meant."""

# ruff: noqa: E501 (patterns and their words are easier to read whole)

from __future__ import annotations

import re

_WITH = r"(?:\s+(?:with|using|by)\s+(?P<whom>.+))?"
_THING = r"(?P<what>.+?)"

_PATTERNS: list[tuple[str, str]] = [
    (
        "feel",
        r"(?P<what>(?:raise (?:an|one|my) eyebrows?|roll my eyes|shake my head|clear my throat|cross my arms|scratch my \w+|"
        r"shake (?:his|her|their|\w+['’]s) hands?|take a (?:deep )?breath|hold my (?:breath|tongue)|say (?:goodbye|farewell))\b(?:(?! and | then ).)*)",
    ),
    (
        "inventory",
        r"(?:check (?:my )?)?(?:inventory|inv|i|bag|pack|belongings|gear|pockets)|"
        r"do i (?:still |also )?(?:have|carry|own|hold)\b(?! to\b).*|how (?:much|many) (?:gold|money|coins?)(?: pieces)?(?: do i have| have i(?: got)?| is left)?|what (?:do i have|am i carrying|do i carry|is in my (?:bag|pack|pockets?))(?: with me| on me)?|"
        r"(?:look|check|go) (?:in|into|through) my (?:bag|pack|pockets?|things|gear)",
    ),
    (
        "status",
        r"(?:status|sheet|stats|hp|health|how am i(?: doing)?|how do i feel|(?:check )?my (?:health|wounds|hp))",
    ),
    (
        "help",
        r"help|what (?:can|should|could) i do(?: now| here| next)?|(?:where|who|whom|how) (?:can|should|could|shall|must) (?:i|we) (?:go|start|begin|turn|ask|talk|speak)\b.*|what now|options|hint|commands|"
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
        "bribe",
        r"(?:offer|pay|promise)\s+(?P<whom>.+?)\s+(?P<what>\d+ (?:gold|coins?|gp|pieces)(?: (?:pieces|coins))?)\s+(?:to|if|for|so)\s+.+",
    ),
    ("search", r"(?:do i )?(?:see|spot|notice) (?P<what>anything|something)\b.*"),
    (
        "search",
        r"(?:search|look (?:for|under|behind|inside|in|through)|rummage|investigate|scour|hunt for|dig|"
        r"check for|feel (?:for|along)|ransack|find|seek)\b\s*(?:for|through|in|around|about|under)?\s*(?P<what>.*)",
    ),
    ("ask", r"(?:ask|inquire|enquire|wonder)\s+(?P<what>(?:who|what|where|why|how|when|which|whether|if)\b.+)"),
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
        "attack",
        r"(?:keep|continue|go on|carry on)(?: on)? (?:fighting|attacking|hitting|striking|stabbing)\s*(?P<what>.*)",
    ),
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
        r"turn|wind|close|shut(?! up\b)|repair|mend|fix|free|untie|cut|release|destroy|extinguish|plant|bury|place|put|set(?! off\b| out\b)|"
        r"lay|throw|tie|hang|insert|lower|raise|rub|sound|seal|smother|cover)\s+(?:up |out |down |back )?"
        + _THING
        + r"(?:\s+(?:on|in|with|at|to|against|into|onto|over|under|from|upon|using|for)\s+(?P<whom>.+))?",
    ),
    (
        "look",
        r"(?:look|l|look around|look about|gaze|survey|observe|where am i|what do i see|what is here|what's here|(?:is )?any(?:one|body) (?:else )?(?:here|there|around)|"
        r"describe (?:the )?(?:room|place|scene)|take a look(?: around)?|scan)(?:\s+(?:around|about)\b)?"
        r"(?:\s+(?:me|myself|here|the (?:room|place|area)))?(?:\s+(?:\w+ly|again|for a (?:moment|while)))*",
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
        r"\b\s*(?:back\s+)?(?:over to|up to|to|into|towards?|in|inside|for|through|over|up to|down to|up|down|out to|out of|out|"
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
        r"whistle|smile|bow|nod|perform|tell a joke|juggle|curse|swear|insult|mock|taunt|shut up|spit|hum|kneel|curts(?:e)?y|salute|shrug|grin|frown|sigh|wink|blush|yawn|cough|apologi[sz]e|say sorry|sorry|tell\b.*\bjoke|yes|yeah|no|sure|ok(?:ay)?|accept|agree|deal|refuse|decline|never|thanks?|thank you)\b(?:(?! and | then ).)*",
    ),
]

VERBS = [(verb, re.compile(rf"(?:{pattern})[\s.!?…]*", re.IGNORECASE)) for verb, pattern in _PATTERNS]
"""Each verb with a pattern that a whole sentence has to match; what and whom are named groups."""
