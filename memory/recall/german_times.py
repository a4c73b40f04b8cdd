"""German words of time in English ones: "in drei Wochen" becomes "in three weeks", for the rules that read English."""

from __future__ import annotations

import re

_NUMBERS = {
    "ein": "one", "eine": "one", "einem": "one", "einer": "one", "einen": "one", "eines": "one", "zwei": "two",
    "drei": "three", "vier": "four", "fünf": "five", "sechs": "six", "sieben": "seven", "acht": "eight", "neun": "nine",
    "zehn": "ten", "elf": "eleven", "zwölf": "twelve", "paar": "few",
}  # fmt: skip
_UNITS = {"minute": "minute", "stunde": "hour", "tag": "day", "woche": "week", "monat": "month", "jahr": "year"}
_MONTHS = {
    "januar": "January", "jänner": "January", "februar": "February", "märz": "March", "april": "April", "mai": "May",
    "juni": "June", "juli": "July", "august": "August", "september": "September", "oktober": "October",
    "november": "November", "dezember": "December",
}  # fmt: skip
_NAMES = tuple(dict.fromkeys(_MONTHS.values()))
_WEEKDAYS = {
    "montag": "Monday", "dienstag": "Tuesday", "mittwoch": "Wednesday", "donnerstag": "Thursday", "freitag": "Friday",
    "samstag": "Saturday", "sonnabend": "Saturday", "sonntag": "Sunday",
}  # fmt: skip
_NUMBER = rf"\d{{1,4}}|{'|'.join(_NUMBERS)}"
_UNIT = r"(?P<unit>minute|stunde|tag|woche|monat|jahr)(?:en|es|e|n|s)?"
_NAMED = "|".join((*_MONTHS, *_WEEKDAYS))
_NEXT, _LAST = r"(?:nächste|kommende|folgende)[nmrs]?", r"(?:letzte|vergangene|vorige)[nmrs]?"
_WORDS = (
    (r"\bguten morgen\b|\b(?:jeden|am|der|den) morgen\b", " "),
    (r"\bheute morgen\b|\bheute (?:früh|vormittag)\b", "this morning"),
    (r"\bübermorgen\b", "day after tomorrow"),
    (r"\bvorgestern\b", "day before yesterday"),
    (r"\bmorgen\b", "tomorrow"),
    (r"\bgestern\b", "yesterday"),
    (r"\bheute (?:abend|nacht)\b", "tonight"),
    (r"\bheute\b", "today"),
    (r"\bwochenendes?\b", "weekend"),
    (r"\bübernächste[nmrs]? (?=woche)", "after next "),
    (r"\bvorletzte[nmrs]? (?=woche)", "before last "),
    (rf"\b{_NEXT}\b", "next"),
    (rf"\b{_LAST}\b", "last"),
    (r"\bdiese[nmrs]?\b(?= (?:woche|monat|jahr|weekend|\w+tag\b|mittwoch))", "this"),
    (r"\bin den (?=next )", "in the "),
)
_GERMAN_WORDS = tuple((re.compile(pattern, re.I), english) for pattern, english in _WORDS)
_BACK = re.compile(rf"\bvor (?P<n>{_NUMBER}) {_UNIT}\b", re.I)
_FORTH = re.compile(rf"\bin (?P<n>{_NUMBER}) {_UNIT}\b", re.I)
_FEW = re.compile(rf"\b(?P<which>next|last) (?P<n>{_NUMBER}) {_UNIT}\b", re.I)
_THIS = re.compile(rf"\b(?P<which>next|last|this|after next|before last) {_UNIT}\b", re.I)
# Without a year only behind a preposition: "2.1." may be a chapter.
_NUMERIC = re.compile(
    r"(?:(?P<prep>\b(?:am|vom|zum|bis|ab|den|dem|und)\s+)|(?<![\d.]))(?P<d>[0-3]?\d)\.\s?(?P<m>0?[1-9]|1[0-2])\."
    r"(?:\s?(?P<y>\d{4})\b|(?(prep)(?!\d)|(?!)))",
    re.I,
)
_ORDINAL = re.compile(r"\b(\d{1,2})\.(?=\s?(?:(?:bis|und)\b|[-–]|[A-Za-zä]))")
_NAME = re.compile(rf"\b({_NAMED})s?\b", re.I)
_MAY_BE_GERMAN = re.compile(
    rf"\b(?:(?:über)?morgen|(?:vor)?gestern|heute|vor|{_NEXT}|{_LAST}|übernächste\w?|vorletzte\w?|diese\w?|{_NAMED}s?)\b"
    rf"|\bin (?:{_NUMBER}) (?:tag|woche|monat|jahr)|\d\.\s?\d{{1,2}}\.(?:\s?\d{{4}})?",
    re.I,
)


def in_english(text: str) -> str:
    """Return a text with its German words of time in English; any other text as it is."""
    if not _MAY_BE_GERMAN.search(text):
        return text
    text = _NUMERIC.sub(_written_out, text)
    for pattern, english in _GERMAN_WORDS:
        text = pattern.sub(english, text)
    text = _BACK.sub(lambda match: f"{_count(match)} ago", text)
    text = _FORTH.sub(lambda match: f"in {_count(match)}", text)
    text = _FEW.sub(lambda match: f"{match['which']} {_count(match)}", text)
    text = _THIS.sub(_one_unit, text)
    text = _ORDINAL.sub(r"\1", text)
    text = re.sub(r"\bbis(?: zum)?\s+(?=\d)", "to ", text, flags=re.I)
    text = re.sub(r"\b(?:vom|am|ab)\s+(?=\d)", "on ", text, flags=re.I)
    names = _MONTHS | _WEEKDAYS
    text = _NAME.sub(lambda match: names[match[1].lower()], text)
    return re.sub(rf"\b(?:im|ab|bis|seit) (?=(?:next |last )?(?:{'|'.join(_NAMES)})\b)", "in ", text, flags=re.I)


def _count(match: re.Match[str]) -> str:
    return f"{_NUMBERS.get(match['n'].lower(), match['n'])} {_UNITS[match['unit'].lower()]}s"


def _one_unit(match: re.Match[str]) -> str:
    which, unit = match["which"].lower(), _UNITS[match["unit"].lower()]
    return f"the {unit} {which}" if " " in which else f"{which} {unit}"


def _written_out(match: re.Match[str]) -> str:
    return f"{match['prep'] or ''}{match['d']} {_NAMES[int(match['m']) - 1]} {match['y'] or ''}".rstrip()
