"""Off the record: whether a message asks that it not be remembered."""

from __future__ import annotations

import re

_QUOTED = re.compile(r"“[^“”]*”|\"[^\"]*\"|«[^«»]*»")  # what a person in the story says asks nothing of us
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
_NEXT = re.compile(
    r"\s*[:;–—]|\s*(?:,\s*)?(?:ok(?:ay)?|please|all\s*right|alright|understood|got\s+it)\s*\?$", re.IGNORECASE
)


def off_record(message: str) -> bool:
    """Return whether a message asks, in English, that it not be remembered: "don't remember this", "off the record".

    Words in quotation marks ask nothing; neither does a question ("don't remember that, do you?"), nor a statement
    ("I don't remember this").
    """
    requests = _ASKS.finditer(_QUOTED.sub(" ", message))
    return any(not request["rest"].endswith("?") or _is_request(request) for request in requests)


def _is_request(match: re.Match[str]) -> bool:
    """Return whether words that end with a question mark ask for it all the same, and are not only about memory."""
    if match["polite"] or match["may"] is not None or _NEXT.match(match["rest"]):
        return True
    return match["off"] is not None and match["rest"].lstrip().startswith(",")
