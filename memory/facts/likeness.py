"""Likeness: whether two records of facts say the same in other words.

No model is asked. A number, a denial, another subject, another value or another voice tells two facts apart however
alike they sound; after that, words in common count, and the cosine if the store has one. The thresholds were measured
on the wordings in `tests/wordings.py`; `docs/memory.md` tells how well they part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from questbook.memory.text.wording import content_stems, is_negated, names_in, normalize, numbers_in

_CONTAINED = 0.6  # words in common, out of all of both, where one text only says more than the other
_SAME_VALUE = 0.4  # enough if subject, attribute and value are the same
_NEAR = 0.5  # cosine that is needed besides, if there are vectors


def alike(one: Mapping[str, Any], other: Mapping[str, Any], cosine: float | None = None) -> bool:
    """Whether two facts are one.

    Args:
        one: A fact's record, or as much of it as is known: `text`, `subject`, `value`, `slot`, `kind`, `claimed_by`.
        other: Another.
        cosine: Cosine of their texts; None if there are no vectors.
    """
    first, second = str(one.get("text", "")), str(other.get("text", ""))
    if _voice(one) != _voice(other):
        return False
    if normalize(first) == normalize(second):
        return not _other_value(one, other)
    if numbers_in(first) != numbers_in(second) or is_negated(first) != is_negated(second):
        return False
    subjects, values = _pair(one, other, "subject"), _pair(one, other, "value")
    if all(subjects) and not (subjects[0] <= subjects[1] or subjects[1] <= subjects[0]):
        return False
    same_value = bool(values[0]) and values[0] == values[1]
    if one.get("slot") and one.get("slot") == other.get("slot") and any(values):
        return same_value
    if all(values) and not values[0] & values[1]:
        return False
    if cosine is not None and cosine < _NEAR:
        return False
    if not (all(subjects) or _same_order(first, second)):
        return False
    a, b = content_stems(first), content_stems(second)
    common = len(a & b) / len(a | b) if a | b else 0.0
    if a <= b or b <= a:
        return common >= (_SAME_VALUE if same_value else _CONTAINED)
    # Each says a word that the other does not: "bell" and "book", "stole" and "bought". No embedder that was measured
    # parts those from two wordings of one fact, so the fields must agree.
    attributes = _pair(one, other, "attribute")
    return all(subjects) and same_value and bool(attributes[0] & attributes[1]) and common >= _SAME_VALUE


def _voice(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return who says it and how it is meant: a rumour that turns out true is a new fact, as is a secret let out."""
    kind = str(record.get("kind", ""))
    return kind if kind in ("secret", "rumour", "insight") else "", normalize(str(record.get("claimed_by", "")))


def _pair(one: Mapping[str, Any], other: Mapping[str, Any], field: str) -> tuple[frozenset[str], frozenset[str]]:
    return content_stems(str(one.get(field, ""))), content_stems(str(other.get(field, "")))


def _other_value(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    a, b = _pair(one, other, "value")
    return bool(one.get("slot")) and one.get("slot") == other.get("slot") and a != b


def _same_order(first: str, second: str) -> bool:
    """Whether names that both texts have come in the same order: "Oda hates Goran" is not "Goran hates Oda"."""
    a, b = names_in(first), names_in(second)
    shared = set(a) & set(b)
    return list(dict.fromkeys(n for n in a if n in shared)) == list(dict.fromkeys(n for n in b if n in shared))
