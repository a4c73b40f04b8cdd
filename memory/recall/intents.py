"""What a question asks for beside facts, and what a message of a person asks for good: patterns, English and German.

A question may ask for an order of events, a summary or advice. A message may tell an assistant what to do from now on
("Always answer in metric units") or say what its writer likes ("I'd rather take the train").
"""

import re
import tomllib
from importlib.resources import files

from questbook.memory.text.passages import Span

_LONGEST = 2_000  # characters of a question or a sentence that are read
_MOST_SENTENCES = 6  # of a message, at each end; what lies between them is mostly pasted

_LISTS = tomllib.loads(files("questbook.memory.recall").joinpath("intents.toml").read_text("utf-8"))
_WORDS = {name: "|".join(expressions) for name, expressions in _LISTS.items()}
_ORDER = re.compile(rf"\b(?:{_WORDS['order']})\b", re.I)
_SUMMARY = re.compile(rf"(?i)\b(?:{_WORDS['summary']})\b")
_ADVICE = re.compile(
    r"(?i)\b(?:(?:can|could|would) you (?:please )?(?:suggest|recommend|help|explain|show|walk me through how"
    r"|give me (?:some )?(?:tips|advice|ideas))|(?:should|can|could|do|would) I\b|do you think|(?:suggest"
    r"|recommend)(?:ations?|ions?)?\b|what are (?:some|the best|good)|I['’]?m (?:planning|looking|thinking|working"
    r"|about|trying)|any (?:ideas|tips|advice)\b|(?:kannst|könntest|würdest) du (?:mir )?(?:bitte )?(?:(?:etwas|was"
    r"|ein\w*|ein paar) )?(?:\w+ )?(?:vorschlagen|empfehlen|helfen|raten|erklären|zeigen)|(?:soll|sollte|kann"
    r"|könnte) ich\b|was (?:meinst|denkst|rätst) du|hast du (?:eine |ein paar )?(?:ideen?|tipps?|vorschläge)"
    r"|(?:empfiehl|empfehl|vorschl)\w+|was sind (?:gute|die besten)|ich (?:plane|suche|überlege|möchte|will)\b)"
)
_TOLD = re.compile(
    r"(?i)\b(?:did|do|have|had|was|were) (?:I|we)\b|\b(?:did|have) you\b|\bI (?:say|said|mention\w*|told|planned|got)\b"
    r"|\b(?:habe?|hatte|war|bin) ich\b|\bhast du\b(?! (?:\w+ ){0,2}(?:ideen?|tipps?|vorschläge)\b)|\bich (?:sagte"
    r"|erwähnte|erzählte)\b|\b(?:haben|hatten|waren) wir\b"
)

_LEAD = (
    r"^\W*(?:(?:please|also|and|but|so|oh|okay|ok|hey|hi|just|by the way|btw|p\.?s\.?|one (?:more )?thing|(?:my|one"
    r"|new) rule|remember|note|bitte|und|aber|also|ach|übrigens|noch was|hinweis)\b\W*){0,3}"
)
_DO = rf"(?:{_WORDS['do']})\b"
_TU = rf"(?:{_WORDS['tu']})\b(?! (?:ich|er|wir|man)\b)"
_EVER, _IMMER = f"(?:{_WORDS['ever']})", f"(?:{_WORDS['immer']})"
_ASKED = r"(?:ask|say|tell|talk|speak|mention|send|share|show|paste|post|upload|write|type|request|bring up)"
_NO_ORDER = rf"(?!(?:{_WORDS['no_order']})\b)"
_STANDING = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"{_LEAD}(?:always|never|don['’]?t ever|do not ever|never ever)\s+{_NO_ORDER}[a-z]",
        rf"{_LEAD}(?:from (?:now|here) on|going forward|in (?:the )?future|for (?:all )?(?:future|further) \w+"
        rf"|at all times)\b,?\s+(?:{_DO}|no\b|your\b|i(?:['’]d| would)? (?:want|like|prefer|need) (?:you|your))",
        rf"{_LEAD}{_DO}[^.?!]{{0,200}}\b(?:from (?:now|here) on|going forward|in (?:the )?future|at all times"
        rf"|ever again|, always|(?:when(?:ever)?|if|(?:every|each|any) ?time) (?:I {_ASKED}|we (?:talk|speak|chat)))\b",
        rf"{_LEAD}(?:when(?:ever)?|(?:every|each|any) ?time|if) (?:I {_ASKED}|we (?:talk|speak"
        rf"|chat))\b[^.?!]{{0,160}}?,\s*(?:then )?{_DO}",
        rf"{_LEAD}(?:(?:every|each|any) ?time|whenever) (?:I|we|you)\b[^.?!]{{0,160}}?,\s*(?:then )?{_DO}",
        rf"(?<!I'll )(?<!I will )\b(?:I(?:['’]d| would)? (?:want|like|love|need|expect|prefer)(?: it if)? (?:for"
        rf" )?you|make sure(?: that)? (?:you|to)|(?:please )?be sure to|please remember|remember to"
        rf"|(?:can|could|would|will) you|you (?:should|must|need to|have to)(?: not)?)\b[^.?!]{{0,80}}\b{_EVER}\b",
        rf"{_LEAD}(?:don['’]?t|do not)\s+(?!you|forget|worry|know|think|want|have)\w+\b[^.?!]{{0,120}}\b(?:again|any"
        rf" ?more|ever|unless I|without asking)\b",
        r"\byou (?:must|should|may)(?: not|n['’]t) ever\b",
        rf"{_LEAD}stop (?:using|saying|calling|apologi[sz]ing|adding|giving|suggesting|asking|writing|repeating"
        r"|ending|starting|sending|telling|including|putting|recommending|being)\b",
        r"\bno (?:more )?\w+(?: \w+){0,5}, (?:ever|please)\b",
        rf"{_LEAD}{_TU}[^.?!]{{0,120}}\b{_IMMER}\b",
        rf"{_LEAD}{_IMMER},?\s+{_TU}",
        rf"{_LEAD}(?:ab (?:jetzt|sofort|heute)|von (?:nun|jetzt) an|künftig|in zukunft)\b,?\s+(?:duzen|siezen"
        rf"|(?:möchte|will) ich\b[^.?!]*\bdass du)\b",
        rf"{_LEAD}(?:immer |jedes ?mal,? )?(?:wenn|falls|sooft|sobald) ich\b[^.?!]{{0,120}}?,\s*(?:dann )?(?:{_TU}"
        rf"|(?:sollst|musst) du|(?:möchte|will) ich, dass du)",
        rf"\bich (?:möchte|will|wünsche mir|hätte gern\w*)\b[^.?!]{{0,20}}\bdass du\b[^.?!]{{0,100}}\b{_IMMER}\b",
        rf"\bdu (?:sollst|sollt?est|musst|darfst)\b[^.?!]{{0,100}}\b{_IMMER}\b",
        rf"\b(?:kannst|könntest|würdest) du\b[^.?!]{{0,100}}\b{_IMMER}\b",
        rf"{_LEAD}(?:immer|nie(?:mals)?|stets|grundsätzlich)\b(?! (?:wieder|noch|mehr) \w+,)(?![^.?!]*\b(?:ich|er"
        r"|wir|man|zu)\b)[^.?!]*[^\W\d_]{3,}(?:en|ern|eln)[.!]?$",
    )
)
_PREFERS = re.compile(
    r"\b(?:I|we)(?:['’]d| would)?(?: \w+){0,2} (?:prefer|rather|like to (?:keep|have)|hate|dislike|enjoy|love (?!you\b"
    r"|it\b))|\bI(?:['’]m| am) (?:not )?(?:really )?(?:a (?:big |huge )?fan of|into|more of an?)\b|\b(?:I"
    r"|we) (?:can['’]?t|cannot|could ?n['’]t) (?:stand|bear)\b|\b(?:I|we) (?:do not|don['’]?t)(?: \w+)? (?:like|want to"
    r"|eat|drink)\b|\b(?:I|we) (?:always|never|usually|normally)\s+(?!forg[eo]t|lose|lost|know|knew|thought|wonder|said"
    r"|had|been|was|were|get|got|seem|end|miss|remember|expected|imagined|\w+ed\b)\w+|\bmy preferences?\b"
    r"|\bfavou?rites?\b|\bsuits? me\b|\bI like(?! (?:that|it|this|your|how|when you)\b)|\b(?:ich|wir) (?:bevorzuge|mag"
    r"|mögen|liebe|hasse|esse|trinke|trage|nehme|reise|fahre|sitze|schlafe)n?\b[^.?!]{0,40}\b(?:lieber|am liebsten"
    r"|gern\w*|nicht|nie|kein\w*|immer)\b|\bich (?:mag|bevorzuge|liebe|hasse)\b|\b(?:würde|möchte"
    r"|hätte) (?:ich )?(?:[\w ]{0,20})?lieber\b|\blieblings\w+|\bam liebsten\b"
    r"|\b(?:ich )?kann\b[^.?!]{0,40}\b(?:nicht leiden|nicht ausstehen)\b|\bich bin (?:kein|ein großer) (?:fan"
    r"|freund) von\b",
    re.I,
)
_QUOTED = re.compile(
    r",\s+(?:my|his|her|our|the|he|she|they|mein\w*)\b[^,]{0,30}\b(?:say|says|said|tell|told|sagte?)\b", re.I
)
_ABOUT = re.compile(
    r"(?i)\b(?:(?:what|everything|anything|all)\b[^.?!]{0,30}\b(?:know|remember|learn(?:ed|t)?|noted"
    r"|have)\b[^.?!]{0,20}\b(?:about|of|on)|tell me\b[^.?!]{0,30}\b(?:about)|(?:was|alles)\b[^.?!]{0,20}\b(?:weißt"
    r"|weisst|kennst|merkst|erinnerst)\b[^.?!]{0,30}\b(?:über|von)|(?:erzähl|sag)e? mir\b[^.?!]{0,30}\b(?:über"
    r"|von))\s+(?P<whom>[^.?!,]{2,60})|\b(?P<me>who am I|wer bin ich)\b"
)
_ME = re.compile(r"^(?:me|myself|mich|mir)\b", re.I)
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.](?=\w)[^.!?\n]*)*[.!?]*")


def asks_for_order(question: str) -> bool:
    """Return whether a question asks in which order things happened."""
    return _ORDER.search(question[:_LONGEST]) is not None


def asks_for_summary(question: str) -> bool:
    """Return whether a question asks for a summary or an overview."""
    return _SUMMARY.search(question[:_LONGEST]) is not None


def asks_for_advice(question: str) -> bool:
    """Return whether a question asks what to do or choose, so that what its writer prefers matters; not what was."""
    question = question[:_LONGEST]
    return _ADVICE.search(question) is not None and _TOLD.search(question) is None


def is_standing(text: str) -> bool:
    """Return whether a message tells an assistant what to do from now on: "Always answer in metric units"."""
    return standing_span(text) is not None


def standing_span(text: str) -> Span | None:
    """Return where the first sentence of a message stands that says what to do from now on; None if none does.

    Of a long message the first and the last six sentences are read: what lies between them is mostly pasted.
    """
    spans = [match.span() for match in _SENTENCE.finditer(text) if match[0].strip()]
    for start, end in [*spans[:_MOST_SENTENCES], *spans[_MOST_SENTENCES:][-_MOST_SENTENCES:]]:
        sentence = text[start:end].strip()[:_LONGEST]
        if any(pattern.search(sentence) for pattern in _STANDING) and not _QUOTED.search(sentence):
            return Span(start, end)
    return None


def asks_about(question: str) -> str | None:
    """Return whom a question asks all about: "" for its writer ("What do you know about me?"), "my cat"; else None."""
    match = _ABOUT.search(question[:_LONGEST])
    if match is None:
        return None
    return "" if match["me"] or _ME.match(match["whom"]) else match["whom"].strip()


def prefers(text: str) -> bool:
    """Return whether a text states what its writer likes, dislikes or does by habit."""
    return _PREFERS.search(text[:_LONGEST]) is not None


# Off the record

QUOTATION = re.compile(r"“[^“”]*”|\"[^\"]*\"|«[^«»]*»")  # a quotation asks nothing of us
_THIS = r"(?:this|that|these|those|it|any(?:thing)?(?:\s+of\s+(?:this|that|it))?)"
# "Don't save that village" is about a village: after verbs that have other uses, "that" must be all that is named.
_ALL = r"(?=\s*(?:$|[.,:;!?)\n–—-]|please\b|anywhere\b|(?:in|to)\s+(?:your|the)\s+(?:memory|notes|log)\b))"
_KEEP = (
    rf"(?:(?:remember|memori[sz]e)\s+(?:{_THIS}|what|my|the\s+following)\b"
    rf"|(?:store|save|record|note|keep|log|write\s+down)\s+{_THIS}{_ALL}"
    rf"|(?:write|note|jot)\s+(?:{_THIS}|what\s+i\s+(?:say|said|tell\s+you|told\s+you))\s+down\b"
    r"|(?:store|save|record|note|keep|log|write\s+down)\s+what\s+i\b"
    rf"|(?:make|keep)\s+(?:a\s+|any\s+)?(?:memory|memories|notes?|records?)\s+of\s+{_THIS}{_ALL})"
)
_LETS = r"let['’]?s|let\s+us"
_MAY_WE = r"(?:can|could|may|shall)\s+(?:we|you|i)"
_I_WANT = r"i(?:['’]d|\s+would)\s+like\s+to|i\s+want\s+to|i\s+need\s+to|we\s+should|i['’]m|i\s+am|we['’]re|we\s+are"
_TALK = r"(?:go|going|speak|speaking|talk|talking)"
_WHAT = r"(?:this|that|it|everything|what\s+i\s+(?:say|said|tell\s+you|told\s+you)|what\s+follows)"
_OFF = (
    rf"(?:{_WHAT}(?:\s+(?:is|stays|must\s+stay|should\s+stay)|['’]s)\s+"
    rf"|(?:(?:{_LETS}|{_MAY_WE}|{_I_WANT})\s+(?:please\s+)?)?(?:(?:keep|keeping)\s+{_WHAT}|{_TALK})\s+)?"
    # A thing can be off the record player; nobody asks anything by that.
    r"(?:strictly\s+|all\s+)?off\s+the\s+record\b(?!-|\s+(?:labels?|players?|shel(?:f|ves)|stores?|shops?|compan\w+|charts?)\b)"
)
_BEGIN = r"(?:(?m:^)[^\S\n]*|[.!?;:,(–—-]\s*|\b(?:and|but|so|then|just)\s+)"  # a request begins a clause
_POLITE = r"(?:(?:please|pls|hey|ok(?:ay)?|oh|also|now|btw|by\s+the\s+way)[\s,]+){0,3}"
_NOT = (
    r"(?:do\s+not|don['’]?t|never|you\s+(?:must\s+not|mustn['’]t|should\s+not|shouldn['’]t)"
    rf"|(?P<polite>can|could|would)\s+you\s+(?:please\s+)?not|(?:{_LETS})\s+not"
    r"|i\s+(?:do\s+not|don['’]?t)\s+want\s+you\s+to|i['’]d\s+rather\s+you\s+did(?:n['’]t|\s+not))"
)
_DO_NOT_KEEP = rf"{_NOT}\s+(?:please\s+|ever\s+)?{_KEEP}"
_MAY_GO_OFF = rf"(?P<may>(?={_MAY_WE}\b))?(?P<off>{_OFF})"
_FORGET = r"forget\s+(?:(?:this|that|it|what)\s+)?i\s+(?:just\s+)?(?:said|told|wrote|mentioned)\b"
_LEAVE_OUT = r"(?:keep|leave)\s+(?:this|that|it)\s+out\s+of\s+(?:your|the)\s+(?:memory|memories|notes|log)\b"
_ASKS = re.compile(
    rf"{_BEGIN}{_POLITE}(?:{_DO_NOT_KEEP}|{_MAY_GO_OFF}|{_FORGET}|{_LEAVE_OUT})(?P<rest>[^.!?\n]*[.!?]?)", re.IGNORECASE
)
# What is asked behind a request is another question: "off the record, do you like her?", "don't note this: who is it?"
_NEXT = re.compile(r"\s*[:;–—]|\s*(?:,\s*)?(?:ok(?:ay)?|please|all\s*right|alright|understood|got\s+it)\s*\?$", re.I)


def off_record(message: str) -> bool:
    """Return whether a message asks, in English, that it not be remembered: "don't remember this", "off the record".

    Words in quotation marks ask nothing; neither does a question ("don't remember that, do you?"), nor a statement
    ("I don't remember this").
    """
    for asked in _ASKS.finditer(QUOTATION.sub(" ", message)):
        rest = asked["rest"]
        # What ends with a question mark asks for it all the same if it is not only about memory.
        if not rest.endswith("?") or asked["polite"] or asked["may"] is not None or _NEXT.match(rest):
            return True
        if asked["off"] is not None and rest.lstrip().startswith(","):
            return True
    return False
