"""Off the record: whether a message asks that it not be remembered."""

from __future__ import annotations

import re

WITHHELD = "withheld"
"""Field of a record that stands for a turn whose words are not kept: it is neither recalled nor searched."""

_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|«[^»]*»")  # what somebody in the story says asks nothing of us
_THIS = r"(?:this|that|these|those|it|any(?:thing)?(?:\s+of\s+(?:this|that|it))?)"
# "Don't save that village" is about a village: after verbs that have other uses, "that" must be all that is named.
_ALL = r"(?=\s*(?:$|[.,:;!?)\n–—-]|please\b|anywhere\b|(?:in|to)\s+(?:your|the)\s+(?:memory|notes|log)\b))"
_KEEP = (
    rf"(?:(?:remember|memori[sz]e)\s+(?:{_THIS}|what|my|the\s+following)\b"
    rf"|(?:store|save|record|note|keep|log|write\s+down)\s+{_THIS}{_ALL}"
    r"|(?:store|save|record|note|keep|log|write\s+down)\s+what\s+i\b"
    rf"|(?:make|keep)\s+(?:a\s+|any\s+)?(?:memory|memories|notes?|records?)\s+of\s+{_THIS}{_ALL})"
)
_ASKS = re.compile(
    r"(?:^|[.!?;:,(\n–—-]\s*|\b(?:and|but|so|then|just)\s+)"  # a request begins a clause
    r"(?:(?:please|pls|hey|ok(?:ay)?|oh|also|now|btw|by\s+the\s+way)[\s,]+){0,3}"
    r"(?:"
    rf"(?:do\s+not|don['’]?t|never|you\s+(?:must\s+not|mustn['’]t|should\s+not|shouldn['’]t)|(?:can|could|would)\s+you"
    rf"\s+(?:please\s+)?not|i\s+(?:do\s+not|don['’]?t)\s+want\s+you\s+to|i['’]d\s+rather\s+you\s+did(?:n['’]t|\s+not))"
    rf"\s+(?:please\s+|ever\s+)?{_KEEP}"
    r"|(?:(?:this|that|it|what\s+follows)(?:\s+is|['’]s)\s+|keep\s+(?:this|that|it)\s+|strictly\s+)?off\s+the\s+record\b"
    r"|forget\s+(?:this|that|it|what)\s+i\s+(?:just\s+)?(?:said|told|wrote|mentioned)\b"
    r"|forget\s+(?:that\s+)?i\s+(?:just\s+)?(?:said|told|wrote|mentioned)\b"
    r"|(?:keep|leave)\s+(?:this|that|it)\s+out\s+of\s+(?:your|the)\s+(?:memory|memories|notes|log)\b"
    r")(?P<rest>[^.!?\n]*[.!?]?)",
    re.IGNORECASE,
)


def off_record(message: str) -> bool:
    """Whether a message asks, in English, that it not be remembered: "don't remember this", "off the record".

    What stands in quotation marks asks nothing, nor does a question ("don't remember that, do you?"), nor a statement
    ("I don't remember this").
    """
    return any(not found["rest"].endswith("?") or "you" in found[0][:12].lower() for found in _asks(message))


def _asks(message: str) -> list[re.Match[str]]:
    return list(_ASKS.finditer(_QUOTED.sub(" ", message)))
