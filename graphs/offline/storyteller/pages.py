"""Pages: questions that the two notebooks answer: who one is, what one is about, and what has happened so far."""

from __future__ import annotations

import re
from collections.abc import Callable

from questbook.graphs.offline.storyteller.language import (
    addressed,
    article,
    entries,
    load,
    lower,
    pattern,
    roots,
    series,
    spoken,
)
from questbook.graphs.offline.storyteller.past import Past
from questbook.types import JSON

_DEED = re.compile(r"(?:grew|was|were|lived|came|served|worked|used|kept|left|ran|lost|sailed|fought|learnt|learned)\b")
_FELLOWS, _FACTS, _TURNS = 6, 4, 4
"""How many people, facts and turns a recap tells, the last ones."""


def asked(words: str) -> str:
    """Say what of the pages a player asks for, by its name in questions.toml; "" for other words."""
    plain = pattern("questions", "before_page").sub("", " ".join(words.split())[:200]).strip(" .!?…")
    plain = pattern("questions", "after_page").sub("", plain)
    return next(
        (about for about in load("questions")["pages"] if pattern("questions", "pages", about).fullmatch(plain)), ""
    )


def tell(about: str, past: Past) -> str:
    """Answer a question that `asked` has named from the pages; "" if they do not say."""
    if about in _OF_QUEST:
        return _OF_QUEST[about](past.page)
    if about in ("self", "recap"):
        return _self(past) if about == "self" else _recap(past)
    field = str(past.character.get(about) or "").strip(" .")
    forms = {
        "name": f"You are {field}.",
        "class": f"You are {article(field)}.",
        "ancestry": f"You are {article(field)}.",
        "background": _background(field),
        "goal": f"What you want is this: {spoken(field)}.",
    }
    return forms.get(about, f"Your {about}, as your page has it: {addressed(field)}.") if field else ""


def _self(past: Past) -> str:
    kind = " ".join(str(past.character.get(part) or "") for part in ("ancestry", "class")).strip()
    name = str(past.character.get("name") or "")
    who = f"You are {', '.join(filter(None, [name, article(kind)]))}." if name or kind else ""
    parts = (tell(part, past) for part in ("background", "appearance", "personality", "goal"))
    return " ".join(filter(None, [who, *parts]))


def _background(text: str) -> str:
    if text.startswith("from "):
        return f"You come {addressed(text)}."
    return f"You {addressed(f'i {text}')[4:]}." if _DEED.match(text) else f"Where you come from: {addressed(text)}."


def _day(page: JSON) -> str:
    clock = page.get("clock") or {}
    return f"It is {clock.get('time') or 'daytime'} of day {clock.get('day') or 1}."


def _open_quests(page: JSON) -> dict[str, str]:
    quests = entries(page.get("quests"))
    return {title: str(quest.get("notes") or "") for title, quest in quests if quest.get("status") == "open"}


def _quest(page: JSON) -> str:
    quests = " ".join(f"“{title}”: {notes}" for title, notes in _open_quests(page).items())
    objective = lower(str(page.get("objective") or ""))
    about = f"What you are about: {objective}." if objective else ""
    return f"Your quest is {quests} {about}".strip() if quests else about or "You have no quest at the moment."


def _quests(page: JSON) -> str:
    quests = entries(page.get("quests"))
    return " ".join(f"“{title}” ({quest.get('status')}): {quest.get('notes')}" for title, quest in quests)


def _giver(page: JSON) -> str:
    """Say who offered the open quest: whoever of the people met its notes name, by name or by role."""
    for title, notes in _open_quests(page).items():
        words = set(roots(notes.replace("-", " ")))
        for name, person in entries(page.get("people")):
            role = str(person.get("role") or "")
            if words & set(roots(name)) or (role and set(roots(role.replace("-", " "))) & words):
                return f"“{title}” came to you from {name}{f', {article(role)}' if role else ''}. {notes}"
        return f"“{title}”: {notes}"
    return ""


def _recap(past: Past) -> str:
    page = past.page
    people = entries(page.get("people"))[-_FELLOWS:]
    facts = entries(page.get("facts"))[-_FACTS:]
    did = [words.strip(" .") for words, _ in past.exchanges[-_TURNS:] if not words.rstrip().endswith("?")]
    met = [f"{name} ({person['role']})" if person.get("role") else name for name, person in people]
    told = [
        _quests(page),
        f"You have met {series(met)}." if met else "",
        f"You have learnt: {'; '.join(f'{subject}: {fact}' for subject, fact in facts)}." if facts else "",
        f"Of late you said: “{'”, “'.join(did)}”." if did else "",
        str(page.get("scene") or ""),
    ]
    return " ".join(filter(None, told))


_OF_QUEST: dict[str, Callable[[JSON], str]] = {"quest": _quest, "quests": _quests, "giver": _giver, "day": _day}
