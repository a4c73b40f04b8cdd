"""Called: whom a question means, that names them as others call them.

“People call Goran the Heron” is found by the words of the question, but what else is known of Goran need not say so.
"""

from __future__ import annotations

from collections.abc import Iterable

from memory.keyed import Keyed
from memory.wording import normal

# Attributes under which a model notes another name of somebody.
_NAMING = frozenset(
    {
        "name",
        "full name",
        "true name",
        "real name",
        "nickname",
        "alias",
        "aliases",
        "called",
        "known as",
        "also known as",
    }
    | {"title", "epithet", "byname", "other name", "goes by"}
)
_MOST = 3  # names that are added to one question


def also_called(found: Iterable[Keyed], question: str) -> list[str]:
    """Return the names, not in the question, of those whom it calls otherwise, the best known first; at most three.

    Args:
        found: What was recalled for the question: records of facts with `subject`, `attribute` and `value`.
        question: The question.
    """
    asked, names = f" {normal(question)} ", dict[str, str]()
    for one in found:
        if normal(str(one.value.get("attribute", ""))) not in _NAMING:
            continue
        subject, value = (str(one.value.get(field, "")) for field in ("subject", "value"))
        for said, name in ((value, subject), (subject, value)):
            if _within(said, asked) and normal(name) and not _within(name, asked):
                names.setdefault(normal(name), name)
    return list(names.values())[:_MOST]


def _within(name: str, asked: str) -> bool:
    words = normal(name).removeprefix("the ")
    return bool(words) and f" {words} " in asked
