"""Besides: sentences that answer no question about a character, and words that are no answer to some of them."""

# ruff: noqa: E501 (patterns and their words are easier to read whole)

from __future__ import annotations

import re

_MOODS = (
    "tired|exhausted|weary|sleepy|drowsy|hungry|starving|thirsty|cold|hot|warm|wet|bored|happy|sad|angry|mad|furious|afraid|scared|frightened|"
    "terrified|worried|anxious|nervous|upset|annoyed|excited|thrilled|confused|puzzled|lost|stuck|busy|late|early|sick|ill|drunk|sober|dizzy|"
    "glad|sorry|curious|lonely|alone|ready|done|finished|back|here|new|hurt|wounded|crazy|serious|kidding|joking|unsure|undecided|uncertain|"
    "sure|certain|awake|asleep|alive|dead|fine|good|well|ok|okay|great|alright|all\\s+right|bad|terrible|awful|awesome|amazing|cool|nice|perfect|"
    "interesting|boring|funny|fun|weird|strange|odd|stupid|silly|wonderful|lovely|brilliant|impressed|pleased|proud|ashamed|jealous|depressed|"
    "miserable|grumpy|gloomy|cheerful|melancholy|moody|restless|calm|relaxed|shy|quiet|hopeful|hopeless|desperate|disappointed|embarrassed|"
    "surprised|shocked|stressed|frustrated|irritated|homesick|heartbroken|important|secret|unknown|nobody|no\\s+one|no-one"
)
_VERY = r"(?:(?:not|very|so|too|quite|rather|really|pretty|just|a\s+(?:bit|little|lot)|kind\s+of|sort\s+of|extremely|awfully|still|all|more|feeling|getting)\s+)*"
_MOOD = (
    r"(?:(?:(?:i|we|it|this|that)(?:['’]?(?:m|s|re)|\s+(?:am|are|is|was|feel|felt))|i['’]ve\s+got|im|feel|feeling|being|how|what)\s+)?"
    rf"{_VERY}(?:{_MOODS})(?:\s+(?:and|but|or)\s+{_VERY}(?:{_MOODS}))*"
    r"(?:\s+(?:today|now|right\s+now|here|tonight|again|already|actually|really|too|enough|yet|though|to\s+(?:start|begin|play|go|hear\s+.*)|(?:of|about|with|by|for)\s+(?:this|that|it|you|all\b.*|questions|the\s+(?:questions|game))|from\s+(?:work|school|all\b.*|the\s+(?:road|journey|day)|walking|travelling)))*"
)
_ONE_WORD = (
    r"yes|yeah|yep|yup|aye|ja|no|nope|nah|nay|ok|okay|k|sure|fine|right|alright|all\s+right|agreed|indeed|exactly|maybe|perhaps|possibly|"
    r"probably|hm+|um+|uh+|er+m?|ah+|oh+|ooh+|huh|eh|wow|lol|lmao|haha+|hehe+|rofl|omg|wtf|meh|ugh|argh|oops|cool|nice|great|good|perfect|"
    r"thanks|thank\s+you|thx|please|cheers|sorry|pardon|excuse\s+me|dunno|idk|none|nothing|nobody|anything|something|everything|whatever|"
    r"never\s*mind|nvm|later|skip|pass|next|what|why|who|where|when|how|which|not\s+(?:now|yet|really|sure|today|at\s+all)|really|seriously|"
    r"of\s+course|certainly|absolutely|definitely|true|false|same|amen|test|testing|me|you|i|it|this|that|here|there|now|well|so|and|but|both|neither|either|surely|brb|gtg|afk|bonjour|hola"
)
_GESTURE = (
    r"(?:i\s+)?(?:just\s+|only\s+|slowly\s+|quietly\s+)*(?:nod|shrug|bow|wave|smile|grin|smirk|frown|wink|laugh|sigh|grunt|yawn|cough|blink|shake\s+my\s+head)"
    r"(?:\s+(?:my\s+(?:head|shoulders|hands?)|politely|slowly|quietly|(?:at|to)\s+(?:you|everyone|everybody|the\s+\w+|who(?:m?ever)?\s.*)))*"
)
_GREETING = (
    r"(?:hi+|hello+|hey+|hiya|howdy|greetings|salutations|hail|yo|welcome|good\s*(?:day|morning|evening|afternoon|night|bye)|bye|goodbye|farewell|"
    r"see\s+you|well\s+met|nice\s+to\s+meet\s+you|pleased\s+to\s+meet\s+you|what['’]?s\s+up|how\s+are\s+you|how\s+do\s+you\s+do)"
    r"(?:\s+(?:there|all|again|everyone|everybody|friends?|you|to\s+you(?:\s+too)?|too|sir|madam|master|dungeon\s+master|dm|gm|game\s+master|storyteller|questbook|bot|stranger|later))*"
)
_WAY = (
    r"(?:north|south|east|west|northeast|northwest|southeast|southwest|up|down|in|out|inside|outside|back|left|right|on|forward|forwards|ahead|"
    r"away|upstairs|downstairs|there|around|about|over\s+there|through|straight)"
)
_THERE = rf"(?:{_WAY}\b.*|(?:to|into|towards?|through|along|across|over|under|down|up|at|from|past|behind|out\s+of)\s+(?:the|a|an|this|that|my|him|her|them|it)\b.*)"
_WISH = (
    r"(?:(?:ok(?:ay)?|so|well|then|please|now|just|i|we|you|let['’]?s|let\s+(?:me|us)|want|wants|to|would|like|['’]?d|i['’]d|i['’]ll|i['’]m|we['’]ll|will|shall|"
    r"can|could|may|must|need|have|am|going|gonna|wanna|try|rather|prefer|simply|quickly|quietly|slowly|carefully)\s+)*"
)
_COMMANDS = (
    r"(?:start|begin|play|playing|continue|go\s+on|go\s+ahead|go|proceed|resume|restart|quit|exit|stop|leave|wait|skip|pass|save|load|help|look|think|see|talk|"
    r"listen|rest|sleep|eat|drink|run|hide|attack|fight|search|inventory|status|stats|sheet|options|commands|hint|undo|menu|move\s+on|carry\s+on|hurry(?:\s+up)?|get\s+(?:on|going|started)|sit(?:\s+down)?|stand\s+up)"
    r"(?:\s+(?:(?:with\s+)?(?:the|this|a|an|our|my|your|some|me)?\s*(?:game|adventure|story|quest|tale|interview|campaign|moment|minute|second|bit|while|question|rest|nap|page|sheet|character|time)|"
    r"now|already|please|again|over|about\s+(?:it|that)|it|that|this|on|first|then|here|a\s+(?:bit|moment|minute|second|while)|with\s+it|right\s+away|at\s+once|me))*"
)
_NOW = r"(?:(?:ok(?:ay)?|so|well|then|please|now|just|i|we|let['’]?s|let\s+(?:me|us)|i['’]?ll|we['’]ll|will|can|could|may|try\s+to|am\s+going\s+to|i['’]m\s+going\s+to|i['’]m|am|quickly|quietly|slowly|carefully)\s+)*"
_HERE = r"(?:the|this|that|an?|some|him|her|them|it|everybody|everyone|you|hello|hi|me|my\s+(?:sword|bow|axe|dagger|knife|blade|weapon|bag|pack|torch|things))"
_DEED = (
    rf"(?:(?:go|goes|walk|run|head|move|travel|climb|crawl|step|march|ride|hurry|return|sneak|jump|sail|swim|fly|turn|come)\s+{_THERE}|{_WAY}|n|s|e|w|"
    r"(?:look|glance|peer|stare|gaze)\s+(?:around|about|at|in|into|under|behind|up|down|through|out|closely|carefully)\b.*|"
    rf"(?:(?:close|shut|attack|hit|kick|punch|stab|shoot|examine|inspect|approach|push|pull|unlock|knock\s+on|sit\s+(?:on|at|by|in)|pick\s+up|grab|drop|draw|drink|eat|throw|talk\s+(?:to|with)|speak\s+(?:to|with)|ask|greet|search|cast|roll|eat|drink)\s+{_HERE}|(?:i\s+)?cast\s+\w+$|(?:i\s+)?roll\s+(?:for|an?|the|\d*d\d+)|i\s+(?:eat|drink)|open\s+(?:the|this|that)|"
    rf"(?<=i\s)(?:get|take|buy|read|use|leave|cross|give|show|tell|say|follow|enter|light|climb|open)\s+{_HERE})\b.*|"
    r"(?:search|look|listen|check)\s+for\s+(?:tracks|clues|traps|doors?|enemies|danger|noises?|sounds|food|loot|treasure|a\s+way\s+(?:in|out))\b.*)"
)
_LEAVE = rf"{_WISH}(?:go|walk|run|head|move|travel)\s+(?:north|south|east|west|up|down|in|out|inside|outside|back|left|right|on|there)"
_TALK = (
    r"(?:yes|no|yeah|nope|nah|ok|okay)(?:\s+(?:thanks?|thank\s+you|please|way|problem|worries|need|more|sir|master|chance|comment|answer|not\s+(?:really|yet|now)|of\s+course|sure|fine|i\s+(?:do|am|will|can|have|did|would|don['’]?t|do\s+not|won['’]?t|can['’]?t|am\s+not)|it\s+is(?:n['’]t)?))+|"
    r"(?:thanks?|thank\s+you|thx|cheers)(?:\s+.*)?|(?:many|no)\s+thanks.*|"
    r"(?:i(?:['’]m)?\s+|we\s+)?(?:really\s+|honestly\s+|just\s+|still\s+)*(?:do\s+not|don['’]?t|dont|did\s+not|didn['’]?t|can['’]?t|cannot|can\s+not|could\s+not|couldn['’]?t|haven['’]?t|have\s+not|won['’]?t|will\s+not|wouldn['’]?t|not)\s+"
    r"(?:know|care|remember|recall|understand|get\s+(?:it|that|this)|mind|say|tell|think|sure|decide|decided|certain|have\s+(?:one|any|a\s+\w+)|want\s+(?:to\s+(?:say|tell|answer|talk|play|do)|one|any|this|that)|like\s+(?:this|that|it)|see|need|follow|thought|wish\s+to\s+say|telling|saying|interested|ready)\b.*|"
    r"(?:i\s+(?:have\s+|['’]ve\s+(?:got\s+)?)?|i['’]ve\s+(?:got\s+)?|there\s+is\s+)?(?:no|not\s+an?|not\s+the\s+\w+)\s+(?:idea|clue|preference|opinion|name|ancestry|race|class|background|goal|goals|past|answer|matter)\b.*|"
    r"(?:i\s+)?(?:see|understand|agree|disagree|guess|suppose|think|think\s+so|guess\s+so|suppose\s+so|hope\s+so|like\s+(?:it|this|that|you|your\b.*)|love\s+(?:it|this|that|you|your\b.*)|hate\s+(?:it|this|that|you|questions)|got\s+it|get\s+it|know(?:\s+that)?|forgot|forget|changed?\s+my\s+mind|said\s+(?:that|so)\b.*|already\s+(?:said|told)\b.*|told\s+you\b.*|mean\s+it|wonder)|"
    r"(?:please\s+|can\s+you\s+|could\s+you\s+|just\s+)*(?:tell|give|show|explain|ask|help|remind|let|teach|read)\s+(?:it\s+to\s+)?(?:me|us|you|it|that)\b(?!\s+(?:my|the|our)\s+\w+\s+back\b).*|"
    r"(?:say|tell|ask|explain|repeat|know|hear|see|one|no|some|a\s+(?:bit|little)|once)\s+(?:(?:a\s+(?:bit|little)|some|even)\s+)?(?:more|again|that|it|else|nothing)\b.*|more(?:\s+(?:please|about\s+.*|info(?:rmation)?|details?|examples?))?|"
    r"(?:you\s+(?:tell|choose|decide|pick|know|see|are|first|ask|said|can|should|must|better)|up\s+to\s+you|who\s+cares|guess|good\s+question|(?:that|it|this)(?:['’]s|\s+(?:is|was|does|sounds|looks|seems))|none\s+of\s+(?:your|them|those|these|that)|nothing\s+(?:much|special|really|at\s+all|else|yet|more)|not\s+(?:telling|saying|interested|important|relevant|much|that)|rather\s+not|who\s+knows|whatever\s+you|(?:sounds|looks|seems)\s+(?:good|fine|great|right|ok|okay)|i(?:['’]m|\s+am)\s+(?:waiting|thinking|eating|leaving|listening|trying|reading|typing|working\s+on|going\s+to\s+(?:bed|sleep|work|eat|think|wait))|nobody\s+(?:important|special)|what\s+(?:else|now|next|ever)|why\s+not|how\s+come|as\s+you\s+(?:like|wish|please)|if\s+you\s+(?:like|wish|want|must|say)|make\s+(?:one|it|something)\s+up|let\s+me\s+(?:think|see)|one\s+(?:moment|second|minute|sec)|hold\s+on|hang\s+on|just\s+a\s+(?:moment|second|minute|sec)|i['’]?ll\s+(?:think|tell|decide|see|say|pass|wait)|come\s+(?:on|again)|shut\s+up|go\s+away|leave\s+me|call\s+(?:me\s+)?(?:later|back|again|tomorrow|anything|whatever|what)|i['’]?d\s+(?:rather|prefer)\s+not|i\s+(?:would\s+)?(?:rather|prefer)\s+not|i\s+(?:need|want|would\s+like|['’]d\s+like)\s+(?:help|more|some\s+help|a\s+(?:moment|minute|second|hint|break|nap|drink|beer|coffee)|time|some\s+(?:time|sleep|rest|food)|to\s+(?:know|hear|see|ask|think|read|learn)\s+(?:more|what|how|if|first|about\s+(?:it|that|this)|you|something)))\b.*|"
    r"my\s+(?:name|past|goal|background|class|ancestry|story|people|race|business)\s+(?:is|are)\s+(?:my\s+own|not|no|none|unimportant|irrelevant|a\s+secret|secret|nothing|nobody['’]?s|unknown|private)\b.*|"
    r"(?:what|who|where|when|why|how|which)(?:['’]?s|['’]re|\s+(?:do|does|did|is|are|am|can|could|should|would|will|about|many|much|kind|sort|on\s+earth))\b.*|"
    r"(?:can|could|may|might|do|does|did|is|are|am|should|shall|would|will|have|has)\s+(?:i|you|we|it|this|that|there|they)\b.*"
)
_BESIDE = re.compile(
    rf"(?:{_ONE_WORD}|{_GREETING}|{_GESTURE}|{_MOOD}|{_WISH}{_COMMANDS}|{_NOW}{_DEED}|{_LEAVE}|(?:(?:well|so|but|and|ok|okay|oh|hm+|um+|sorry|actually|honestly|please)\s+)?(?:{_TALK}))(?:\s+(?:please|then|now|lol|haha))?",
    re.I,
)
_JOINTS = re.compile(r"\s*[.,;!?…–:()\"“”*]+(?:\s+|$)|\s+[-–]+\s+")
_NO_ANSWER_WORDS = (
    "i me my mine myself you your yours u he him his she her hers it its they them their we us our this that these those there here "
    "from to in into on onto at by for with without about around up down out over under back away off than "
    "not no yes or if when what who whom where why how which because as very too so quite really just maybe perhaps probably "
    "now then today tomorrow later soon again more less much many nothing something anything everything none nobody anybody "
    "somebody everybody please thanks hello "
    "am is are was were be been being isn aren wasn has have had having do does did doing don didn doesn dont cant wont can could "
    "would should shall must might will may want wants wanted need needs like likes liked love loves hate hates hated think "
    "thinking know knows see saw seen say says said saying tell told go goes going went gone come comes coming came get gets "
    "getting got give gives gave let lets make makes made take takes took look looks looking listen walk walks run runs "
    "talk ask asks asking open opens close enter enters attack attacks kill kills killed kick eat eats eating drink drinks "
    "drinking sleep sit sits stand wait waits waiting leave leaves leaving start starts begin begins stop stops quit exit "
    "continue skip choose pick decide try tries trying use uses using find finds search help feel feels remember forget "
    "understand mean means care wonder guess believe hope wish hear play plays playing speak move climb jump grew grow lived "
    "live lives born raised feeling smiling traveling travelling calling walking working save become becomes becoming cast roll protect rescue avenge both neither either life story money"
)
_IN_NAMES = "will may hope see wish love much less care guess out over in"
_NO_ANSWER = set(_NO_ANSWER_WORDS.split())
_NOT_IN_NAMES = _NO_ANSWER - set(_IN_NAMES.split())
_MOOD_ENDS = re.compile(rf".*\b(?:{_MOODS})", re.I)


def beside(said: str) -> bool:
    """Whether words are a greeting, a mood, a question, a command of the game, or talk, and say nothing of anybody."""
    parts = [part for part in _JOINTS.split(said[:600].strip()) if part and re.search(r"\w", part)]
    return all(len(part) < 200 and _BESIDE.fullmatch(part.strip(" '’‘")) is not None for part in parts)


def answer_in(said: str) -> str:
    """Return what is left of words when greetings and the like before the answer are taken away: "hm, a clockmaker"."""
    rest = said
    for joint in list(_JOINTS.finditer(said))[:6]:
        if not beside(said[: joint.start()]):
            break
        rest = said[joint.end() :]
    return rest if rest.strip() else said


def may_be_kind(plain: str) -> bool:
    """Whether up to three words may be what somebody is: "sentient mushroom", and not "from London" or "very tired"."""
    words = _words(plain)
    if not 0 < len(words) <= 3 or beside(plain) or set(words) & _NO_ANSWER or _contracted(plain):
        return False
    end = words[-1]
    acts = end.endswith("ing") and not end.endswith("ling") and end not in ("king", "viking")
    return not (
        acts or (end.endswith(("ed", "ly")) and not end.endswith(("fly", "breed", "seed", "weed"))) or is_mood(plain)
    )


def may_be_called(plain: str) -> bool:
    """Whether words may be a name, as far as their grammar goes: "Will" and "old kesh", and not "I see" or "go north"."""
    words = _words(plain)
    if len(words) == 1 and words[0] in ("will", "may", "hope", "grace", "wade", "drew", "art", "rob", "sue", "pat"):
        return True
    return bool(words) and not (beside(plain) or set(words) & _NOT_IN_NAMES or _contracted(plain) or is_mood(plain))


def is_mood(words: str) -> bool:
    """Whether words end in how one feels: "tired", "a bit hungry"."""
    return _MOOD_ENDS.fullmatch(words.strip(" .!,")) is not None


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:-[^\W_]+)*", text.casefold())


def _contracted(text: str) -> bool:
    """Whether there is a verb behind an apostrophe: "let's", "can't", "I've"."""
    return (
        re.search(r"\b(?:(?:let|it|that|what|who|he|she|there|here)['’]s|\w+['’](?:ve|ll|re|m|d|t))\b", text, re.I)
        is not None
    )
