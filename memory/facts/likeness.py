"""Likeness: whether two facts say the same in other words.

No model is asked. Another number, a negation, another subject, value or speaker tells two facts apart, however much
they sound alike. After that the share of common words decides, and the cosine if the store has vectors. The thresholds
were measured on the wordings in `tests/wordings.py`; `docs/figures.md` says how well they separate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from questbook.memory.text.words import content_stems, is_negated, names_in, normalize, numbers_in

_MIN_CONTAINED = 0.6  # share of common words, if one text has all words of the other
_MIN_SAME_VALUE = 0.4  # is enough, if subject, attribute and value are the same
_MIN_COSINE = 0.5  # is required in addition, if there are vectors


def is_same_fact(record: Mapping[str, Any], other: Mapping[str, Any], cosine: float | None = None) -> bool:
    """Return whether two facts are one, by the fields of their records and, if there is one, their texts' cosine."""
    text, other_text = str(record.get("text", "")), str(other.get("text", ""))
    if _voice(record) != _voice(other):
        return False
    one_slot = bool(record.get("slot")) and record.get("slot") == other.get("slot")
    words, other_words = content_stems(text), content_stems(other_text)
    common = len(words & other_words) / len(words | other_words) if words | other_words else 0.0
    if not one_slot and common < _MIN_SAME_VALUE:  # by far most pairs: nothing below would make them one
        return False
    value, other_value = _words(record, "value"), _words(other, "value")
    if normalize(text) == normalize(other_text):
        return not one_slot or value == other_value
    if numbers_in(text) != numbers_in(other_text) or is_negated(text) != is_negated(other_text):
        return False
    subject, other_subject = _words(record, "subject"), _words(other, "subject")
    both_subjects = bool(subject and other_subject)
    if both_subjects and not _one_has_all(subject, other_subject):
        return False
    same_value = bool(value) and value == other_value
    if one_slot and (value or other_value):
        return same_value
    if value and other_value and not value & other_value:
        return False
    if cosine is not None and cosine < _MIN_COSINE:
        return False
    if not (both_subjects or _same_name_order(text, other_text)):
        return False
    if _one_has_all(words, other_words):
        return common >= (_MIN_SAME_VALUE if same_value else _MIN_CONTAINED)
    # Each text has a word that the other lacks: "bell" and "book", "stole" and "bought". No embedder that was measured
    # tells those from two wordings of one fact, so the fields must agree.
    attribute = _words(record, "attribute") & _words(other, "attribute")
    return both_subjects and same_value and bool(attribute) and common >= _MIN_SAME_VALUE


def _voice(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind and the speaker: a rumour that comes true is a new fact, and so is a secret that comes out."""
    kind = str(record.get("kind", ""))
    return kind if kind in ("secret", "rumour", "insight") else "", normalize(str(record.get("claimed_by", "")))


def _words(record: Mapping[str, Any], field: str) -> frozenset[str]:
    return content_stems(str(record.get(field, "")))


def _one_has_all(words: frozenset[str], other: frozenset[str]) -> bool:
    return words | other in (words, other)


def _same_name_order(text: str, other: str) -> bool:
    """Whether names of both texts come in the same order: "Oda hates Goran" is not "Goran hates Oda"."""
    first, second = dict.fromkeys(names_in(text)), dict.fromkeys(names_in(other))
    return [name for name in first if name in second] == [name for name in second if name in first]


def ends_another(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether a fact says that a value has ended which another fact of its slot does not have.

    "No longer Paris" ends nothing of "Oslo". A value is compared if it is a name: "no longer there" may mean any.
    """
    begin, _, ended = str(new.get("value", "")).partition(" longer ")
    if begin.casefold() != "no" or not names_in(ended):
        return False
    return content_stems(ended).isdisjoint(content_stems(str(old.get("value", ""))))
