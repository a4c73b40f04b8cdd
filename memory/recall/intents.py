"""What a question asks for beside facts, and what a message of a person asks for good: patterns, English and German.

A question may ask for an order of events, a summary or advice. A message may tell an assistant what to do from now on
("Always answer in metric units") or say what its writer likes ("I'd rather take the train").

The expressions are in intents.toml, those of "off the record" in off_record.toml.
"""

import re
import tomllib
from importlib.resources import files

from questbook.memory.text.parts import fill, in_one_line, read_parts
from questbook.memory.text.passages import Span

_LONGEST = 2_000  # characters of a question or a sentence that are read
_MOST_SENTENCES = 6  # of a message, at each end; what lies between them is mostly pasted

_LISTS = tomllib.loads(files("questbook.memory.recall").joinpath("intents.toml").read_text("utf-8"))
_EXPRESSIONS = {name: [in_one_line(each) for each in expressions] for name, expressions in _LISTS.items()}
_WORDS = {name: "|".join(expressions) for name, expressions in _EXPRESSIONS.items()}
_ORDER = re.compile(rf"\b(?:{_WORDS['order']})\b", re.I)
_SUMMARY = re.compile(rf"(?i)\b(?:{_WORDS['summary']})\b")
_ADVICE = re.compile(rf"(?i)\b(?:{_WORDS['advice']})")
_TOLD = re.compile(f"(?i){_WORDS['told']}")
_ABOUT = re.compile(f"(?i){_WORDS['about']}")
_PREFERS = re.compile(_WORDS["prefers"], re.I)
_PARTS = {
    "LEAD": rf"^\W*(?:(?:{_WORDS['lead']})\b\W*){{0,3}}",
    "DO": rf"(?:{_WORDS['do']})\b",
    "TU": rf"(?:{_WORDS['tu']})\b(?! (?:ich|er|wir|man)\b)",
    "EVER": f"(?:{_WORDS['ever']})",
    "IMMER": f"(?:{_WORDS['immer']})",
    "ASKED": f"(?:{_WORDS['asked']})",
    "NO_ORDER": rf"(?!(?:{_WORDS['no_order']})\b)",
}
_STANDING = tuple(re.compile(fill(each, _PARTS), re.I) for each in _EXPRESSIONS["standing"])
_QUOTED = re.compile(
    r",\s+(?:my|his|her|our|the|he|she|they|mein\w*)\b[^,]{0,30}\b(?:say|says|said|tell|told|sagte?)\b", re.I
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
_OFF_RECORD = read_parts("questbook.memory.recall", "off_record.toml", wrapped=True)
_ASKS = re.compile(_OFF_RECORD["ASKS"], re.I)
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
