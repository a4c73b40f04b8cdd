"""Roots: the words of a sentence that count when something is looked for in memory, each in one form."""

from __future__ import annotations

import re

from questbook.graphs.offline.storyteller.tale import stem

_PLAIN_WORDS = (
    "a an the of to at in on and or but with that this these those is are was were be been am do does did done "
    "has have had i me my mine you your we us our he she it they them his her its their what who whom whose "
    "where when why how which about say said tell told know knew remember recall learn learnt hear heard think "
    "thing says call called ask asked answer answered there here for from by as if whether so not no any some "
    "again please would could should will can may into out up down over still ever exactly just really name "
)
_PLAIN = set(_PLAIN_WORDS.split())
_ALIKE = {
    "mum": "mother",
    "mom": "mother",
    "dad": "father",
    "passphrase": "password",
    "watchword": "password",
    "blade": "sword",
    "hid": "hide",
    "hidden": "hide",
    "gave": "give",
    "given": "give",
    "took": "take",
    "taken": "take",
    "found": "find",
    "bought": "buy",
    "sold": "sell",
    "wrote": "write",
    "written": "write",
    "met": "meet",
    "carved": "carve",
    "buried": "bury",
    "promised": "promise",
    "swore": "swear",
    "sworn": "swear",
    "fought": "fight",
    "named": "name",
    "lived": "live",
    "came": "come",
    "went": "go",
    "kept": "keep",
    "lost": "lose",
    "left": "leave",
    "brought": "bring",
    "taught": "teach",
    "made": "make",
    "built": "build",
    "sent": "send",
    "stole": "steal",
    "stolen": "steal",
    "broke": "break",
    "broken": "break",
    "paid": "pay",
    "saw": "see",
    "seen": "see",
    "born": "bear",
    "died": "die",
    "dead": "die",
    "killed": "kill",
    "siblings": "sister",
    "wore": "wear",
    "worn": "wear",
    "want": "goal",
}


def roots(text: str) -> list[str]:
    """Return the words that count, in order, each once."""
    found = re.findall(r"[^\W_]+", text.casefold().replace("'s", "").replace("’s", ""))
    stems = (_ALIKE.get(word, _ALIKE.get(stem(word), stem(word))) for word in found if word not in _PLAIN)
    return list(dict.fromkeys(stems))


def bases(words: list[str]) -> set[str]:
    """Add to words what past forms may come from: "kicked" answers to "kick", "hoped" to "hope", "robbed" to "rob"."""
    past = [word for word in words if len(word) > 4 and word.endswith("ed")]
    return {*words, *(word[:-cut] for word in past for cut in (1, 2, 3))}
