"""Hearsay: what somebody said about something, found among the exchanges of the past."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from questbook.graphs.offline.storyteller.roots import roots

JSON = dict[str, Any]

_ASKED = re.compile(
    r"\bwhat (?:did|had|has|have|does|do) (?!(?:i|we)\b)(?P<who>.+?) (?:just |ever |already )?"
    r"(?:say|said|tell|told|answer|answered|reply|replied|explain|explained|mention|mentioned)\b"
    r"(?: to)?(?: me| us)?(?: (?:about|of|on|regarding|concerning)\b)?(?P<what>.*)",
    re.IGNORECASE,
)
_SOMEBODY = re.compile(r"(?:he|she|they|it|you|that \w+|everybody|everyone|people|anybody|anyone)", re.IGNORECASE)


class Exchange(NamedTuple):
    """What the player said, what was told, and how long ago, in words."""

    player: str
    reply: str
    when: str


def heard(question: str, page: JSON, past: Sequence[Exchange]) -> list[tuple[str, str]]:
    """Find what somebody said about something.

    Args:
        question: The player's words, "What did Joss say about the bell?".
        page: The quest's page, for who is who.
        past: The exchanges, oldest first, without what is no news.

    Returns:
        At most two paragraphs in which somebody speaks, the best first, each with how long ago; none if the question is
        another one, or nobody who fits spoke of it.
    """
    asked = _ASKED.search(question.strip(" ?.!"))
    if asked is None:
        return []
    if asked["who"].casefold() == "you" and not asked["what"].strip():
        return []
    who, others = _who(asked["who"], page)
    about = set(roots(asked["what"]))
    found: list[tuple[bool, float, int, str, str]] = []
    for order, (player, reply, when) in enumerate(past):
        for paragraph in reply.split("\n\n"):
            told = " ".join(paragraph.split())
            if "“" not in told:
                continue
            narrated = set(roots(f"{player} {re.sub('“[^”]*”', ' ', told)}"))
            named = not who or bool(who & narrated)
            share = len(about & set(roots(f"{player} {told}"))) / len(about) if about else float(named)
            if share >= 0.5 and (named or not others & narrated):
                found.append((named, share, order, told, when))
    found.sort(key=lambda one: one[:3], reverse=True)
    return [(told, when) for *_, told, when in found[:2]]


def _who(called: str, page: JSON) -> tuple[set[str], set[str]]:
    """Return the words that name whom the player means, and those that name the other people of the page."""
    who = set() if _SOMEBODY.fullmatch(called.strip()) else set(roots(called))
    others: set[str] = set()
    people = page.get("people")
    for name, person in people.items() if isinstance(people, Mapping) else ():
        role = str(person.get("role") or "") if isinstance(person, Mapping) else ""
        if who & set(roots(f"{name} {role}")):
            who |= set(roots(str(name)))
        else:
            others |= set(roots(str(name)))
    return who, others - who
